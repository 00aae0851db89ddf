"""A Dask client whose workers are Slurm jobs."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ._errors import ScenarioError, needs

if TYPE_CHECKING:
    from distributed import Client


def slurm(
    jobs: int,
    *,
    cores: int = 1,
    memory: str = "4GB",
    walltime: str = "01:00:00",
    partition: str | None = None,
    account: str | None = None,
    interface: str | None = None,
    prologue: Sequence[str] = (),
    directives: Sequence[str] = (),
    **more: Any,
) -> Client:
    """
    Returns a client for `ab.sweep(..., client=...)` and `ab.tune` whose workers are `jobs` Slurm jobs with `cores` and `memory`
    each. A job that ends (time limit, failed node) is replaced. `prologue` are shell lines before a worker
    starts, `directives` further lines of `#SBATCH`; other arguments go to `dask_jobqueue.SLURMCluster`.

    `client.close()` and `client.cluster.close()` end the jobs; so does the end of a `with` block over the client's cluster.
    """
    try:
        from dask_jobqueue import SLURMCluster
        from distributed import Client
    except ImportError:
        raise needs("dask-jobqueue", "slurm") from None
    if jobs < 1 or cores < 1:
        name = "jobs" if jobs < 1 else "cores"
        raise ScenarioError(f"{name}: found {jobs if jobs < 1 else cores}, expected 1 or more", place=name)
    _check_memory(memory)
    _check_slurm(partition)
    cluster = SLURMCluster(
        cores=cores,
        processes=cores,
        memory=memory,
        walltime=walltime,
        queue=partition,
        account=account,
        interface=interface,
        job_script_prologue=list(prologue),
        job_extra_directives=list(directives),
        **more,
    )
    try:
        _check_job(cluster.job_script())
    except ScenarioError:
        cluster.close()
        raise
    # With a fixed number of jobs, those that reach their time limit are not replaced and a sweep hangs forever.
    workers = jobs * cores
    cluster.adapt(minimum=workers, maximum=workers, interval="1s", wait_count=10)
    client = Client(cluster)
    return client


def _check_memory(memory: str) -> None:
    from dask.utils import parse_bytes

    try:
        given = parse_bytes(memory)
    except ValueError:
        given = 0
    # A worker needs more at its start, so the unit is missing.
    if given < 50_000_000:
        raise ScenarioError(f'memory: found {memory!r}, expected a size with its unit, such as "4GB"', place="memory")


def _check_job(script: str) -> None:
    """Tests a job: Slurm would refuse each one repeatedly, and the sweep would wait forever."""
    with tempfile.NamedTemporaryFile("w", suffix=".sh") as file:
        file.write(script)
        file.flush()
        reply = subprocess.run(["sbatch", "--test-only", file.name], capture_output=True, text=True, timeout=60)
    if reply.returncode != 0:
        lines = [line.removeprefix("sbatch: error: ").removeprefix("allocation failure: ") for line in reply.stderr.splitlines()]
        raise ScenarioError(f"Slurm refuses the jobs: {'; '.join(lines)}", place="slurm")


def _check_slurm(partition: str | None) -> None:
    remedy = "start it on a machine that has Slurm's commands, or use ab.sweep without a client"
    if shutil.which("sbatch") is None:
        raise ScenarioError("Slurm is missing on this machine: no command `sbatch`", place="slurm", remedy=remedy)
    try:
        reply = subprocess.run(["sinfo", "-h", "-o", "%R"], capture_output=True, text=True, timeout=30)
    except subprocess.TimeoutExpired:
        raise ScenarioError("Slurm timed out: no reply of `sinfo` within 30 s", place="slurm") from None
    if reply.returncode != 0:
        raise ScenarioError(f"Slurm refuses: {'; '.join(reply.stderr.strip().splitlines())}", place="slurm", remedy=remedy)
    known = sorted(set(reply.stdout.split()))
    if partition is not None and partition not in known:
        from ._native import nearest

        near = nearest(partition, known)
        raise ScenarioError(
            f"Slurm has no partition `{partition}`; there are {', '.join(known)}", place="partition", nearest=near,
            remedy=f"did you mean `{near}`?" if near else None,
        )  # fmt: skip
