"""What checksums, claims, locks and synced writes cost, as shares of one training run.

    python benchmarks/durability.py
    python benchmarks/durability.py --seeds 5 --updates 2000

Sizes are those of Push. Checkpoints are saved as often as `goat train` does.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import jax

import update_speed
from goatrl.data.problems import Problem
from goatrl.disk import checkpoint, checksum, claims, files
from goatrl.runs.offline import Run, configure
from goatrl.types import Settings

# What there is beside the write itself. Locks are held while training, and cost what it takes to
# get and to give them back.
PARTS: dict[str, Sequence[tuple[Any, str]]] = {
    "checksums": [(checksum, "sealed"), (checkpoint, "_is_intact")],
    "claims": [(claims, "_take"), (claims.os, "unlink"), (files, "remove_left_overs")],
    "synced writes": [(files.os, "fsync")],
}


def timed(function: Callable[..., Any], seconds: list[float]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        started = time.perf_counter()
        try:
            return function(*arguments)
        finally:
            seconds.append(time.perf_counter() - started)

    return call


def measure(seeds: int, updates: int) -> dict[str, Any]:
    """One run: its seconds, and the share of each part."""
    episodes = update_speed.dataset()
    problem = Problem(episodes, episodes.spec(0.05), Settings(), None)
    config = configure("goat", problem, seeds=tuple(range(seeds)), updates=updates)
    spent: dict[str, list[float]] = {name: [] for name in PARTS}
    saves: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        run = Run(Path(folder) / "run")
        patches = [
            patch.object(holder, name, timed(getattr(holder, name), spent[part]))
            for part, functions in PARTS.items()
            for holder, name in functions
        ]
        patches.append(patch.object(checkpoint, "save", timed(checkpoint.save, saves)))
        for each in patches:
            each.start()
        started = time.perf_counter()
        run.train(config, problem)
        run.restore()  # as whoever uses it does
        whole = time.perf_counter() - started
        for each in patches:
            each.stop()
        size = run.checkpoint_path.stat().st_size
    shares = {f"{name}, share": sum(found) / whole for name, found in spent.items()}
    return {
        "device": jax.devices()[0].device_kind,
        "seeds": seeds,
        "updates": updates,
        "run s": whole,
        "checkpoints": len(saves),
        "checkpoint MB": size / 1e6,
        **shares,
        "checksums and claims, share": shares["checksums, share"] + shares["claims, share"],
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--updates", type=int, default=2000)
    given = parser.parse_args(arguments)
    json.dump(measure(given.seeds, given.updates), sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
