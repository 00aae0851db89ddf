"""
A Slurm of one node in a folder of its own, as root, without systemd and control groups.

    python python/tests/slurm.py start FOLDER     # prints the SLURM_CONF to set
    python python/tests/slurm.py stop FOLDER
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

NEEDED = ["munged", "slurmctld", "slurmd", "sbatch", "sinfo"]
# Not in every search path on Debian.
PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"

CONF = """
ClusterName=anabranch
SlurmctldHost={name}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmctldPort={controller}
SlurmdPort={node}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
SchedulerParameters=sched_interval=1,batch_sched_delay=0
KillWait=2
NodeName={name} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory} State=UNKNOWN
PartitionName=batch Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8
"""


def missing() -> str | None:
    """Returns the reason why Slurm cannot start here."""
    if os.geteuid() != 0:
        return "needs root"
    absent = [name for name in NEEDED if shutil.which(name, path=PATH) is None]
    return f"not installed: {', '.join(absent)} (apt-get install slurm-wlm munge)" if absent else None


def _port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def start(folder: Path) -> Path:
    """Starts Slurm; returns its configuration file, for SLURM_CONF."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    for part in ("state", "spool"):
        (folder / part).mkdir(exist_ok=True)
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o400)
    run = {"env": {**os.environ, "PATH": PATH}, "check": True, "capture_output": True}
    own = [f"--{name}={folder / f'munge.{kind}'}" for name, kind in [
        ("key-file", "key"), ("socket", "socket"), ("pid-file", "pid"), ("log-file", "log"), ("seed-file", "seed"),
    ]]  # fmt: skip
    subprocess.run(["munged", "--force", *own], **run)  # type: ignore[call-overload]
    conf = folder / "slurm.conf"
    text = CONF.format(
        name=socket.gethostname().split(".")[0], folder=folder, controller=_port(), node=_port(), cpus=os.cpu_count() or 1,
        memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20,
    )
    conf.write_text(text)
    subprocess.run(["slurmctld", "-f", str(conf)], **run)  # type: ignore[call-overload]
    subprocess.run(["slurmd", "-f", str(conf)], **run)  # type: ignore[call-overload]
    until = time.monotonic() + 60
    while True:
        reply = subprocess.run(["sinfo", "-h", "-o", "%T"], env={**os.environ, "PATH": PATH, "SLURM_CONF": str(conf)}, capture_output=True, text=True)
        if reply.stdout.strip() in ("idle", "mixed"):
            return conf
        if time.monotonic() > until:
            stop(folder)
            raise RuntimeError(f"Slurm does not start: {reply.stdout}{reply.stderr}")
        time.sleep(0.1)


def stop(folder: Path) -> None:
    """Stops Slurm with all its jobs."""
    conf = folder / "slurm.conf"
    environment = {**os.environ, "PATH": PATH, "SLURM_CONF": str(conf)}
    subprocess.run(["scancel", "--user=root"], env=environment, capture_output=True)
    time.sleep(0.5)
    pids = []
    for name in ("slurmd.pid", "slurmctld.pid", "munge.pid"):
        try:
            pids.append(int((folder / name).read_text()))
            os.kill(pids[-1], signal.SIGTERM)
        except (OSError, ValueError):
            continue
    until = time.monotonic() + 10
    while pids and time.monotonic() < until:
        pids = [pid for pid in pids if Path(f"/proc/{pid}").exists()]
        time.sleep(0.05)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["start", folder]:
            print(f"export SLURM_CONF={start(Path(folder).absolute())}")
        case ["stop", folder]:
            stop(Path(folder).absolute())
        case _:
            sys.exit(__doc__)
