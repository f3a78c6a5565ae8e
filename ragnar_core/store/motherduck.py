"""Stores at MotherDuck (`md:name`), through DuckDB's own extension."""

from __future__ import annotations

import os
import threading
from typing import Any

import duckdb

from ragnar_core.errors import StoreError
from ragnar_core.store.connection import Database, first_line

_WAIT = 20.0


def is_motherduck(location: str) -> bool:
    return location.startswith("md:")


def connect_motherduck(location: str, *, create: bool = False) -> Database:
    """Opens a database at MotherDuck. Raises StoreError, within 20 seconds, that names what is missing."""
    if not (any(name.upper() == "MOTHERDUCK_TOKEN" for name in os.environ)):
        raise StoreError(
            f"{location} is at MotherDuck, which needs a token: set the environment variable MOTHERDUCK_TOKEN, "
            "or use a store in a local file"
        )
    result: dict[str, Any] = {}

    def run() -> None:
        try:
            connection = duckdb.connect("md:" if create else location)
            if create:
                name = location.removeprefix("md:").replace('"', '""')
                connection.execute(f'CREATE DATABASE IF NOT EXISTS "{name}"')
                connection.close()
                connection = duckdb.connect(location)
            result["connection"] = connection
        except duckdb.Error as error:
            result["error"] = error

    # Installing the extension on a network that swallows packets takes minutes to fail.
    thread = threading.Thread(target=run, daemon=True, name="motherduck")
    thread.start()
    thread.join(_WAIT)
    if "connection" not in result:
        reason = first_line(result["error"]) if "error" in result else f"no answer within {_WAIT:.0f} seconds"
        raise StoreError(
            f"{location} could not be reached ({reason}); DuckDB's extension for MotherDuck must be installed and "
            "the network must let it through, or use a store in a local file"
        )
    return Database.around(result["connection"], location)
