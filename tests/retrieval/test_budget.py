from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from ragnar_core.errors import RetrievalError
from ragnar_core.retrieval import estimate_tokens, fit_tokens


def words(text: str) -> int:
    return len(text.split())


def table(*texts: str) -> pd.DataFrame:
    return pd.DataFrame({"chunk_id": range(1, len(texts) + 1), "text": list(texts)})


def test_whole_rows_while_they_fit_and_the_last_cut_at_a_sentence() -> None:
    results = table("One two three.", "Four five. Six seven eight. Nine ten.", "Eleven.")
    found = fit_tokens(results, 9, count=words)
    assert found["text"].tolist() == ["One two three.", "Four five. Six seven eight. […]"]
    assert found["tokens"].tolist() == [3, 6]
    assert found["cut"].tolist() == [False, True]
    assert fit_tokens(results, 100, count=words)["cut"].tolist() == [False, False, False]
    assert fit_tokens(results, 4, count=words)["text"].tolist() == ["One two three."]


def test_there_is_always_one_row() -> None:
    long = table("word " * 900)
    found = fit_tokens(long, 100, count=words)
    assert found["text"][0] == "word " * 98 + "word […]"
    assert len(fit_tokens(long, 1, count=words)) == 1
    assert len(fit_tokens(table("漢字" * 900), 100)) == 1


def test_no_results_give_no_rows() -> None:
    found = fit_tokens(table(), 10)
    assert len(found) == 0
    assert found.columns.tolist() == ["chunk_id", "text", "tokens", "cut"]


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("word", 1), ("words", 2), ("漢字かな", 4), ("한국어 ok", 4)]
)
def test_the_estimate_counts_dense_scripts_apart(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


@pytest.mark.parametrize("max_tokens", [0, -1, 1.5, True, None])
def test_max_tokens_is_a_positive_whole_number(max_tokens: Any) -> None:
    with pytest.raises(RetrievalError, match="max_tokens must be"):
        fit_tokens(table("x"), max_tokens)
