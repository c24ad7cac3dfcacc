"""Opening and making datasets from the command line: progress, and the offer to make what is
missing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from goatrl import data as datasets
from goatrl import tasks
from goatrl.cli.console import console
from goatrl.cli.progress import shown
from goatrl.data import MissingDataset, cache, collect, minari
from goatrl.runs.folder import Interrupted
from goatrl.tasks import TaskGroup
from goatrl.types import Episodes, GoatError

Dataset = Annotated[Positional[str], arg(metavar="DATA")]


@contextmanager
def collecting(group: TaskGroup) -> Iterator[collect.Progress]:
    """Progress of a dataset that is being collected, and how to resume on Ctrl-C."""
    assert group.made is not None

    def describe(found: Mapping[str, float]) -> str:
        return f"{100 * found['share']:.0f} % of those simulated kept" if found else ""

    count = group.made.episodes
    with shown(
        group.name, total=count, unit="episodes", first="starting", describe=describe
    ) as progress:

        def show(kept: int, count: int, simulated: int) -> None:
            progress.report(kept, {"share": kept / simulated} if simulated else {})

        try:
            yield show
        except KeyboardInterrupt:
            raise Interrupted(
                f"stopped; rerun the command to resume {group.name} from where it was last saved"
            ) from None


def make_with_progress(group: TaskGroup, threads: int | None = None) -> None:
    with collecting(group) as show:
        path = cache.make_cached(group, threads=threads, on_progress=show)
    console.print(f"wrote {path}, SHA-256 {cache.of_group(group).checksum()[:12]}…", soft_wrap=True)


def ensure(groups: Iterable[str], yes: bool) -> None:
    """Make the datasets that are missing, after asking unless --yes is given."""
    known = dict.fromkeys(cache.source(tasks.get(name)).name for name in groups)
    missing = [
        group
        for group in map(tasks.get, known)
        if group.made is not None and not cache.cached(group).exists()
    ]
    if missing and not yes:
        _ask(missing)
    for group in missing:
        make_with_progress(group)


def _ask(missing: Sequence[TaskGroup]) -> None:
    if not sys.stdin.isatty():
        raise GoatError(f"{MissingDataset(*missing)}, or add --yes")
    names = ", ".join(group.name for group in missing)
    try:
        answer = console.input(
            f"Missing datasets: {names}. Make them now (a few minutes each) and continue? \\[Y/n] "
        )
    except EOFError:
        answer = "n"
        console.print()
    if answer.strip().lower() not in ("", "y", "yes"):
        raise MissingDataset(*missing)


def open_dataset(source: str, yes: bool) -> Episodes:
    """The dataset of a task group (made first if it is missing), a file or a Minari id."""
    if source not in tasks.groups():
        return datasets.load(known_path(source))
    ensure([source], yes)
    return datasets.of_group(tasks.get(source))


def group_of(source: str, named: str | None) -> TaskGroup | None:
    """A task group that is its own source, or the one that was named for a file."""
    name = source if source in tasks.groups() else named
    return None if name is None else tasks.get(name)


def known_path(text: str) -> Path:
    """The path of a file or a Minari id. Raises an error for a misspelt task group."""
    if not minari.is_id(text) and not Path(text).exists() and not Path(text).suffix:
        tasks.get(text)
    return Path(text)
