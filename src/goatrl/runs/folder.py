"""What the folders of all runs have in common, and agents as they lie there."""

from __future__ import annotations

import dataclasses
import io
import json
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar, Protocol

import jax
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from goatrl.data.sizes import check_fits_memory, of_parquet
from goatrl.disk import checkpoint, checksum
from goatrl.disk.claims import claimed, working_in
from goatrl.disk.files import sync, write_atomically, write_text
from goatrl.disk.identity import Identity
from goatrl.disk.reading import json_of, parquet, text_of, unusable
from goatrl.disk.versions import versions
from goatrl.evaluation.episodes import as_episodes
from goatrl.learn import normalize
from goatrl.tasks import TaskGroup
from goatrl.training.offline import Members, init
from goatrl.types import ActionBounds, Algorithm, GoatError, Spec, TrainState

KIND = "run"
# What decides nothing: data may move, its checksum counts; overrides show in the hyper-parameters.
BESIDE = ("data", "overrides", "from.label")


class Interrupted(GoatError):
    """The user asked a run to stop; everything up to the last report is on disk."""

    exit_code = 130


def check_seeds(seeds: Sequence[int]) -> None:
    if not seeds or len(set(seeds)) != len(seeds):
        raise GoatError(f"there must be at least one seed, and no seed twice, not {list(seeds)}")
    if not all(0 <= seed < 2**31 for seed in seeds):
        raise GoatError(f"seeds must be between 0 and {2**31 - 1}")


def check_native(bounds: ActionBounds | None, group: TaskGroup, what: str) -> None:
    """Refuse agents whose data has other bounds of actions than the robot of a group."""
    if bounds is not None:
        raise GoatError(
            f"{what} does not fit {group.name}: its data has actions beyond [-1, 1], which robots "
            "do not take"
        )


