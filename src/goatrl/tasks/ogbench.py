"""OGBench's point in a maze and its arm with a cube: of each its five evaluation tasks, and a split
of ours whose data leaves out a part of the maze, or of the table.

    column    0 1 2 3 4 5 6 7
    row 0     █ █ █ █ █ █ █ █
        1     █ · · █ █ o o █       o  the room, which the data of the split does not show
        2     █ · · █ · o o █
        3     █ █ · · · █ █ █
        4     █ · · █ · · · █
        5     █ · █ · · █ x █       x  the corridor, which it does not show either
        6     █ · · · █ x x █
        7     █ █ █ █ █ █ █ █

    y      −0.3                       0.1      0.3
    x 0.3     ┌────────────────────────┬────────┐
              │           ·            │   o    │       o  the side, which the data of the split
    x 0.55    └────────────────────────┴────────┘          does not show
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable

import numpy as np

from goatrl.episodes import make_episodes
from goatrl.robots.cube import CENTRE, HEIGHT, SCALE, SINGLE, play, seen
from goatrl.robots.maze import MEDIUM, Points
from goatrl.tasks.panels import Surroundings
from goatrl.tasks.regions import TOLERANCE, Box, everywhere
from goatrl.tasks.types import Task, TaskGroup
from goatrl.types import Episodes, Settings

Cell = tuple[int, int]  # row, column
UNIT = 4.0  # side of a cell; the one at (1, 1) has its centre at the origin
ROWS = 8  # and as many columns
SPREAD = 1.0  # starts and goals lie this far from the centre of their cell at most, on each axis
OPEN: tuple[Cell, ...] = tuple(
    (row, column)
    for row, columns in enumerate(
        (
            (),
            (1, 2, 5, 6),
            (1, 2, 4, 5, 6),
            (2, 3, 4),
            (1, 2, 4, 5, 6),
            (1, 3, 4, 6),
            (1, 2, 3, 5, 6),
        )
    )
    for column in columns
)
# Its evaluation tasks: from where to where.
EVALUATED = (
    ((1, 1), (6, 6)),
    ((6, 1), (1, 6)),
    ((5, 3), (4, 2)),
    ((6, 5), (6, 1)),
    ((2, 6), (1, 1)),
)
EPISODES = 50  # of each
SETTINGS = Settings(updates=1_000_000, batch_size=1_024, target_period=1, polyak=0.995)

ROOM: tuple[Cell, ...] = ((1, 5), (1, 6), (2, 5), (2, 6))
CORRIDOR: tuple[Cell, ...] = ((5, 6), (6, 5), (6, 6))
SEEN = tuple(cell for cell in OPEN if cell not in (*ROOM, *CORRIDOR))


@dataclasses.dataclass(frozen=True)
class Cells:
    """Cells of a maze, all equally likely. Points are drawn around their centres."""

    cells: tuple[Cell, ...]

    def sample(self, generator: np.random.Generator, count: int) -> np.ndarray:
        chosen = np.array(self.cells)[generator.integers(len(self.cells), size=count)]
        return centres(chosen) + generator.uniform(-SPREAD, SPREAD, (count, 2))

    def contains(self, points: np.ndarray) -> np.ndarray:
        """Which points lie in one of them, border included."""
        away = np.abs(points[..., None, :] - centres(np.array(self.cells))).max(axis=-1)
        return np.asarray((away <= UNIT / 2 + TOLERANCE).any(axis=-1))


def centres(cells: np.ndarray) -> np.ndarray:
    """(…, 2) rows and columns → (…, 2) places."""
    return UNIT * (np.asarray(cells, np.float64)[..., ::-1] - 1.0)


def crossings(cells: Iterable[Cell]) -> tuple[Cell, ...]:
    """The cells that are not part of a straight corridor: goals of the data."""
    known = set(cells)

    def straight(row: int, column: int) -> bool:
        vertical = [(row - 1, column) in known, (row + 1, column) in known]
        across = [(row, column - 1) in known, (row, column + 1) in known]
        return (all(vertical) and not any(across)) or (all(across) and not any(vertical))

    return tuple(cell for cell in sorted(known) if not straight(*cell))


@dataclasses.dataclass(frozen=True)
class Navigation:
    """OGBench's "navigate" data: a point walks to one random crossing after the other, in the
    direction that its environment's oracle says, with noise.
    """

    episodes: int = 1_000
    steps: int = 1_000
    noise: float = 0.5
    lot: int = 10  # episodes that are recorded side by side

    @property
    def recipe(self) -> str:
        """All that decides the data but the seed."""
        return f"{self} {MEDIUM.physics}"

    def describe(self, label: str) -> str:
        return f"{label}: a point walks to one random place in a maze after the other, with noise"

    def record(self, seed: int, number: int) -> Episodes:
        """The lot with this number, which it decides with the seed."""
        generator = np.random.default_rng([seed, number])
        anywhere, aims = Cells(OPEN), Cells(crossings(OPEN))
        world = MEDIUM.world
        goals = aims.sample(generator, self.lot)

        def act(places: np.ndarray) -> np.ndarray:
            done = np.linalg.norm(places - goals, axis=-1) <= MEDIUM.spec.goal_threshold
            goals[done] = aims.sample(generator, int(done.sum()))
            ahead = [world.get_oracle_subgoal(*pair)[0] for pair in zip(places, goals, strict=True)]
            towards = np.stack(ahead) - places
            towards /= np.linalg.norm(towards, axis=-1, keepdims=True) + 1e-6
            return np.clip(towards + generator.normal(0.0, self.noise, towards.shape), -1.0, 1.0)

        starts = anywhere.sample(generator, self.lot)
        taken = Points(world, self.lot).rollout(starts, act, self.steps)
        places = taken.observations
        return make_episodes(places, places, taken.actions, places[:, -1])


class MazePanel:
    """The maze from above. Rows grow upwards."""

    names = ("x", "y")

    def __init__(self, group: TaskGroup) -> None:
        assert isinstance(group.iid, Cells)
        sides = range(ROWS)
        walls = [(row, column) for row in sides for column in sides if (row, column) not in OPEN]
        corners = centres(np.array(walls))[:, None] + UNIT / 2 * np.array([[-1.0], [1.0]])
        self.surroundings = Surroundings(walls=corners)
        left_out = len(OPEN) - len(group.iid.cells)
        self.caption = f"the data shows all but {left_out} of {len(OPEN)} cells"

    def shown(self, starts: np.ndarray, goals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return starts, goals

    def in_space(self, points: np.ndarray) -> np.ndarray:
        return points


NAVIGATE = TaskGroup(
    "ogbench-pointmaze",
    "pointmaze-medium-navigate",
    MEDIUM,
    SETTINGS,
    MEDIUM.spec,
    tuple(
        Task(f"Task {number}", "iid", Cells((start,)), Cells((goal,)), episodes=EPISODES)
        for number, (start, goal) in enumerate(EVALUATED, start=1)
    ),
    Cells(OPEN),
    recording=Navigation(),
)
SPLIT = TaskGroup(
    "ogbench-pointmaze-ood",
    "pointmaze-medium-navigate, a part left out",
    MEDIUM,
    SETTINGS,
    MEDIUM.spec,
    (
        Task("Seen", "iid", Cells(SEEN), Cells(SEEN), episodes=4 * EPISODES),
        Task("Room", "ood", Cells(SEEN), Cells(ROOM), episodes=4 * EPISODES),
        Task("Corridor", "ood", Cells(SEEN), Cells(CORRIDOR), episodes=4 * EPISODES),
    ),
    Cells(SEEN),
    cut_from=NAVIGATE,
    panel=MazePanel,
)

# The cube, on a table. All in metres and radians but goals.
Place = tuple[float, float]  # x, y
TABLE: tuple[Place, Place] = ((0.3, -0.3), (0.55, 0.3))  # corners of where it stands in the data
GRIPPERS = ((0.25, -0.35, 0.2), (0.6, 0.35, 0.35))  # corners of where the gripper starts
JITTER = 0.01  # on each axis, of where a task starts it
# The evaluation tasks: from where to where.
CARRIED: tuple[tuple[Place, Place], ...] = (
    ((0.425, 0.1), (0.425, -0.1)),
    ((0.35, 0.0), (0.5, 0.0)),
    ((0.5, 0.0), (0.35, 0.0)),
    ((0.35, -0.2), (0.5, 0.2)),
    ((0.35, 0.2), (0.5, -0.2)),
)
BORDER = 0.1  # the data of the split shows cubes at smaller y
NEAR = (TABLE[0], (TABLE[1][0], BORDER))
# So far beyond the border that no goal is reached from before it.
BEYOND = ((TABLE[0][0], BORDER + SINGLE.spec.goal_threshold / SCALE), TABLE[1])


def starts_between(low: Place, high: Place) -> Box:
    """The gripper anywhere, the cube between two corners, both turned at random."""
    return Box((*GRIPPERS[0], -math.pi, *low, 0.0), (*GRIPPERS[1], math.pi, *high, 2.0 * math.pi))


def goals_between(low: Place, high: Place) -> Box:
    """Places on the table, as goals."""
    ends = seen(np.array([(*low, HEIGHT), (*high, HEIGHT)])).tolist()
    return Box(tuple(ends[0]), tuple(ends[1]))


def around(place: Place) -> tuple[Place, Place]:
    x, y = place
    return (x - JITTER, y - JITTER), (x + JITTER, y + JITTER)


@dataclasses.dataclass(frozen=True)
class Play:
    """OGBench's "play" data: an arm carries a cube to one random place after the other, by plans of
    its oracle, with noise.
    """

    episodes: int = 1_000
    steps: int = 1_000
    noise: float = 0.1
    smoothing: float = 0.5  # of the noise, over time
    lot: int = 10  # episodes that are recorded together

    @property
    def recipe(self) -> str:
        """All that decides the data but the seed."""
        return f"{self} {SINGLE.physics}"

    def describe(self, label: str) -> str:
        return f"{label}: an arm carries a cube to one random place after the other, with noise"

    def record(self, seed: int, number: int) -> Episodes:
        """The lot with this number, which it decides with the seed."""
        generator = np.random.default_rng([seed, number])
        numbers = self.lot, self.steps, self.noise, self.smoothing
        taken = play(SINGLE.world, generator, *numbers)
        return make_episodes(*taken, taken.achieved[:, -1])


class TablePanel:
    """The table as one sees it who stands opposite the robot and looks down."""

    names = ("y (m)", "x (m)")
    caption = f"the data shows the cube at y ≤ {BORDER:g} m alone"

    def __init__(self, group: TaskGroup) -> None:
        self.surroundings = Surroundings(from_above=True)

    def shown(self, starts: np.ndarray, goals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return starts[:, [5, 4]], (goals / SCALE + np.array(CENTRE))[:, [1, 0]]

    def in_space(self, points: np.ndarray) -> np.ndarray:
        return seen(np.insert(points[..., ::-1], 2, HEIGHT, axis=-1))


PLAY = TaskGroup(
    "ogbench-cube",
    "cube-single-play",
    SINGLE,
    SETTINGS,
    SINGLE.spec,
    tuple(
        Task(
            f"Task {number}",
            "iid",
            starts_between(*around(start)),
            goals_between(goal, goal),
            episodes=EPISODES,
        )
        for number, (start, goal) in enumerate(CARRIED, start=1)
    ),
    everywhere(3),
    recording=Play(),
)
SIDE = TaskGroup(
    "ogbench-cube-ood",
    "cube-single-play, a side left out",
    SINGLE,
    SETTINGS,
    SINGLE.spec,
    (
        Task("Seen", "iid", starts_between(*NEAR), goals_between(*NEAR), episodes=4 * EPISODES),
        Task("Unseen", "ood", starts_between(*NEAR), goals_between(*BEYOND), episodes=4 * EPISODES),
    ),
    Box((-math.inf,) * 3, (math.inf, BORDER * SCALE, math.inf)),
    cut_from=PLAY,
    panel=TablePanel,
)
GROUPS = (NAVIGATE, SPLIT, PLAY, SIDE)
