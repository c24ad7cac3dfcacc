"""A point in the plane as a user would write it, in the ways in which environments differ;
importing registers them.
"""

from __future__ import annotations

import contextlib
import time
import weakref
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, Space

HORIZON = 8
THRESHOLD = 0.5


class Point(gymnasium.Env):
    """Moves by up to 1 in both coordinates; from around the origin to goals up to 4 away."""

    alone: ClassVar[Any] = None  # the last one made, while there is one

    def __init__(
        self,
        actions: Space | None = None,
        ends: bool = False,
        seeded: bool = True,
        size: int = 2,
        fails: str = "",
        flag: str = "",
    ) -> None:
        if fails == "several" and Point.alone is not None and Point.alone() is not None:
            raise OSError("there can be only one")
        Point.alone = weakref.ref(self)
        if fails == "init":
            raise OSError("no licence\nfor this simulator")
        seen = {"observation": size, "achieved_goal": 2, "desired_goal": 2}
        self.observation_space = Dict(
            {name: Box(-np.inf, np.inf, (count,), np.float64) for name, count in seen.items()}
        )
        self.action_space = Box(-1.0, 1.0, (2,), np.float32) if actions is None else actions
        self.ends, self.seeded, self.size, self.fails = ends, seeded, size, fails
        self.flag = flag  # what its info calls success: x is right of the goal's

    def reset(
        self, *, seed: int | None = None, options: Any = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        super().reset(seed=seed)
        rng = self.np_random if self.seeded else np.random.default_rng()
        self.place, self.goal = rng.uniform(-0.5, 0.5, 2), rng.uniform(-4.0, 4.0, 2)
        return self._seen(), {}

    def step(
        self, action: np.ndarray
    ) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]:
        if self.fails == "step":
            raise ZeroDivisionError("in the user's own code")
        while self.fails == "hangs":
            with contextlib.suppress(Exception):  # as code that retries for ever
                time.sleep(0.01)
        assert self.action_space.contains(action), action
        low, high = self.action_space.low, self.action_space.high
        if np.isfinite(low).all() and np.isfinite(high).all():
            action = (action - (low + high) / 2) / ((high - low) / 2)
        self.place = self.place + action
        if self.fails == "nan":
            self.place = self.place * np.nan
        met = np.linalg.norm(self.place - self.goal) <= THRESHOLD
        told = {self.flag: bool(self.place[0] > self.goal[0])} if self.flag else {}
        return self._seen(), 7.0, bool(met and self.ends), False, told

    def _seen(self) -> dict[str, np.ndarray]:
        return {
            "observation": np.resize(self.place, self.size),
            "achieved_goal": self.place,
            "desired_goal": self.goal,
        }


class Plain(gymnasium.Env):
    """No goals."""

    observation_space = Box(-1.0, 1.0, (2,), np.float32)
    action_space = Box(-1.0, 1.0, (2,), np.float32)


def _register(name: str, limit: int | None = None, **settings: Any) -> None:
    gymnasium.register(
        f"worlds/{name}-v0", entry_point=Point, max_episode_steps=limit, kwargs=settings
    )


_register("Point")
_register("Short", limit=3)
_register("Ends", ends=True)
_register("Wide", actions=Box(np.float32([0.0, -2.0]), np.float32([4.0, 2.0])))
_register("Open", actions=Box(np.float32([-np.inf, 0.0]), np.float32([np.inf, np.inf])))
_register("Unseeded", seeded=False)
_register("Large", size=3)
_register("Buttons", actions=Discrete(4))
_register("Flat", actions=Box(-1.0, 1.0, (3,)))
_register("Unmade", fails="init")
_register("Broken", fails="step")
_register("Single", fails="several")
_register("Hanging", fails="hangs")
_register("Numberless", fails="nan")
gymnasium.register("worlds/Plain-v0", entry_point=Plain)
