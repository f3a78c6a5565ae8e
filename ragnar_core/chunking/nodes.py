"""The positions of a document's Markdown nodes, for looking into what the chunker sees."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ragnar_core.chunking.markdown import parse_nodes
from ragnar_core.chunking.places import Places
from ragnar_core.documents.document import MarkdownDocument


def markdown_node_positions(
    document: MarkdownDocument | str, types: Sequence[str] | None = None
) -> pd.DataFrame:
    """Where each node of the CommonMark tree stands, blocks and what is inside them.

    Args:
        document: a document, or a string, which is normalised first.
        types: the node types wanted ("heading", "paragraph", "code_block", "text", ...); None for all.

    Returns:
        A DataFrame with `type`, `start` and `end` (0-based code points, end exclusive), sorted by start and end.

    Raises:
        DocumentError: the text is not valid Unicode.

    >>> markdown_node_positions("# A\\n\\nText.", types=["heading", "paragraph"]).values.tolist()
    [['heading', 0, 3], ['paragraph', 5, 10]]
    """
    text = document.text if isinstance(document, MarkdownDocument) else MarkdownDocument(document).text
    data = text.encode("utf-8")
    nodes = [node for node in parse_nodes(data) if text and (types is None or node[0] in types)]
    rows = np.array([node[1:] for node in nodes], np.int64).reshape(-1, 4)
    places = Places(data, ascii_only=text.isascii())
    starts, ends = places.at(rows[:, 0], rows[:, 1] - 1), places.at(rows[:, 2], rows[:, 3])
    order = np.lexsort((ends, starts))
    kinds = [nodes[i][0] for i in order.tolist()]
    return pd.DataFrame({"type": kinds, "start": starts[order], "end": ends[order]})
