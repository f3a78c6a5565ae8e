"""Results that fit a number of tokens, as for the context of a language model."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np
import pandas as pd

from ragnar_core.chunking.breaks import sentence_starts
from ragnar_core.errors import RetrievalError

CUT = " […]"
DENSE = re.compile("[぀-ヿ㐀-鿿豈-﫿가-힯\U00020000-\U0003ffff]")


def estimate_tokens(text: str) -> int:
    """About how many tokens a text has: one for each Chinese, Japanese or Korean character, one for each four others.

    Raises RetrievalError for what is no text.
    """
    if not isinstance(text, str):
        raise RetrievalError(f"tokens are estimated for a text, not for {type(text).__name__}")
    dense = len(DENSE.findall(text))
    return dense + math.ceil((len(text) - dense) / 4)


def fit_tokens(
    results: pd.DataFrame, max_tokens: int, *, count: Callable[[str], int] = estimate_tokens
) -> pd.DataFrame:
    """The first results whose texts together have at most ``max_tokens`` tokens.

    Rows stay whole while they fit. The first that does not fit is cut behind its last sentence that does,
    marked with `` […]``, and is the last row. A first row of which not one sentence fits is cut at a word, so
    that there is always one row.

    Args:
        count: counts the tokens of a text; the default is ``estimate_tokens``.

    Returns:
        The rows with ``tokens`` and ``cut`` (whether the text was shortened). ``start`` and ``end`` stay
        those of the whole passage.

    Raises:
        RetrievalError: the results are no table with texts, or ``max_tokens`` is no whole number of 1 or more.
    """
    if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < 1:
        raise RetrievalError(f"max_tokens must be a whole number of 1 or more, not {max_tokens!r}")
    if not isinstance(results, pd.DataFrame) or "text" not in results.columns:
        raise RetrievalError("results to fit need the column text; pass the result of a search")
    texts: list[str] = []
    tokens: list[int] = []
    cut = False
    for text in results["text"].tolist():
        left = max_tokens - sum(tokens)
        size = count(text)
        if size > left:
            text = _shortened(text, left, count, whole_sentences=bool(texts))
            size, cut = count(text), True
        if text:
            texts.append(text)
            tokens.append(size)
        if cut:
            break
    kept = results.head(len(texts)).reset_index(drop=True)
    kept["text"] = texts
    kept["tokens"] = np.array(tokens, dtype=np.int64)
    kept["cut"] = [cut and len(texts[at]) < len(results["text"].iloc[at]) for at in range(len(texts))]
    return kept


def _shortened(text: str, left: int, count: Callable[[str], int], *, whole_sentences: bool) -> str:
    """The longest start of the text that ends a sentence (or, for want of one, a word) and fits with its mark."""
    ends = [*(int(start) for start in sentence_starts(text)[1:]), len(text)]
    fitting = [end for end in ends if count(text[:end].rstrip() + CUT) <= left]
    if not fitting and not whole_sentences:
        words = [match.end() for match in re.finditer(r"\S+", text)]
        fitting = [end for end in words if count(text[:end] + CUT) <= left]
        fitting = fitting or [end for end in range(1, len(text)) if count(text[:end] + CUT) <= left]
        return (text[: fitting[-1]] + CUT) if fitting else text[:1]
    return text[: fitting[-1]].rstrip() + CUT if fitting else ""
