"""An algorithm whose numbers change gets a new revision: its old records must not pass for new."""

from __future__ import annotations

import copy
import dataclasses
import json

import pytest

from goatrl import algorithms
from goatrl.algorithms import registry
from goatrl.learn.agent import Agent
from goatrl.learn.parameters import chosen
from goatrl.types import Settings, pytree
from golden.compositions import PATH, compositions


def part(name: str) -> str:
    return name.rpartition(".")[0]


def check(name: str, golden: dict, found: dict) -> None:
    """A number may be new, in a part that was there before, if it is at its default."""
    if golden["revision"] != found["revision"]:
        return
    before, now = golden["numbers"], found["numbers"]
    other = [each for each, value in before.items() if now.get(each, "gone") != value]
    set_now = chosen(algorithms.get(name).build(Settings()))
    parts = {part(each) for each in before}
    new = [each for each in now.keys() - before if each in set_now or part(each) not in parts]
    assert not other + new, (
        f"{name} changed: raise its revision ({', '.join(other + new)}); or, if it computes the "
        "same as before, run python tests/golden/compositions.py"
    )


@pytest.mark.parametrize("name", compositions())
def test_an_algorithm_that_changes_has_another_revision(name: str) -> None:
    golden = json.loads(PATH.read_text())
    assert name in golden, f"{name} is new: run python tests/golden/compositions.py"
    check(name, golden[name], compositions()[name])


def test_gofars_penalty_is_its_second_revision() -> None:
    later = {name for name, entry in algorithms.entries().items() if entry.revision > 1}
    assert later == {"gofar", "gofar_her"}


@pytest.fixture
def goat() -> dict:
    return compositions()["goat"]


def rebuilt(monkeypatch: pytest.MonkeyPatch, kind: type[Agent]) -> dict:
    """GOAT as an agent of another version."""
    entry = algorithms.get("goat")

    def build(settings: Settings) -> Agent:
        agent = entry.build(settings)
        return kind(**{f.name: getattr(agent, f.name) for f in dataclasses.fields(Agent)})

    monkeypatch.setitem(registry._ENTRIES, "goat", dataclasses.replace(entry, build=build))
    return compositions()["goat"]


def test_another_number_fails_with_advice(goat: dict) -> None:
    other = copy.deepcopy(goat)
    other["numbers"]["discount"] = 0.99
    with pytest.raises(AssertionError, match=r"goat changed: raise its revision \(discount\)"):
        check("goat", goat, other)
    del other["numbers"]["discount"]
    with pytest.raises(AssertionError, match="goat changed: raise its revision"):
        check("goat", goat, other)
    check("goat", goat, other | {"revision": goat["revision"] + 1})


def test_a_new_part_fails(goat: dict) -> None:
    other = copy.deepcopy(goat)
    other["numbers"]["novelty.w"] = 1.0
    with pytest.raises(AssertionError, match=r"raise its revision \(novelty\.w\)"):
        check("goat", goat, other)


def test_a_new_number_at_its_default_does_not_fail(
    monkeypatch: pytest.MonkeyPatch, goat: dict
) -> None:
    @pytree
    class Longer(Agent):
        patience: float = 3.0

    found = rebuilt(monkeypatch, Longer)
    assert found["numbers"] == goat["numbers"] | {"patience": 3.0}
    check("goat", goat, found)


def test_a_revision_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_ENTRIES", {})

    @algorithms.register("Mine", revision=3)
    def mine(settings: Settings) -> Agent:
        """Mine."""
        raise NotImplementedError

    @algorithms.register("Other")
    def other(settings: Settings) -> Agent:
        """Other."""
        raise NotImplementedError

    assert [entry.revision for entry in algorithms.entries().values()] == [3, 1]
