"""An online run on disk: config, one row of metrics per round and seed, a checkpoint that resumes
exactly, the best agents so far.

runs/NAME/config.json              what is trained, on which tasks, how
          metrics.csv              round, environment steps, success while exploring and, at first
                                   and now and then, without noise
          checkpoint.safetensors   agents, buffers and statistics
          best.safetensors         the agents of the round that was evaluated best
          episodes.parquet         one row per evaluated episode
"""

from __future__ import annotations

import csv
import dataclasses
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from goatrl.disk import checkpoint, metrics
from goatrl.disk.claims import claimed
from goatrl.disk.identity import Identity
from goatrl.disk.versions import versions
from goatrl.evaluation.episodes import success_rate
from goatrl.runs.folder import BESIDE, KIND, Interrupted, RunFolder, stop_request
from goatrl.tasks import Task, TaskGroup
from goatrl.training.offline import Diverged, Members
from goatrl.training.online import Round, Schedule, start, train_online
from goatrl.types import GoatError, TrainState

CHECKPOINT_SECONDS = 120.0


@dataclasses.dataclass(frozen=True)
class OnlinePlan:
    """What an online run does. `about` is all that decides its result, in words and numbers that
    JSON can hold.
    """

    members: Members
    group: TaskGroup  # gives the robot and its dimensions
    tasks: Sequence[Task]
    schedule: Schedule
    rounds: int
    evaluate_every: int  # rounds
    about: Mapping[str, Any]
    trained: TrainState | None = None  # agents to go on from
    evaluated_episodes: int = 128  # of each member, each time
    # these and the round draw them; members draw what they explore by (seed, round)
    evaluated_by: tuple[int, ...] = (1,)

    @property
    def identity(self) -> Identity:
        return Identity(KIND, self.about, BESIDE)


@dataclasses.dataclass(frozen=True)
class Report:
    """A round as the user sees it."""

    round: int  # 0: before the first one
    explored: float | None  # success with exploration
    evaluated: float | None  # success without, if it was measured
    losses: Mapping[str, float]


class OnlineRun(RunFolder):
    """The folder of an online run."""

    agents_in = "train"  # beside their buffers

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.best_path = folder / "best.safetensors"

    def rounds(self) -> int:
        """How many rounds are saved."""
        return (
            int(checkpoint.number(self.checkpoint_path, "round"))
            if self.checkpoint_path.exists()
            else 0
        )

    def unfinished(self, rounds: int, command: str) -> str:
        """Where the run stopped and how to resume it; empty if it is complete."""
        return (
            f"stopped after round {self.rounds()} of {rounds}; resume it with `{command}`"
            if self.rounds() < rounds
            else ""
        )

    def curves(self) -> dict[int, list[tuple[int, float]]]:
        """Seed → environment steps and success without noise, as often as it was evaluated."""
        if not self.metrics_path.exists():
            raise GoatError(
                f"{self.folder} has no metrics.csv; it is not an online run, or it stopped in its "
                "first round (then rerun its command)"
            )
        found: dict[int, list[tuple[int, float]]] = {}
        with self.metrics_path.open(newline="") as file:
            for row in csv.DictReader(file):
                if row["success"]:
                    found.setdefault(int(row["seed"]), []).append(
                        (int(row["steps"]), float(row["success"]))
                    )
        return found

    def train(
        self, plan: OnlinePlan, checkpoint_seconds: float = CHECKPOINT_SECONDS
    ) -> Iterator[Report]:
        """Round after round to the end, from the last checkpoint if there is one; a report after
        each.
        """
        with claimed(self.folder):
            self.prepare_claimed(plan)
            yield from self._train_claimed(plan, checkpoint_seconds)

    def _train_claimed(self, plan: OnlinePlan, checkpoint_seconds: float) -> Iterator[Report]:
        state = start(plan.members, plan.group.spec, plan.schedule, plan.trained)
        if self.checkpoint_path.exists():
            state = checkpoint.restore(self.checkpoint_path, state)
        begun = int(state.round)
        # the start is written with round 1
        metrics.truncate(self.metrics_path, begun if begun else -1, "round,steps,seed,")
        if begun >= plan.rounds:
            return
        saved_at = time.monotonic()
        seeds = [seed for _, seed in plan.members]
        with stop_request() as stop:
            at_start = None if begun else self._evaluate(plan, state.train, 0)
            if at_start is not None:
                yield Report(0, None, float(at_start.mean()), {})
            for done in train_online(
                plan.members, plan.group.spec, plan.group.family, plan.tasks, plan.schedule, state
            ):
                try:
                    done.chunk.check_finite(seeds)
                except Diverged as error:
                    raise Diverged(f"{error}; earlier rounds are saved in {self.folder}") from None
                evaluated = None
                if done.number % plan.evaluate_every == 0 or done.number == plan.rounds:
                    evaluated = self._evaluate(plan, done.state.train, done.number)
                self._append_metrics(plan, done, evaluated, at_start if done.number == 1 else None)
                stopping = stop() and done.number < plan.rounds
                if (
                    done.number == plan.rounds
                    or stopping
                    or time.monotonic() - saved_at >= checkpoint_seconds
                ):
                    self.save(done.state, {"round": done.number})
                    saved_at = time.monotonic()
                losses = {name: float(values.mean()) for name, values in done.chunk.metrics.items()}
                yield Report(
                    done.number,
                    float(done.success.mean()),
                    None if evaluated is None else float(evaluated.mean()),
                    losses,
                )
                if stopping:
                    raise Interrupted(
                        f"stopped after round {done.number} of {plan.rounds}; rerun the command to "
                        "resume"
                    )
                if done.number == plan.rounds:
                    return

    def _evaluate(self, plan: OnlinePlan, agents: TrainState, number: int) -> np.ndarray:
        """Success without noise of every member, on episodes that only this round draws. Keeps the
        agents if they are the best.
        """
        drawn_by = [*plan.evaluated_by, number]
        success = success_rate(
            plan.members, agents, plan.group, plan.tasks, drawn_by, plan.evaluated_episodes
        )
        best = checkpoint.number(self.best_path, "success") if self.best_path.exists() else 0.0
        if success.mean() >= best:
            about = {"round": number, "success": float(success.mean()), "versions": versions()}
            checkpoint.save(self.best_path, agents, about)
        return success

    def _append_metrics(
        self,
        plan: OnlinePlan,
        done: Round,
        evaluated: np.ndarray | None,
        at_start: np.ndarray | None,
    ) -> None:
        names = sorted(done.chunk.metrics)
        steps = done.number * plan.schedule.episodes * plan.group.spec.horizon
        rows: list[list[object]] = []
        if at_start is not None:
            rows += [
                [0, 0, seed, "", f"{at_start[member]:.4f}", *("" for _ in names)]
                for member, (_, seed) in enumerate(plan.members)
            ]
        for member, (_, seed) in enumerate(plan.members):
            success = "" if evaluated is None else f"{evaluated[member]:.4f}"
            losses = [f"{done.chunk.metrics[name][member].mean():.6g}" for name in names]
            rows.append([done.number, steps, seed, f"{done.success[member]:.4f}", success, *losses])
        metrics.append(
            self.metrics_path, ["round", "steps", "seed", "explored", "success", *names], rows
        )
