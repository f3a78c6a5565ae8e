"""Where the settings want cuts, and where they get them."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ragnar_core.chunking.anchored import KEPT_APART, anchors, divide_gaps
from ragnar_core.chunking.breaks import FloatArray, IntArray, is_among
from ragnar_core.chunking.settings import ChunkSettings
from ragnar_core.chunking.snap import CUT_KINDS, Cuts, Tier, even_targets, snap
from ragnar_core.chunking.units import Characters

if TYPE_CHECKING:
    from ragnar_core.chunking.boundaries import Boundaries

# A cluster within the limits of Unicode's Stream-Safe Text Format (UAX #15) has at most about this many code
# points. Where cuts may move that far they also leave clusters, which ragnar cuts through.
LONGEST_USUAL_CLUSTER = 32

# General categories of characters that stay with the one before or, some formats, the one after.
JOINING = ("Mn", "Mc", "Me", "Cf", "Sk")


def plan_cuts(
    boundaries: Boundaries, settings: ChunkSettings, units: Characters
) -> tuple[IntArray, IntArray, Cuts]:
    """The wanted starts and ends of chunks, and the cuts that each of them moved to."""
    length = len(boundaries.document)
    if not length:
        none = np.zeros(0, np.int64)
        return none, none, Cuts(none, none, none.astype(np.uint8))
    first, last = _segments(boundaries, settings.segment_by_heading_levels)
    if settings.strategy == "anchored":
        starts, ends = _anchored_targets(boundaries, settings, units, first, last)
    else:
        size = np.inf if settings.target_size is None else settings.target_size
        targets = even_targets(units.units(first), units.units(last), size, settings.target_overlap)
        starts, ends = (units.positions(target) for target in targets)
    wanted = np.unique(np.concatenate((starts, ends)))
    reach = units.reach(wanted, max(settings.snap_distance, 0))
    as_ragnar = settings.strategy == "ragnar" and not settings.keep_whole
    if settings.strategy == "anchored":
        # Starts are where they should be, and an end must not move as far as the next chunk's start.
        shared = units.reach(wanted, (settings.target_size or 0) * settings.target_overlap)
        reach = np.where(np.isin(wanted, starts), 0, np.minimum(reach, shared / 2))
    cuts = snap(wanted, reach, tiers(boundaries, settings), length)
    # ICU ends a sentence at every line end; a person would not.
    line = (cuts.kind == CUT_KINDS.index("sentence")) & is_among(cuts.position, boundaries.line_starts)
    cuts.kind[line] = CUT_KINDS.index("line")
    if not as_ragnar or reach.min() >= LONGEST_USUAL_CLUSTER:
        cuts = _between_graphemes(boundaries, cuts, units.reach(wanted, settings.target_size or np.inf))
    return starts, ends, cuts


def _segments(boundaries: Boundaries, levels: tuple[int, ...]) -> tuple[IntArray, IntArray]:
    headings = boundaries.headings
    borders = headings.start[np.isin(headings.level, [level for level in levels if level > 0])]
    first = np.unique(np.append(borders, 0))
    return first, np.append(first[1:], len(boundaries.document))


def tiers(boundaries: Boundaries, settings: ChunkSettings) -> list[Tier]:
    tables, code = boundaries.tables, boundaries.code
    whole = [
        Tier("paragraph", lambda *_: tables.ravel(), within=tables),
        Tier("paragraph", lambda *_: code.ravel(), within=code),
        Tier("row", lambda *_: boundaries.rows, within=tables),
        Tier("cell", lambda *_: boundaries.cells, within=tables),
        Tier("line", lambda *_: boundaries.code_lines, within=code),
    ]
    return [
        Tier("heading", lambda *_: boundaries.headings.start),
        Tier("paragraph", lambda *_: boundaries.paragraphs),
        *(whole if settings.keep_whole else []),
        Tier("sentence", boundaries.sentences.near),
        Tier("line", lambda *_: boundaries.line_ends),
        Tier("word", boundaries.line_breaks.near),
    ]


def _anchored_targets(
    boundaries: Boundaries, settings: ChunkSettings, units: Characters, first: IntArray, last: IntArray
) -> tuple[IntArray, IntArray]:
    """Starts at anchors and in the gaps between them; each chunk reaches a fixed overlap into the next."""
    if settings.target_size is None:
        return first, last
    size, shared = settings.target_size, settings.target_size * settings.target_overlap
    stride = size - shared
    candidates, strength = _ranked(boundaries)
    places = units.units(candidates)
    chosen = anchors(boundaries.document.text, candidates, strength, places, KEPT_APART * stride)
    # A few words at the start or the end of a segment are no chunk.
    segment = np.searchsorted(first, candidates, "right") - 1
    for_start, for_end = places - units.units(first)[segment], units.units(last)[segment] - places
    chosen &= np.minimum(for_start, for_end) >= KEPT_APART * stride
    starts = np.unique(np.concatenate((candidates[chosen], first)))
    gaps = np.append(units.units(starts), units.units(last[-1:]))
    targets = np.unique(units.positions(divide_gaps(gaps, stride)))
    if len(targets):
        reach = units.reach(targets, min(max(settings.snap_distance, 0), stride / 3))
        snapped = snap(targets, reach, tiers(boundaries, settings), len(boundaries.document))
        starts = np.unique(np.concatenate((starts, snapped.position)))
    following = np.append(starts[1:], last[-1])
    segment_end = last[np.searchsorted(first, starts, "right") - 1]
    ends = np.minimum(units.positions(units.units(following) + shared), segment_end)
    return starts, ends


def _ranked(boundaries: Boundaries) -> tuple[IntArray, IntArray]:
    """The boundaries an anchor may stand at, and how strong each is, 0 for the strongest."""
    headings = boundaries.headings
    levels = np.where(headings.level > 0, headings.level, 7) - 1
    paragraphs, sentences = boundaries.paragraphs, boundaries.sentences.all()
    position = np.concatenate((headings.start, paragraphs, sentences))
    strength = np.concatenate((levels, np.full(len(paragraphs), 7), np.full(len(sentences), 8)))
    order = np.lexsort((strength, position))
    position, strength = position[order], strength[order]
    # A blank line is no place to start a chunk at.
    keep = ~is_among(position, boundaries.line_ends)
    keep[1:] &= position[1:] != position[:-1]
    return position[keep], strength[keep]


def _between_graphemes(boundaries: Boundaries, cuts: Cuts, longest: FloatArray) -> Cuts:
    """Move cuts out of grapheme clusters, unless the cluster alone is longer than a chunk."""
    text = boundaries.document.text
    if text.isascii():
        return cuts
    inside = np.flatnonzero(_may_be_inside(text, cuts) & (cuts.position > 0) & (cuts.position < len(text)))
    if not len(inside):
        return cuts
    position = cuts.position[inside]
    starts = boundaries.graphemes.near(position, np.zeros(len(position)))
    before = starts[np.searchsorted(starts, position, "right") - 1]
    # The next known start may be lines away; clusters end with their line.
    after = np.minimum(
        np.append(starts, len(text))[np.searchsorted(starts, position, "left")],
        np.append(boundaries.line_starts, len(text))[
            np.searchsorted(boundaries.line_starts, position, "left")
        ],
    )
    nearest = np.where(position - before < after - position, before, after)
    moved = cuts.position.copy()
    moved[inside] = np.where(after - before <= longest[inside], nearest, position)
    return cuts._replace(position=np.maximum.accumulate(moved))


def _may_be_inside(text: str, cuts: Cuts) -> NDArray[np.bool_]:
    """Plain character cuts, and boundaries beside a character that may join its neighbour."""
    points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    before = points[np.maximum(cuts.position - 1, 0)]
    after = points[np.minimum(cuts.position, len(points) - 1)]
    found = np.unique(np.append(before, after))
    joining = [point for point in found[found > 0x7F].tolist() if unicodedata.category(chr(point)) in JOINING]
    plain = cuts.kind == CUT_KINDS.index("character")
    suspect: NDArray[np.bool_] = plain | np.isin(before, joining) | np.isin(after, joining)
    return suspect
