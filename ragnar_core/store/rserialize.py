"""R's serialisation format (XDR, versions 2 and 3; R Internals, section 1.8), read without evaluating anything.

Only what functions and empty data frames consist of. Anything else raises `RFormatError`: what a stranger's file holds
is data here, never code.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

_DEEPEST = 200
_NIL, _GLOBAL, _UNBOUND, _MISSING, _BASE_NAMESPACE, _NAMESPACE, _PACKAGE = 254, 253, 252, 251, 250, 249, 247
_EMPTY_ENV, _BASE_ENV, _REF, _PERSIST, _ATTR_LANG, _ATTR_LIST = 242, 241, 255, 248, 240, 239
_SYM, _LIST, _CLO, _ENV, _LANG, _SPECIAL, _BUILTIN, _CHAR = 1, 2, 3, 4, 6, 7, 8, 9
_LGL, _INT, _REAL, _STR, _VEC, _EXPR, _RAW = 10, 13, 14, 16, 19, 20, 24
_NA_INT = -(2**31)
_HAS_ATTRIBUTES, _HAS_TAG, _IS_OBJECT = 0x200, 0x400, 0x100
_UTF8, _ASCII = 0x8000, 0x40000


class RFormatError(ValueError):
    """The bytes are no R object of the kinds that are read here."""


@dataclass(frozen=True)
class Symbol:
    name: str


@dataclass(frozen=True)
class Vector:
    """An atomic vector or a list. `kind` is "logical", "integer", "double", "character", "list" or "raw"."""

    kind: str
    values: tuple[Any, ...]
    attributes: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Pairs:
    """A pairlist: (tag or "", value) in order."""

    items: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Call:
    function: Any
    arguments: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Closure:
    formals: Pairs
    body: Any
    attributes: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Marker:
    """An environment or another thing that stands for itself: "missing", "base", "global", "environment", ..."""

    name: str


MISSING = Marker("missing")


def unserialize(data: bytes) -> Any:
    """The object in `data`; NULL is None. Raises RFormatError."""
    return _Reader(data).read()


def serialize(value: Any) -> bytes:
    """Bytes for R's `unserialize`, as R 4.5 writes them (version 3). Raises RFormatError."""
    writer = _Writer()
    writer.raw(b"X\n" + struct.pack(">iiii", 3, 0x00040500, 0x00030500, 5) + b"UTF-8")
    writer.write(value)
    return b"".join(writer.parts)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.references: list[Any] = []

    def read(self) -> Any:
        if self.take(2) != b"X\n":
            raise RFormatError("not in R's binary XDR format")
        version, _, _ = self.integer(), self.integer(), self.integer()
        if version == 3:
            self.take(self.integer())
        elif version != 2:
            raise RFormatError(f"R serialisation version {version} is not known")
        return self.item(0)

    def take(self, n: int) -> bytes:
        if n < 0 or self.at + n > len(self.data):
            raise RFormatError("the R object is cut off")
        self.at += n
        return self.data[self.at - n : self.at]

    def integer(self) -> int:
        return int(struct.unpack(">i", self.take(4))[0])

    def item(self, depth: int) -> Any:
        if depth > _DEEPEST:
            raise RFormatError("the R object is nested too deeply")
        flags = self.integer()
        kind = flags & 0xFF
        if kind in _SIMPLE:
            return _SIMPLE[kind]
        if kind == _REF:
            index = flags >> 8 or self.integer()
            if not 0 < index <= len(self.references):
                raise RFormatError("the R object refers to something that is not there")
            return self.references[index - 1]
        if kind == _SYM:
            symbol = Symbol(str(self.item(depth + 1)))
            self.references.append(symbol)
            return symbol
        if kind in (_NAMESPACE, _PACKAGE, _PERSIST):
            self.integer()
            names = [self.item(depth + 1) for _ in range(self.length())]
            self.references.append(Marker(f"namespace:{names[0]}" if names else "namespace"))
            return self.references[-1]
        if kind == _ENV:
            return self.environment(depth)
        if kind in (_LIST, _LANG, _CLO, _ATTR_LANG, _ATTR_LIST):
            return self.pairs(kind, flags, depth)
        if kind in (_SPECIAL, _BUILTIN):
            return Symbol(self.take(self.integer()).decode("utf-8", "replace"))
        if kind == _CHAR:
            n = self.integer()
            return (
                None
                if n == -1
                else self.take(n).decode("latin-1" if flags >> 12 & 0x4 else "utf-8", "replace")
            )
        return self.vector(kind, flags, depth)

    def environment(self, depth: int) -> Marker:
        self.integer()
        found = Marker("environment")
        self.references.append(found)
        for _ in range(4):
            self.item(depth + 1)
        return found

    def pairs(self, kind: int, flags: int, depth: int) -> Any:
        if kind == _CLO:
            attributes = self.attributes(flags, depth)
            if flags & _HAS_TAG:
                self.item(depth + 1)
            formals, body = self.item(depth + 1), self.item(depth + 1)
            return Closure(formals if isinstance(formals, Pairs) else Pairs(()), body, attributes)
        items: list[tuple[str, Any]] = []
        first = kind
        while True:
            if flags & _HAS_ATTRIBUTES or kind in (_ATTR_LANG, _ATTR_LIST):
                self.item(depth + 1)
            tag = self.item(depth + 1) if flags & _HAS_TAG else None
            items.append((tag.name if isinstance(tag, Symbol) else "", self.item(depth + 1)))
            flags = self.integer()
            kind = flags & 0xFF
            if kind == _NIL:
                break
            if kind not in (_LIST, _ATTR_LIST):
                raise RFormatError("a list of pairs does not end as one")
        if first in (_LANG, _ATTR_LANG):
            return Call(items[0][1], tuple(items[1:]))
        return Pairs(tuple(items))

    def attributes(self, flags: int, depth: int) -> tuple[tuple[str, Any], ...]:
        if not flags & _HAS_ATTRIBUTES:
            return ()
        found = self.item(depth + 1)
        return found.items if isinstance(found, Pairs) else ()

    def length(self) -> int:
        n = self.integer()
        if n < 0 or n > len(self.data):
            raise RFormatError("a length in the R object cannot be right")
        return n

    def vector(self, kind: int, flags: int, depth: int) -> Vector:
        if kind not in _VECTORS:
            raise RFormatError(f"R objects of type {kind} are not read")
        n = self.length()
        if kind in (_STR, _VEC, _EXPR):
            values: tuple[Any, ...] = tuple(self.item(depth + 1) for _ in range(n))
        elif kind == _REAL:
            values = struct.unpack(f">{n}d", self.take(8 * n))
        elif kind == _RAW:
            values = tuple(self.take(n))
        else:
            numbers = struct.unpack(f">{n}i", self.take(4 * n))
            wanted = bool if kind == _LGL else int
            values = tuple(None if number == _NA_INT else wanted(number) for number in numbers)
        return Vector(_VECTORS[kind], values, self.attributes(flags, depth))


