"""What the rest of the package may ask of a robot."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from goatrl.types import GoatError, Layout, Spec

if TYPE_CHECKING:
    from goatrl.robots.physics.simulator import Simulator

# (algorithms, state, observations, goals) → actions; arrays are (members, episodes, ·)
Act = Callable[[Any, Any, Any, Any], Any]
OnProgress = Callable[[int, int], None]  # simulated steps, of how many


class Drawn(NamedTuple):
    """Episodes that are to be run."""

    starts: np.ndarray
    goals: np.ndarray
    bound: float = np.inf  # half the side of the box around the world, where it has walls


@dataclasses.dataclass(frozen=True)
class ExpertTraining:
    """How a robot's expert is trained, online by DDPG+HER."""

    rounds: int
    updates: int = 200  # per round of 128 episodes
    batch_size: int = 1_024
    target_period: int = 10
    noise: float = 0.2
    random: float = 0.3
    # Whether TD targets end at 0. Without, values rise above any possible return: Slide's training
    # falls apart, and Pick's expert leaves the object that it has placed and flees sideways, at
    # full success.
    cost: bool = False


@dataclasses.dataclass(frozen=True)
class Finetuning:
    """How a robot's agents are fine-tuned online. The paper does so with Push and Pick only."""

    batches: int  # for every episode
    batch_size: int = 512
    round: int = 8  # episodes that are collected side by side, before their batches
    evaluate_every: int = 25  # rounds
    evaluated_episodes: int = 100


@dataclasses.dataclass(frozen=True, eq=False)
class Family(abc.ABC):
    """A robot: its layout, its dynamics, and what training and figures need to know of it."""

    name: str
    spec: Spec
    _: dataclasses.KW_ONLY
    physics: str = ""  # what decides a trajectory besides start, actions and layout
    unit: str = ""  # of positions, as figures print it
    expert: ExpertTraining | None = None  # for robots whose data an expert collects
    finetuning: Finetuning | None = None  # for robots whose agents go on learning online
    layout: Layout | None = None  # where an observation holds the achieved goal, if it does
    symmetry: Mapping[str, Any] | None = None  # as `learn.symmetry` describes it

    # Whether episodes take a simulator's time. Otherwise they run within a compiled program.
    simulated: ClassVar[bool]
    records_paths: ClassVar[bool]  # whether evaluation records what is achieved at every step

    @abc.abstractmethod
    def rollouts(
        self,
        act: Act,
        agents: tuple[Any, Any],
        members: int,
        drawn: Sequence[Drawn],
        horizon: int,
        on_progress: OnProgress | None = None,
    ) -> list[np.ndarray]:
        """Let every member act in all episodes; `agents` are the algorithms and their states.

        Returns what is achieved, starts included, one array for each of `drawn`: (members,
        episodes, horizon + 1, goal_dim), float32.
        """

    @abc.abstractmethod
    def initial(self, starts: np.ndarray) -> np.ndarray:
        """What is achieved before the first action, from these starts: (N, ·) → (N, goal_dim)."""

    def simulator(self, count: int, threads: int | None = None) -> Simulator:
        """`count` copies of the robot, to be stepped from outside."""
        raise GoatError(f"{self.name} has no simulator; use a robot group (see `goat list`)")
