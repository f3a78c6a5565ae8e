"""Stores of raghilda (ragnar's sibling in Python), which we read.

Its chunks have ranges that are 0-based and half open. Documents have a text key (a UUID, or since 0.2 their origin); here
they are numbered by their place in the file, so that a document's number is one everywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ragnar_core.store.layout import Layout

SYSTEM_COLUMNS = frozenset(("char_count", "token_count"))


RAGHILDA = Layout("raghilda", 2, "embeddings", "doc_id", "start_index", "end_index", "chunk_id_seq", None)


def raghilda_views(columns: Collection[str], database: str) -> str:
    """Statements that put temporary views, with numbers for documents, before the tables of a file whose table
    `embeddings` has these columns. Every cursor needs them."""
    main = '"' + database.replace('"', '""') + '".main'
    key, own = ("doc_id", "e.* EXCLUDE (doc_id)") if "doc_id" in columns else ("origin", "e.*")
    return (
        f"CREATE TEMP VIEW documents AS SELECT rowid + 1 AS doc_id, origin, text FROM {main}.documents;"
        f"CREATE TEMP VIEW embeddings AS SELECT {own}, d.rowid + 1 AS doc_id "
        f"FROM {main}.embeddings e JOIN {main}.documents d USING ({key})"
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
