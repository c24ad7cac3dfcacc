"""The paper's conclusions from the didactic example (section 3.1), each checked from raw records."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np

from goatrl.benchmark.records import Cell

Cells = Mapping[tuple[str, str], Cell]  # (group, column label) → record
EXPERT, NON_EXPERT, NON_EXPERT_50 = "pointreach-expert-10", "pointreach-non-expert-10", "pointreach-non-expert-50"
DATASETS = (EXPERT, NON_EXPERT, NON_EXPERT_50)


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


CONCLUSIONS: tuple[tuple[str, tuple[str, ...], Callable[[Cells], tuple[bool, str]]], ...] = (
    (
        "From clean expert data, BC generalises better to far goals (R20) than GCSL, DDPG+HER and CQL+HER",
        ("Goal BC", "GCSL", "HER", "CQL+HER"),
        _bc_generalizes_from_clean_data,
    ),
    ("From noisy data, BC loses more than half of its success on far goals (R20)", ("Goal BC",), _bc_overfits_noise),
    (
        "DDPG+HER, which overestimates unseen actions, is the worst on the two small datasets",
        ("GOAT", "WGCSL", "GCSL", "Goal BC", "HER", "CQL+HER"),
        _ddpg_fails_on_small_data,
    ),
    (
        "CQL+HER stays in the upper half from clean data, and reaches far goals best from the widest data",
        ("CQL+HER",),
        _cql_stays_in_the_data,
    ),
    ("WGCSL generalises better than GCSL to far goals (R20) on every dataset", ("WGCSL", "GCSL"), _wgcsl_beats_gcsl),
)


def check(cells: Cells) -> list[Verdict]:
    """Every conclusion with its verdict and the numbers behind it."""
    verdicts = []
    for claim, labels, judge in CONCLUSIONS:
        if all((group, label) in cells for group in DATASETS for label in labels):
            held, evidence = judge(cells)
            verdicts.append(Verdict(claim, held, evidence))
        else:
            verdicts.append(Verdict(claim, None, "not all of its cells are recorded"))
    return verdicts
