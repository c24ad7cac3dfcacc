"""What a run or record is, compared across versions: what may change unnoticed, and what not."""

from __future__ import annotations

import json

import pytest

from goatrl.disk.identity import Identity, from_schema_1
from goatrl.types import GoatError

ABOUT = {
    "algorithm": "goat",
    "group": "push-left-right",
    "hyperparameters": {"learning_rate": 5e-4, "q_ensemble.size": 5, "q_ensemble.tau": None},
    "defaults": ("learning_rate", "q_ensemble.tau"),
    "revisions": {"goat": 1},
    "spec": {"horizon": 49},
    "seeds": (0, 1),
    "data": "/here/data.npz",
    "from": {"label": "GOAT", "updates": 40},
}
BESIDE = ("data", "from.label")
ONE = Identity("run", ABOUT, BESIDE)


def with_(**changes: object) -> Identity:
    return Identity("run", ABOUT | changes, BESIDE)


def with_numbers(defaults: object = ABOUT["defaults"], **changes: object) -> Identity:
    return with_(hyperparameters=ABOUT["hyperparameters"] | changes, defaults=defaults)


def test_facts_have_no_hyperparameter_at_its_default_and_nothing_that_decides_nothing() -> None:
    assert ONE.facts == {
        "algorithm": "goat",
        "group": "push-left-right",
        "hyperparameters": {"q_ensemble.size": 5},
        "revisions": {"goat": 1},
        "spec": {"horizon": 49},
        "seeds": [0, 1],
        "from": {"updates": 40},
    }


@pytest.mark.parametrize(
    ("other", "names"),
    [
        (with_(), []),
        (with_(data="/there/data.npz"), []),
        (with_(**{"from": {"label": "ours", "updates": 40}}), []),
        (with_(seeds=[0, 1]), []),  # as JSON has it
        (with_numbers((*ABOUT["defaults"], "patience"), patience=3), []),
        (with_numbers(patience=3), ["hyperparameters.patience"]),
        (with_numbers(learning_rate=1e-3), ["hyperparameters.learning_rate"]),
        (with_(group="other", spec={"horizon": 50}), ["group", "spec.horizon"]),
        (with_(**{"from": "random"}), ["from"]),
        (with_(revisions={"goat": 2}), ["revision of goat"]),
        (with_(algorithm="bc", revisions={"bc": 3}), ["algorithm"]),
        (with_(more=1), ["more"]),
        (Identity("cell", ABOUT), ["kind"]),
    ],
)
def test_differences_have_names(other: Identity, names: list[str]) -> None:
    assert ONE.diff(other) == other.diff(ONE) == names


def test_a_default_that_has_changed_is_noticed_though_it_appears_in_neither() -> None:
    changed = with_numbers(learning_rate=1e-3)
    assert changed.facts == ONE.facts
    with pytest.raises(GoatError, match=r"it has another .*hyperparameters\.learning_rate\);"):
        ONE.require(changed, "it")


def test_a_number_that_is_no_default_any_more_is_still_the_same_number() -> None:
    assert ONE.diff(with_numbers(defaults=())) == []


def test_another_revision_is_refused_by_name() -> None:
    with pytest.raises(
        GoatError,
        match=r"^it was recorded with revision 1 of goat, but this is revision 2; choose another "
        r"--out",
    ):
        ONE.require(with_(revisions={"goat": 2}, seeds=[3]), "it")
    ONE.require(ONE, "it")


def test_the_digest_is_of_what_decides() -> None:
    same = (with_(data="elsewhere"), with_numbers((*ABOUT["defaults"], "new"), new=1))
    assert {each.digest() for each in same} == {ONE.digest()}
    others = (with_(seeds=[0]), with_(revisions={"goat": 2}), Identity("cell", ABOUT, BESIDE))
    assert len({each.digest() for each in (ONE, *others)}) == 4
    turned = with_(hyperparameters=dict(reversed(ABOUT["hyperparameters"].items())))
    assert turned.digest() == ONE.digest()


def test_it_comes_back_from_json() -> None:
    stored = json.loads(json.dumps(ONE.to_json()))
    assert stored["schema"] == 2
    again = Identity.from_json(stored, "run", "FILE", BESIDE)
    assert again.diff(ONE) == []
    assert again.digest() == ONE.digest()


def test_a_newer_schema_is_refused_in_one_line() -> None:
    with pytest.raises(GoatError, match=r"^FILE was written by a newer .*schema 3; .*up to 2.*$"):
        Identity.from_json(ONE.to_json() | {"schema": 3}, "run", "FILE")


# Schema 1

OLD = {
    "from": {"algorithm": "gofar", "overrides": {"relabel": 0.5}},
    "by": "ddpg_her",
    "hyperparameters": {"relabel": 0.8, "discount": 0.98},
    "judge_every": 25,
    "judged_episodes": 100,
}


def test_schema_1_is_read_with_its_revisions_as_1_and_nothing_at_its_default() -> None:
    read = Identity.from_json({"format": 1, "config": OLD}, "curve", "FILE")
    assert read.kind == "curve"
    assert read.about["revisions"] == {"gofar": 1, "ddpg_her": 1}
    assert read.facts["hyperparameters"] == {"hindsight.probability": 0.8, "discount": 0.98}
    assert (read.about["evaluate_every"], read.about["evaluated_episodes"]) == (25, 100)
    assert "judge_every" not in read.about


@pytest.mark.parametrize(
    ("config", "names"),
    [
        ({"algorithm": "bc"}, ["bc"]),
        ({"from": "random", "by": "ddpg_her"}, ["ddpg_her"]),
        ({"from": {"algorithm": "wgcsl"}, "by": "own"}, ["wgcsl"]),
    ],
)
def test_schema_1_names_the_algorithms_that_took_part(config: dict, names: list[str]) -> None:
    assert list(from_schema_1(config | {"hyperparameters": {}})["revisions"]) == names


def test_renamed_hyperparameters_are_found_under_their_new_names() -> None:
    before = json.dumps(OLD)
    new = from_schema_1(
        OLD,
        revisions={"gofar": 2},
        defaults=("hindsight.probability",),
        renamed={"relabel": "hindsight.probability"},
    )
    assert new["hyperparameters"] == {"hindsight.probability": 0.8, "discount": 0.98}
    assert new["from"]["overrides"] == {"hindsight.probability": 0.5}
    assert new["defaults"] == ["hindsight.probability"]
    assert new["revisions"] == {"gofar": 2, "ddpg_her": 1}
    assert json.dumps(OLD) == before
