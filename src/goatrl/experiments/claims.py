"""The paper's conclusions from the didactic example (section 3.1) and the benchmark (section 5),
and what is asked of other suites, each checked from raw records.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from goatrl.experiments import statistics
from goatrl.experiments.records import Cell
from goatrl.experiments.statistics import LEVEL, RESAMPLES, Interval, Scores

if TYPE_CHECKING:  # a suite carries its conclusions
    from goatrl.experiments.suites import Suite

Cells = Mapping[tuple[str, str], Cell]  # (group, column label) → record
EXPERT, NON_EXPERT, NON_EXPERT_50 = (
    "pointreach-expert-10",
    "pointreach-non-expert-10",
    "pointreach-non-expert-50",
)
DATASETS = (EXPERT, NON_EXPERT, NON_EXPERT_50)
HARD = ("slide-left-right", "slide-near-far", "hand-near-far")
PESSIMISTS = ("CQL+HER", "MSG+HER")
EXPERT_LABEL = "Expert"  # which learns nothing: one seed says all


class Outcome(enum.StrEnum):
    """What became of a claim."""

    HELD = "held"
    UNDECIDED = "undecided"
    NOT_HELD = "not held"
    NOT_CHECKED = "not checked"  # not all records that it needs are there


Evaluated = tuple[Outcome, str]  # what became of a claim, and the numbers behind that


@dataclasses.dataclass(frozen=True)
class Verdict:
    claim: str
    outcome: Outcome
    evidence: str


def decided(share: float) -> Outcome:
    """The rule: held if true in at least 97.5 % of resamples, not held if in at most 2.5 %. Chances
    go by `side`.
    """
    if share >= (1 + LEVEL) / 2:
        return Outcome.HELD
    return Outcome.NOT_HELD if share <= (1 - LEVEL) / 2 else Outcome.UNDECIDED


def evaluated(true: np.ndarray, numbers: str) -> Evaluated:
    """By a claim that was tried on the records, which come first, and on every resample: (1 +
    resamples,).
    """
    share = float(true[1:].mean())
    return decided(share), f"{numbers}; holds {in_resamples(share)}"


def verdict(claim: str, found: Evaluated, seeds: Iterable[int]) -> Verdict:
    """What became of a claim about records with these numbers of seeds. A single seed decides
    nothing, because all its resamples are the same.
    """
    outcome, evidence = found
    if outcome is not Outcome.NOT_CHECKED and min(seeds) < 2:
        outcome, evidence = Outcome.UNDECIDED, f"{evidence}; a single seed decides nothing"
    return Verdict(claim, outcome, evidence)


def in_resamples(share: float) -> str:
    return f"in {100 * share:.0f} % of resamples"


def above(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Whether one is higher, by more than an error of rounding: the same is not higher."""
    return np.asarray(one - other > 1e-9)


@dataclasses.dataclass(frozen=True)
class Conclusion:
    """A sentence of the paper, and the test that it holds for the cells that it needs: these
    algorithms on these groups.
    """

    claim: str
    evaluate: Callable[[Cells], Evaluated]
    labels: tuple[str, ...] = ()  # none named: every column of the suite
    groups: tuple[str, ...] = ()  # none named: every group of the suite
    part: bool = False  # whether the groups that are recorded are enough

    def needs(self, suite: Suite) -> list[tuple[str, str]]:
        labels = self.labels or tuple(column.label for column in suite.columns)
        return [(group, label) for group in self.groups or suite.groups for label in labels]


# Rates and averages are arrays: of the records, then of every resample. Algorithms are resampled
# each for itself.
Rates = Mapping[str, np.ndarray]


def _success(
    cells: Cells, group: str, label: str, task: str, where: np.ndarray | None = None
) -> np.ndarray:
    means = cells[group, label].per_seed("success", task, where)
    drawn = means[statistics.drawn_seeds(len(means), RESAMPLES, 0, label, group)]
    return np.append(means.mean(), drawn.mean(axis=-1))


