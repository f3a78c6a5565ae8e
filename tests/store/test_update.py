"""Update and delete: what goes, what stays, what is embedded, and what the caches say afterwards."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragnar_core.errors import StoreError
from ragnar_core.store import Store, UpdateResult
from ragnar_core.store.cache import load_postings, load_vectors

SECTIONS = [f"## Part {i}\n\n" + f"Sentence about thing number {i}. " * 8 for i in range(20)]
LONG = "# Book\n\n" + "\n\n".join(SECTIONS) + "\n"


def assert_caches_are_what_the_file_says(store: Store) -> None:
    """The tables that were changed in place against ones read anew."""
    vectors, postings = store.vectors(), store.postings()
    with store.opened.database.snapshot() as cursor:
        fresh = load_vectors(cursor, store.layout, store.dim)
        again = load_postings(cursor, store.layout, store.opened.cache.term_coder(cursor))
    assert np.array_equal(vectors.chunk_ids, fresh.chunk_ids)
    assert np.array_equal(vectors.matrix, fresh.matrix)
    assert np.array_equal(postings.chunk_ids, again.chunk_ids)
    assert np.array_equal(postings.lengths, again.lengths)
    assert postings.average_length == again.average_length
    assert _by_term(postings) == _by_term(again)


def _by_term(postings):
    return {
        term: (
            postings.rows[postings.indptr[i] : postings.indptr[i + 1]].tolist(),
            postings.tf[postings.indptr[i] : postings.indptr[i + 1]].tolist(),
        )
        for term, i in postings.terms.items()
        if postings.indptr[i] < postings.indptr[i + 1]
    }


def test_update_says_what_it_did(store, chunks_of, model):
    assert store.update(chunks_of(LONG, "book", 300)) == UpdateResult(
        inserted=1, chunks_embedded=len(model.texts)
    )
    model.texts.clear()
    assert store.update(chunks_of(LONG, "book", 300)) == UpdateResult(unchanged=1)
    assert model.texts == []
    revision = store.revision
    assert store.update(chunks_of(LONG, "book", 300)).unchanged == 1
    assert store.revision == revision


def test_only_new_texts_are_embedded(store, chunks_of, model):
    store.insert(chunks_of(LONG, "book", 300))
    before = store.counts().chunks
    model.texts.clear()
    longer = LONG.replace("thing number 19.", "thing number 19, at last.", 1)
    result = store.update(chunks_of(longer, "book", 300))
    assert (result.inserted, result.replaced) == (0, 1)
    assert 0 < result.chunks_embedded == len(model.texts) < before / 4
    assert_caches_are_what_the_file_says(store)
    matrix = store.vectors().matrix
    texts = [f"{c}\n{t}" if c else t for c, t in store.chunks()[["context", "text"]].itertuples(index=False)]
    assert np.allclose(matrix, [model.vector(text) for text in texts], atol=1e-6)


def test_a_shortened_document_loses_its_old_chunks(store, chunks_of):
    store.insert(chunks_of(LONG, "book", 300))
    doc_id = store.documents()["doc_id"][0]
    store.update(chunks_of("# Book\n\nOnly the zebra is left.\n", "book", 300))
    assert store.chunks()["text"].tolist() == ["# Book\n\nOnly the zebra is left.\n"]
    assert store.documents()["doc_id"].tolist() == [doc_id]
    postings = store.postings()
    held = {term for term, i in postings.terms.items() if postings.indptr[i] < postings.indptr[i + 1]}
    assert held == {"book", "onli", "the", "zebra", "is", "left"}


def test_term_statistics_follow_every_write(store, chunks_of):
    store.postings()
    store.vectors()
    for number in range(5):
        store.insert(chunks_of(f"# Number {number}\n\n" + "apple pie " * (number + 1), f"d{number}"))
        assert_caches_are_what_the_file_says(store)
    assert store.delete("d2") == 1
    assert_caches_are_what_the_file_says(store)
    store.update(chunks_of("# Number 1\n\nplum cake and apple\n", "d1"))
    assert_caches_are_what_the_file_says(store)
    postings = store.postings()
    i = postings.terms["appl"]
    assert postings.chunk_ids[postings.rows[postings.indptr[i] : postings.indptr[i + 1]]].tolist() == [
        1,
        4,
        5,
        6,
    ]
    assert postings.tf[postings.indptr[i] : postings.indptr[i + 1]].tolist() == [1, 4, 5, 1]


WORDS = st.sampled_from(["apple", "pie", "the", "read_as_markdown", "日本語", "Straße", "2024", "zebra"])
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["insert", "update", "delete", "look"]),
        st.integers(0, 4),
        st.lists(WORDS, min_size=1, max_size=12),
    ),
    max_size=12,
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_any_order_of_writes_and_looks(embed, chunks_of, steps):
    with Store.create(":memory:", embed) as store:
        there: dict[str, str] = {}
        for verb, number, words in steps:
            origin, text = f"d{number}", " ".join(words)
            if verb == "insert" and origin not in there:
                store.insert(chunks_of(text, origin, 20))
                there[origin] = text
            elif verb == "update":
                store.update(chunks_of(text, origin, 20))
                there[origin] = text
            elif verb == "delete":
                assert (store.delete(origin) > 0) == (origin in there)
                there.pop(origin, None)
            elif verb == "look":
                store.vectors()
                store.postings()
        assert_caches_are_what_the_file_says(store)
        assert {o: store.document(o).text for o in store.documents()["origin"]} == there


def test_a_table_in_a_readers_hands_does_not_change(store, chunks_of):
    store.insert(chunks_of(LONG, "book", 300))
    vectors, postings = store.vectors(), store.postings()
    copy, rows = vectors.matrix.copy(), postings.rows.copy()
    store.insert(chunks_of("Something else.", "other"))
    store.update(chunks_of("# Book\n\nShort.\n", "book"))
    assert len(store.vectors().chunk_ids) == 2
    assert np.array_equal(vectors.matrix, copy)
    assert np.array_equal(postings.rows, rows)
    assert "els" not in postings.terms


def test_deleting(store, chunks_of):
    store.insert([chunks_of(LONG, "a", 300), chunks_of("A zebra.", "b")])
    assert store.delete("none") == 0
    of_a = store.counts().chunks - 1
    assert store.delete("a") == of_a > 5
    assert store.documents()["origin"].tolist() == ["b"]
    store.insert(chunks_of("Again.", "a"))
    assert store.document("a").text == "Again."
    assert store.delete(int(store.documents()["doc_id"][1])) == 1


def test_documents_without_origin_are_updated_by_number(store, chunks_of):
    store.insert(pd.DataFrame({"text": ["one", "two"]}))
    with pytest.raises(StoreError, match="cannot be updated by origin; pass its doc_id"):
        store.update(chunks_of("three"))
    assert store.update(chunks_of("three"), doc_id=2) == UpdateResult(replaced=1, chunks_embedded=1)
    assert store.chunks()["text"].tolist() == ["one", "three"]
    with pytest.raises(StoreError, match="there is no document 9"):
        store.update(chunks_of("four"), doc_id=9)


def test_a_changed_extra_column_is_a_change(tmp_path, embed, chunks_of, model):
    with Store.create(tmp_path / "s.duckdb", embed, extra_cols={"area": str}) as store:
        frame = pd.DataFrame({"text": ["one"], "origin": ["a"], "area": ["x"]})
        assert store.update(frame).inserted == 1
        assert store.update(frame).unchanged == 1
        assert store.update(frame.assign(area="y")) == UpdateResult(replaced=1, chunks_embedded=0)
        assert store.chunks()["area"].tolist() == ["y"]
        assert model.texts == ["one"]


def test_nothing_is_half_written(store, chunks_of, model, monkeypatch):
    store.insert(chunks_of(LONG, "book", 300))
    before = store.chunks()
    model.fail_from = len(model.texts)
    with pytest.raises(Exception, match="the service is down"):
        store.update(chunks_of(LONG.replace("thing", "matter"), "book", 300))
    pd.testing.assert_frame_equal(store.chunks(), before)
    model.fail_from = None
    monkeypatch.setattr("ragnar_core.store.write.insert_terms", _fails)
    with pytest.raises(StoreError, match="out of room"):
        store.update(chunks_of(LONG.replace("thing", "matter"), "book", 300))
    monkeypatch.undo()
    pd.testing.assert_frame_equal(store.chunks(), before)
    assert_caches_are_what_the_file_says(store)
    store.update(chunks_of(LONG.replace("thing", "matter"), "book", 300))
    assert_caches_are_what_the_file_says(store)
    assert "matter" in store.postings().terms


def _fails(*_):
    raise StoreError("out of room")


def test_version_1(tmp_path, embed, model):
    with Store.create(tmp_path / "v1.duckdb", embed, version=1, extra_cols={"area": str}) as store:
        frame = pd.DataFrame(
            {
                "text": ["hello", "world", "alone"],
                "origin": ["a", "a", None],
                "hash": ["h", "h", "i"],
                "area": list("xyz"),
            }
        )
        store.insert(frame)
        assert model.texts == ["hello", "world", "alone"]
        assert store.documents()[["origin", "chunks"]].values.tolist() == [["a", 2], [None, 1]]
        assert store.document("a").text == "hello\n\nworld"
        assert store.chunks()["start"].isna().all()
        assert store.update(frame.head(2)) == UpdateResult(unchanged=1)
        changed = frame.head(2).assign(text=["hello", "moon"], hash="j")
        assert store.update(changed) == UpdateResult(replaced=1, chunks_embedded=1)
        assert store.chunks()["text"].tolist() == ["alone", "hello", "moon"]
        assert_caches_are_what_the_file_says(store)
        with pytest.raises(StoreError, match="no column 'area'"):
            store.insert(pd.DataFrame({"text": ["x"]}))
        assert store.delete("a") == 2
        assert store.counts().chunks == 1
