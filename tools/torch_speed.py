#!/usr/bin/env python3
"""All-reduces of PyTorch by the backend "anabranch" beside gloo, in turns, with the variables of the environment.

torch_speed.py [--ranks N] [--max BYTES] [--seconds S] [--within 'ip netns exec rank{}']   (N processes of this machine)

Prints per size the median time of each and the ratios of their bus bandwidths and of their processor times per byte.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time


def rank_of(arguments: argparse.Namespace) -> None:
    import torch
    import torch.distributed as dist

    import anabranch.torch  # noqa: F401, registers the backend

    torch.set_num_threads(1)
    own, ranks = arguments.rank, arguments.ranks
    dist.init_process_group("gloo", init_method=f"file://{arguments.store}", rank=own, world_size=ranks)
    groups = {"gloo": None, "anabranch": dist.new_group(backend="anabranch")}
    if own == 0:
        print("     bytes    gloo us  anabranch us  bandwidth GB/s  of gloo's  processor s/GiB  of gloo's")
    size = 1024
    while size <= arguments.max:
        tensor = torch.zeros(size // 4)
        times: dict[str, list[float]] = {name: [] for name in groups}
        used = dict.fromkeys(groups, 0.0)
        end = torch.tensor([time.monotonic() + arguments.seconds])
        for turn in range(10_000):
            for name in list(groups)[:: 1 if turn % 2 else -1]:
                dist.barrier()
                # Short ones are timed as a series: the barrier of gloo ends at different times.
                count = max(1, min(50, 2_000_000 // size))
                before, begin = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
                for _ in range(count):
                    dist.all_reduce(tensor, group=groups[name])
                took, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_SELF)
                if turn > 0:
                    times[name].append(took / count)
                    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
                    used[name] += cpu / count
            over = torch.tensor([float(time.monotonic() > end)])
            dist.broadcast(over, 0)
            if turn >= 4 and over.item():
                break
        gloo, ours = (statistics.median(times[name]) for name in groups)
        costs = [used[name] / len(times[name]) / size * 2**30 for name in groups]
        bus = 2 * (ranks - 1) / ranks * size / ours / 1e9
        if own == 0:
            print(
                f"{size:10} {gloo * 1e6:10.0f} {ours * 1e6:13.0f} {bus:15.3f} {gloo / ours:10.2f}"
                f" {costs[1]:16.2f} {costs[1] / max(costs[0], 1e-9):10.2f}",
                flush=True,
            )
        size *= 4
    dist.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--max", type=int, default=256 << 20)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--within", default="", help="runs each rank; {} is its number")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--store", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rank is not None:
        rank_of(arguments)
        return
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, *sys.argv, "--store", os.path.join(folder, "store")]
        within = [arguments.within.format(rank).split() for rank in range(arguments.ranks)]
        ranks = [subprocess.Popen([*of, *command, "--rank", str(rank)]) for rank, of in enumerate(within)]
        if any([rank.wait() for rank in ranks]):
            raise SystemExit("a rank has failed")


if __name__ == "__main__":
    main()