def _half(cells: Cells, group: str, label: str, task: str, upper: bool) -> np.ndarray:
    height = np.stack(cells[group, label].column("goal").tolist())[:, 1]
    return _success(cells, group, label, task, where=(height > 1e-6) if upper else (height < -1e-6))


def _highest(rates: Rates, label: str) -> np.ndarray:
    return np.all(
        [above(rates[label], other) for name, other in rates.items() if name != label], axis=0
    )


def _listed(rates: Rates, decimals: int = 1) -> str:
    return ", ".join(f"{label} {values[0]:.{decimals}f}" for label, values in rates.items())


def _bc_generalizes_from_clean_data(cells: Cells) -> Evaluated:
    rates = {
        name: _success(cells, EXPERT, name, "R20") for name in ("Goal BC", "GCSL", "HER", "CQL+HER")
    }
    return evaluated(_highest(rates, "Goal BC"), _listed(rates, 2))


def _bc_overfits_noise(cells: Cells) -> Evaluated:
    clean, noisy = (_success(cells, group, "Goal BC", "R20") for group in (EXPERT, NON_EXPERT))
    return evaluated(
        above(clean / 2, noisy), f"{clean[0]:.2f} from clean data, {noisy[0]:.2f} from noisy data"
    )


def _ddpg_fails_on_small_data(cells: Cells) -> Evaluated:
    labels = ("GOAT", "WGCSL", "GCSL", "Goal BC", "HER", "CQL+HER")
    places = [(group, task) for group in (EXPERT, NON_EXPERT) for task in ("R10", "R20")]
    rates = {
        name: np.mean([_success(cells, group, name, task) for group, task in places], axis=0)
        for name in labels
    }
    return evaluated(
        _highest({name: -values for name, values in rates.items()}, "HER"), _listed(rates, 2)
    )


def _cql_stays_in_the_data(cells: Cells) -> Evaluated:
    upper, lower = (_half(cells, EXPERT, "CQL+HER", "R10", upper=up) for up in (True, False))
    far = {group: _success(cells, group, "CQL+HER", "R20") for group in DATASETS}
    rates = " / ".join(f"{values[0]:.2f}" for values in far.values())
    numbers = f"upper half {upper[0]:.2f}, lower {lower[0]:.2f}; R20 {rates} on the three datasets"
    return evaluated(above(upper / 2, lower) & _highest(far, NON_EXPERT_50), numbers)


def _wgcsl_beats_gcsl(cells: Cells) -> Evaluated:
    pairs = [
        (_success(cells, group, "WGCSL", "R20"), _success(cells, group, "GCSL", "R20"))
        for group in DATASETS
    ]
    numbers = ", ".join(f"{wgcsl[0]:.2f} against {gcsl[0]:.2f}" for wgcsl, gcsl in pairs)
    return evaluated(np.all([above(*pair) for pair in pairs], axis=0), numbers)


DIDACTIC = (
    Conclusion(
        "From clean expert data, BC generalises better to far goals (R20) than GCSL, DDPG+HER and "
        "CQL+HER",
        _bc_generalizes_from_clean_data,
        ("Goal BC", "GCSL", "HER", "CQL+HER"),
    ),
    Conclusion(
        "From noisy data, BC loses more than half of its success on far goals (R20)",
        _bc_overfits_noise,
        ("Goal BC",),
    ),
    Conclusion(
        "DDPG+HER, which overestimates unseen actions, is the worst on the two small datasets",
        _ddpg_fails_on_small_data,
        ("GOAT", "WGCSL", "GCSL", "Goal BC", "HER", "CQL+HER"),
    ),
    Conclusion(
        "CQL+HER stays in the upper half from clean data, and reaches far goals best from the "
        "widest data",
        _cql_stays_in_the_data,
        ("CQL+HER",),
    ),
    Conclusion(
        "WGCSL generalises better than GCSL to far goals (R20) on every dataset",
        _wgcsl_beats_gcsl,
        ("WGCSL", "GCSL"),
    ),
)


def _averages(
    cells: Cells, labels: Iterable[str], split: str | None = None
) -> dict[str, np.ndarray]:
    """Success in percent, averaged over the tasks of all cells that a conclusion needs."""
    return {
        label: _average(statistics.scores(cells.values(), label, split=split)) for label in labels
    }


