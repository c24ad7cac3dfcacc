"""The paper's conclusions from the didactic example (section 3.1) and the benchmark (section 5), each checked from raw records."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from goatrl.benchmark import statistics
from goatrl.benchmark.records import Cell

if TYPE_CHECKING:  # a suite carries its conclusions
    from goatrl.benchmark.suites import Suite

Cells = Mapping[tuple[str, str], Cell]  # (group, column label) → record
EXPERT, NON_EXPERT, NON_EXPERT_50 = "pointreach-expert-10", "pointreach-non-expert-10", "pointreach-non-expert-50"
DATASETS = (EXPERT, NON_EXPERT, NON_EXPERT_50)
HARD = ("slide-left-right", "slide-near-far", "hand-near-far")
PESSIMISTS = ("CQL+HER", "MSG+HER")


@dataclasses.dataclass(frozen=True)
class Conclusion:
    """A sentence of the paper, and the test that it holds for the cells that it needs: these algorithms on these groups."""

    claim: str
    judge: Callable[[Cells], tuple[bool, str]]  # → whether it holds, and the numbers behind that
    labels: tuple[str, ...] = ()  # none named: every column of the suite
    groups: tuple[str, ...] = ()  # none named: every group of the suite
    part: bool = False  # whether the groups that are recorded are enough

    def needs(self, suite: Suite) -> list[tuple[str, str]]:
        labels = self.labels or tuple(column.label for column in suite.columns)
        return [(group, label) for group in self.groups or suite.groups for label in labels]


@dataclasses.dataclass(frozen=True)
class Verdict:
    claim: str
    held: bool | None  # None: not all cells that it needs are recorded
    evidence: str


def _success(cells: Cells, group: str, label: str, task: str) -> float:
    return float(cells[group, label].per_seed("success", task).mean())


def _half(cells: Cells, group: str, label: str, task: str, upper: bool) -> float:
    height = np.stack(cells[group, label].column("goal").tolist())[:, 1]
    return float(cells[group, label].per_seed("success", task, where=(height > 1e-6) if upper else (height < -1e-6)).mean())


def _bc_generalizes_from_clean_data(cells: Cells) -> tuple[bool, str]:
    rate = {name: _success(cells, EXPERT, name, "R20") for name in ("Goal BC", "GCSL", "HER", "CQL+HER")}
    held = all(rate["Goal BC"] > value for name, value in rate.items() if name != "Goal BC")
    return held, ", ".join(f"{n} {v:.2f}" for n, v in rate.items())


def _bc_overfits_noise(cells: Cells) -> tuple[bool, str]:
    clean, noisy = (_success(cells, group, "Goal BC", "R20") for group in (EXPERT, NON_EXPERT))
    return noisy < clean / 2, f"{clean:.2f} from clean data, {noisy:.2f} from noisy data"


def _ddpg_fails_on_small_data(cells: Cells) -> tuple[bool, str]:
    labels = ("GOAT", "WGCSL", "GCSL", "Goal BC", "HER", "CQL+HER")
    mean = {n: float(np.mean([_success(cells, g, n, t) for g in (EXPERT, NON_EXPERT) for t in ("R10", "R20")])) for n in labels}
    held = all(mean["HER"] < value for name, value in mean.items() if name != "HER")
    return held, ", ".join(f"{n} {v:.2f}" for n, v in mean.items())


def _cql_stays_in_the_data(cells: Cells) -> tuple[bool, str]:
    upper, lower = (_half(cells, EXPERT, "CQL+HER", "R10", upper=up) for up in (True, False))
    far = [_success(cells, group, "CQL+HER", "R20") for group in DATASETS]
    held = lower < upper / 2 and far[2] > max(far[:2])
    return held, f"upper half {upper:.2f}, lower {lower:.2f}; R20 {far[0]:.2f} / {far[1]:.2f} / {far[2]:.2f} on the three datasets"


def _wgcsl_beats_gcsl(cells: Cells) -> tuple[bool, str]:
    pairs = [(_success(cells, group, "WGCSL", "R20"), _success(cells, group, "GCSL", "R20")) for group in DATASETS]
    return all(w > g for w, g in pairs), ", ".join(f"{w:.2f} against {g:.2f}" for w, g in pairs)


DIDACTIC = (
    Conclusion(
        "From clean expert data, BC generalises better to far goals (R20) than GCSL, DDPG+HER and CQL+HER",
        _bc_generalizes_from_clean_data,
        ("Goal BC", "GCSL", "HER", "CQL+HER"),
    ),
    Conclusion("From noisy data, BC loses more than half of its success on far goals (R20)", _bc_overfits_noise, ("Goal BC",)),
    Conclusion(
        "DDPG+HER, which overestimates unseen actions, is the worst on the two small datasets",
        _ddpg_fails_on_small_data,
        ("GOAT", "WGCSL", "GCSL", "Goal BC", "HER", "CQL+HER"),
    ),
    Conclusion(
        "CQL+HER stays in the upper half from clean data, and reaches far goals best from the widest data",
        _cql_stays_in_the_data,
        ("CQL+HER",),
    ),
    Conclusion("WGCSL generalises better than GCSL to far goals (R20) on every dataset", _wgcsl_beats_gcsl, ("WGCSL", "GCSL")),
)


def _averages(cells: Cells, labels: Iterable[str], split: str | None = None) -> dict[str, float]:
    """Success in percent, averaged over the tasks of all cells that a conclusion needs."""
    return {label: 100 * float(statistics.average(statistics.scores(cells.values(), label, split=split))) for label in labels}


def _labels(cells: Cells) -> list[str]:
    return list(dict.fromkeys(label for _, label in cells))


def _listed(averages: Mapping[str, float]) -> str:
    return ", ".join(f"{label} {value:.1f}" for label, value in averages.items())


def _drops(cells: Cells) -> dict[str, tuple[float, float]]:
    """Algorithm → its averages over IID and over OOD tasks."""
    iid, ood = (_averages(cells, _labels(cells), split) for split in ("iid", "ood"))
    return {label: (iid[label], ood[label]) for label in iid}


def _listed_drops(drops: Mapping[str, tuple[float, float]]) -> str:
    return ", ".join(f"{label} {iid:.1f} to {ood:.1f}" for label, (iid, ood) in drops.items())


def _ood_is_harder(cells: Cells) -> tuple[bool, str]:
    drops = _drops(cells)
    return all(ood < iid for iid, ood in drops.values()), _listed_drops(drops)


def _drop_by_more_than_half(cells: Cells) -> tuple[bool, str]:
    drops = _drops(cells)
    return all(ood < iid / 2 for iid, ood in drops.values()), _listed_drops(drops)


def _expectiles_generalize_best(cells: Cells) -> tuple[bool, str]:
    ood = _averages(cells, _labels(cells), "ood")
    return all(ood["GOAT(tau)"] > value for label, value in ood.items() if label != "GOAT(tau)"), _listed(ood)


def _goat_improves_on_wgcsl(cells: Cells) -> tuple[bool, str]:
    goat, wgcsl = (statistics.scores(cells.values(), label, split="ood") for label in ("GOAT", "WGCSL"))
    ood = _averages(cells, ("GOAT", "WGCSL"), "ood")
    chance = statistics.improvement_interval(goat, wgcsl)
    evidence = f"probability of improvement {chance.value:.2f}, 95 % interval {chance.low:.2f} to {chance.high:.2f}"
    return ood["GOAT"] > ood["WGCSL"], f"{_listed(ood)}; {evidence}"


def _imitation_beats_pessimism(cells: Cells) -> tuple[bool, str]:
    ood = _averages(cells, _labels(cells), "ood")
    imitation = [value for label, value in ood.items() if label not in PESSIMISTS]
    return min(imitation) > max(ood[label] for label in PESSIMISTS), _listed(ood)


def _pessimism_fails_on_hard_tasks(cells: Cells) -> tuple[bool, str]:
    mean = _averages(cells, _labels(cells))
    return all(mean[label] < mean["GOAT"] / 2 for label in PESSIMISTS), _listed(mean)


BENCHMARK = (
    Conclusion("OOD generalisation is harder than IID tasks: every algorithm has a lower average there", _ood_is_harder),
    Conclusion(
        "The success of GoFAR, GCSL and BC drops by more than half on OOD tasks", _drop_by_more_than_half, ("GoFAR", "GCSL", "BC")
    ),
    Conclusion("GOAT(tau) generalises best: the highest OOD average of all", _expectiles_generalize_best),
    Conclusion("GOAT improves on WGCSL on OOD tasks", _goat_improves_on_wgcsl, ("GOAT", "WGCSL")),
    Conclusion(
        "Weighted imitation (GOAT(tau), GOAT, WGCSL) has higher OOD averages than pessimism (CQL+HER, MSG+HER)",
        _imitation_beats_pessimism,
        ("GOAT(tau)", "GOAT", "WGCSL", *PESSIMISTS),
    ),
    Conclusion(
        "Pessimism (CQL+HER, MSG+HER) fails on Slide and HandReach: its average is below half of GOAT's",
        _pessimism_fails_on_hard_tasks,
        ("GOAT", *PESSIMISTS),
        HARD,
    ),
)


def check(suite: Suite, cells: Sequence[Cell]) -> list[Verdict]:
    """Every conclusion of a suite with its verdict and the numbers behind it."""
    recorded = {(cell.config.group, cell.label): cell for cell in cells}
    return [_verdict(conclusion, conclusion.needs(suite), recorded) for conclusion in suite.statements]


def rises(label: str, before: str) -> Conclusion:
    """One more component, a higher OOD average."""

    def judge(cells: Cells) -> tuple[bool, str]:
        ood = _averages(cells, (before, label), "ood")
        one, other = (statistics.scores(cells.values(), name, split="ood") for name in (label, before))
        better = statistics.improvement_interval(one, other)
        numbers = f"probability of improvement {better.value:.2f} [{better.low:.2f}, {better.high:.2f}]"
        return ood[label] > ood[before], f"{_listed(ood)}; {numbers}; OOD tasks: {len(one.by_task())}"

    return Conclusion(f"{label} raises the OOD average of {before}", judge, (before, label), part=True)


def _verdict(conclusion: Conclusion, needs: Sequence[tuple[str, str]], recorded: Cells) -> Verdict:
    if conclusion.part:
        incomplete = {group for group, label in needs if (group, label) not in recorded}
        needs = [(group, label) for group, label in needs if group not in incomplete]
    if not needs or not all(key in recorded for key in needs):
        return Verdict(conclusion.claim, None, "not all of its cells are recorded")
    held, evidence = conclusion.judge({key: recorded[key] for key in needs})
    return Verdict(conclusion.claim, held, evidence)
