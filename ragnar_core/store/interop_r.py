"""The R objects in a store's metadata: the function that embeds, and the columns of a version 1 store.

Ragnar keeps its embedding function as R source in serialised form. We look for the call of one of ragnar's own
`embed_*` functions in it, and take provider and settings from the call's literal arguments. Nothing is evaluated.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ragnar_core.embedding.config import PROVIDERS
from ragnar_core.store.rserialize import (
    MISSING,
    Call,
    Closure,
    Marker,
    Pairs,
    RFormatError,
    Symbol,
    Vector,
    serialize,
    unserialize,
)

# What ragnar's functions take beside x, in their order.
_ARGUMENTS = {
    "openai": ("model", "base_url", "dims", "user", "batch_size"),
    "ollama": ("base_url", "model", "batch_size"),
    "lm_studio": ("model", "base_url", "dims", "user", "batch_size"),
    "azure_openai": ("endpoint", "api_version", "batch_size", "model"),
    "google_gemini": ("model", "base_url", "dims", "task_type", "batch_size"),
    "google_vertex": ("model", "location", "project_id", "task_type"),
    "bedrock": ("model", "profile"),
    "databricks": ("workspace", "model", "batch_size"),
    "snowflake": ("account", "model"),
}
_SECRETS = ("api_key", "access_token", "token", "key")
_DEFAULTS = {("ollama", "base_url"): "http://localhost:11434"}
_INFIX = frozenset(
    [
        "+",
        "-",
        "*",
        "/",
        "^",
        "==",
        "!=",
        "<",
        ">",
        "<=",
        ">=",
        "&&",
        "||",
        "&",
        "|",
        "~",
        "<-",
        "=",
        ":",
        "::",
        ":::",
        "$",
        "@",
        "|>",
        "%in%",
        "%||%",
    ]
)
_TIGHT = frozenset((":", "::", ":::", "$", "@", "^"))


@dataclass(frozen=True)
class REmbed:
    """What an `embed_func` says: the R expression that embeds, as text, and our configuration for the same model.

    Both are None for R's NULL; the configuration alone is None where R has a function that is not ragnar's.
    """

    call: str | None
    config: dict[str, Any] | None


def read_embed(data: bytes) -> REmbed:
    """Reads `metadata.embed_func`. Never fails: a store is searched by BM25 without its model as well."""
    try:
        found = unserialize(data)
    except RFormatError as error:
        return REmbed(f"<unreadable: {error}>", None)
    if found is None:
        return REmbed(None, None)
    body = found.body if isinstance(found, Closure) else found
    call = _embed_call(body)
    return REmbed(deparse(body), None if call is None else _config(*call))


def write_embed(config: Mapping[str, Any] | None) -> bytes:
    """The function for R: `function(x) ragnar::embed_openai(x = x, model = ...)`, NULL where ragnar has no such model."""
    provider = str(config.get("provider")) if config else ""
    if config is None or provider not in _ARGUMENTS:
        return serialize(None)
    arguments: list[tuple[str, Any]] = [("x", Symbol("x"))]
    for name in _ARGUMENTS[provider]:
        value = config.get(name)
        if value is not None and value != _default(provider, name):
            arguments.append((name, _literal(value)))
    function = Call(Symbol("::"), (("", Symbol("ragnar")), ("", Symbol(f"embed_{provider}"))))
    return serialize(Closure(Pairs((("x", MISSING),)), Call(function, tuple(arguments))))


def write_schema(extra: Mapping[str, str], dim: int) -> bytes:
    """`metadata.schema` of a version 1 store: a data frame without rows that has the table's columns."""
    columns = {name: _prototype(kind) for name, kind in extra.items()}
    columns |= {name: Vector("character", ()) for name in ("origin", "hash", "text")}
    if dim:
        columns["embedding"] = Vector("double", (), (("dim", Vector("integer", (0, dim))),))
    attributes = (
        ("names", Vector("character", tuple(columns))),
        ("row.names", Vector("integer", ())),
        ("class", Vector("character", ("data.frame",))),
    )
    return serialize(Vector("list", tuple(columns.values()), attributes))


def deparse(value: Any) -> str:
    """R source of an expression, on one line."""
    if value is None:
        return "NULL"
    if isinstance(value, Symbol):
        return value.name
    if isinstance(value, Marker):
        return "" if value == MISSING else f"<{value.name}>"
    if isinstance(value, Closure):
        return f"function({_arguments(value.formals.items, formals=True)}) {deparse(value.body)}"
    if isinstance(value, Pairs):
        return f"pairlist({_arguments(value.items)})"
    if isinstance(value, Vector):
        parts = [_atom(value.kind, each) for each in value.values]
        if len(parts) == 1 and value.kind != "list":
            return parts[0]
        return f"{'list' if value.kind == 'list' else 'c'}({', '.join(parts)})"
    if isinstance(value, Call):
        return _call(value)
    return str(value)


