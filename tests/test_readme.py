"""What the README shows is true."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import ragnar_core

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text("utf-8")


def test_the_ten_lines_run_and_print_both_tables(tmp_path: Path) -> None:
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL)[1]
    assert len(code.strip().splitlines()) <= 10
    script = code.replace('"docs/handbook/', f'"{(ROOT / "docs" / "handbook").as_posix()}/').replace(
        'f"docs/handbook/', f'f"{(ROOT / "docs" / "handbook").as_posix()}/'
    )
    run = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("metric_value") == 2
    assert run.stdout.count("06-bm25.md") >= 2
    assert (tmp_path / "handbook-copy.duckdb").is_file()


def test_every_python_name_in_the_table_is_there() -> None:
    table = README[README.index("| R | Python |") : README.index("Where it differs")]
    cells = [line.split("|")[2] for line in table.splitlines()[2:] if line.startswith("|")]
    names = re.findall(r"`([A-Za-z_.0-9]+)", " ".join(cells))
    assert len(names) > 25
    for name in names:
        first, _, attribute = name.partition(".")
        holder = {"": ragnar_core.Store, "store": ragnar_core.Store}.get(first) or getattr(ragnar_core, first)
        assert not attribute or hasattr(holder, attribute), name


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_commands_are_those_of_the_ci_run() -> None:
    commands = re.findall(r"```sh\n(.*?)\n```", README, re.DOTALL)
    assert commands == [
        "python -m venv .venv && .venv/bin/pip install -r requirements.txt && .venv/bin/streamlit run app.py",
        "python -m venv .venv && .venv/bin/pip install -r requirements-dev.txt && .venv/bin/pytest",
    ]
    ci = (ROOT / ".ci" / "run").read_text("utf-8")
    assert "-r requirements-dev.txt" in ci
    assert ".venv/bin/pytest" in ci


def test_importing_the_library_loads_no_model_and_no_streamlit() -> None:
    heavy = (
        "streamlit",
        "onnxruntime",
        "tokenizers",
        "markitdown",
        "umap",
        "compartment",
        "wordllama",
        "plotly",
    )
    code = f"import sys, ragnar_core; print([name for name in {heavy!r} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert run.stdout.strip() == "[]"
