"""What a cached answer about a store belongs to."""

from __future__ import annotations

import os

from ragnar_core import Store


def stamp(store: Store) -> str:
    """Changes with every write, and when another file takes the store's place."""
    try:
        file = os.stat(store.location)
        which = f"{file.st_ino}:{file.st_mtime_ns}"
    except OSError:
        which = str(id(store))
    return f"{store.location}:{which}:{store.revision}"
