"""What retrieval models expect before a query and before a passage, by model name."""

from __future__ import annotations

_BGE = "Represent this sentence for searching relevant passages: "

# Part of the model's name -> (query prefix, document prefix), from the models' cards. The first that fits
# counts.
_KNOWN = (
    ("nomic-embed", ("search_query: ", "search_document: ")),
    ("embeddinggemma", ("task: search result | query: ", "title: none | text: ")),
    ("snowflake-arctic-embed2", ("query: ", "")),
    ("snowflake-arctic-embed-l-v2", ("query: ", "")),
    ("snowflake-arctic-embed-m-v2", ("query: ", "")),
    ("snowflake-arctic-embed", (_BGE, "")),
    ("mxbai-embed-large", (_BGE, "")),
    ("bge-m3", ("", "")),
    ("bge-small-en", (_BGE, "")),
    ("bge-base-en", (_BGE, "")),
    ("bge-large", (_BGE, "")),
    ("multilingual-e5-large-instruct", ("", "")),
    ("e5-", ("query: ", "passage: ")),
    (
        "qwen3-embedding",
        ("Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:", ""),
    ),
)


def prefixes(model: str) -> tuple[str, str]:
    """(query prefix, document prefix) of a model; empty strings for one that is not known to want any."""
    name = model.lower()
    return next((pair for part, pair in _KNOWN if part in name), ("", ""))
