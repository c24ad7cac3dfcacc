"""Two commands at once on one folder, in many orders: threads of a process, between which locks
count as between processes, and which wait a moment before every step of a write.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from crashes.commands import BENCH, COMMANDS, content, copied, goat
from crashes.layer import Layer, under
from goatrl import cli
from goatrl.experiments import records

COMMANDS_AT_ONCE = ("train", "bench", "data make")
MORE_SEEDS = (*BENCH, "--seeds", "2")


def at_once(commands: Sequence[Sequence[str]], folder: Path, seed: int) -> tuple[list[int], str]:
    """Exit codes of commands in a folder, and what they said."""
    said = io.StringIO()
    before, variables = Path.cwd(), dict(os.environ)
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    os.chdir(folder)
    try:
        with (
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(said),
            under(Layer(delays=random.Random(seed))),
            ThreadPoolExecutor(len(commands)) as pool,
        ):
            codes = list(pool.map(cli.main, commands))
        return codes, said.getvalue()
    finally:
        os.chdir(before)
        os.environ.clear()
        os.environ.update(variables)


@dataclasses.dataclass
class Pairs:
    """What became of two equal commands at once."""

    orders: int = 0
    refused: int = 0  # one of them, by name
    problems: list[str] = dataclasses.field(default_factory=list)

    def __str__(self) -> str:
        wrong = f"{len(self.problems)} times something lost, doubled or not said"
        return f"two at once in {self.orders} orders, one refused in {self.refused}, {wrong}"


def pairs(command: str, folder: Path, seeds: Sequence[int]) -> Pairs:
    """Two equal commands at once, in the orders that these seeds draw."""
    words, _ = COMMANDS[command]
    empty = folder / "empty"
    empty.mkdir(parents=True)
    whole = copied(empty, folder / "whole")
    assert goat(words, whole)[0] == 0
    found = Pairs()
    for seed in seeds:
        both = copied(empty, folder / "both")
        codes, said = at_once([words, words], both, seed)
        found.orders += 1
        found.refused += sorted(codes) == [0, 1]
        if codes not in ([0, 0], [0, 1], [1, 0]) or (
            any(codes) != ("is in use by process" in said)
        ):
            found.problems.append(f"{command}, order {seed}: {codes}, {said[-500:]}")
        after, expected = content(both), content(whole)
        if wrong := [n for n in {*after, *expected} if after.get(n) != expected.get(n)]:
            found.problems.append(f"{command}, order {seed}: another result in {sorted(wrong)}")
    return found


def merged(folder: Path, seeds: Sequence[int]) -> list[str]:
    """What was lost or doubled when a suite of one seed and a suite of two fill one folder."""
    found = []
    for seed in seeds:
        both = copied(folder, folder.with_name("merged"))
        codes, said = at_once([BENCH, MORE_SEEDS], both, seed)
        (cell,) = records.read_all(both / "bench")
        each = [int((cell.column("seed") == one).sum()) for one in (0, 1)]
        if codes != [0, 0] or cell.seeds != (0, 1) or len(set(each)) != 1:
            found.append(f"order {seed}: {codes}, seeds {cell.seeds}, {each}, {said[-500:]}")
        table = content(both)
        assert goat(MORE_SEEDS, both)[0] == 0
        if content(both) != table:
            found.append(f"order {seed}: tables older than their records")
    return found
