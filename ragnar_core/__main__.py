"""`python -m ragnar_core inspect STORE`."""

from __future__ import annotations

import sys

from ragnar_core.inspect import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
