"""What embedding costs: speeds measured here, list prices of services, limits. One table for all pages."""

from __future__ import annotations

from ragnar_core import Store
from ragnar_core.chunking.report import EmbeddingCost
from ragnar_core.embedding.bundled import BGE_SMALL
from ragnar_core.embedding.bundled import WORDLLAMA as WORDLLAMA_FILES

BGE = "bge-small-en-v1.5 (built in)"
WORDLLAMA = "wordllama-256 (built in, fast, less exact)"

# Speeds: tokens a second on the two-core machine they were measured on, texts of 1,600 characters. Prices: what we
# know of list prices in USD a million tokens; they change, and the Build page lets a person put in another.
MODELS = {
    cost.label: cost
    for cost in (
        EmbeddingCost(BGE, 512, 2_400),
        EmbeddingCost(WORDLLAMA, None, 560_000),
        EmbeddingCost("OpenAI text-embedding-3-small", 8191, None, 0.02),
        EmbeddingCost("OpenAI text-embedding-3-large", 8191, None, 0.13),
        EmbeddingCost("Google gemini-embedding-001", 2048, None, 0.15),
    )
}


def cost_of(store: Store) -> EmbeddingCost:
    """What the model of a store costs; without speed and price where it is none of these."""
    model = str((store.embed_config or {}).get("model", ""))
    built_in = {BGE_SMALL.name: MODELS[BGE], WORDLLAMA_FILES.name: MODELS[WORDLLAMA]}
    return built_in.get(model) or EmbeddingCost(model or "none", dollars_per_million=price_of(model))


def price_of(model: str) -> float:
    """USD a million tokens of a service's model by the name the service gives it; 0 where it is not known."""
    return next(
        (cost.dollars_per_million for label, cost in MODELS.items() if label.endswith(" " + model)), 0.0
    )
