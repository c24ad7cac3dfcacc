"""The paper's conclusions: each can hold, and each can fail."""

from __future__ import annotations

import dataclasses

import pyarrow as pa
import pytest

from conftest import made_by_hand
from goatrl import tasks
from goatrl.benchmark import statements
from goatrl.benchmark.records import Cell
from goatrl.benchmark.statements import EXPERT, NON_EXPERT, NON_EXPERT_50

BC_CLEAN, BC_NOISE, DDPG_WORST, CQL_INSIDE, WGCSL_BETTER = range(5)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Whether an agent reaches the upper and the lower half of R10, and how many of the 20 goals of R20."""

    upper: bool
    lower: bool
    far: int


def make_cell(group: str, outcome: Outcome) -> Cell:
    rows = []
    for task in tasks.get(group).tasks:
        for seed in (0, 1):
            for episode, goal in enumerate(task.evaluation()[1]):
                near = outcome.upper if episode < 10 else outcome.lower
                success = near if task.name == "R10" else episode < outcome.far
                place = {"start": [0.0, 0.0], "goal": goal.tolist(), "path": None, "final_distance": 0.0, "return": 0}
                rows.append(place | {"task": task.name, "split": "iid", "seed": seed, "episode": episode, "success": success})
    return made_by_hand(group, rows, seeds=(0, 1))


# Numbers near the paper's, for which all five conclusions hold.
FAR = {
    "GOAT": (10, 14, 18),
    "WGCSL": (8, 10, 16),
    "GCSL": (1, 2, 6),
    "Goal BC": (9, 1, 4),
    "HER": (0, 0, 10),
    "CQL+HER": (1, 3, 15),
}
OUTCOMES = {
    (group, label): Outcome(label != "HER", False, far[place])
    for label, far in FAR.items()
    for place, group in enumerate((EXPERT, NON_EXPERT, NON_EXPERT_50))
}


@pytest.fixture(scope="module")
def holding() -> dict[tuple[str, str], Cell]:
    return {key: make_cell(key[0], outcome) for key, outcome in OUTCOMES.items()}


def changed(holding: dict, *changes: tuple[str, str, dict]) -> dict:
    cells = dict(holding)
    for group, label, change in changes:
        cells[group, label] = make_cell(group, dataclasses.replace(OUTCOMES[group, label], **change))
    return cells


def held(cells: dict) -> list[bool | None]:
    return [verdict.held for verdict in statements.check(cells)]


def test_all_five_can_hold(holding: dict) -> None:
    assert held(holding) == [True] * 5


@pytest.mark.parametrize(
    ("claim", "changes"),
    [
        (BC_CLEAN, [(EXPERT, "HER", {"far": 10})]),
        (BC_CLEAN, [(EXPERT, "CQL+HER", {"far": 12}), (NON_EXPERT_50, "CQL+HER", {"far": 16})]),
        (BC_NOISE, [(NON_EXPERT, "Goal BC", {"far": 5})]),  # 5 of 9 is more than half
        (DDPG_WORST, [(group, "HER", {"upper": True, "lower": True}) for group in (EXPERT, NON_EXPERT)]),
        (
            DDPG_WORST,
            [(group, "GOAT", {"upper": False, "far": 0}) for group in (EXPERT, NON_EXPERT)]
            + [(NON_EXPERT, "HER", {"upper": True})],
        ),
        (CQL_INSIDE, [(EXPERT, "CQL+HER", {"lower": True})]),
        (CQL_INSIDE, [(EXPERT, "CQL+HER", {"upper": False, "lower": True})]),
        (CQL_INSIDE, [(EXPERT, "CQL+HER", {"upper": False})]),
        (CQL_INSIDE, [(NON_EXPERT_50, "CQL+HER", {"far": 2})]),
        (WGCSL_BETTER, [(EXPERT, "WGCSL", {"far": 0})]),
        (WGCSL_BETTER, [(NON_EXPERT, "GCSL", {"far": 11})]),
        (WGCSL_BETTER, [(NON_EXPERT_50, "WGCSL", {"far": 6})]),  # the same is not better
    ],
)
def test_each_can_fail_alone(holding: dict, claim: int, changes: list) -> None:
    assert held(changed(holding, *changes)) == [place != claim for place in range(5)]


def test_losing_exactly_half_is_not_more_than_half(holding: dict) -> None:
    half = changed(holding, (EXPERT, "Goal BC", {"far": 10}), (NON_EXPERT, "Goal BC", {"far": 5}))
    more = changed(holding, (EXPERT, "Goal BC", {"far": 10}), (NON_EXPERT, "Goal BC", {"far": 4}))
    assert (held(half)[BC_NOISE], held(more)[BC_NOISE]) == (False, True)


@pytest.mark.parametrize(
    ("claim", "changes"),
    [
        (BC_CLEAN, [(EXPERT, "HER", {"far": 9})]),
        (DDPG_WORST, [(group, "WGCSL", {"upper": False, "far": 0}) for group in (EXPERT, NON_EXPERT)]),
        (CQL_INSIDE, [(NON_EXPERT_50, "CQL+HER", {"far": 3})]),
    ],
    ids=["as good as BC", "as bad as DDPG+HER", "the widest data no better"],
)
def test_a_tie_is_neither_better_nor_worse(holding: dict, claim: int, changes: list) -> None:
    assert held(changed(holding, *changes))[claim] is False


def test_goals_on_the_axis_belong_to_no_half(holding: dict) -> None:
    # Goals at 0 and 180 degrees are in the list of both halves; failing at them changes nothing.
    cell = holding[EXPERT, "CQL+HER"]
    goals = tasks.get(EXPERT).task("R10").evaluation()[1]
    on_axis = [abs(goals[episode][1]) < 1e-6 for episode in cell.column("episode")]
    success = [bool(s) and not axis for s, axis in zip(cell.column("success"), on_axis, strict=True)]
    table = cell.episodes.set_column(cell.episodes.schema.get_field_index("success"), "success", pa.array(success))
    cells = dict(holding) | {(EXPERT, "CQL+HER"): dataclasses.replace(cell, episodes=table)}
    assert "upper half 1.00, lower 0.00" in statements.check(cells)[CQL_INSIDE].evidence


@pytest.mark.parametrize(
    ("label", "unknown"),
    [
        ("GOAT", {DDPG_WORST}),
        ("WGCSL", {DDPG_WORST, WGCSL_BETTER}),
        ("GCSL", {BC_CLEAN, DDPG_WORST, WGCSL_BETTER}),
        ("Goal BC", {BC_CLEAN, BC_NOISE, DDPG_WORST}),
        ("HER", {BC_CLEAN, DDPG_WORST}),
        ("CQL+HER", {BC_CLEAN, DDPG_WORST, CQL_INSIDE}),
    ],
)
@pytest.mark.parametrize("group", [EXPERT, NON_EXPERT_50])
def test_missing_cells_leave_it_open(holding: dict, group: str, label: str, unknown: set[int]) -> None:
    cells = {key: cell for key, cell in holding.items() if key != (group, label)}
    assert held(cells) == [None if claim in unknown else True for claim in range(5)]


def test_nothing_recorded_leaves_all_open() -> None:
    verdicts = statements.check({})
    assert [verdict.held for verdict in verdicts] == [None] * 5
    assert all("not all" in verdict.evidence for verdict in verdicts)


def test_evidence_has_the_numbers(holding: dict) -> None:
    evidence = [verdict.evidence for verdict in statements.check(holding)]
    assert evidence[BC_CLEAN] == "Goal BC 0.45, GCSL 0.05, HER 0.00, CQL+HER 0.05"
    assert evidence[BC_NOISE] == "0.45 from clean data, 0.05 from noisy data"
    assert "HER 0.00" in evidence[DDPG_WORST]
    assert "GOAT 0.55" in evidence[DDPG_WORST]  # (0.5 + 0.5 + 0.5 + 0.7) / 4
    assert evidence[CQL_INSIDE] == "upper half 1.00, lower 0.00; R20 0.05 / 0.15 / 0.75 on the three datasets"
    assert evidence[WGCSL_BETTER] == "0.40 against 0.05, 0.50 against 0.10, 0.80 against 0.30"


def test_claims_are_sentences_and_differ(holding: dict) -> None:
    claims = [verdict.claim for verdict in statements.check(holding)]
    assert len(set(claims)) == len(claims) == 5
    assert all(len(claim) > 20 for claim in claims)
