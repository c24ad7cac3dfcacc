"""All faults at every step, kills at random moments, and commands at once. Prints what it found."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import jax

from crashes import kills, together
from crashes.commands import COMMANDS, small
from crashes.walk import Found, Walk

ORDERS = 50  # of two commands
EACH = 10  # kills of a command
# What takes longest comes first.
WALKED = sorted(COMMANDS, key=lambda each: each not in ("ablate", "finetune", "data make"))
KILLED = [each for each in COMMANDS if each not in ("data make --out", "data convert")]


def prepared(folder: Path) -> None:
    """Programs that run for less time than it takes to optimise them."""
    jax.config.update("jax_disable_most_optimizations", True)
    jax.config.update("jax_compilation_cache_dir", str(folder / "compiled"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


def walked(command: str, folder: Path) -> Found:
    prepared(folder)
    found = Found()
    with small():
        walk = Walk(command, folder / "walk" / command)
        for point in walk.points():
            walk.visit(point, found)
    return found


def killed(command: str, folder: Path) -> kills.Killed:
    return kills.kill(command, folder / "kills" / command, EACH, 0, folder / "for-kills")


def paired(command: str, folder: Path) -> together.Pairs:
    prepared(folder)
    where = folder / "together" / command
    with small():
        found = together.pairs(command, where, range(ORDERS))
        if command == "bench":
            found.problems += together.merged(where / "empty", range(ORDERS))
    return found


JOBS = {
    "walk": (walked, WALKED),
    "kills": (killed, KILLED),
    "together": (paired, together.COMMANDS_AT_ONCE),
}


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=JOBS, default=list(JOBS))
    parser.add_argument("--commands", nargs="+", choices=COMMANDS, default=list(COMMANDS))
    parser.add_argument("--processes", type=int, default=2)
    chosen = parser.parse_args(words)
    started, problems, points, deaths = time.monotonic(), [], 0, 0
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(
            chosen.processes, multiprocessing.get_context("spawn"), max_tasks_per_child=1
        ) as pool,
    ):
        jobs = {
            pool.submit(JOBS[kind][0], command, Path(folder)): (kind, command)
            for kind in chosen.only
            for command in JOBS[kind][1]
            if command in chosen.commands
        }
        for job in as_completed(jobs):
            found = job.result()
            print(f"{' '.join(jobs[job])}: {found}", flush=True)
            for each in found.problems:
                print(each, file=sys.stderr)
            problems += found.problems
            points += getattr(found, "visited", 0)
            deaths += getattr(found, "kills", 0)
    print(
        f"{points} fault points, {deaths} kills, {len(problems)} problems, "
        f"{time.monotonic() - started:.0f} s"
    )
    return bool(problems)