class _Writer:
    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.references: dict[str, int] = {}

    def raw(self, data: bytes) -> None:
        self.parts.append(data)

    def integer(self, number: int) -> None:
        self.parts.append(struct.pack(">i", number))

    def write(self, value: Any) -> None:
        if value is None:
            self.integer(_NIL)
        elif value == MISSING:
            self.integer(_MISSING)
        elif isinstance(value, Symbol):
            self.symbol(value.name)
        elif isinstance(value, Call):
            self.pairs((("", value.function), *value.arguments), first=_LANG)
        elif isinstance(value, Pairs):
            self.pairs(value.items)
        elif isinstance(value, Closure):
            self.integer(_CLO | _HAS_TAG)
            self.integer(_BASE_ENV)
            self.write(value.formals)
            self.write(value.body)
        elif isinstance(value, Vector):
            self.vector(value)
        else:
            raise RFormatError(f"{type(value).__name__} cannot be written for R")

    def symbol(self, name: str) -> None:
        if name in self.references:
            self.integer(self.references[name] << 8 | _REF)
            return
        self.references[name] = len(self.references) + 1
        self.integer(_SYM)
        self.string(name)

    def string(self, text: str | None) -> None:
        if text is None:
            self.integer(_CHAR)
            self.integer(-1)
            return
        data = text.encode("utf-8")
        self.integer(_CHAR | (_ASCII if text.isascii() else _UTF8))
        self.integer(len(data))
        self.raw(data)

    def pairs(self, items: tuple[tuple[str, Any], ...], first: int = _LIST) -> None:
        for number, (tag, value) in enumerate(items):
            self.integer((first if number == 0 else _LIST) | (_HAS_TAG if tag else 0))
            if tag:
                self.symbol(tag)
            self.write(value)
        self.integer(_NIL)

    def vector(self, vector: Vector) -> None:
        kind = _KINDS[vector.kind]
        is_object = any(name == "class" for name, _ in vector.attributes)
        self.integer(kind | (_HAS_ATTRIBUTES if vector.attributes else 0) | (_IS_OBJECT if is_object else 0))
        self.integer(len(vector.values))
        for value in vector.values:
            if kind == _STR:
                self.string(value)
            elif kind == _VEC:
                self.write(value)
            elif kind == _REAL:
                self.raw(struct.pack(">d", value))
            else:
                self.integer(_NA_INT if value is None else int(value))
        if vector.attributes:
            self.pairs(vector.attributes)


_SIMPLE: dict[int, Any] = {
    _NIL: None,
    _MISSING: MISSING,
    _UNBOUND: Marker("unbound"),
    _GLOBAL: Marker("global"),
    _BASE_ENV: Marker("base"),
    _BASE_NAMESPACE: Marker("namespace:base"),
    _EMPTY_ENV: Marker("empty"),
}
_VECTORS = {
    _LGL: "logical", _INT: "integer", _REAL: "double", _STR: "character", _VEC: "list", _EXPR: "list", _RAW: "raw",
}  # fmt: skip
_KINDS = {"logical": _LGL, "integer": _INT, "double": _REAL, "character": _STR, "list": _VEC}