def _call(call: Call) -> str:
    name = call.function.name if isinstance(call.function, Symbol) else None
    arguments = [each for _, each in call.arguments]
    if name == "{":
        return "{ " + "; ".join(map(deparse, arguments)) + " }"
    if name == "(" and len(arguments) == 1:
        return f"({deparse(arguments[0])})"
    if name in _INFIX and len(arguments) == 2:
        space = "" if name in _TIGHT else " "
        return f"{deparse(arguments[0])}{space}{name}{space}{deparse(arguments[1])}"
    if name == "function" and arguments and isinstance(arguments[0], Pairs):
        return f"function({_arguments(arguments[0].items, formals=True)}) {deparse(arguments[1])}"
    return f"{deparse(call.function)}({_arguments(call.arguments)})"


def _arguments(items: tuple[tuple[str, Any], ...], *, formals: bool = False) -> str:
    shown = []
    for tag, value in items:
        text = deparse(value)
        if formals:
            shown.append(tag if value == MISSING else f"{tag} = {text}")
        else:
            shown.append(f"{tag} = {text}" if tag else text)
    return ", ".join(shown)


def _atom(kind: str, value: Any) -> str:
    if kind == "list":
        return deparse(value)
    if value is None:
        return "NA"
    if kind == "character":
        return json.dumps(value, ensure_ascii=False)
    if kind == "logical":
        return "TRUE" if value else "FALSE"
    if kind == "integer":
        return f"{value}L"
    if kind == "double":
        return f"{value:.15g}"
    return str(value)


def _embed_call(value: Any) -> tuple[str, Call] | None:
    """The first call of a function embed_* of ragnar, with its provider."""
    if isinstance(value, Call):
        function = value.function
        if (
            isinstance(function, Call)
            and deparse(function.function) in ("::", ":::")
            and len(function.arguments) == 2
        ):
            package, name = (deparse(each) for _, each in function.arguments)
        else:
            package, name = "ragnar", deparse(function) if isinstance(function, Symbol) else ""
        if package == "ragnar" and name.removeprefix("embed_") in _ARGUMENTS and name.startswith("embed_"):
            return name.removeprefix("embed_"), value
        for part in (value.function, *(each for _, each in value.arguments)):
            found = _embed_call(part)
            if found is not None:
                return found
    return None


def _config(provider: str, call: Call) -> dict[str, Any] | None:
    """None where the model is not written out in the call."""
    config: dict[str, Any] = {"provider": provider}
    names = iter(("x", *_ARGUMENTS[provider]))
    for tag, value in call.arguments:
        name = tag or next((each for each in names if each == "x" or each not in config), "")
        if name in ("x", "...", "") or name in _SECRETS:
            continue
        if not isinstance(value, Vector) or len(value.values) != 1:
            if name == "model":
                return None
            continue
        if name in _ARGUMENTS[provider]:
            number = value.values[0]
            config[name] = int(number) if value.kind == "double" and number == int(number) else number
    default = _default(provider, "model")
    if "model" not in config and isinstance(default, str):
        config["model"] = default
    # R sends texts as they are, and the vectors in the store were made so.
    return config | {"query_prefix": "", "document_prefix": ""}


def _default(provider: str, name: str) -> Any:
    """The value ragnar takes when the argument is not given. The model is always named."""
    if name == "model":
        return None
    if (provider, name) in _DEFAULTS:
        return _DEFAULTS[provider, name]
    found = next((each.settings.get(name) for each in PROVIDERS if each.name == provider), None)
    return None if found is ... else found


def _literal(value: Any) -> Vector:
    if isinstance(value, bool):
        return Vector("logical", (value,))
    if isinstance(value, int | float):
        return Vector("double", (float(value),))
    return Vector("character", (str(value),))


def _prototype(kind: str) -> Vector:
    if kind.endswith("[]"):
        return Vector("list", ())
    if kind == "BOOLEAN":
        return Vector("logical", ())
    if kind in ("INTEGER", "SMALLINT", "TINYINT", "USMALLINT", "UTINYINT"):
        return Vector("integer", ())
    if kind == "DATE":
        return Vector("double", (), (("class", Vector("character", ("Date",))),))
    if kind.startswith("TIMESTAMP"):
        classes = Vector("character", ("POSIXct", "POSIXt"))
        return Vector("double", (), (("class", classes), ("tzone", Vector("character", ("UTC",)))))
    if kind in ("VARCHAR", "TIME"):
        return Vector("character", ())
    return Vector("double", ())