def _average(scores: Scores) -> np.ndarray:
    drawn = statistics.resampled(scores, RESAMPLES, 0, scores.label)
    return 100 * np.append(statistics.average(scores), statistics.average(drawn))


def _labels(cells: Cells) -> list[str]:
    return list(dict.fromkeys(label for _, label in cells))


def _keeps_less_than(portion: float, cells: Cells) -> Evaluated:
    """Every algorithm has less than a portion of its IID average on OOD tasks."""
    iid, ood = (_averages(cells, _labels(cells), split) for split in ("iid", "ood"))
    numbers = ", ".join(f"{label} {iid[label][0]:.1f} to {ood[label][0]:.1f}" for label in iid)
    return evaluated(
        np.all([above(portion * iid[label], ood[label]) for label in iid], axis=0), numbers
    )


def _ood_is_harder(cells: Cells) -> Evaluated:
    return _keeps_less_than(1.0, cells)


def _drop_by_more_than_half(cells: Cells) -> Evaluated:
    return _keeps_less_than(0.5, cells)


def _expectiles_generalize_best(cells: Cells) -> Evaluated:
    ood = _averages(cells, _labels(cells), "ood")
    return evaluated(_highest(ood, "GOAT(tau)"), _listed(ood))


def _improves(cells: Cells, label: str, before: str) -> Evaluated:
    """A seed of one is more likely to beat a seed of the other than not, on OOD tasks."""
    one, other = (statistics.scores(cells.values(), name, split="ood") for name in (label, before))
    return _beats(one, other, "OOD tasks")


def _improves_on_long_ways(cells: Cells, label: str, before: str) -> Evaluated:
    """The same on those episodes of IID tasks for which the expert takes longest."""
    one, other = (_long_ways(cells, name) for name in (label, before))
    return _beats(one, other, "IID tasks, of each the episodes that take the expert longest")


def _long_ways(cells: Cells, label: str) -> Scores:
    """Success in those episodes of IID tasks in which the expert is at its goal for no more steps
    than in the median one. All agents have the same episodes.
    """
    expert = statistics.scores(cells.values(), EXPERT_LABEL, "return", split="iid")
    steps = {
        (block.group, task): there[0]
        for block in expert.blocks
        for task, there in block.episodes.items()
    }

    def part(group: str, task: str, met: np.ndarray) -> np.ndarray:
        there = steps[group, task]
        return met[:, there <= np.median(there)]

    scores = statistics.scores(cells.values(), label, split="iid")
    blocks = (
        dataclasses.replace(
            block, episodes={task: part(block.group, task, v) for task, v in block.episodes.items()}
        )
        for block in scores.blocks
    )
    return Scores(label, tuple(blocks))


def _beats(one: Scores, other: Scores, where: str) -> Evaluated:
    """By the probability of improvement. One that wins more often, and by less than it loses
    elsewhere, has not improved: that is undecided.
    """
    drawn = statistics.resampled_improvement(one, other)
    chance = statistics.percentiles(statistics.probability_of_improvement(one, other), drawn)
    value, low, high = (_beside_half(each) for each in (chance.value, chance.low, chance.high))
    found = {scores.label: _average(scores) for scores in (other, one)}
    sure = f"95 % interval {low} to {high}, above 1/2 {in_resamples(float((drawn > 0.5).mean()))}"
    numbers = f"{_listed(found)}; probability of improvement {value}, {sure}"
    outcome, more = side(chance, 0.5), found[one.label][0] - found[other.label][0]
    if (outcome is Outcome.HELD and more < 0) or (outcome is Outcome.NOT_HELD and more > 0):
        outcome, numbers = Outcome.UNDECIDED, f"{numbers}, but averages say otherwise"
    return outcome, f"{numbers}; {where}: {len(one.by_task())}"


def side(sure: Interval, border: float) -> Outcome:
    """Whether something is above a border: the rule by the interval that is printed, so that both
    always agree. An end that is the border exactly includes it.
    """
    if sure.low > border:
        return Outcome.HELD
    return Outcome.NOT_HELD if sure.high < border else Outcome.UNDECIDED


