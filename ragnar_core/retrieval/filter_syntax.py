"""The two spellings of a filter, dict and text, parsed into one tree."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence, Set
from decimal import Decimal
from typing import Any

import numpy as np

from ragnar_core.errors import FilterError
from ragnar_core.retrieval.filter_tree import OPERATORS, All, Compare, Either, Node, Not

MAX_DEPTH = 50
MAX_CHARACTERS = 20_000
MAX_VALUES = 10_000
MAX_DIGITS = 400
LISTS = ("$in", "$nin")


def parse_filter(filter: str | Mapping[str, Any]) -> Node:
    """The tree of a filter in either spelling; an empty one passes everything.

    Raises:
        FilterError: what does not parse and where, or which operator is unknown.
    """
    if isinstance(filter, str):
        return _Text(filter).parse()
    if isinstance(filter, Mapping):
        return _from_dict(filter, 0)
    raise FilterError(f"a filter is a dict or a text, not {type(filter).__name__}")


def _from_dict(conditions: Mapping[Any, Any], depth: int) -> Node:
    _check_depth(depth)
    parts = tuple(_from_item(key, value, depth) for key, value in conditions.items())
    return parts[0] if len(parts) == 1 else All(parts)


def _from_item(key: Any, value: Any, depth: int) -> Node:
    if not isinstance(key, str):
        raise FilterError(f"a filter's keys are column names or operators, not {key!r}")
    if key in ("$and", "$or"):
        if isinstance(value, (str, Mapping)) or not isinstance(value, Sequence):
            raise FilterError(f"{key} takes a list of conditions: {{{key!r}: [{{...}}, {{...}}]}}")
        parts = tuple(_from_condition(key, part, depth + 1) for part in value)
        return All(parts) if key == "$and" else Either(parts)
    if key == "$not":
        return Not(_from_condition(key, value, depth + 1))
    if key.startswith("$"):
        if key in OPERATORS:
            raise FilterError(f"{key} stands inside a column: {{column: {{{key!r}: value}}}}")
        raise unknown_operator(key)
    return _from_column(key, value, depth)


def _from_condition(key: str, value: Any, depth: int) -> Node:
    if not isinstance(value, Mapping):
        raise FilterError(f"{key} takes conditions such as {{column: value}}, not {value!r}")
    return _from_dict(value, depth)


def _from_column(column: str, value: Any, depth: int) -> Node:
    if not isinstance(value, Mapping):
        return compare(column, "$in" if _is_list(value) else "$eq", value)
    _check_depth(depth)
    if not value:
        raise FilterError(
            f"{column} has no condition; write {{{column!r}: value}} or {{{column!r}: {{'$gt': value}}}}"
        )
    parts: list[Node] = []
    for operator, operand in value.items():
        if operator == "$not":
            parts.append(Not(_from_column(column, operand, depth + 1)))
        elif operator in OPERATORS:
            parts.append(compare(column, operator, operand))
        else:
            raise unknown_operator(operator)
    return parts[0] if len(parts) == 1 else All(tuple(parts))


def compare(column: str, operator: str, value: Any) -> Compare:
    """A comparison whose value has the shape that the operator takes."""
    if operator in LISTS:
        if not _is_list(value):
            raise FilterError(f"{operator} on {column} takes a list of values, not {value!r}")
        values = value.tolist() if isinstance(value, np.ndarray) else list(value)
        if len(values) > MAX_VALUES:
            raise FilterError(
                f"{operator} on {column} has {len(values)} values; at most {MAX_VALUES} are taken"
            )
        return Compare(column, operator, tuple(_plain(column, one) for one in values))
    value = _plain(column, value)
    if value is None and operator not in ("$eq", "$ne"):
        raise FilterError(
            f"{operator} on {column} needs a value; to find missing values write {column} == null"
        )
    return Compare(column, operator, value)


def _is_list(value: Any) -> bool:
    return isinstance(value, (Sequence, Set, np.ndarray)) and not isinstance(value, (str, bytes))


def _plain(column: str, value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping) or _is_list(value) or isinstance(value, bytes):
        raise FilterError(
            f"{column} can be compared with texts, numbers, true, false and null, not {value!r}"
        )
    if isinstance(value, (float, Decimal)) and value != value:
        raise FilterError(
            f"{column} cannot be compared with NaN; to find missing values write {column} == null"
        )
    return value


def _check_depth(depth: int) -> None:
    if depth > MAX_DEPTH:
        raise FilterError(f"the filter is nested more than {MAX_DEPTH} levels deep; write it flatter")


def unknown_operator(name: object) -> FilterError:
    known = [*OPERATORS, "$and", "$or", "$not"]
    near = difflib.get_close_matches(str(name), known, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return FilterError(f"operator {name!r} is unknown{hint}; the operators are {', '.join(known)}")


SPELLED = {operator: name for name, (operator, _) in OPERATORS.items()} | {"=": "$eq", "<>": "$ne"}
TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.]))
    | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | `(?P<quoted>(?:[^`]|``)+)`
    | (?P<operator>==|!=|<>|<=|>=|<|>|=)
    | (?P<sign>&&?|\|\|?|!|[()\[\],])
    | (?P<word>[^\W\d]\w*)
    )""",
    re.VERBOSE | re.DOTALL,
)
SIGNS = {"&": "and", "&&": "and", "|": "or", "||": "or", "!": "not"}
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
CONSTANTS = {"null": None, "none": None, "true": True, "false": False}


