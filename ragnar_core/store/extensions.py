"""DuckDB's extensions fts and vss, needed only to build what ragnar searches."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import duckdb

from ragnar_core.errors import StoreError


def load_extension(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Loads an extension from its wheel, or from where DuckDB installed it before; never from the network.

    Raises StoreError that says what to install.
    """
    path = _from_wheel(name)
    try:
        quoted = str(path).replace("'", "''")
        connection.execute(f"LOAD '{quoted}'" if path else f"LOAD {name}")
    except duckdb.Error as error:
        raise StoreError(
            f"indexing for R needs DuckDB's extension {name} for version {duckdb.__version__}, which is not installed: "
            f"pip install duckdb-extension-{name}=={duckdb.__version__} (or, with a network, run INSTALL {name} in DuckDB)"
        ) from error


def _from_wheel(name: str) -> Path | None:
    spec = importlib.util.find_spec(f"duckdb_extension_{name}")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        found = Path(folder) / "extensions" / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"
        if found.is_file():
            return found
    return None
