"""The tree a filter is parsed into, and what it renders as: a sentence, the text spelling, the dict spelling.

Logic has two values: a comparison with a missing value is false (only ``is null`` is true for it), and
``not``, ``!=`` and ``not in`` are the exact opposite of what they negate, so they are true for missing
values.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

OPERATORS = {
    "$eq": ("==", "is"),
    "$ne": ("!=", "is not"),
    "$gt": (">", "is above"),
    "$gte": (">=", "is at least"),
    "$lt": ("<", "is below"),
    "$lte": ("<=", "is at most"),
    "$in": ("in", "is one of"),
    "$nin": ("not in", "is none of"),
    "$contains": ("contains", "contains"),
}
KEYWORDS = ("and", "or", "not", "in", "contains", "is", "null", "none", "true", "false")


@dataclass(frozen=True)
class Compare:
    """One column against one value (a tuple of values for ``$in`` and ``$nin``)."""

    column: str
    operator: str
    value: Any


@dataclass(frozen=True)
class All:
    """True where every part is; true for no parts."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Either:
    """True where one part is; false for no parts."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Not:
    part: Node


Node = Compare | All | Either | Not


def comparisons(node: Node) -> Iterator[Compare]:
    if isinstance(node, Compare):
        yield node
    else:
        for part in (node.part,) if isinstance(node, Not) else node.parts:
            yield from comparisons(part)


def sentence(node: Node) -> str:
    """The filter in words: ``category is "news" and year is at least 2020``."""
    if isinstance(node, Compare):
        if node.value is None:
            return f"{node.column} is {'missing' if node.operator == '$eq' else 'there'}"
        if isinstance(node.value, tuple):
            values = ", ".join(_said(value) for value in node.value) or "nothing"
            return f"{node.column} {OPERATORS[node.operator][1]} {values}"
        return f"{node.column} {OPERATORS[node.operator][1]} {_said(node.value)}"
    if isinstance(node, Not):
        return f"not ({sentence(node.part)})"
    if not node.parts:
        return "everything" if isinstance(node, All) else "nothing"
    joint = " and " if isinstance(node, All) else " or "
    return joint.join(_inside(part, sentence) for part in node.parts)


def text(node: Node) -> str:
    """The text spelling, which parses to the same filter."""
    if isinstance(node, Compare):
        column = node.column
        if not column.isidentifier() or column.lower() in KEYWORDS:
            column = "`" + column.replace("`", "``") + "`"
        if isinstance(node.value, tuple):
            value = "[" + ", ".join(_written(one) for one in node.value) + "]"
        else:
            value = _written(node.value)
        return f"{column} {OPERATORS[node.operator][0]} {value}"
    if isinstance(node, Not):
        return f"not ({text(node.part)})"
    if not node.parts:
        return "true" if isinstance(node, All) else "false"
    joint = " and " if isinstance(node, All) else " or "
    return joint.join(_inside(part, text) for part in node.parts)


def as_dict(node: Node) -> dict[str, Any]:
    """The dict spelling, which parses to the same filter."""
    if isinstance(node, Compare):
        value = list(node.value) if isinstance(node.value, tuple) else node.value
        return {node.column: {node.operator: value}}
    if isinstance(node, Not):
        return {"$not": as_dict(node.part)}
    name = "$and" if isinstance(node, All) else "$or"
    return {name: [as_dict(part) for part in node.parts]}


def _inside(part: Node, render: Any) -> str:
    said = str(render(part))
    return f"({said})" if isinstance(part, (All, Either)) and len(part.parts) > 1 else said


def _said(value: Any) -> str:
    return "missing" if value is None else _written(value)


def _written(value: Any) -> str:
    if isinstance(value, date):
        return json.dumps(value.isoformat())
    if isinstance(value, float) and math.isinf(value):
        return "1e999" if value > 0 else "-1e999"
    return json.dumps(value, ensure_ascii=False)
