"""The datasets that goatrl makes itself, kept in the user's cache.

~/.cache/goatrl/datasets/push-left-right.npz           the dataset
                         push-left-right.about         checksum and recipe, compared on opening
                         push-left-right.partial.npz   being made: resumed from here
"""

from __future__ import annotations

import dataclasses
import hashlib
import time
from contextlib import AbstractContextManager, suppress
from functools import cache
from importlib import resources
from pathlib import Path

import numpy as np

from goatrl.data import collect, experts, storage
from goatrl.data.experts import Expert
from goatrl.disk.claims import claimed
from goatrl.disk.files import cache_folder, remove, write_atomically, write_text
from goatrl.tasks import TaskGroup
from goatrl.types import Episodes, GoatError

SAVE_SECONDS = 20.0


class MissingDataset(GoatError):
    """Robot datasets that have not been made on this machine yet."""

    def __init__(self, *groups: TaskGroup) -> None:
        names = [group.name for group in groups]
        missing = (
            f"the dataset of {names[0]} has" if len(names) == 1 else f"{len(names)} datasets have"
        )
        super().__init__(f"{missing} not been made yet: run `goat data make {' '.join(names)}`")


def of_group(group: TaskGroup) -> Episodes:
    """The dataset of a task group: scripted ones are made in no time, those that are simulated must
    have been made before.
    """
    if group.cut_from is not None:
        return _part(of_group(group.cut_from), group)
    if group.made is None:
        return _scripted(group, seed=0)
    path = cached(group)
    if not path.exists():
        raise MissingDataset(group)
    again = f"delete it and make it again with `goat data make {group.name}`"
    about = path.with_suffix(".about")
    if not about.exists():
        raise GoatError(f"{path} was copied without {about.name}; copy that, too, or {again}")
    try:
        episodes = storage.load(path)
        checksum, recipe = about.read_text().split()
    except (GoatError, OSError, ValueError):
        raise GoatError(f"{path} is damaged; {again}") from None
    if episodes.checksum() != checksum:
        raise GoatError(f"{path} has changed since it was written (its checksum differs); {again}")
    if recipe != _recipe(group, 0, _expert(group)):
        raise GoatError(f"{path} was made by another version of goatrl; {again}")
    return episodes


def source(group: TaskGroup) -> TaskGroup:
    """The group whose dataset must be there for that of this one."""
    return group if group.cut_from is None else source(group.cut_from)


def cached(group: TaskGroup) -> Path:
    return cache_folder("datasets") / f"{group.name}.npz"


def make_cached(
    group: TaskGroup, *, threads: int | None = None, on_progress: collect.Progress | None = None
) -> Path:
    """Make a simulated dataset in the cache, from where an interruption left it, unless it is
    there. Refused while another process makes it.
    """
    path = cached(group)
    partial = path.with_suffix(".partial.npz")
    with claimed_file(path):
        if not path.exists():
            episodes = make(group, partial=partial, threads=threads, on_progress=on_progress)
            recipe = _recipe(group, 0, _expert(group))
            write_text(path.with_suffix(".about"), f"{episodes.checksum()} {recipe}")
            storage.save(episodes, path)
        remove(partial)
    return path


def tidy(group: TaskGroup) -> None:
    """Remove what an interruption left beside a dataset that is made, if this is possible."""
    path = cached(group)
    with suppress(GoatError), claimed_file(path):
        remove(path.with_suffix(".partial.npz"))


def claimed_file(path: Path) -> AbstractContextManager[None]:
    """Make a dataset as the only process that makes it."""
    return claimed(path, path.with_name(f".{path.name}.in-use"))


@cache
def checksums() -> dict[str, str]:
    """Group → SHA-256 of its dataset, as listed in the package: what `goat data make` gave its
    authors.
    """
    lines = (resources.files("goatrl") / "data" / "checksums.txt").read_text().splitlines()
    return {name: checksum for checksum, name in (line.split() for line in lines)}


