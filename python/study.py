"""
The study of docs/how-to/tuning.md: PRIME's and Hopper's thresholds tuned at two loads and under failed links, judged on seeds of their own.

    python -P python/study.py [FOLDER]      # some minutes; what is in FOLDER (results/thresholds) is not done again
"""

from __future__ import annotations

import sys
from pathlib import Path

import anabranch as ab

SPACES: dict[str, dict[str, ab.Range]] = {
    "prime": {
        "load_balancer.prime.p_ecn": ab.Range(0.02, 2, log=True, unit="bdp"),
        "load_balancer.prime.p_nack": ab.Range(0.1, 8, log=True, unit="bdp"),
    },
    "hopper": {
        "load_balancer.hopper.th_probe": ab.Range(1.05, 2.5),
        "load_balancer.hopper.th_cong": ab.Range(1.1, 4.0),
        "load_balancer.hopper.delta_rtt": ab.Range(0.5, 1.0),
    },
}
SITUATIONS: dict[str, tuple[float, list[ab.Fault]]] = {
    "load 0.4": (0.4, []),
    "load 0.8": (0.8, []),
    "load 0.6, two cables down": (0.6, [ab.Fault(kind="link-down", at="0us", links=["leaf0-spine0", "leaf1-spine2"], detect_after="20us")]),
}


def situation(name: str, load: float, faults: list[ab.Fault], scheme: str) -> ab.Scenario:
    """Returns web search on a 32-host fat tree."""
    return ab.Scenario(
        name=f"{scheme}, {name}",
        topology=ab.FatTree(tiers=2, radix=8),
        load_balancer=scheme,
        workloads=[ab.Poisson(sizes="web-search", load=load, duration="300us")],
        faults=faults or None,
    )


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "results/thresholds")
    print("| scheme | situation | default | tuned | tuned less default, 95 % | best of the trials |\n|---|---|---|---|---|---|")
    for scheme, space in SPACES.items():
        for name, (load, faults) in SITUATIONS.items():
            tuning = ab.tune(
                situation(name, load, faults, scheme), space, "slowdown.p99", seeds=3, trials=24, held_out=16,
                out=folder / f"{scheme}-{name.replace(' ', '-').replace(',', '')}", progress=False,
            )  # fmt: skip
            gain = tuning.gain
            settings = ", ".join(
                f"{key.rsplit('.', 1)[1]} {value:.3g}" if isinstance(value, float) else f"{key.rsplit('.', 1)[1]} {value}"
                for key, value in tuning.parameters.items()
            )
            interval = f"{gain.difference:+.3f} ({gain.low:+.3f} to {gain.high:+.3f})"
            print(f"| {scheme} | {name} | {gain.default:.3f} | {gain.tuned:.3f} | {interval} | {settings} |", flush=True)


if __name__ == "__main__":
    main()
