"""What counts as the same word."""

from __future__ import annotations

import numpy as np
import pytest

from ragnar_core.errors import StoreError
from ragnar_core.store import Analyzer, AnalyzerOptions, postings
from ragnar_core.store.postings import ChunkTerms, PostingsTable, TermCoder, Terms

DEFAULT = Analyzer()


def found(query: str, text: str, analyzer: Analyzer = DEFAULT) -> bool:
    """Whether a search for the query could find the text: they share a term."""
    held = {term for raw in analyzer.raw_tokens(text) for term in analyzer.indexed(raw)[0]}
    return bool(set(analyzer.tokens(query)) & held)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("The running dogs were tired", ["run", "dog", "were", "tire"]),
        ("read_as_markdown", ["read_as_markdown", "read", "markdown"]),
        ("HNSW_INDEX_SCAN", ["hnsw_index_scan", "hnsw", "index", "scan"]),
        ("C++ and C#", ["c++", "c", "c#", "c"]),
        ("node.js", ["node.js", "node", "js"]),
        ("readAsMarkdown", ["readasmarkdown", "read", "markdown"]),
        ("python3.11 v2", ["python3.11", "python3", "11", "v2"]),
        ("2024 report, section 42", ["2024", "report", "section", "42"]),
        ("Straße strasse STRASSE", ["strass", "strass", "strass"]),
        ("résumé resume re\u0301sume\u0301", ["resum", "resum", "resum"]),
        ("it's John's don't", ["john", "dont"]),
        ("ﬁne ＷＩＤＥ x²", ["fine", "wide", "x2"]),
        ("Привет мир, красивый ёж", ["привет", "мир", "красив", "еж"]),
        ("naïve co\u00adoperate", ["naiv", "cooper"]),
        ("__init__ _emphasis_", ["init", "emphasi"]),
        ("日本語", ["日本", "本語", "日", "本", "語"]),
        ("猫", ["猫"]),
        ("한국어 검색", ["한국", "국어", "한", "국", "어", "검색", "검", "색"]),
        ("ภาษาไทยง่าย", ["ภาษา", "ไทย", "ง่าย"]),
        ("हिन्दी", ["हिन्द"]),
        ("👍 good", ["👍", "good"]),
        ("", []),
        ("-- ; %_ \\ \x00 ' \"", []),
    ],
)
def test_terms(text, terms):
    assert DEFAULT.tokens(text) == terms


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("markdown", "call read_as_markdown(x)"),
        ("read_as_markdown", "call read_as_markdown(x)"),
        ("strasse", "in der Straße"),
        ("2024", "the report of 2024."),
        ("検索", "日本語の文章です。検索"),
        ("文", "日本語の文章です。"),
        ("日本語", "日本語の文章です。"),
        ("привет", "Привет мир"),
        ("C++", "written in C++."),
        ("node.js", "uses Node.js and more"),
        ("the who", "The Who are a band"),
        ("to be or not to be", "To be, or not to be"),
        ("ﾊﾟｿｺﾝ", "パソコン"),
        ("한국어", "한국어를 배운다".replace("한국어", "\u1112\u1161\u11ab\u1100\u116e\u11a8\u110b\u1165")),
    ],
)
def test_a_query_finds(query, text):
    assert found(query, text)


@pytest.mark.parametrize("query", ["2024", "42", "日本語", "検索", "v2", "привет"])
def test_a_query_does_not_find_an_apostrophe(query):
    assert not found(query, "it's")


def test_stop_words_count_only_when_there_is_nothing_else():
    assert DEFAULT.tokens("the state of the art") == ["state", "art"]
    assert DEFAULT.tokens("The THE the") == ["the", "the", "the"]
    coder = TermCoder(DEFAULT, {})
    terms = coder.encode(["the state of the art", "of the"])
    assert terms.lengths.tolist() == [2, 0]
    assert [sorted(terms.term_ids[a:b].tolist()) for a, b in ((0, 4), (4, 6))] == [
        sorted(coder.ids[w] for w in ("the", "state", "of", "art")),
        sorted(coder.ids[w] for w in ("of", "the")),
    ]


def test_spans_say_where_a_term_stands():
    text = "Über die Straße: read_as_markdown, 日本語."
    spans = DEFAULT.spans(text)
    assert [(term, text[a:b]) for term, a, b in spans[:4]] == [
        ("uber", "Über"),
        ("die", "die"),
        ("strass", "Straße"),
        ("read_as_markdown", "read_as_markdown"),
    ]
    assert ("as", "as") in [(term, text[a:b]) for term, a, b in spans]
    assert ("本語", "本語") in [(term, text[a:b]) for term, a, b in spans]


