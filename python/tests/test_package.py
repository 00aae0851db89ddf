"""The package: imports, their time, Python versions, generated files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import anabranch as ab

from pythons import pythons

HERE = Path(__file__).parents[1]
LIBRARIES = ["polars", "pandas", "pyarrow", "numpy", "matplotlib", "dask", "distributed", "optuna"]


def python(code: str, program: str = sys.executable) -> str:
    done = subprocess.run([program, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": str(HERE), "PATH": ""})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_pulls_in_no_library_and_takes_no_time() -> None:
    code = f"""
import sys, time
before = time.process_time()
import anabranch
taken = time.process_time() - before
print(taken, [name for name in {LIBRARIES} if name in sys.modules])
"""
    python(code)
    # Other load only slows it down: one time below the limit is enough.
    taken = []
    for _ in range(20):
        seconds, loaded = python(code).split(" ", 1)
        assert loaded.strip() == "[]"
        taken.append(float(seconds))
        if taken[-1] < 0.05:
            return
    pytest.fail(f"{min(taken) * 1000:.0f} ms at least")


def test_an_absent_library_names_its_extra() -> None:
    code = """
import sys
for name in ["polars", "pandas", "pyarrow"]:
    sys.modules[name] = None
import anabranch as ab
flows = ab.run("tiny").flows
for method, extra in [("polars", "polars"), ("pandas", "pandas"), ("arrow", "arrow")]:
    try:
        getattr(flows, method)()
    except ab.MissingExtra as error:
        assert f"anabranch[{extra}]" in str(error), error
    else:
        raise AssertionError(method)
"""
    python(code)


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_every_python_of_the_machine(version: str) -> None:
    """The build has the stable ABI of 3.11."""
    found = pythons().get(version)
    if found is None:
        pytest.skip(f"there is no Python {version} here")
    code = "import anabranch as ab; run = ab.run('tiny'); print(run.fingerprint, len(run.flows), ab.Scenario('first-run').keywords()['name'])"
    assert python(code, found) == python(code)


def test_the_classes_are_fresh() -> None:
    done = subprocess.run([sys.executable, HERE / "generate.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_command_comes_with_it(tmp_path: Path) -> None:
    def command(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "anabranch", *words], cwd=tmp_path, capture_output=True, text=True)

    assert command("--version").stdout.split() == ["anabranch", ab.__version__]
    assert command("check", "first-rnu").returncode == 2
    assert "first-run" in command("list", "scenarios").stdout
    manifest = command("run", "tiny", "--out", "run")
    assert manifest.returncode == 0 and (tmp_path / "run" / "report.html").exists()