@contextmanager
def stop_request() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C (or termination) into a question that the loop can ask; a second one
    interrupts at once.
    """
    asked = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        print("goat: stopping after the next report; once more to stop at once", file=sys.stderr)

    if (
        threading.current_thread() is not threading.main_thread()
    ):  # only the main thread may listen to signals
        yield lambda: False
        return
    previous = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@dataclasses.dataclass(frozen=True, eq=False)
class Agents:
    """Agents as they were saved, with all that evaluating and watching them needs, whatever trained
    them.
    """

    path: Path  # where they lie
    label: str  # how they were trained
    members: Members
    state: TrainState
    spec: Spec
    group: str | None  # on whose tasks they are evaluated unless others are named
    unfinished: str = (
        ""  # where their training stopped, if it did so before its end, and what goes on with it
    )
    action_bounds: ActionBounds | None = None  # of their data, in whose units they act

    def check_fits(self, group: TaskGroup, what: str) -> None:
        """Refuse tasks that they cannot act in."""
        group.check_fits(self.spec, what)
        check_native(self.action_bounds, group, what)

    @property
    def step(self) -> int:
        """The update at which they were saved."""
        return int(np.asarray(self.state.step)[0])

    def agent(self, seed: int) -> tuple[Algorithm, TrainState]:
        """One of them with its own state."""
        seeds = [each for _, each in self.members]
        if seed not in seeds:
            raise GoatError(f"{self.path} has no seed {seed}; it has {', '.join(map(str, seeds))}")
        place = seeds.index(seed)
        return self.members[place][0], jax.tree.map(lambda leaf: leaf[place], self.state)

    def record(self, table: pa.Table, group: TaskGroup | None) -> None:
        """Keep evaluated episodes, of a group's tasks or of an environment, beside agents that lie
        in the folder of a run.
        """
        if self.path.is_dir():
            RunFolder(self.path).write_episodes(table, group, self.step)

    def policy(self, seed: int = 0) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """One of them as a function: act(observation, goal) → action in [-1, 1], or within the
        bounds of its data's actions if they are others, for one pair or for a batch of them.
        """
        algorithm, state = self.agent(seed)
        policy = jax.jit(partial(normalize.act, algorithm, state))

        def act(observation: np.ndarray, goal: np.ndarray) -> np.ndarray:
            pair = np.asarray(observation, np.float32), np.asarray(goal, np.float32)
            needed = (self.spec.observation_dim, self.spec.goal_dim)
            if pair[0].ndim != pair[1].ndim or tuple(array.shape[-1:] for array in pair) != tuple(
                (size,) for size in needed
            ):
                shapes = " and ".join(str(array.shape) for array in pair)
                raise GoatError(
                    f"an observation needs {needed[0]} numbers and a goal {needed[1]}, but "
                    f"their shapes are {shapes}"
                )
            action = np.asarray(policy(*(np.atleast_2d(array) for array in pair)))
            if self.action_bounds is not None:
                action = self.action_bounds.restored(action)
            return action if pair[0].ndim == 2 else action[0]

        return act


class RunPlan(Protocol):
    """What a run is to do."""

    @property
    def identity(self) -> Identity:
        """All that decides the result of a run."""


class RunFolder:
    """What the folders of all runs have in common, offline and online."""

    agents_in: ClassVar[str] = (
        ""  # the part of the checkpoint that holds the agents, if it is not all of it
    )

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config_path = folder / "config.json"
        self.metrics_path = folder / "metrics.csv"
        self.checkpoint_path = folder / "checkpoint.safetensors"
        self.episodes_path = folder / "episodes.parquet"

    def about(self) -> dict[str, Any]:
        """Whose folder it is, in words and numbers."""
        return dict(self.identity().about)

    def identity(self) -> Identity:
        """Whose folder it is, as `prepare` wrote it."""
        try:
            if not self.config_path.is_file():  # a pipe would be waited for
                raise FileNotFoundError
            stored = json_of(text_of(self.config_path))
            return Identity.from_json(stored, KIND, self.config_path, BESIDE)
        except (FileNotFoundError, NotADirectoryError):
            raise GoatError(
                f"{self.folder} is not a run: it has no config.json; create one with `goat train`"
            ) from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            damaged = (
                f"{self.config_path} is damaged or not a run's config ({error}); use another folder"
            )
            raise unusable(self.config_path, error, damaged) from error

    def prepare(self, plan: RunPlan) -> None:
        """Make the folder this plan's, or find that it is already; never another one's, unless that
        one left nothing behind. Refused while another process trains there.
        """
        with claimed(self.folder):
            self.prepare_claimed(plan)

    def prepare_claimed(self, plan: RunPlan) -> None:
        """The same, in a folder that is claimed."""
        if self.config_path.exists():
            present = self.identity()
            others = (path for path in self.folder.iterdir() if path != self.config_path)
            if any(not path.name.startswith(".") for path in others):  # claims and locks
                present.require(plan.identity, f"the run in {self.folder}")
                return
        self.write_config(plan)

    def write_config(self, plan: RunPlan) -> None:
        text = json.dumps({**plan.identity.to_json(), "versions": versions()}, indent=2)
        write_text(self.config_path, text)

    def save(self, state: Any, about: dict[str, Any]) -> None:
        """Write the checkpoint. It never knows more than the metrics that lie on the disk."""
        if self.metrics_path.exists():
            sync(self.metrics_path)
        checkpoint.save(self.checkpoint_path, state, {**about, "versions": versions()})

    def last_saved(self, members: Members, spec: Spec) -> TrainState:
        """The state of the run's agents in its checkpoint."""
        if not self.checkpoint_path.exists():
            busy = working_in(self.folder)
            raise GoatError(
                f"{self.folder} has no checkpoint yet: it stopped before its first save; rerun "
                "its command"
                if busy is None
                else f"{self.folder} has no checkpoint yet: {busy} works there; wait for its first "
                "save"
            )
        return restore_agents(self.checkpoint_path, members, spec, self.agents_in)

    def read_episodes(self) -> tuple[pa.Table, dict[str, Any]]:
        """Evaluated episodes, and at which step and of which group they are."""
        try:
            if not self.episodes_path.is_file():
                raise ValueError("it is no file")
            with self.episodes_path.open("rb") as file:
                if not checksum.is_intact(file):  # Arrow may crash on what has changed
                    raise GoatError(
                        f"{self.episodes_path} has changed since it was written (its checksum "
                        f"differs); delete it and run: goat evaluate "
                        f"{shlex.quote(str(self.folder))}"
                    )
                rows = parquet(file)
                check_fits_memory(of_parquet(rows), self.episodes_path)
                table = rows.read(use_threads=False)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise unusable(self.episodes_path, error, self._damaged_episodes(error)) from error
        try:
            about = json_of((table.schema.metadata or {}).get(b"goatrl", b"{}"))
            episodes = as_episodes(table.replace_schema_metadata(None))
        except ValueError as error:
            raise GoatError(self._damaged_episodes(error)) from error
        return episodes, checksum.without_place(about)

    def _damaged_episodes(self, error: Exception) -> str:
        known = isinstance(error, pa.ArrowException | OSError)  # they say more than one line
        what = type(error).__name__ if known else error
        return (
            f"{self.episodes_path} is damaged ({what}); delete it and run: goat evaluate "
            f"{self.folder}"
        )

    def write_episodes(self, table: pa.Table, group: TaskGroup | None, step: int) -> None:
        """Record evaluated episodes, of a group's tasks or of an environment.

        What else was evaluated at the same step stays beside them: environments, and tasks of the
        same group.
        """
        with claimed(self.episodes_path, self.folder / ".episodes.in-use", wait=10.0):
            self._write_episodes(table, group, step)

    def _write_episodes(self, table: pa.Table, group: TaskGroup | None, step: int) -> None:
        about = (
            {"step": step}
            if group is None
            else {"group": group.name, "evaluation": group.evaluation_checksum(), "step": step}
        )
        if self.episodes_path.exists():
            earlier, before = self.read_episodes()
            if before.get("step") == step:
                about = {**before, **about}
                evaluated = set(table.column("task").to_pylist())
                known = zip(
                    earlier.column("task").to_pylist(),
                    earlier.column("split").to_pylist(),
                    strict=True,
                )
                keep = [
                    task not in evaluated and (split is None or about == before)
                    for task, split in known
                ]  # tasks have a split
                kept = earlier.filter(pa.array(keep, pa.bool_()))
                # Parquet names parts of lists otherwise
                table = pa.concat_tables([kept.cast(table.schema), table])
        text = json.dumps(checksum.with_place(about))
        # the same rows are the same bytes, whatever was put together
        whole = table.combine_chunks().replace_schema_metadata({b"goatrl": text.encode()})
        buffer = io.BytesIO()
        pq.write_table(whole, buffer)
        write_atomically(self.episodes_path, checksum.sealed(buffer.getvalue()))


def restore_agents(path: Path, members: Members, spec: Spec, part: str = "") -> TrainState:
    """The state of agents in a checkpoint; the dataset is not needed."""
    state: TrainState = checkpoint.restore(path, expected(path, members, spec), part)
    return state


def expected(where: object, members: Members, spec: Spec) -> TrainState:
    """The shapes of agents that a file describes; its numbers may make no networks at all."""
    try:
        return jax.eval_shape(lambda: init(members, spec))
    except (TypeError, ValueError, ArithmeticError) as error:
        raise GoatError(
            f"{where}: agents cannot be made of these hyper-parameters and dimensions "
            f"({type(error).__name__})"
        ) from error
