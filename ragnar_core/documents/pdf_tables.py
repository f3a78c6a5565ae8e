"""Tables that a PDF page draws with lines: found by their rules, so that rows stay rows."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ragnar_core.documents.tables import markdown_table

OVERLAP = 2.0  # points that lines one below another may share
MOST_RULES = 1000  # a drawing has more, and finding crossings takes their square


@dataclass(frozen=True)
class RuledTable:
    """`markdown`, and where it stands: points from the page's left and lower edge, as pdfminer counts."""

    markdown: str
    left: float
    bottom: float
    right: float
    top: float

    def holds(self, item: Any) -> bool:
        """Whether the middle of something on the page is inside."""
        x, y = float(item.x0 + item.x1) / 2, float(item.y0 + item.y1) / 2
        return self.left <= x <= self.right and self.bottom <= y <= self.top


def ruled_tables(page: Any) -> list[RuledTable]:
    """The tables of a pdfplumber page with rules around their cells, at least two by two, topmost first."""
    # Elsewhere pdfplumber's places are not pdfminer's.
    if page.rotation or tuple(page.bbox[:2]) != (0, 0) or tuple(page.mediabox) != tuple(page.cropbox):
        return []
    if not 4 <= len(page.lines) + len(page.rects) <= MOST_RULES:
        return []
    found = []
    for table in page.find_tables():
        rows = [[" ".join((cell or "").split()) for cell in row] for row in table.extract()]
        rows = [row for row in rows if any(row)]
        filled = sum(map(bool, (cell for row in rows for cell in row)))
        columns = max(map(len, rows), default=0)
        # Frames around pictures and text make cells too, mostly empty ones.
        if len(rows) < 2 or columns < 2 or filled * 2 < len(rows) * columns:
            continue
        left, top, right, bottom = table.bbox
        found.append(RuledTable(markdown_table(rows), left, page.height - bottom, right, page.height - top))
    return sorted(found, key=lambda table: -table.top)


def in_reading_order(boxes: list[tuple[Any, str]], tables: list[RuledTable]) -> list[str]:
    """The texts of a page's boxes with its tables among them. Boxes come in pdfminer's order, which stays where some
    stand beside others; where none does it takes a centred title for a column of its own, so they are read from the
    top down."""
    down = sorted(boxes, key=lambda box: -box[0].y1)
    one_column = all(above.y0 + OVERLAP >= box.y1 for (above, _), (box, _) in pairwise(down))
    parts = down if one_column else list(boxes)
    for table in tables:
        column = [
            place
            for place, (box, _) in enumerate(parts)
            if one_column or (box.x0 < table.right and box.x1 > table.left)
        ]
        below = [place for place in column if (parts[place][0].y0 + parts[place][0].y1) / 2 < table.bottom]
        place = below[0] if below else (column[-1] + 1 if column else len(parts))
        parts.insert(place, (_Place(table), f"\n{table.markdown}\n\n"))
    return [text for _, text in parts]


class _Place:
    """A table as a box among others, for the tables that follow."""

    def __init__(self, table: RuledTable) -> None:
        self.x0, self.y0, self.x1, self.y1 = table.left, table.bottom, table.right, table.top
