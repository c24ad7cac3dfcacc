"""What OGBench's robots share: its own environment moves them, and an episode ends when its goal is
first reached, as in OGBench's evaluation. What is achieved then stays so.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from goatrl.robots.family import Act, Drawn, OnProgress
from goatrl.robots.mujoco import SimulatedFamily
from goatrl.types import GoatError, reached


class Taken(NamedTuple):
    """Some episodes side by side."""

    observations: np.ndarray  # (N, T+1, ·)
    achieved: np.ndarray  # (N, T+1, ·)
    actions: np.ndarray  # (N, T, ·)


@dataclasses.dataclass(frozen=True, eq=False)
class OgbenchFamily(SimulatedFamily):
    """A robot of OGBench."""

    def rollouts(
        self,
        act: Act,
        agents: tuple[Any, Any],
        members: int,
        drawn: Sequence[Drawn],
        horizon: int,
        on_progress: OnProgress | None = None,
    ) -> list[np.ndarray]:
        found = super().rollouts(act, agents, members, drawn, horizon, on_progress)
        return [
            held_at_goal(achieved, each.goals.astype(np.float32), self.spec.goal_threshold)
            for achieved, each in zip(found, drawn, strict=True)
        ]


def held_at_goal(achieved: np.ndarray, goals: np.ndarray, threshold: float) -> np.ndarray:
    """Paths that stay where they first reach their goal after a step: (members, N, T+1, ·), (N, ·)
    → (members, N, T+1, ·).
    """
    met = reached(achieved, goals[None, :, None], threshold)
    met[:, :, 0] = False  # success is asked after an action
    first = np.where(met.any(axis=-1), met.argmax(axis=-1), achieved.shape[2] - 1)
    steps = np.minimum(np.arange(achieved.shape[2]), first[..., None])
    return np.take_along_axis(achieved, steps[..., None], axis=2)


def missing(what: str) -> GoatError:
    return GoatError(f"{what} the package ogbench: run `pip install 'goatrl[ogbench]'`")


class Copies(abc.ABC):
    """Robots that do not meet: one environment, which moves one state after the other."""

    def __init__(self, world: Any, count: int) -> None:
        import mujoco

        self.world = world
        self.states = [mujoco.MjData(world.model) for _ in range(count)]

    @abc.abstractmethod
    def place(self, state: Any, start: np.ndarray) -> np.ndarray:
        """Put one robot to its start. Returns what it sees."""

    @abc.abstractmethod
    def move(self, state: Any, action: np.ndarray) -> np.ndarray:
        """Let one robot act. Returns what it sees."""

    @abc.abstractmethod
    def achieved(self, observations: np.ndarray) -> np.ndarray:
        """What is achieved, of what is seen: (…, ·) → (…, goal_dim)."""

    def reset(self, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What is seen and achieved at the start: (N, ·) each."""
        pairs = zip(self.states, np.asarray(starts, np.float64), strict=True)
        return self._both([self.place(state, start) for state, start in pairs])

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        pairs = zip(self.states, np.clip(actions, -1.0, 1.0), strict=True)
        return self._both([self.move(state, action) for state, action in pairs])

    def rollout(
        self, starts: np.ndarray, act: Callable[[np.ndarray], np.ndarray], steps: int
    ) -> Taken:
        """Reset all robots and let `act` choose their actions from what they see."""
        seen, actions = [self.reset(starts)[0]], []
        for _ in range(steps):
            actions.append(act(seen[-1]))
            seen.append(self.step(actions[-1])[0])
        observations = np.stack(seen, axis=1)
        return Taken(observations, self.achieved(observations), np.stack(actions, axis=1))

    def _both(self, seen: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        observations = np.stack(seen)
        return observations, self.achieved(observations)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.states.clear()