class _Text:
    """Recursive descent over ``or``, ``and``, ``not``, parentheses and comparisons."""

    def __init__(self, source: str) -> None:
        if len(source) > MAX_CHARACTERS:
            raise FilterError(f"the filter has {len(source)} characters; at most {MAX_CHARACTERS} are taken")
        self.source = source
        self.tokens = self._tokens()
        self.at = 0

    def parse(self) -> Node:
        if self.tokens[0][0] == "end":
            return All(())
        node = self._or(0)
        if self.tokens[self.at][0] != "end":
            raise self._expected("and, or, or the end of the filter")
        return node

    def _tokens(self) -> list[tuple[str, Any, int]]:
        tokens: list[tuple[str, Any, int]] = []
        at, end = 0, len(self.source.rstrip())
        while at < end:
            match = TOKEN.match(self.source, at)
            if match is None:
                at += len(self.source[at:]) - len(self.source[at:].lstrip())
                raise FilterError(
                    f"the filter cannot be read at character {at + 1}: {self.source[at : at + 20]!r}"
                )
            kind = str(match.lastgroup)
            value: Any = match.group(kind)
            start = match.start(kind)
            at = match.end()
            if kind == "string":
                value = re.sub(r"\\u([0-9a-fA-F]{4})", lambda m: chr(int(m[1], 16)), value[1:-1])
                value = re.sub(r"\\(.)", lambda m: ESCAPES.get(m[1], m[1]), value, flags=re.DOTALL)
            elif kind == "number":
                if len(value) > MAX_DIGITS:
                    raise FilterError(
                        f"the number at character {start + 1} has more than {MAX_DIGITS} digits"
                    )
                value = int(value) if re.fullmatch(r"[-+]?\d+", value) else float(value)
            elif kind == "quoted":
                kind, value = "column", value.replace("``", "`")
            elif kind == "sign":
                value = SIGNS.get(value, value)
            elif kind == "word" and value.lower() in ("and", "or", "not", "in", "contains", "is"):
                kind, value = "sign", value.lower()
            elif kind == "word" and value.lower() in CONSTANTS:
                kind, value = "constant", CONSTANTS[value.lower()]
            elif kind == "word":
                kind = "column"
            tokens.append((kind, value, start))
        return [*tokens, ("end", None, end)]

    def _or(self, depth: int) -> Node:
        _check_depth(depth)
        parts = [self._and(depth)]
        while self._take("or"):
            parts.append(self._and(depth))
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def _and(self, depth: int) -> Node:
        parts = [self._not(depth)]
        while self._take("and"):
            parts.append(self._not(depth))
        return parts[0] if len(parts) == 1 else All(tuple(parts))

    def _not(self, depth: int) -> Node:
        _check_depth(depth)
        if self._take("not"):
            return Not(self._not(depth + 1))
        if self._take("("):
            node = self._or(depth + 1)
            if not self._take(")"):
                raise self._expected(")")
            return node
        return self._comparison()

    def _comparison(self) -> Node:
        kind, column, _ = self.tokens[self.at]
        if kind == "constant" and isinstance(column, bool) and self.tokens[self.at + 1][0] != "operator":
            self.at += 1
            return All(()) if column else Either(())
        if kind != "column":
            raise self._expected("a column name")
        self.at += 1
        if self._take("is"):
            negated = self._take("not")
            value = self._value()
            return compare(column, "$ne" if negated else "$eq", value)
        negated = self._take("not")
        if self._take("in"):
            return compare(column, "$nin" if negated else "$in", self._list())
        if self._take("contains"):
            found = compare(column, "$contains", self._value())
            return Not(found) if negated else found
        kind, operator, _ = self.tokens[self.at]
        if negated or kind != "operator":
            raise self._expected(
                "in or contains" if negated else f"one of {' '.join(SPELLED)} after {column}"
            )
        self.at += 1
        return compare(column, SPELLED[operator], self._value())

    def _list(self) -> list[Any]:
        close = {"[": "]", "(": ")"}.get(str(self.tokens[self.at][1]))
        if self.tokens[self.at][0] != "sign" or close is None:
            raise self._expected("a list such as [1, 2]")
        self.at += 1
        values: list[Any] = []
        while not self._take(close):
            if values and not self._take(","):
                raise self._expected(f", or {close}")
            values.append(self._value())
        return values

    def _value(self) -> Any:
        kind, value, _ = self.tokens[self.at]
        if kind not in ("string", "number", "constant"):
            hint = f'a value (a text in quotes: "{value}")' if kind == "column" else "a value"
            raise self._expected(hint)
        self.at += 1
        return value

    def _take(self, sign: str) -> bool:
        kind, value, _ = self.tokens[self.at]
        if kind == "sign" and value == sign:
            self.at += 1
            return True
        return False

    def _expected(self, what: str) -> FilterError:
        kind, _, start = self.tokens[self.at]
        found = "its end" if kind == "end" else f"character {start + 1}, {self.source[start : start + 20]!r}"
        return FilterError(f"the filter needs {what} at {found}")