def test_a_very_long_token_is_one_term():
    assert DEFAULT.tokens("a" * 100_000) == ["a" * 100]


@pytest.mark.parametrize(
    ("options", "text", "terms"),
    [
        ({"language": None}, "running dogs", ["running", "dogs"]),
        ({"language": "german"}, "die Häuser der Straßen", ["haus", "strass"]),
        ({"accents": False, "language": None}, "Café", ["café"]),
        ({"lower": False, "language": None}, "Café", ["Cafe"]),
        ({"identifiers": False}, "read_as_markdown", ["read_as_markdown"]),
        ({"stop_words": ()}, "the dog", ["the", "dog"]),
        ({"stop_words": ("dog",)}, "the dog", ["the"]),
        ({"cjk": "unigram"}, "日本", ["日", "本"]),
        ({"cjk": "none"}, "日本", ["日本"]),
        ({"token_pattern": r"\d+", "language": None}, "a 12 b 345", ["12", "345"]),
        ({"token_pattern": r"(a|b)c", "language": None}, "ac bc cc", ["ac", "bc"]),
    ],
)
def test_options(options, text, terms):
    made = AnalyzerOptions(**options)
    assert Analyzer(made).tokens(text) == terms
    assert AnalyzerOptions.from_dict(made.to_dict()) == made


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"language": "klingon"}, "no stemmer for 'klingon'"),
        ({"method": "magic"}, "method 'magic' is not known"),
        ({"cjk": "icu"}, "cjk must be"),
        ({"token_pattern": "("}, "no regular expression"),
        ({"stop_words": "the"}, "'default' or a tuple"),
    ],
)
def test_options_out_of_range(options, said):
    with pytest.raises(StoreError, match=said):
        AnalyzerOptions(**options)


def test_postings_by_term():
    coder = TermCoder(Analyzer(AnalyzerOptions(language=None)), {})
    chunks = coder.encode(["apple pie apple", "", "pie"])
    table = PostingsTable.build(Terms(coder.ids, 2), np.array([5, 7, 9]), chunks, 2)
    assert dict(table.terms) == {"apple": 0, "pie": 1}
    assert table.indptr.tolist() == [0, 1, 3]
    assert table.rows.tolist() == [0, 0, 2]
    assert table.tf.tolist() == [2, 1, 1]
    assert table.lengths.tolist() == [3, 0, 1]
    assert table.average_length == pytest.approx(4 / 3)


@pytest.mark.parametrize("many", [1, 10**9])
def test_a_large_table_is_turned_round_as_a_small_one(monkeypatch, many):
    monkeypatch.setattr(postings, "_MANY", many)
    terms = ChunkTerms(
        np.array([5000, 2], np.int32),
        np.array([0, 1, 3]),
        np.array([1, 0, 1], np.int32),
        np.array([5000, 1, 1], np.int32),
    )
    table = PostingsTable.build({"a": 0, "b": 1, "c": 2}, np.array([1, 2]), terms, 3)
    assert (table.indptr.tolist(), table.rows.tolist(), table.tf.tolist()) == (
        [0, 1, 3, 3],
        [1, 0, 1],
        [1, 5000, 1],
    )
    later = ChunkTerms(
        np.array([3], np.int32), np.array([0, 2]), np.array([0, 2], np.int32), np.array([2, 1], np.int32)
    )
    grown = table.changed(np.array([1]), np.array([9]), later, {"a": 0, "b": 1, "c": 2}, 3)
    assert (grown.indptr.tolist(), grown.rows.tolist(), grown.tf.tolist()) == (
        [0, 2, 3, 4],
        [0, 1, 0, 1],
        [1, 2, 1, 1],
    )
    assert grown.chunk_ids.tolist() == [2, 9]
    assert (table.indptr.dtype, table.rows.dtype, table.tf.dtype) == (np.int64, np.int32, np.int32)


def test_terms_that_came_later_are_not_in_an_earlier_table():
    ids = {"a": 0, "b": 1}
    terms = Terms(ids, 2)
    ids["c"] = 2
    assert "c" not in terms
    assert terms.get("c") is None
    assert terms["b"] == 1
    assert list(terms) == ["a", "b"]
