"""Two commands at once on one folder, in many orders: threads of a process, between which locks
count as between processes, and which wait a moment before every step of a write.
"""

from __future__ import annotations

import contextlib
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


def problems(command: str, folder: Path, seeds: Sequence[int]) -> tuple[int, list[str]]:
    """How often one of two equal commands was refused, and what was lost, doubled or not said."""
    words, _ = COMMANDS[command]
    empty = folder / "empty"
    empty.mkdir(parents=True)
    whole = copied(empty, folder / "whole")
    assert goat(words, whole)[0] == 0
    refused, found = 0, []
    for seed in seeds:
        both = copied(empty, folder / "both")
        codes, said = at_once([words, words], both, seed)
        if sorted(codes) == [0, 1]:
            refused += 1
        if codes not in ([0, 0], [0, 1], [1, 0]) or (
            any(codes) != ("is in use by process" in said)
        ):
            found.append(f"{command}, order {seed}: {codes}, {said[-500:]}")
        after, expected = content(both), content(whole)
        if wrong := [n for n in {*after, *expected} if after.get(n) != expected.get(n)]:
            found.append(f"{command}, order {seed}: another result in {sorted(wrong)}")
    return refused, found


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
