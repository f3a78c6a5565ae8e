"""Read documents, chunk, embed, store, index and retrieve; ragnar's pipeline in Python.

The whole public API stands here, in pipeline order. Importing it loads no model and touches no network.
"""

from __future__ import annotations

from ragnar_core.chunking import Boundaries, Chunks, ChunkSettings, markdown_chunk
from ragnar_core.documents import (
    CrawlProgress,
    CrawlResult,
    CrawlSettings,
    CrawlState,
    FetchSettings,
    Links,
    MarkdownDocument,
    ReadReport,
    Shelf,
    crawl,
    find_links,
    load_documents_csv,
    load_documents_excel,
    load_documents_pdf,
    load_documents_txt,
    read_as_markdown,
    read_bytes,
)
from ragnar_core.embedding import (
    Embedder,
    FunctionEmbedder,
    default_available,
    embed_default,
    embed_static,
    embedder_from_config,
)
from ragnar_core.errors import (
    ChunkError,
    CrawlError,
    DocumentError,
    EmbedError,
    FilterError,
    RagnarError,
    RetrievalError,
    StoreError,
)
from ragnar_core.retrieval import (
    chunks_deoverlap,
    retrieve,
    retrieve_bm25,
    retrieve_hybrid,
    retrieve_vss,
)
from ragnar_core.store import (
    Analyzer,
    AnalyzerOptions,
    Finding,
    IndexState,
    IngestProgress,
    IngestSummary,
    Store,
    StoreCounts,
    UpdateResult,
)

__version__ = "0.1.0"
