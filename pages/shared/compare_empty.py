"""Why a search found nothing, in a sentence."""

from __future__ import annotations

from dataclasses import replace

from ragnar_core import Store
from ragnar_core.retrieval import Filter, SearchSettings, search


def why_empty(store: Store, query: str, settings: SearchSettings) -> str:
    """The first of the things that can leave a list empty, and what to do about it."""
    if not store.counts().chunks:
        return "The store holds no chunks yet. Add documents on the Build page."
    parsed = Filter.parse(settings.filter)
    anything = SearchSettings(mode="vss", top_k=1, filter=settings.filter)
    if not parsed.is_empty and settings.mode != "bm25" and not len(search(store, query, anything)):
        return f"No chunk passes the filter: {parsed.sentence()}. Loosen it, or clear it."
    if settings.mode in ("vss", "hybrid", "union") and settings.min_similarity:
        return f"No chunk reaches the similarity of {settings.min_similarity:g}. Lower it in the settings."
    if settings.mode != "bm25":
        return "Nothing was found. The query has no word that could be searched for."
    return _no_words(store, query, settings, parsed)


def _no_words(store: Store, query: str, settings: SearchSettings, parsed: Filter) -> str:
    known = store.postings().terms
    spans = {term: query[start:end] for term, start, end in store.analyzer.spans(query)}
    terms = [term for term in dict.fromkeys(store.analyzer.tokens(query)) if term in spans]
    if not terms:
        return (
            "This query has only marks or stop words, which are not indexed. Add a word that carries meaning."
        )
    unknown = [spans[term] for term in terms if term not in known]
    if len(unknown) == len(terms):
        return (
            f"No chunk contains {_either(unknown)}. BM25 matches words, not meanings: "
            "try other words, or look at VSS."
        )
    if not parsed.is_empty and len(search(store, query, replace(settings, top_k=1, filter=None))):
        return f"The words occur, but not in a chunk that passes the filter: {parsed.sentence()}."
    if settings.min_bm25 and len(search(store, query, replace(settings, top_k=1, min_bm25=None))):
        return f"Chunks match, but none scores {settings.min_bm25:g} or more. Lower the least BM25 score."
    if settings.conjunctive and unknown:
        return f"All words must occur, and no chunk contains {_either(unknown)}. Leave it out, or allow any."
    if settings.conjunctive:
        return "Each word occurs, but no chunk contains all of them. Use fewer words, or allow any."
    return "No chunk contains a word of this query."


def _either(words: list[str]) -> str:
    quoted = [f"“{word}”" for word in words[:5]]
    more = "" if len(words) <= 5 else f", or {len(words) - 5} more"
    return " or ".join(quoted) + more
