"""Stores of raghilda (ragnar's sibling in Python), which we read.

Its chunks have ranges that are 0-based and half open. Documents have a text key (a UUID, or since 0.2 their origin); here
they are numbered by their place in the file, so that a document's number is one everywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ragnar_core.store.layout import Layout

SYSTEM_COLUMNS = frozenset(("char_count", "token_count"))


def raghilda_layout(columns: Collection[str]) -> Layout:
    """The layout of a file whose table `embeddings` has these columns."""
    key = "doc_id" if "doc_id" in columns else "origin"
    own = "e.* EXCLUDE (doc_id)" if key == "doc_id" else "e.*"
    return Layout(
        kind="raghilda",
        version=2,
        table=f"(SELECT {own}, d.rowid + 1 AS doc_id FROM embeddings e JOIN documents d USING ({key}))",
        doc_id="doc_id",
        start="start_index",
        end="end_index",
        chunk_sequence="chunk_id_seq",
        doc_sequence=None,
        documents="(SELECT rowid + 1 AS doc_id, origin, text FROM documents)",
    )


def embed_config_of_raghilda(config: Mapping[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """(our configuration for the same model, or None where we have none; what the file says, for people)."""
    kind, model = str(config.get("type")), config.get("model")
    said = f"{kind}(model={model!r})"
    if kind == "EmbeddingOpenAI" and isinstance(model, str):
        found = {"provider": "openai", "model": model, "query_prefix": "", "document_prefix": ""}
        if isinstance(config.get("base_url"), str):
            found["base_url"] = config["base_url"]
        return found, said
    return None, said
