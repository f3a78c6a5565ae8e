"""The handbook is right: its worked examples are recomputed from the numbers printed in them."""

from __future__ import annotations

import ast
import html
import math
import re
from html.parser import HTMLParser
from itertools import pairwise
from math import comb
from pathlib import Path

import pytest
from Stemmer import Stemmer

from ragnar_core.chunking import markdown_chunk

HANDBOOK = Path(__file__).resolve().parents[1] / "docs" / "handbook"
DOCUMENTS = sorted(path for path in HANDBOOK.iterdir() if path.suffix in {".md", ".html"})
MARKDOWN = [path for path in DOCUMENTS if path.suffix == ".md"]
PAGES = [path for path in DOCUMENTS if path.suffix == ".html"]
CONCEPTS = [
    "01-what-is-retrieval.md", "02-reading-documents.md", "03-chunking.md", "04-embeddings.md",
    "05-vector-search.md", "06-bm25.md", "07-hybrid-and-rrf.md", "08-evaluation.md", "09-store.html",
    "10-troubleshooting.md", "11-glossary.html",
]  # fmt: skip

Row = dict[str, str]
by_name = pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)


def test_the_concept_chapters_are_there() -> None:
    assert [path.name for path in DOCUMENTS if path.name in CONCEPTS] == CONCEPTS


def test_total_size_is_worth_searching() -> None:
    assert 140_000 <= sum(path.stat().st_size for path in DOCUMENTS) <= 220_000


@by_name
def test_one_title_a_document(path: Path) -> None:
    levels = headings(path)
    assert levels.count(1) == 1
    assert levels[0] == 1


@by_name
def test_heading_levels_are_not_skipped(path: Path) -> None:
    levels = headings(path)
    assert all(after <= before + 1 for before, after in pairwise(levels))


