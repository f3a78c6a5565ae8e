"""Server time of the Compare page on the sample store: one whole run of the page for each new query.

    python benchmarks/compare_page.py

A run is what happens on the server between a keystroke and the lists: the query is embedded, searched by both (or all
three) methods, the passages are fetched, marked and compared, and every widget of the page is drawn. The goal is
under 200 ms. The browser's share is not in it.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
RUNS = 30


def main() -> None:
    os.environ.setdefault("RAGNAR_HOME", tempfile.mkdtemp())
    from streamlit.testing.v1 import AppTest

    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    app.query_params["q"] = "how are chunks cut"
    app.switch_page("pages/compare.py")
    begin, cpu = time.perf_counter(), time.process_time()
    app.run()
    print(
        f"first run, program and model loaded: {_ms(begin, time.perf_counter())} wall, {_ms(cpu, time.process_time())} CPU"
    )
    for hybrid in (False, True):
        app.toggle(key="hybrid").set_value(hybrid).run()
        wall, busy = [], []
        for number in range(RUNS):
            app.text_input(key="q").set_value(f"why does index number {number} return too few rows")
            begin, cpu = time.perf_counter(), time.process_time()
            app.run()
            wall.append(time.perf_counter() - begin)
            busy.append(time.process_time() - cpu)
            if app.exception or app.error:
                raise SystemExit("the page shows an error")
        title = "VSS, hybrid and BM25" if hybrid else "VSS and BM25"
        print(f"{title}, {RUNS} new queries: wall {_spread(wall)}, CPU {_spread(busy)}")


def _ms(begin: float, end: float) -> str:
    return f"{(end - begin) * 1000:.0f} ms"


def _spread(seconds: list[float]) -> str:
    p95 = sorted(seconds)[int(len(seconds) * 0.95)]
    return f"p50 {statistics.median(seconds) * 1000:.0f} ms, p95 {p95 * 1000:.0f} ms"


if __name__ == "__main__":
    main()
