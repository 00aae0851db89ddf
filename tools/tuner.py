#!/usr/bin/env python3
"""A minimal external tuner: watches the paths of jobs that Hopper steers, and changes its threshold while they run.

    python3 tools/tuner.py [FOLDER [SECONDS]]

Connections that change paths without gain get a higher threshold (`th_cong`, in base round trips). Where the paths in use are slow
and no connection leaves them, the threshold falls. A learning tuner would replace `decide`.
"""
import sys
import time

import paths

LEAST, MOST = 1.2, 8.0


def decide(threshold, moves_per_second, slowness):
    """Returns the next threshold. Inputs: how often each connection moved, and how many times its least round trip the mean one is."""
    if moves_per_second > 5 and slowness < threshold:
        return min(threshold * 1.5, MOST)
    if moves_per_second < 0.1 and slowness > 2:
        return max(threshold / 1.5, LEAST)
    return threshold


def look(page):
    """Connections, their moves so far, and the median slowness of paths that were used in the last half second."""
    state = paths.read(page)
    used = [path for path in state["paths"] if path["packets"]]
    recent = [path for path in used if state["written_at_ns"] - path["used_at_ns"] < 500_000_000 and path["rtt_least_ns"]]
    slow = sorted(path["rtt_mean_ns"] / path["rtt_least_ns"] for path in recent)
    connections = len({(path["device"], path["connection"]) for path in used})
    return state["scheme"], connections, sum(path["moves"] for path in used), slow[len(slow) // 2] if slow else 1.0


def main(folder="/dev/shm", seconds="inf"):
    thresholds, before, until = {}, {}, time.monotonic() + float(seconds)
    while time.monotonic() < until:
        time.sleep(0.5)
        for page in paths.pages(folder):
            try:
                scheme, connections, moves, slowness = look(page)
                if scheme != "hopper" or not connections:
                    continue
                moved = (moves - before.get(page, moves)) / 0.5 / connections
                before[page] = moves
                threshold = thresholds.get(page, 2.5)
                wanted = decide(threshold, moved, slowness)
                if wanted != threshold:
                    paths.wish(page, f"load_balancer.hopper.th_cong={wanted:.3f}; load_balancer.hopper.th_probe={wanted * 0.6:.3f}")
                    thresholds[page] = wanted
                    print(f"{page}: {moved:.1f} moves/s, {slowness:.1f} base round trips: threshold {wanted:.2f}", flush=True)
            except (OSError, TimeoutError):
                pass  # the process has ended meanwhile, or its page is no longer one


if __name__ == "__main__":
    main(*sys.argv[1:])
