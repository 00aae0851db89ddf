#!/usr/bin/env python3
"""Trains a small transformer over four ranks of a testbed with slow spines (root): gloo and schemes beside the simulator.

torch_job.py [--anabranch COMMAND] [--rounds N] [--steps N] [--schemes A,B,...] [--local]

The network is hopper-testbed-small with two hosts a leaf; neighbours in rings are at different leaves. Prints per scheme the mean
time of a step with its 95 % interval over the rounds, and what the simulator predicts for the same job: an all-reduce of all
gradients on a ring after the measured time of computing. With --local the ranks use the loopback interface instead, without root,
and nothing is simulated.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCENARIO = ROOT / "claims/hopper/scenarios/hopper-testbed-small.toml"
HOSTS = ["host0", "host2", "host1", "host3"]
SMALL = ["--set", "topology.hosts_per_leaf=2"]
FOUR = ["--set", "workload.0.ranks=4"]
# Student's t of 95 % by degrees of freedom.
T = [math.nan, 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26]


def rank_of(arguments: argparse.Namespace) -> None:
    if arguments.local:
        os.environ["GLOO_SOCKET_IFNAME"] = os.environ["ANABRANCH_IFNAME"] = "lo"
    else:
        lines = subprocess.run(["ip", "-o", "-4", "address", "show", "scope", "global"], capture_output=True, text=True)
        os.environ["GLOO_SOCKET_IFNAME"] = os.environ["ANABRANCH_IFNAME"] = lines.stdout.split()[1]
    import torch
    import torch.distributed as dist

    if arguments.backend == "anabranch":
        import anabranch.torch  # noqa: F401, registers the backend

    torch.set_num_threads(1)
    dist.init_process_group(
        arguments.backend, init_method=f"file://{arguments.store}", rank=arguments.rank, world_size=len(HOSTS)
    )
    torch.manual_seed(1)
    layer = torch.nn.TransformerEncoderLayer(128, 4, 256, batch_first=True)
    parts = torch.nn.Embedding(3000, 128), torch.nn.TransformerEncoder(layer, 2), torch.nn.Linear(128, 3000)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*parts))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    words = torch.randint(0, 3000, (2, 17), generator=torch.Generator().manual_seed(arguments.rank))
    times, computed, losses = [], [], []

    def step() -> None:
        loss = torch.nn.functional.cross_entropy(model(words[:, :-1]).flatten(0, 1), words[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        losses.append(loss.item())

    for turn in range(arguments.steps + 2):
        begin = time.monotonic()
        with model.no_sync():
            step()
        computed.append(time.monotonic() - begin)
        dist.barrier()
        begin = time.monotonic()
        step()
        optimizer.step()
        if turn >= 2:
            times.append(time.monotonic() - begin)
    check = torch.cat([of.detach().flatten() for of in model.parameters()])
    all_ranks = [torch.empty_like(check) for _ in HOSTS]
    dist.all_gather(all_ranks, check)
    assert all(torch.equal(of, check) for of in all_ranks), "weights differ"
    assert losses[-1] < losses[0], losses
    if arguments.rank == 0:
        size = 4 * check.numel()
        print(json.dumps([statistics.mean(times), statistics.median(computed), size]), flush=True)
    dist.barrier()
    dist.destroy_process_group()


def trained(arguments: argparse.Namespace, scheme: str, folder: Path) -> list[float]:
    """Returns the times of a step and of computing, and the bytes of gradients."""
    backend = "gloo" if scheme == "gloo" else "anabranch"
    store = folder / f"store-{time.monotonic_ns()}"
    of_job = {"ANABRANCH_SCHEME": "ecmp" if scheme == "gloo" else scheme}
    if not arguments.local:
        of_job |= {"ANABRANCH_CONFIG": str(SCENARIO), "ANABRANCH_RATE": "195Mbps", "ANABRANCH_PATHS": "48"}
    ranks = []
    for rank, host in enumerate(HOSTS):
        command = [] if arguments.local else [arguments.anabranch, "testbed", "exec", "--name", "torch-job", host, "--"]
        command += [sys.executable, __file__] + ["--local"] * arguments.local
        command += ["--backend", backend, "--rank", str(rank), "--store", str(store), "--steps", str(arguments.steps)]
        ranks.append(subprocess.Popen(command, env=os.environ | of_job, stdout=subprocess.PIPE, text=True))
    outputs = [rank.communicate(timeout=300)[0] for rank in ranks]
    if any(rank.returncode for rank in ranks):
        raise SystemExit(f"{scheme}: a rank has failed")
    return json.loads(outputs[0].splitlines()[-1])


def predicted(arguments: argparse.Namespace, scheme: str, compute: float, size: float, folder: Path) -> list[float]:
    """Returns the times of a step by the simulator, for each seed."""
    workload = (
        f'[[workload]]\nkind = "collective"\nalgorithm = "ring-allreduce"\nranks = 4\nplacement = "across-racks"\n'
        f'size = "{size:.0f}B"\nrepetitions = {arguments.steps}\ncompute = "{compute * 1e6:.0f}us"\n'
    )
    scenario = folder / "job.toml"
    scenario.write_text(re.sub(r"\[\[workload\]\]\n(?:[^\n]+\n)+", workload, SCENARIO.read_text()))
    times = []
    for seed in range(1, arguments.rounds + 1):
        out = folder / f"simulated-{scheme}-{seed}"
        command = [arguments.anabranch, "run", str(scenario), *SMALL, "--set", f"load_balancer.scheme={scheme}"]
        subprocess.run([*command, "--seed", str(seed), "--out", str(out)], check=True, capture_output=True)
        summary = out / "summary.json"
        times.append(json.loads(summary.read_text())["simulated_s"] / arguments.steps)
    return times


def text(times: list[float]) -> str:
    if len(times) < 2:
        return f"{times[0] * 1e3:7.0f}"
    half = T[min(len(times), len(T)) - 1] * statistics.stdev(times) / math.sqrt(len(times))
    return f"{statistics.mean(times) * 1e3:7.0f} +- {half * 1e3:4.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--anabranch", default="anabranch")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--schemes", default="gloo,ecmp,qp-spray,flowbender,hopper,prime,mrc")
    parser.add_argument("--local", action="store_true")
    for hidden in ("--rank", "--backend", "--store"):
        parser.add_argument(hidden, type=int if hidden == "--rank" else str, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rank is not None:
        rank_of(arguments)
        return
    schemes = arguments.schemes.split(",")
    testbed = [arguments.anabranch, "testbed"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if not arguments.local:
            subprocess.run([*testbed, "up", "--name", "torch-job", "--fabric", str(SCENARIO), *SMALL, *FOUR], check=True)
        try:
            # All schemes in turn in each round, so that other work of the machine slows all.
            results = [[trained(arguments, scheme, folder) for scheme in schemes] for _ in range(arguments.rounds)]
        finally:
            if not arguments.local:
                subprocess.run([*testbed, "down", "--name", "torch-job"], check=True)
        compute = statistics.median(of[1] for turn in results for of in turn)
        size = results[0][0][2]
        print(f"gradients {size / 1e6:.2f} MB, computing {compute * 1e3:.0f} ms a step, mean of {arguments.rounds} rounds")
        print("scheme       step (ms)        simulated (ms)")
        for at, scheme in enumerate(schemes):
            measured = text([turn[at][0] for turn in results])
            is_simulated = scheme != "gloo" and not arguments.local
            simulated = text(predicted(arguments, scheme, compute, size, folder)) if is_simulated else "-"
            print(f"{scheme:12} {measured:16} {simulated}", flush=True)


if __name__ == "__main__":
    main()