@by_name
def test_links_between_chapters_resolve(path: Path) -> None:
    targets = [target for target in links(path) if "://" not in target]
    assert targets, "a chapter that leads nowhere"
    for target in targets:
        name, _, anchor = target.partition("#")
        page = path.parent / name if name else path
        assert page.is_file(), target
        if anchor:
            assert f'id="{anchor}"' in page.read_text(encoding="utf-8"), target


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_pages_show_what_the_conversion_does(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>\n")
    for tag in ("<nav ", "<main>", "<table>", "<thead>", "<pre><code", "<h2", "<h3"):
        assert tag in text
    assert open_tags(text) == []


@by_name
def test_python_in_the_handbook_is_python(path: Path) -> None:
    for code in python_blocks(path):
        ast.parse(code)


@by_name
def test_names_imported_from_the_library_are_public(path: Path) -> None:
    import ragnar_core

    if not hasattr(ragnar_core, "__all__"):
        pytest.skip("ragnar_core does not list its public names yet")
    for code in python_blocks(path):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and node.module == "ragnar_core":
                assert {alias.name for alias in node.names} <= set(ragnar_core.__all__)


def test_glossary_counts_its_terms() -> None:
    text = (HANDBOOK / "11-glossary.html").read_text(encoding="utf-8")
    terms = re.findall(r"<h3>(.+?)</h3>\n<p>", text)
    said = re.search(r"<p>(\d+) terms", text)
    assert said is not None
    assert int(said[1]) == len(terms) == len(set(terms))
    assert len(terms) >= 60


def test_troubleshooting_has_enough_entries() -> None:
    text = (HANDBOOK / "10-troubleshooting.md").read_text(encoding="utf-8")
    entries = re.split(r"^### .+$", text, flags=re.MULTILINE)[1:]
    assert len(entries) >= 25
    assert all("**Cause" in entry for entry in entries)


def test_sums_in_the_text_come_out() -> None:
    part = r"[\d.,()×/+− ]*[×/+−][\d.,()×/+− ]*"
    chains = [
        (path.name, *chain.split(" = "))
        for path in MARKDOWN
        for chain in re.findall(rf"{part}(?: = {part})* = \d+(?:\.\d+)?", one_line(path.name))
    ]
    assert len(chains) >= 15
    for name, first, *_, last in chains:
        digits = len(last.partition(".")[2])
        assert abs(number(last) - arithmetic(first)) <= 10**-digits, f"{name}: {first} = {last}"


def test_measured_quality_is_the_same_in_both_chapters() -> None:
    hybrid = table("07-hybrid-and-rrf.md", "When fusion hurts")
    static = table("04-embeddings.md", "Static or transformer", "cranfield")
    assert [list(row.values())[1:] for row in hybrid] == [list(row.values())[1:] for row in static]


# 03 chunking


def test_chunking_counts_targets() -> None:
    rows = table("03-chunking.md", "Step 1: targets")
    for row in rows:
        size = int(row["Target size"])
        for overlap in (0, 0.25, 0.5, 0.75):
            stride = size * (1 - overlap)
            assert int(row[f"Overlap {overlap}"]) == 1 + math.ceil((100_000 - size) / stride)


def test_chunking_duplication_factor() -> None:
    for row in table("03-chunking.md", "Overlap"):
        assert shown(row["Duplication factor"], 1 / (1 - float(row["Overlap"])))


def test_chunking_characters_a_token() -> None:
    for row in table("03-chunking.md", "Characters and tokens"):
        assert shown(row["Characters a token"], int(row["Characters"]) / int(row["Tokens"]))


def test_chunking_cuts_of_the_example() -> None:
    text = example_document()
    assert len(text) == 481
    assert [number(row["Cut"]) - number(row["Wish"]) for row in example("Cut")] == [
        number(row["Moved"]) for row in example("Cut")
    ]
    assert [text[int(row["Cut"]) :][:12] for row in example("Cut")] == [
        "## Chain\n\nWi", "for a minute", "In rain it s", "In rain it s", "The range is",
    ]  # fmt: skip
    for row in example("Cut"):
        assert abs(number(row["Moved"])) <= 100 / 3


@pytest.mark.parametrize("segments", [(), (2,)])
def test_chunking_chunks_of_the_example(segments: tuple[int, ...]) -> None:
    found = markdown_chunk(
        example_document(), target_size=200, target_overlap=0.5, segment_by_heading_levels=segments
    ).table
    rows = table("03-chunking.md", "The same with segments") if segments else example("Start")
    said = [(int(r["Start"]), int(r["End"]), int(r["Length"]), r["Context"]) for r in rows]
    contexts = [", ".join(re.findall(r"#+ (.+)", context)) for context in found["context"]]
    assert said == list(
        zip(found["start"], found["end"], found["end"] - found["start"], contexts, strict=True)
    )


# 04 embeddings and 05 vector search


def test_embeddings_memory() -> None:
    for row in table("04-embeddings.md", "Dimension"):
        size = number(row["Dimension"]) * 4
        assert number(row["Bytes a vector (float32)"]) == size
        assert row["100,000 vectors"] == f"{size * 100_000 / 1e6:,.1f} MB"


def test_vector_search_measures() -> None:
    query = (0.6, 0.8)
    rows = table("05-vector-search.md", "An example where they disagree")
    assert [row["Vector"] for row in rows] == ["a", "b", "c", "d"]
    for row in rows:
        x, y = (float(part) for part in row["Components"].strip("()").split(","))
        length, dot = math.hypot(x, y), x * query[0] + y * query[1]
        assert shown(row["Length"], length)
        assert shown(row["Cosine distance"], 1 - dot / length)
        assert shown(row["Euclidean distance"], math.hypot(x - query[0], y - query[1]))
        assert shown(row["Negative inner product"], -dot)


def test_vector_search_bytes() -> None:
    bits = {"float32": 32, "float16": 16, "int8": 8, "binary": 1, "product quantisation, 48 codes": 1}
    rows = table("05-vector-search.md", "Quantisation")
    assert {row["Storage"] for row in rows} == set(bits)
    for row in rows:
        size = 384 * bits[row["Storage"]] // 8
        assert number(row["Bytes for 384 dimensions"]) == size
        assert row["100,000 vectors"] == f"{size * 100_000 / 1e6:.1f} MB"


# 06 BM25


def bm25_corpus() -> dict[str, list[str]]:
    rows = table("06-bm25.md", "The chunks")
    corpus = {row["Chunk"]: row["Text"].lower().split() for row in rows}
    assert {row["Chunk"]: int(row["Terms"]) for row in rows} == {k: len(v) for k, v in corpus.items()}
    return corpus


def bm25_idf(chunks: int, containing: int) -> float:
    return math.log10((chunks - containing + 0.5) / (containing + 0.5) + 1)


def bm25_weight(tf: float, relative_length: float, k: float, b: float) -> float:
    return tf * (k + 1) / (tf + k * (1 - b + b * relative_length))


def test_bm25_query_terms() -> None:
    corpus = bm25_corpus()
    rows = table("06-bm25.md", "The weights of the query terms")
    assert [row["Term"] for row in rows] == ["hnsw", "index"]
    for row in rows:
        containing = sum(row["Term"] in terms for terms in corpus.values())
        assert int(row["df"]) == containing
        assert shown(row["idf"], bm25_idf(len(corpus), containing))


def test_bm25_scores() -> None:
    corpus = bm25_corpus()
    average = sum(map(len, corpus.values())) / len(corpus)
    assert average == pytest.approx(6.4)
    rows = table("06-bm25.md", "The scores")
    assert {row["Chunk"] for row in rows} == set(corpus)
    for row in rows:
        terms = corpus[row["Chunk"]]
        relative = len(terms) / average
        assert shown(row["Length factor"], 1 - 0.75 + 0.75 * relative)
        total = 0.0
        for term in ("hnsw", "index"):
            tf = terms.count(term)
            assert int(row[f"tf {term}"]) == tf
            containing = sum(term in other for other in corpus.values())
            part = bm25_idf(len(corpus), containing) * bm25_weight(tf, relative, 1.2, 0.75)
            assert shown(row[term], part)
            total += part
        assert shown(row["Score"], total)
    scores = [float(row["Score"]) for row in rows]
    assert scores == sorted(scores, reverse=True)


def test_bm25_saturation() -> None:
    for row in table("06-bm25.md", "The parameter k: repetition"):
        for k in (0.5, 1.2, 2):
            assert shown(row[f"k = {k}"], bm25_weight(int(row["tf"]), 1, k, 0.75))


def test_bm25_length() -> None:
    for row in table("06-bm25.md", "The parameter b: length"):
        for b in (0, 0.75, 1):
            assert shown(row[f"b = {b}"], bm25_weight(1, float(row["len / avgdl"]), 1.2, b))


def test_bm25_rarity() -> None:
    for row in table("06-bm25.md", "The weight idf: rarity"):
        assert shown(row["idf"], bm25_idf(1000, int(row["df"])))


def test_bm25_stems() -> None:
    stemmer = Stemmer("english")
    for row in table("06-bm25.md", "Stemming"):
        for word in row["Word"].split(", "):
            assert stemmer.stemWord(word) == row["English Snowball stem"]


def test_bm25_terms() -> None:
    from ragnar_core.store.analyzer import Analyzer

    analyzer = Analyzer()
    for row in table("06-bm25.md", "Digits, identifiers, signs"):
        assert analyzer.tokens(row["Text"]) == row["Terms"].split(", ")


# 07 hybrid search


def test_rrf_scores() -> None:
    lists = table("07-hybrid-and-rrf.md", "The two lists")
    ranks = {method: {row[method]: int(row["Rank"]) for row in lists} for method in ("VSS", "BM25")}
    rows = table("07-hybrid-and-rrf.md", "The fused list")
    assert {row["Chunk"] for row in rows} == set(ranks["VSS"]) | set(ranks["BM25"])
    for row in rows:
        vss, bm25 = (ranks[method].get(row["Chunk"]) for method in ("VSS", "BM25"))
        assert (row["VSS rank"], row["BM25 rank"]) == (str(vss or "-"), str(bm25 or "-"))
        for column, weight in (("Score 1 : 1", 1), ("Score 1 : 0.3", 0.3)):
            score = (1 / (60 + vss) if vss else 0) + (weight / (60 + bm25) if bm25 else 0)
            assert shown(row[column], score)
    scores = [float(row["Score 1 : 1"]) for row in rows]
    assert scores == sorted(scores, reverse=True)


def test_rrf_constant() -> None:
    rows = table("07-hybrid-and-rrf.md", "What k does")
    for row in rows:
        position = re.fullmatch(r"rank (\d+) in (one list|both lists)", row["Position"])
        assert position is not None
        lists = 2 if position[2] == "both lists" else 1
        for k in (1, 10, 60):
            assert shown(row[f"k = {k}"], lists / (k + int(position[1])))


def test_mmr_order() -> None:
    name, heading = "07-hybrid-and-rrf.md", "A worked example of MMR"
    relevance = {row["Chunk"]: float(row["Relevance"]) for row in table(name, heading, "Relevance")}
    alike = {frozenset(row["Pair"].split()): float(row["Similarity"]) for row in table(name, heading, "Pair")}
    assert len(alike) == comb(len(relevance), 2)
    for row in table(name, heading, "Order"):
        weight, picked = float(row["λ"]), list[str]()
        while len(picked) < len(relevance):
            gain = {
                one: weight * relevance[one]
                - (1 - weight) * max((alike[frozenset((one, other))] for other in picked), default=0.0)
                for one in relevance
                if one not in picked
            }
            best = sorted(gain.values(), reverse=True)
            assert len(best) == 1 or best[0] - best[1] > 1e-6, "a tie makes a poor example"
            picked.append(max(gain, key=gain.__getitem__))
        assert row["Order"].split() == picked


def test_deoverlap_passages() -> None:
    name, heading = "07-hybrid-and-rrf.md", "A worked example of deoverlap"
    chunks = [
        (int(r["Rank"]), r["Document"], int(r["Start"]), int(r["End"])) for r in table(name, heading, "Start")
    ]
    groups: list[list[tuple[int, str, int, int]]] = []
    for chunk in sorted(chunks, key=lambda c: (c[1], c[2])):
        last = groups[-1] if groups else []
        if last and chunk[1] == last[0][1] and chunk[2] < max(end for *_, end in last):
            last.append(chunk)
        else:
            groups.append([chunk])
    passages = [
        {
            "Rank": str(rank),
            "Document": group[0][1],
            "Start": str(min(start for *_, start, _ in group)),
            "End": str(max(end for *_, end in group)),
            "Merged ranks": ", ".join(str(c[0]) for c in sorted(group)),
        }
        for rank, group in enumerate(sorted(groups, key=min), 1)
    ]
    assert table(name, heading, "Merged ranks") == passages


# 08 evaluation


def test_measures_of_three_questions() -> None:
    given = {row["Question"]: row for row in table("08-evaluation.md", "The measures", "Relevant")}
    rows = table("08-evaluation.md", "The measures", "Recall@3")
    columns = ("Recall@3", "Recall@5", "Precision@5", "Reciprocal rank")
    values = []
    for question, row in zip(given, rows, strict=False):
        relevant = set(given[question]["Relevant"].split())
        results = given[question]["Results in order"].split()
        first = next((rank for rank, one in enumerate(results, 1) if one in relevant), None)
        found = (
            len(relevant & set(results[:3])) / len(relevant),
            len(relevant & set(results[:5])) / len(relevant),
            len(relevant & set(results[:5])) / 5,
            1 / first if first else 0.0,
        )
        assert row["Question"] == question
        assert all(shown(row[column], value) for column, value in zip(columns, found, strict=True))
        values.append(found)
    assert rows[-1]["Question"] == "mean"
    means = [sum(column) / len(values) for column in zip(*values, strict=True)]
    assert all(shown(rows[-1][column], mean) for column, mean in zip(columns, means, strict=True))


def test_ndcg() -> None:
    *rows, total = table("08-evaluation.md", "nDCG@k")
    assert total["Rank"] == "sum"
    grades, ideal = ([int(row[column]) for row in rows] for column in ("Grade", "Ideal grade"))
    assert ideal == [*sorted([*(g for g in grades if g), 1], reverse=True), 0]
    sums = []
    for column, values in (("Gain", grades), ("Ideal gain", ideal)):
        gains = [value / math.log2(rank + 1) for rank, value in enumerate(values, 1)]
        assert all(shown(row[column], gain) for row, gain in zip(rows, gains, strict=True))
        assert shown(total[column], sum(gains))
        sums.append(sum(gains))
    for rank, row in enumerate(rows, 1):
        assert int(row["Rank"]) == rank
        assert shown(row["Discount"], 1 / math.log2(rank + 1))
    linear, exponential = re.findall(r"nDCG@5 = (?:[\d.]+ / [\d.]+ = )?(0\.\d+)", prose("08-evaluation.md"))
    assert shown(linear, sums[0] / sums[1])
    discounted = [
        sum((2**value - 1) / math.log2(rank + 1) for rank, value in enumerate(values, 1))
        for values in (grades, ideal)
    ]
    assert shown(exponential, discounted[0] / discounted[1])


def test_wilson_intervals() -> None:
    z, share = 1.959964, 0.8
    for row in table("08-evaluation.md", "One figure"):
        n = int(row["Questions"])
        middle = (share + z * z / (2 * n)) / (1 + z * z / n)
        half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
        assert shown(row["Lower"], middle - half)
        assert shown(row["Upper"], middle + half)


def test_sign_test() -> None:
    for row in table("08-evaluation.md", "Two systems on the same questions"):
        better, worse = int(row["Better"]), int(row["Worse"])
        n = better + worse
        p = 2 * sum(comb(n, i) for i in range(max(better, worse), n + 1)) / 2**n
        assert shown(row["p, two-sided"], min(1.0, p))


# helpers


def prose(name: str) -> str:
    return (HANDBOOK / name).read_text(encoding="utf-8")


def without_fences(text: str) -> str:
    return re.sub(r"^(```+|~~~+).*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)


def one_line(name: str) -> str:
    return re.sub(r"\s+", " ", without_fences(prose(name)))


def headings(path: Path) -> list[int]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".html":
        return [int(level) for level in re.findall(r"<h([1-6])[ >]", text)]
    return [len(marks) for marks in re.findall(r"^(#{1,6}) ", without_fences(text), flags=re.MULTILINE)]


def links(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".html":
        return re.findall(r'href="([^"]+)"', text)
    return re.findall(r"\]\(([^)\s]+)\)", without_fences(text))


def python_blocks(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".html":
        found = re.findall(r'<code class="language-python">(.*?)</code>', text, flags=re.DOTALL)
        return [html.unescape(code) for code in found]
    return re.findall(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def table(name: str, heading: str, column: str | None = None) -> list[Row]:
    """Rows of the first table under a heading, or of the first one there that has the column."""
    _, found, section = prose(name).partition(f"# {heading}\n")
    assert found, f"{name} has no heading {heading!r}"
    section = re.split(r"^#{1,6} ", without_fences(section), flags=re.MULTILINE)[0]
    for block in re.findall(r"(?:^\|.*\|\n)+", section, flags=re.MULTILINE):
        header, _, *rows = (
            [cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()
        )
        if column is None or column in header:
            assert rows
            return [dict(zip(header, row, strict=True)) for row in rows]
    raise AssertionError(f"{name}, {heading!r}: no table with the column {column!r}")


def example_document() -> str:
    found = re.search(r"^~~~markdown\n(.*?)\n~~~$", prose("03-chunking.md"), flags=re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def example(column: str) -> list[Row]:
    return table("03-chunking.md", "A worked example", column)


def arithmetic(text: str) -> float:
    code = text.replace("×", "*").replace("−", "-").replace(",", "").strip()
    assert re.fullmatch(r"[\d.()*/+\- ]+", code)
    return float(eval(code, {"__builtins__": {}}))


def number(text: str) -> float:
    return float(text.replace("−", "-").replace("+", "").replace(",", ""))


def shown(text: str, value: float) -> bool:
    """Whether the printed number is the value, rounded to the digits that are printed."""
    digits = len(text.partition(".")[2])
    return abs(number(text) - value) <= 0.5 * 10**-digits + 1e-9


class _Nesting(HTMLParser):
    VOID = frozenset({"meta", "link", "br", "img", "hr", "input"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def open_tags(text: str) -> list[str]:
    """Tags left open at the end; fails at an end tag that closes another element."""
    nesting = _Nesting()
    nesting.feed(text)
    return nesting.open
