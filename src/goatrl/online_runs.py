"""An online run on disk: config, one row of metrics per round and seed, a checkpoint that resumes exactly, the best agents so far.

runs/NAME/config.json              what is trained, on which tasks, how
          metrics.csv              round, environment steps, success while exploring and, now and then, without noise
          checkpoint.safetensors   agents, buffers and statistics
          best.safetensors         the agents of the round that was judged best
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from goatrl import checkpoint, metrics
from goatrl.evaluate import success_rate
from goatrl.files import write_atomically
from goatrl.online import Round, Schedule, start, train_online
from goatrl.problems import versions
from goatrl.runs import Interrupted, stop_request
from goatrl.tasks import Task, TaskGroup
from goatrl.train import Diverged, Members
from goatrl.types import GoatError, TrainState

CHECKPOINT_SECONDS = 120.0
JUDGED_EPISODES = 128


@dataclasses.dataclass(frozen=True)
class OnlinePlan:
    """What an online run does. `about` is all that decides its result, in words and numbers that JSON can hold."""

    members: Members
    group: TaskGroup  # gives the robot and its dimensions
    tasks: Sequence[Task]
    schedule: Schedule
    rounds: int
    judge_every: int  # rounds
    about: Mapping[str, object]
    trained: TrainState | None = None  # agents to go on from


@dataclasses.dataclass(frozen=True)
class Report:
    """A round as the user sees it."""

    round: int
    explored: float  # success with exploration
    judged: float | None  # success without, if it was measured
    losses: Mapping[str, float]


class OnlineRun:
    """A run directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config_path = folder / "config.json"
        self.metrics_path = folder / "metrics.csv"
        self.checkpoint_path = folder / "checkpoint.safetensors"
        self.best_path = folder / "best.safetensors"

    def prepare(self, plan: OnlinePlan) -> None:
        """Make the folder this plan's, or find that it is already; never another one's."""
        about = json.loads(json.dumps(plan.about))
        if self.config_path.exists():
            stored = json.loads(self.config_path.read_text())["config"]
            different = [name for name in about.keys() | stored.keys() if about.get(name) != stored.get(name)]
            if different:
                raise GoatError(
                    f"{self.folder} holds another run (differs in {', '.join(sorted(different))}); choose another --out"
                )
            return
        text = json.dumps({"config": about, "versions": versions()}, indent=2)
        write_atomically(self.config_path, lambda file: file.write(text.encode()))

    def rounds(self) -> int:
        """How many rounds are saved."""
        return int(checkpoint.describe(self.checkpoint_path)["round"]) if self.checkpoint_path.exists() else 0

    def train(self, plan: OnlinePlan, checkpoint_seconds: float = CHECKPOINT_SECONDS) -> Iterator[Report]:
        """Round after round to the end, from the last checkpoint if there is one; a report after each."""
        self.prepare(plan)
        state = start(plan.members, plan.group.spec, plan.schedule, plan.trained)
        if self.checkpoint_path.exists():
            state = checkpoint.restore(self.checkpoint_path, state)
        metrics.truncate(self.metrics_path, int(state.round), "round,steps,seed,")
        if int(state.round) >= plan.rounds:
            return
        best, saved_at = self._best(), time.monotonic()
        seeds = [seed for _, seed in plan.members]
        with stop_request() as stop:
            for done in train_online(plan.members, plan.group.spec, plan.group.family, plan.tasks, plan.schedule, state):
                try:
                    done.chunk.check_finite(seeds)
                except Diverged as error:
                    raise Diverged(f"{error}; the rounds before are in {self.folder}") from None
                judged = None
                if done.number % plan.judge_every == 0 or done.number == plan.rounds:
                    judged = self._judge(plan, done)
                    if judged.mean() >= best:
                        best = float(judged.mean())
                        about = {"round": done.number, "success": best, "versions": versions()}
                        checkpoint.save(self.best_path, done.state.train, about)
                self._append_metrics(plan, done, judged)
                stopping = stop() and done.number < plan.rounds
                if done.number == plan.rounds or stopping or time.monotonic() - saved_at >= checkpoint_seconds:
                    checkpoint.save(self.checkpoint_path, done.state, {"round": done.number, "versions": versions()})
                    saved_at = time.monotonic()
                losses = {name: float(values.mean()) for name, values in done.chunk.metrics.items()}
                yield Report(done.number, float(done.success.mean()), None if judged is None else float(judged.mean()), losses)
                if stopping:
                    raise Interrupted(f"stopped after round {done.number} of {plan.rounds}; run the same command again to go on")
                if done.number == plan.rounds:
                    return

    def _judge(self, plan: OnlinePlan, done: Round) -> np.ndarray:
        """Success without noise of every member, on episodes that only this round draws."""
        return success_rate(plan.members, done.state.train, plan.group, plan.tasks, seed=[1, done.number], episodes=JUDGED_EPISODES)

    def _best(self) -> float:
        return float(checkpoint.describe(self.best_path)["success"]) if self.best_path.exists() else 0.0

    def _append_metrics(self, plan: OnlinePlan, done: Round, judged: np.ndarray | None) -> None:
        names = sorted(done.chunk.metrics)
        steps = done.number * plan.schedule.episodes * plan.group.spec.horizon
        rows = []
        for member, (_, seed) in enumerate(plan.members):
            success = "" if judged is None else f"{judged[member]:.4f}"
            losses = [f"{done.chunk.metrics[name][member].mean():.6g}" for name in names]
            rows.append([done.number, steps, seed, f"{done.success[member]:.4f}", success, *losses])
        metrics.append(self.metrics_path, ["round", "steps", "seed", "explored", "success", *names], rows)
