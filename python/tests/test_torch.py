"""Process groups of `torch.distributed` over the datapath, beside gloo. The ranks are processes (`torch_ranks.py`)."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import skips

TESTS = Path(__file__).parent


@functools.cache
def interpreter() -> str | None:
    """Returns a Python with PyTorch: this one, or that of the system's package python3-torch."""
    for python in (sys.executable, "/usr/bin/python3"):
        command = [python, "-c", "import sys, torch.distributed as of; sys.exit(not of.is_gloo_available())"]
        try:
            if subprocess.run(command, capture_output=True, check=False).returncode == 0:
                return python
        except OSError:
            continue
    return None


pytestmark = skips(
    None
    if sys.platform == "linux" and interpreter() is not None
    else "no Python here has PyTorch with gloo (Debian: apt-get install python3-torch)"
)


def run(case: str, ranks: int, store: Path, *others: dict[str, str]) -> list[tuple[int, str]]:
    """Runs ranks, each with further variables of its own; returns the status and the output of each."""
    common = {
        "PYTHONPATH": str(TESTS.parent),
        "ANABRANCH_PATHS": "2",
        "ANABRANCH_RATE": "20Gbps",
        "ANABRANCH_GIVE_UP": "3s",
        "ANABRANCH_STATS": str(store.parent),
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ANABRANCH_", "PYTHON", "VIRTUAL"))}
    processes = []
    for rank in range(ranks):
        own = others[rank] if rank < len(others) else {}
        command = [str(interpreter()), str(TESTS / "torch_ranks.py"), case, own.pop("RANK", str(rank))]
        command += [own.pop("RANKS", str(ranks)), str(store)]
        processes.append(
            subprocess.Popen(
                command, env=kept | common | own, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
        )
    try:
        return [(of.returncode, text) for of in processes if (text := of.communicate(timeout=100)[0]) is not None]
    finally:
        for of in processes:
            of.kill()


def test_operations_messages_and_training_agree_with_gloo(tmp_path: Path) -> None:
    for status, text in run("main", 4, tmp_path / "store"):
        assert status == 0, text


@pytest.mark.skipif(not Path("/usr/include/infiniband/verbs.h").exists(), reason="needs libibverbs-dev")
def test_the_same_over_reliable_queue_pairs(tmp_path: Path) -> None:
    """Over a library of the tests' own, which aborts where hardware would access memory that is not registered."""
    library = TESTS.parents[1] / "crates/network/wire/tests/fake_verbs.c"
    command = ["cc", "-O1", "-shared", "-fPIC", "-Wl,-soname,libibverbs.so.1", "-o", str(tmp_path / "libibverbs.so.1")]
    subprocess.run([*command, str(library), "-lpthread"], check=True)
    device = tmp_path / "sys/class/infiniband/fake0"
    for file, text in {
        "node_guid": "0011:2233:4455:6677",
        "ports/1/rate": "25 Gb/sec (1X EDR)",
        "ports/1/gids/0": "0000:0000:0000:0000:0000:ffff:7f00:0001",
        "ports/1/gid_attrs/types/0": "RoCE v2",
        "ports/1/gid_attrs/ndevs/0": "lo",
    }.items():
        (device / file).parent.mkdir(parents=True, exist_ok=True)
        (device / file).write_text(text + "\n")
    rc = {
        "LD_LIBRARY_PATH": str(tmp_path),
        "SYSFS_PATH": str(tmp_path / "sys"),
        "FAKE_NETWORK": tmp_path.name,
        "FAKE_FAULT": "",
        "ANABRANCH_IFNAME": "=lo",
        "ANABRANCH_DATAPATH": "rc",
    }
    for status, text in run("main", 3, tmp_path / "store", *[dict(rc) for _ in range(3)]):
        assert status == 0, text


def test_bad_input_is_one_line_with_the_remedy(tmp_path: Path) -> None:
    for status, text in run("bad_input", 2, tmp_path / "store"):
        assert status == 0, text


def test_a_killed_rank_is_an_error_for_the_others(tmp_path: Path) -> None:
    results = run("killed", 3, tmp_path / "store")
    assert [status for status, _ in results] == [0, 0, 9], results


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({"ANABRANCH_SCHEME": "ecmp"}, ["scheme ecmp", "scheme reps", "ANABRANCH_*"]),
        ({"ANABRANCH_SCHEME": "hoper"}, ["ANABRANCH_SCHEME", "hopper"]),
        ({"RANKS": "3"}, ["of 3 ranks", "world size"]),
    ],
)
def test_ranks_with_different_settings_refuse_each_other(tmp_path: Path, own: dict[str, str], words: list[str]) -> None:
    of_all = {"TORCH_TIMEOUT": "3"}
    results = run("none", 2, tmp_path / "store", of_all, of_all | own)
    text = results[1][1] if "hopper" in words else "".join(text for _, text in results)
    assert all(status != 0 for status, _ in results), results
    assert any(all(word in line for word in words) for line in text.splitlines()), text


def test_a_group_larger_than_the_store_says_times_out(tmp_path: Path) -> None:
    begin = time.time()
    [(status, text)] = run("none", 1, tmp_path / "store", {"RANKS": "2", "TORCH_TIMEOUT": "1"})
    assert status != 0 and time.time() - begin < 30
    assert "rank 1 of 2 has no address in the store after 1 s" in text, text


def test_the_statistics_page_shows_its_paths(tmp_path: Path) -> None:
    results = run("paths", 2, tmp_path / "store")
    assert all(status == 0 for status, _ in results), results
