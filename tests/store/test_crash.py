"""A writer that is killed leaves whole documents. The full length is `benchmarks/crash.py`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_kills_at_random_moments(tmp_path):
    spec = importlib.util.spec_from_file_location("crash_benchmark", ROOT / "benchmarks" / "crash.py")
    crash = importlib.util.module_from_spec(spec)
    sys.modules["crash_benchmark"] = crash
    spec.loader.exec_module(crash)
    outcome = crash.run(3, 8, tmp_path, seed=3)
    assert (outcome.kills, outcome.documents) == (3, 8)
    assert outcome.while_writing > 0