def _beside_half(value: float) -> str:
    """Two decimals, or as many as tell on which side of one half it lies."""
    texts = (f"{value:.{places}f}" for places in range(2, 18))
    return next(text for text in texts if float(text) != 0.5 or value == 0.5)


def _goat_improves_on_wgcsl(cells: Cells) -> Evaluated:
    return _improves(cells, "GOAT", "WGCSL")


def _imitation_beats_pessimism(cells: Cells) -> Evaluated:
    ood = _averages(cells, _labels(cells), "ood")
    imitation = [values for label, values in ood.items() if label not in PESSIMISTS]
    lowest, highest = (
        np.min(imitation, axis=0),
        np.max([ood[label] for label in PESSIMISTS], axis=0),
    )
    return evaluated(above(lowest, highest), _listed(ood))


def _pessimism_fails_on_hard_tasks(cells: Cells) -> Evaluated:
    mean = _averages(cells, _labels(cells))
    return evaluated(
        np.all([above(mean["GOAT"] / 2, mean[label]) for label in PESSIMISTS], axis=0),
        _listed(mean),
    )


BENCHMARK = (
    Conclusion(
        "OOD generalisation is harder than IID tasks: every algorithm has a lower average there",
        _ood_is_harder,
    ),
    Conclusion(
        "The success of GoFAR, GCSL and BC drops by more than half on OOD tasks",
        _drop_by_more_than_half,
        ("GoFAR", "GCSL", "BC"),
    ),
    Conclusion(
        "GOAT(tau) generalises best: the highest OOD average of all", _expectiles_generalize_best
    ),
    Conclusion("GOAT improves on WGCSL on OOD tasks", _goat_improves_on_wgcsl, ("GOAT", "WGCSL")),
    Conclusion(
        "Weighted imitation (GOAT(tau), GOAT, WGCSL) has higher OOD averages than pessimism "
        "(CQL+HER, MSG+HER)",
        _imitation_beats_pessimism,
        ("GOAT(tau)", "GOAT", "WGCSL", *PESSIMISTS),
    ),
    Conclusion(
        "Pessimism (CQL+HER, MSG+HER) fails on Slide and HandReach: its average is below half of "
        "GOAT's",
        _pessimism_fails_on_hard_tasks,
        ("GOAT", *PESSIMISTS),
        HARD,
    ),
)


def check(suite: Suite, cells: Sequence[Cell]) -> list[Verdict]:
    """Every conclusion of a suite with its verdict and the numbers behind it."""
    recorded = {(cell.config.group, cell.label): cell for cell in cells}
    return [_verdict(conclusion, conclusion.needs(suite), recorded) for conclusion in suite.claims]


def rises(label: str, before: str) -> Conclusion:
    """One more component, better on OOD tasks."""
    claim = f"{label} improves on {before} on OOD tasks"
    return Conclusion(
        claim, lambda cells: _improves(cells, label, before), (before, label), part=True
    )


def rises_on_long_ways(label: str, before: str) -> Conclusion:
    """One more component, better where the way is long and the goal is like the data's."""
    claim = f"{label} improves on {before} on the longer ways of IID tasks"
    return Conclusion(
        claim,
        lambda cells: _improves_on_long_ways(cells, label, before),
        (before, label, EXPERT_LABEL),
        part=True,
    )


def _verdict(conclusion: Conclusion, needs: Sequence[tuple[str, str]], recorded: Cells) -> Verdict:
    if conclusion.part:
        incomplete = {group for group, label in needs if (group, label) not in recorded}
        needs = [(group, label) for group, label in needs if group not in incomplete]
    if not needs or not all(key in recorded for key in needs):
        return Verdict(conclusion.claim, Outcome.NOT_CHECKED, "not all of its cells are recorded")
    cells = {key: recorded[key] for key in needs}
    learners = (cell for (_, label), cell in cells.items() if label != EXPERT_LABEL)
    return verdict(
        conclusion.claim, conclusion.evaluate(cells), (len(cell.seeds) for cell in learners)
    )
