from __future__ import annotations

import threading

import numpy as np
import pytest

from ragnar_core.embedding import (
    EmbedCancelledError,
    EmbedReport,
    EmbedRunError,
    FunctionEmbedder,
    as_embedder,
    embedder_from_config,
)
from ragnar_core.errors import EmbedError


def lengths(texts: list[str]) -> list[list[float]]:
    return [[len(text), 1.0] for text in texts]


def test_blank_texts_are_not_sent_and_keep_their_places():
    seen: list[str] = []

    def spy(texts: list[str]) -> list[list[float]]:
        seen.extend(texts)
        return lengths(texts)

    report = EmbedReport()
    out = FunctionEmbedder(spy, 2).embed(["a", "", "\n \n", None, "\u200b \ufeff", "bbb"], report=report)
    assert seen == ["a", "bbb"]
    assert out.dtype == np.float32
    assert out[[0, 5]].tolist() == [[1.0, 1.0], [3.0, 1.0]]
    assert np.isnan(out[1:5]).all()
    assert report.blank == [1, 2, 3, 4]
    assert report.notes == ["4 texts are blank and have no vector."]


def test_no_text_gives_no_row():
    assert FunctionEmbedder(lengths, 2).embed([]).shape == (0, 2)


def test_only_blank_texts_give_rows_of_nan():
    out = FunctionEmbedder(lengths, 2).embed(["", " "])
    assert out.shape == (2, 2)
    assert np.isnan(out).all()


def test_blank_query_is_an_error_that_says_so():
    with pytest.raises(EmbedError, match="query is blank"):
        FunctionEmbedder(lengths, 2).embed_query(" \n")


def test_several_queries_are_one_call():
    calls = []

    def query(texts):
        calls.append(texts)
        return [[float(len(text)), 1.0] for text in texts]

    embedder = FunctionEmbedder(lengths, 2, query=query)
    assert embedder.embed_queries(["abc", "x"]).tolist() == [[3.0, 1.0], [1.0, 1.0]]
    assert calls == [["abc", "x"]]
    with pytest.raises(EmbedError, match="One of the queries is blank"):
        embedder.embed_queries(["abc", " "])
    with pytest.raises(EmbedError, match="takes a list of texts"):
        embedder.embed_queries("abc")


def test_query_uses_its_own_function():
    embedder = FunctionEmbedder(lengths, 2, query=lambda texts: [[7.0, 7.0]] * len(texts))
    assert embedder.embed_query("x").tolist() == [7.0, 7.0]
    assert embedder.embed(["x"]).tolist() == [[1.0, 1.0]]


def test_one_string_is_refused_rather_than_split_into_letters():
    with pytest.raises(EmbedError, match="list of texts"):
        FunctionEmbedder(lengths, 2).embed("abc")


def test_lone_surrogates_arrive_as_replacement_characters():
    seen: list[str] = []

    def spy(texts: list[str]) -> list[list[float]]:
        seen.extend(texts)
        return lengths(texts)

    FunctionEmbedder(spy, 2).embed(["a\ud800b"])
    assert seen == ["a\ufffdb"]


def test_progress_counts_blank_texts_and_batches():
    calls: list[tuple[int, int]] = []
    embedder = FunctionEmbedder(lengths, 2, batch_size=2)
    embedder.embed(["a", "", "b", "c"], progress=lambda done, total: calls.append((done, total)))
    assert calls == [(3, 4), (4, 4)]


def test_cancel_keeps_what_was_done():
    cancel = threading.Event()

    def progress(done: int, total: int) -> None:
        if done == 2:
            cancel.set()

    embedder = FunctionEmbedder(lengths, 2, batch_size=1)
    with pytest.raises(EmbedCancelledError, match="after 2 of 4 texts") as caught:
        embedder.embed(["a", "bb", "ccc", "dddd"], progress=progress, cancel=cancel)
    assert caught.value.done.tolist() == [True, True, False, False]
    assert caught.value.vectors[:2].tolist() == [[1.0, 1.0], [2.0, 1.0]]
    assert np.isnan(caught.value.vectors[2:]).all()


def test_a_failure_keeps_what_was_done_and_says_what_failed():
    def breaks(texts: list[str]) -> list[list[float]]:
        if "bad" in texts:
            raise RuntimeError("boom")
        return lengths(texts)

    embedder = FunctionEmbedder(breaks, 2, "mine", batch_size=1)
    with pytest.raises(EmbedRunError, match="function mine failed: RuntimeError: boom") as caught:
        embedder.embed(["a", "bad"])
    assert caught.value.done.tolist() == [True, False]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([float("nan"), 1.0], "NaN or infinite numbers for text 3 of 3"),
        ([float("inf"), 1.0], "NaN or infinite numbers for text 3 of 3"),
        ([0.0, 0.0], "vector of zeros for text 3 of 3"),
    ],
)
def test_vectors_that_would_poison_a_store_are_refused(row, message):
    embedder = FunctionEmbedder(lambda texts: [row if t == "bad" else [1.0, 1.0] for t in texts], 2)
    with pytest.raises(EmbedRunError, match=message):
        embedder.embed(["a", "", "bad"])


def test_another_dimension_than_declared_is_refused_with_both_numbers():
    with pytest.raises(EmbedRunError, match="vectors of 2 numbers, expected 3"):
        FunctionEmbedder(lengths, 3).embed(["a"])


def test_a_dimension_that_changes_between_batches_is_refused():
    sizes = iter([2, 3])
    embedder = FunctionEmbedder(lambda texts: np.ones((len(texts), next(sizes))), batch_size=1)
    with pytest.raises(EmbedRunError, match="vectors of 3 numbers, expected 2"):
        embedder.embed(["a", "b"])


def test_fewer_rows_than_texts_are_refused():
    with pytest.raises(EmbedRunError, match=r"got shape \(1, 2\) for 2 texts"):
        FunctionEmbedder(lambda texts: [[1.0, 2.0]], 2).embed(["a", "b"])


def test_the_dimension_of_a_function_is_found_by_calling_it():
    assert FunctionEmbedder(lengths).dim == 2


def test_config_of_a_function_names_it_and_cannot_be_made_again():
    embedder = FunctionEmbedder(lengths, 2)
    assert embedder.config == {"provider": "function", "model": "lengths", "dim": 2}
    with pytest.raises(EmbedError, match=r"'lengths'.*pass the function as embed="):
        embedder_from_config(embedder.config)


def test_an_unknown_provider_is_named():
    with pytest.raises(EmbedError, match=r"provider 'acme' is not known here\. Known: .*builtin"):
        embedder_from_config({"provider": "acme"})


def test_a_setting_that_does_not_exist_is_an_embed_error():
    with pytest.raises(EmbedError, match="settings of the embedding provider builtin do not fit"):
        embedder_from_config({"provider": "builtin", "model": "bge-small-en-v1.5-int8", "colour": "red"})


def test_as_embedder_wraps_a_callable_and_keeps_an_embedder():
    embedder = as_embedder(lengths)
    assert embedder.embed(["abc"]).tolist() == [[3.0, 1.0]]
    assert as_embedder(embedder) is embedder


def test_estimated_tokens_are_a_quarter_of_the_characters_rounded_up():
    embedder = FunctionEmbedder(lengths, 2)
    assert embedder.count_tokens(["", "abcd", "abcde"]).tolist() == [0, 1, 2]
    assert embedder.counts_exactly is False
