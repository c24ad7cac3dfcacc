"""What is wrong or suspicious in a dataset, before anyone trains on it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np

from goatrl.data.problems import own_bounds
from goatrl.types import ActionBounds, Episodes, distance, reached

REPEATED = 2  # equal frames at the end of an episode that may be padding
CLIPPED = 0.05  # share of action components at their largest that looks like a limit
SATURATED = 0.3  # share of action components at their bounds that is worth a line
RARELY = 0.05  # share of episodes that meet their goal, below which that is worth a line
NEAR = 1e-3  # of a range: what lies within counts as at its end


@dataclasses.dataclass(frozen=True)
class Finding:
    """One line: what, how many, and what to do."""

    what: str
    advice: str
    fatal: bool = False  # whether nothing can be learned from such data


@dataclasses.dataclass(frozen=True)
class Subject:
    """A dataset as the checks look at it: on the host, transition by transition."""

    episodes: Episodes
    threshold: float | None
    bounds: ActionBounds | None
    episode: np.ndarray
    step: np.ndarray
    actions: np.ndarray  # those that were taken
    after: np.ndarray  # what they achieve
    desired: np.ndarray  # what they were to achieve
    lengths: np.ndarray

    @classmethod
    def of(
        cls, episodes: Episodes, threshold: float | None, bounds: ActionBounds | None
    ) -> Subject:
        episode, step = episodes.steps()
        return cls(
            episodes,
            threshold,
            bounds,
            episode,
            step,
            np.asarray(episodes.actions)[episodes.at(episode, step)],
            np.asarray(episodes.achieved)[episodes.at(episode, step + 1)],
            np.asarray(episodes.desired(episode, step)),
            np.bincount(episode),
        )

    @property
    def last(self) -> np.ndarray:
        """Which transitions are the last of their episode."""
        return np.asarray(self.step == self.lengths[self.episode] - 1)


def check(
    episodes: Episodes, threshold: float | None = None, bounds: ActionBounds | None = None
) -> list[Finding]:
    """All findings, those that forbid training first. Success is checked with a goal threshold
    only.
    """
    subject = Subject.of(episodes, threshold, bounds)
    found = [finding for each in CHECKS for finding in each(subject)]
    return sorted(found, key=lambda finding: not finding.fatal)


def repeated(episodes: Episodes) -> np.ndarray:
    """How many frames at the end of each episode are equal to the one before: (N,)."""
    episode, step = episodes.steps()
    seen = np.asarray(episodes.observations)
    now, then = (seen[episodes.at(episode, each)] for each in (step, step + 1))
    moves = (now != then).any(axis=1)
    lengths = np.bincount(episode)
    last = np.zeros(len(lengths), int)
    np.maximum.at(last, episode[moves], step[moves] + 1)
    return lengths - last


def _padding(subject: Subject) -> Iterator[Finding]:
    frames = repeated(subject.episodes)
    padded = frames >= REPEATED
    if padded.any():
        yield Finding(
            f"{_of(padded)} episodes end in repeated frames, {frames[padded].sum():,} in all",
            "if that is padding, cut it off or give `lengths`: it teaches agents to stand still",
        )


def _constant(subject: Subject) -> Iterator[Finding]:
    seen = np.asarray(subject.episodes.observations)
    achieved = np.asarray(subject.episodes.achieved)
    still = {
        name: np.flatnonzero(np.ptp(array.reshape(-1, array.shape[-1]), axis=0) == 0)
        for name, array in (
            ("observations", seen),
            ("achieved goals", achieved),
            ("actions", subject.actions),
        )
    }
    if len(still["achieved goals"]) == achieved.shape[-1]:
        yield Finding(
            "what is achieved never changes",
            "nothing can be learned from it; is `achieved` the right quantity?",
            fatal=True,
        )
        del still["achieved goals"]
    for name, columns in still.items():
        if len(columns):
            yield Finding(
                f"{_columns(columns)} of the {name} never varied",
                "harmless if that is meant; otherwise check what was recorded",
            )


def _outside(subject: Subject) -> Iterator[Finding]:
    low, high = _range(subject)
    outside = (subject.actions < low - NEAR * (high - low)) | (
        subject.actions > high + NEAR * (high - low)
    )
    if not outside.any():
        return
    if subject.bounds is None:
        largest = np.abs(subject.actions).max()
        yield Finding(
            f"{_of(outside)} action components lie outside [-1, 1], up to {largest:.3g}",
            "agents only act within it; declare the bounds of actions to scale by them"
            if own_bounds(subject.actions) is None
            else "training scales by their range; declare the bounds of actions to scale by those",
        )
    else:
        yield Finding(
            f"{_of(outside)} action components lie outside of the declared bounds",
            "agents cannot repeat them; check the bounds",
        )


def _small(subject: Subject) -> Iterator[Finding]:
    """Actions in units of their own, such as metres, that nobody has declared: many lie at the same
    largest number, which is not 1.
    """
    if subject.bounds is not None:
        return
    largest = np.abs(subject.actions).max()
    at_largest = np.abs(subject.actions) >= largest * (1.0 - NEAR)
    if 0.0 < largest < 1.0 - NEAR and at_largest.mean() > CLIPPED:
        yield Finding(
            f"{_of(at_largest)} action components are {largest:.3g} or -{largest:.3g}, and none is "
            "larger",
            "if that is their limit, declare it (action_low, action_high): agents take actions to "
            "be in [-1, 1]",
        )


def _saturated(subject: Subject) -> Iterator[Finding]:
    low, high = _range(subject)
    margin = NEAR * (high - low)
    actions = subject.actions
    at_end = (actions <= low + margin) | (actions >= high - margin)
    inside = ((actions >= low - margin) & (actions <= high + margin)).all()
    if inside and at_end.mean() > SATURATED:
        yield Finding(
            f"{_of(at_end)} action components lie at their bounds",
            "fine for a bang-bang controller; otherwise actions may have been clipped or scaled "
            "too far",
        )


def _short(subject: Subject) -> Iterator[Finding]:
    short = subject.lengths == 1
    if short.any():
        yield Finding(
            f"{_of(short)} episodes have a single action",
            "hindsight has one goal for each; are episodes cut in the right places?",
        )


def _success(subject: Subject) -> Iterator[Finding]:
    if subject.threshold is None:
        return
    met = reached(subject.after, subject.desired, subject.threshold)
    nearest = float(distance(subject.after, subject.desired).min())
    if not met.any():
        yield Finding(
            f"no action ever leads to within {subject.threshold:g} of its goal; the nearest is "
            f"{nearest:.3g} away",
            "is the threshold in the units of the goal, and do goals mean what is achieved?",
        )
    elif met.all():
        yield Finding(
            f"every action leads to within {subject.threshold:g} of its goal",
            "the threshold is too large to tell success from failure",
        )
    else:
        meets = np.bincount(subject.episode, weights=met) > 0
        if meets.mean() < RARELY:
            yield Finding(
                f"{_of(meets)} episodes ever meet their goal",
                "relabel all goals (--set hindsight.probability=1): actions towards goals that are "
                "missed teach agents to miss them",
            )


def _shifted(subject: Subject) -> Iterator[Finding]:
    """Goals that belong to a neighbouring episode."""
    if subject.threshold is None or subject.episodes.count < 10:
        return
    ends, goals = subject.after[subject.last], subject.desired[subject.last]
    own = reached(ends, goals, subject.threshold).mean()
    for by, whose in ((1, "previous"), (-1, "next")):
        met = reached(ends, np.roll(goals, by, axis=0), subject.threshold).mean()
        if met > 0.2 and met > 2 * own:
            yield Finding(
                f"{100 * met:.0f} % of episodes end at the goal of the {whose} episode, "
                f"{100 * own:.0f} % at their own",
                "goals may be off by one episode",
            )


def _first_goals(subject: Subject) -> Iterator[Finding]:
    """Goals that change after the first step and never again, from that of the episode before."""
    goals, lengths = subject.desired, subject.lengths
    first = np.cumsum(lengths) - lengths
    long = np.flatnonzero(lengths[1:] > 1) + 1
    begin, end = first[long], first[long] + lengths[long] - 1
    changed = (goals[begin] != goals[begin + 1]).any(axis=1)
    kept = (goals[begin + 1] == goals[end]).all(axis=1)
    stale = changed & kept & (goals[begin] == goals[begin - 1]).all(axis=1)
    if stale.any():
        yield Finding(
            f"{stale.sum():,} of {subject.episodes.count:,} episodes begin with the goal of the "
            "episode before",
            "give their first step the goal of their second",
        )


def _far(subject: Subject) -> Iterator[Finding]:
    flat = np.asarray(subject.episodes.achieved).reshape(-1, subject.after.shape[-1])
    low, high = flat.min(axis=0), flat.max(axis=0)
    margin = np.maximum(high - low, subject.threshold or 0.0)
    goals = subject.desired[subject.last]
    far = ((goals < low - margin) | (goals > high + margin)).any(axis=1)
    if far.any():
        yield Finding(
            f"{_of(far)} desired goals lie far outside of all that is achieved",
            "are goals and achieved goals in the same units and frame?",
        )


CHECKS: tuple[Callable[[Subject], Iterator[Finding]], ...] = (
    _success,
    _shifted,
    _first_goals,
    _far,
    _padding,
    _short,
    _outside,
    _small,
    _saturated,
    _constant,
)


def _range(subject: Subject) -> tuple[np.ndarray, np.ndarray]:
    ones = np.ones(subject.actions.shape[-1])
    if subject.bounds is None:
        return -ones, ones
    return np.array(subject.bounds.low), np.array(subject.bounds.high)


def _of(which: np.ndarray) -> str:
    return f"{which.sum():,} of {which.size:,}"


def _columns(columns: np.ndarray) -> str:
    shown = ", ".join(map(str, columns[:8])) + (" …" if len(columns) > 8 else "")
    return f"column{'s' if len(columns) > 1 else ''} {shown}"
