"""A user's environment as a task group of one task, so that agents are fine-tuned in it like on
robots.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from gymnasium.vector import VectorEnv

from goatrl.evaluation.environments import Taken, rollout, side_by_side
from goatrl.evaluation.worlds import (
    Environment,
    first_observations,
    open_copies,
    opened,
    time_limit,
)
from goatrl.robots.family import Act, Drawn, Family, Finetuning, OnProgress
from goatrl.tasks import Task, TaskGroup
from goatrl.tasks.regions import everywhere
from goatrl.types import ActionBounds, GoatError, Settings, Spec

LARGEST_SEED = 2**31  # some environments take no more


def group_of(
    where: Environment, spec: Spec, action_bounds: ActionBounds | None = None
) -> TaskGroup:
    """An environment for agents of this spec. Its own time limit can make episodes shorter."""
    with opened(where, spec, 1) as worlds:
        steps = min(where.steps(spec), time_limit(worlds) or where.steps(spec))
    name = f"{where.id}{where.settings}"
    own = dataclasses.replace(spec, horizon=steps)
    family = EnvironmentFamily(
        name,
        own,
        dataclasses.replace(where, horizon=steps),
        action_bounds,
        finetuning=Finetuning(20),
    )
    goals = everywhere(spec.goal_dim)
    task = Episodes(name, "mixed", everywhere(1), goals, episodes=100, family=family)
    return TaskGroup(name, name, family, Settings(), own, (task,), goals)


@dataclasses.dataclass(frozen=True, eq=False)
class EnvironmentFamily(Family):
    """An environment as a robot. A start is the seed of an episode, which decides its goal, too."""

    environment: Environment
    action_bounds: ActionBounds | None  # of the agents' data

    simulated: ClassVar[bool] = True
    records_paths: ClassVar[bool] = False

    @cached_property
    def _one(self) -> VectorEnv:
        return open_copies(self.environment, self.spec, 1)

    def first(self, starts: np.ndarray) -> dict[str, np.ndarray]:
        """What is seen before the first action: name → (N, ·)."""
        seen = [first_observations(self._one, [seed], self.environment) for seed in _seeds(starts)]
        return {key: np.concatenate([each[key] for each in seen]) for key in seen[0]}

    def initial(self, starts: np.ndarray) -> np.ndarray:
        return self.first(starts)["achieved_goal"]

    def rollouts(
        self,
        act: Act,
        agents: tuple[Any, Any],
        members: int,
        drawn: Sequence[Drawn],
        horizon: int,
        on_progress: OnProgress | None = None,
    ) -> list[np.ndarray]:
        found = []
        for each in drawn:
            seeds = _seeds(each.starts)
            _, taken = side_by_side(
                act,
                agents,
                members,
                seeds,
                self.spec,
                self.environment,
                on_progress,
                self.action_bounds,
            )
            found.append(np.stack([self.whole(mine).achieved for mine in taken]))
        return found

    def simulator(self, count: int, threads: int | None = None) -> Any:
        return Copies(self, count)

    def whole(self, taken: Taken) -> Taken:
        """The same, if no episode ended early."""
        shortest, steps = int(taken.lengths.min()), self.spec.horizon
        if shortest < steps:
            raise GoatError(
                f"{self.name} ended an episode after {shortest} of {steps} actions, but "
                "fine-tuning needs episodes of equal length; let it go on after the goal is reached"
            )
        return taken


class Copies:
    """Copies of an environment, with what fine-tuning asks of a simulator."""

    def __init__(self, family: EnvironmentFamily, count: int) -> None:
        self.family = family
        self.worlds = open_copies(family.environment, family.spec, count)

    def rollout(
        self, starts: np.ndarray, act: Callable[[np.ndarray], np.ndarray], steps: int
    ) -> Taken:
        """Reset all copies and let `act` choose their actions from their observations."""
        family = self.family
        assert steps == family.spec.horizon
        return family.whole(
            rollout(
                self.worlds,
                lambda observations, goals: act(observations),
                _seeds(starts),
                family.spec,
                family.environment,
                action_bounds=family.action_bounds,
            )
        )

    def __enter__(self) -> Copies:
        return self

    def __exit__(self, *_: object) -> None:
        self.worlds.close()


@dataclasses.dataclass(frozen=True)
class Episodes(Task):
    """All that an environment draws."""

    family: EnvironmentFamily = dataclasses.field(kw_only=True)

    def draw(self, seed: int | Sequence[int], count: int) -> tuple[np.ndarray, np.ndarray]:
        seeds = [seed] if isinstance(seed, int) else seed
        sequence = np.random.SeedSequence([*seeds, zlib.crc32(self.name.encode())])
        starts = (sequence.generate_state(count) % LARGEST_SEED)[:, None].astype(np.float64)
        return starts, self.family.first(starts)["desired_goal"].astype(np.float64)


def _seeds(starts: np.ndarray) -> list[int]:
    return [int(seed) for seed in starts[:, 0]]