def make(
    group: TaskGroup,
    seed: int = 0,
    *,
    expert: Expert | None = None,
    partial: Path | None = None,
    threads: int | None = None,
    on_progress: collect.Progress | None = None,
    save_seconds: float = SAVE_SECONDS,
) -> Episodes:
    """Make a dataset, the same for the same seed. Where an expert collects it, that is the one that
    ships with goatrl or another one.

    What is done is saved in `partial` now and then, and taken up from there.
    """
    if group.cut_from is not None:
        whole = make(
            group.cut_from, seed, partial=partial, threads=threads, on_progress=on_progress
        )
        return _part(whole, group)
    made = group.made
    if made is None:
        return _scripted(group, seed)
    expert = expert or _expert(group)
    done = _Partial.load(partial, _recipe(group, seed, expert))
    saved_at = time.monotonic()
    report = on_progress or (lambda kept, count, simulated: None)
    report(done.kept, made.episodes, done.simulated)
    wanted = made.episodes - done.kept
    for wave in collect.waves(
        group, expert, seed, first=done.waves, wanted=wanted, threads=threads
    ):
        done = done.after(wave)
        report(min(done.kept, made.episodes), made.episodes, done.simulated)
        if done.kept >= made.episodes:
            break
        if partial is not None and time.monotonic() - saved_at >= save_seconds:
            done.save(partial)
            saved_at = time.monotonic()
    return collect.join(done.parts, made.episodes)


def _part(whole: Episodes, group: TaskGroup) -> Episodes:
    """What a group has of the dataset that it is cut from."""
    return collect.cut(whole, group.iid) if group.keeps is None else whole.only(group.keeps(whole))


def _scripted(group: TaskGroup, seed: int) -> Episodes:
    if group.script is None:
        raise GoatError(f"{group.name} has no dataset of its own; specify a file with --data")
    return group.script.make(seed)


def _expert(group: TaskGroup) -> Expert | None:
    """The expert that collects its dataset, if one does."""
    return None if group.collection is None else experts.get(group.family)


def _recipe(group: TaskGroup, seed: int, expert: Expert | None) -> str:
    """SHA-256 over all that decides a dataset."""
    if group.recording is not None:
        return hashlib.sha256(f"{group.name} {group.recording.recipe} {seed}".encode()).hexdigest()
    assert group.collection is not None
    assert expert is not None
    drawn = [part.tobytes() for part in group.collection.task.draw([seed, 0], 8)]
    text = (
        f"{group.name} {group.iid} {group.physics} {group.collection.noise} "
        f"{group.collection.random} {seed} {collect.WAVE}"
    )
    text += " by end" if group.collection.by_end else ""
    return hashlib.sha256(text.encode() + b"".join(drawn) + expert.checksum().encode()).hexdigest()


@dataclasses.dataclass(frozen=True, eq=False)
class _Partial:
    """What has been collected so far."""

    recipe: str
    waves: int = 0
    simulated: int = 0
    parts: list[Episodes] = dataclasses.field(default_factory=list)

    @property
    def kept(self) -> int:
        return sum(part.count for part in self.parts)

    def after(self, wave: collect.Wave) -> _Partial:
        parts = self.parts if wave.kept is None else [*self.parts, wave.kept]
        return _Partial(self.recipe, wave.number + 1, self.simulated + wave.simulated, parts)

    def save(self, path: Path) -> None:
        if not self.parts:
            return
        whole = collect.join(self.parts, self.kept)
        arrays = whole.arrays()
        about = {
            "recipe": np.frombuffer(bytes.fromhex(self.recipe), np.uint8),
            "waves": self.waves,
            "simulated": self.simulated,
        }
        write_atomically(path, lambda file: np.savez(file, **arrays, **about))  # type: ignore[arg-type]

    @classmethod
    def load(cls, path: Path | None, recipe: str) -> _Partial:
        """What an interrupted run left, if it was of the same recipe and is readable; otherwise a
        beginning.
        """
        if path is None or not path.exists():
            return cls(recipe)
        try:
            with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                if bytes(file["recipe"]).hex() != recipe:
                    return cls(recipe)
                waves, simulated = int(file["waves"]), int(file["simulated"])
            return cls(recipe, waves, simulated, [storage.load(path)])
        except Exception:  # damaged: nothing in it is worth more than making it again
            return cls(recipe)
