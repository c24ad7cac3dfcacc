"""All faults at every step, kills at random moments, and commands at once. Prints what it found."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import jax

from crashes import kills, together
from crashes.commands import COMMANDS, small
from crashes.walk import Found, Walk

ORDERS = 50
KILLED = [name for name in COMMANDS if name not in ("data make --out", "data convert")]
EACH = 10


def prepared(compiled: Path) -> None:
    """Programs that run for less time than it takes to optimise them."""
    jax.config.update("jax_disable_most_optimizations", True)
    jax.config.update("jax_compilation_cache_dir", str(compiled))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


def walked(command: str, folder: Path) -> Found:
    prepared(folder / "compiled")
    found = Found()
    with small():
        walk = Walk(command, folder / "walk" / command)
        for point in walk.points():
            walk.visit(point, found)
    return found


def killed(command: str, folder: Path) -> kills.Killed:
    return kills.kill(command, folder / "kills" / command, EACH, 0, folder / "for-kills")


def paired(command: str, folder: Path) -> tuple[int, list[str]]:
    prepared(folder / "compiled")
    where = folder / "together" / command
    with small():
        refused, found = together.problems(command, where, range(ORDERS))
        if command == "bench":
            found += together.merged(where / "empty", range(ORDERS))
    return refused, found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", choices=("walk", "kills", "together"))
    chosen = parser.parse_args()
    started, problems = time.monotonic(), []
    with (
        tempfile.TemporaryDirectory() as name,
        ProcessPoolExecutor(
            chosen.processes, multiprocessing.get_context("spawn"), max_tasks_per_child=1
        ) as pool,
    ):
        folder = Path(name)

        def submitted(kind: str, job, commands):  # type: ignore[no-untyped-def]
            wanted = commands if chosen.only in (None, kind) else ()
            return {each: pool.submit(job, each, folder) for each in wanted}

        # those that take longest first
        order = sorted(COMMANDS, key=lambda each: each not in ("ablate", "finetune", "data make"))
        walks = submitted("walk", walked, order)
        deaths = submitted("kills", killed, KILLED)
        pairs = submitted("together", paired, together.COMMANDS_AT_ONCE)
        every = Found()
        for command, future in walks.items():
            found = future.result()
            print(f"{command}: {found}", flush=True)
            every.add(found)
        for command, future in deaths.items():
            dead = future.result()
            print(
                f"{command}: {dead.kills} kills, {dead.finished} times finished, "
                f"{len(dead.problems)} problems",
                flush=True,
            )
            problems += dead.problems
        for command, future in pairs.items():
            refused, wrong = future.result()
            print(
                f"{command}: two at once in {ORDERS} orders, refused in {refused}, "
                f"{len(wrong)} problems",
                flush=True,
            )
            problems += wrong
    problems += every.problems
    total = sum(future.result().kills for future in deaths.values())
    print(f"{every}; {total} kills; {len(problems)} problems in {time.monotonic() - started:.0f} s")
    for each in problems:
        print(each, file=sys.stderr)
    return bool(problems)
