"""Hyper-parameters by name: list, override, stack."""

from __future__ import annotations

import json

import jax
import numpy as np
import pytest

from goatrl import algorithms
from goatrl.algorithms import registry
from goatrl.learn.agent import Agent
from goatrl.learn.parameters import chosen, described, hyperparameters, override, stack
from goatrl.learn.policies import DDPGObjective, WeightedBC
from goatrl.learn.values import CQLPenalty, DualValue, QEnsemble
from goatrl.learn.weights import RND, ExpAdvantage, PercentileSelection, Uncertainty
from goatrl.types import GoatError, Settings, pytree

NAMES = sorted(algorithms.entries())


@pytest.fixture
def agent() -> Agent:
    return Agent(WeightedBC((ExpAdvantage(), Uncertainty())), QEnsemble(2, penalty=CQLPenalty()))


def test_names_and_values_in_the_order_in_which_they_are_written(agent):
    assert list(hyperparameters(agent).items()) == [
        ("exp_advantage.beta", 2.0),
        ("exp_advantage.clip", 10.0),
        ("uncertainty.w", 2.0),
        ("uncertainty.minimum", 0.5),
        ("uncertainty.tanh", True),
        ("uncertainty.capacity", 10_000),
        ("weighted_bc.loss", "square"),
        ("q_ensemble.size", 2),
        ("q_ensemble.tau", None),
        ("cql_penalty.alpha", 1.0),
        ("cql_penalty.actions", 20),
        ("hindsight.probability", 1.0),
        ("hindsight.passed", None),
        ("hindsight.random", None),
        ("architecture.hidden", (256, 256, 256)),
        ("architecture.activation", "relu"),
        ("architecture.layer_norm", False),
        ("architecture.inputs", "absolute"),
        ("architecture.achieved", None),
        ("architecture.positions", None),
        ("architecture.vertical", None),
        ("architecture.policies", 1),
        ("discount", 0.98),
        ("learning_rate", 5e-4),
        ("polyak", 0.95),
        ("target_period", 20),
        ("averaging", None),
        ("optimizer", "adam"),
        ("symmetry", ""),
    ]


def test_missing_parts_have_no_names():
    assert list(hyperparameters(Agent(WeightedBC(), None))) == [
        "weighted_bc.loss",
        "hindsight.probability",
        "hindsight.passed",
        "hindsight.random",
        "architecture.hidden",
        "architecture.activation",
        "architecture.layer_norm",
        "architecture.inputs",
        "architecture.achieved",
        "architecture.positions",
        "architecture.vertical",
        "architecture.policies",
        "discount",
        "learning_rate",
        "polyak",
        "target_period",
        "averaging",
        "optimizer",
        "symmetry",
    ]


def test_part_names_of_abbreviations():
    names = hyperparameters(Agent(WeightedBC((RND(), PercentileSelection())), DualValue()))
    assert {"rnd.w", "percentile_selection.scale", "dual_value.reward"} <= set(names)


@pytest.mark.parametrize("name", NAMES)
def test_every_number_of_every_algorithm_has_a_name_of_its_own(name):
    # Each float gets a value that no other has; a name used twice, or a number without a name,
    # loses one of them.
    leaves, structure = jax.tree.flatten(algorithms.get(name).build(Settings()))
    marks = [index + 0.5 for index in range(len(leaves))]
    listed = hyperparameters(jax.tree.unflatten(structure, marks))
    assert sorted(value for value in listed.values() if isinstance(value, float)) == marks


@pytest.mark.parametrize("name", NAMES)
def test_override_changes_each_number_and_no_other(name):
    algorithm = algorithms.get(name).build(Settings())
    before = hyperparameters(algorithm)
    for key, value in before.items():
        if isinstance(value, float):
            assert hyperparameters(override(algorithm, {key: value + 0.25})) == before | {
                key: value + 0.25
            }


@pytest.mark.parametrize("name", NAMES)
def test_override_with_the_own_numbers_changes_nothing(name):
    algorithm = algorithms.get(name).build(Settings())
    numbers = {key: value for key, value in hyperparameters(algorithm).items() if value is not None}
    assert override(algorithm, numbers) == algorithm
    texts = {
        key: ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
        for key, value in numbers.items()
    }
    assert override(algorithm, texts) == algorithm
    as_read = json.loads(json.dumps(numbers))  # a tuple comes back as a list
    assert override(algorithm, as_read) == algorithm


def test_override_takes_text_and_converts_it_to_the_type_in_place(agent):
    changed = override(
        agent,
        {
            "learning_rate": "1e-3",
            "q_ensemble.size": "7",
            "q_ensemble.tau": "0.3",
            "uncertainty.tanh": "False",
            "hindsight.probability": 1,
            "architecture.hidden": "64,32",
        },
    )
    assert (changed.learning_rate, changed.value.size, changed.value.tau) == (1e-3, 7, 0.3)
    assert changed.policy.weights[1].tanh is False
    assert isinstance(changed.value.size, int)
    assert isinstance(changed.sampler.probability, float)
    assert changed.architecture.hidden == (64, 32)


def test_override_of_a_choice():
    changed = override(Agent(WeightedBC(), DualValue()), {"dual_value.reward": "binary"})
    assert changed.value == DualValue(reward="binary")


def test_override_leaves_the_original_alone(agent):
    override(agent, {"uncertainty.w": 1.5, "cql_penalty.alpha": 0.1})
    assert agent.policy.weights[1].w == 2.0
    assert agent.value.penalty.alpha == 1.0


def test_override_of_nothing_is_the_same(agent):
    assert override(agent, {}) == agent


def test_a_mistyped_name_suggests_the_nearest(agent):
    with pytest.raises(
        GoatError, match=r"unknown hyper-parameter 'uncertainty.v'; did you mean .*uncertainty\.w"
    ):
        override(agent, {"uncertainty.v": 1.0})


def test_a_name_of_another_part_lists_what_is_known(agent):
    with pytest.raises(GoatError, match=r"unknown hyper-parameter 'zzz'; known: .*learning_rate"):
        override(agent, {"zzz": 1.0})


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("learning_rate", "fast", "float"),
        ("q_ensemble.tau", "low", "float"),
        ("q_ensemble.size", "2.5", "int"),
        ("q_ensemble.size", 2.5, "int"),
        ("q_ensemble.size", "many", "int"),
        ("uncertainty.tanh", "maybe", "bool"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused(agent, name, value, kind):
    with pytest.raises(GoatError, match=rf"hyper-parameter {name} must be a {kind}, not '{value}'"):
        override(agent, {name: value})


def test_stack_puts_floats_on_a_leading_axis_and_keeps_the_rest():
    agents = [
        Agent(DDPGObjective(c), QEnsemble(3), learning_rate=rate)
        for c, rate in ((0.0, 1e-3), (5.0, 1e-4))
    ]
    stacked = stack(agents)
    np.testing.assert_allclose(stacked.policy.pessimism, [0.0, 5.0])
    np.testing.assert_allclose(stacked.learning_rate, [1e-3, 1e-4], rtol=1e-6)
    np.testing.assert_allclose(stacked.discount, [0.98, 0.98], rtol=1e-6)
    assert stacked.learning_rate.dtype == np.float32
    assert (stacked.value.size, stacked.target_period) == (3, 20)


def test_a_stack_of_one_still_has_the_axis(agent):
    assert {leaf.shape for leaf in jax.tree.leaves(stack([agent]))} == {(1,)}


@pytest.mark.parametrize(
    "other",
    [
        Agent(
            WeightedBC((ExpAdvantage(), Uncertainty())), QEnsemble(3, penalty=CQLPenalty())
        ),  # another size
        Agent(
            WeightedBC((ExpAdvantage(), Uncertainty())),
            QEnsemble(2, tau=0.3, penalty=CQLPenalty()),
        ),  # a number where none was
        Agent(WeightedBC((ExpAdvantage(), Uncertainty())), QEnsemble(2)),  # a part less
        Agent(
            WeightedBC((ExpAdvantage(), RND())), QEnsemble(2, penalty=CQLPenalty())
        ),  # another part
        Agent(
            WeightedBC((ExpAdvantage(), Uncertainty())),
            QEnsemble(2, penalty=CQLPenalty()),
            target_period=5,
        ),
    ],
    ids=["size", "tau", "fewer", "part", "target_period"],
)
def test_stacking_different_structures_is_refused(agent, other):
    with pytest.raises(GoatError, match="only compositions that differ in nothing but float"):
        stack([agent, other])


def test_numbers_at_their_default_are_told_apart(agent):
    assert chosen(agent) == {"q_ensemble.size": 2}
    changed = override(
        agent, {"uncertainty.w": 3.0, "q_ensemble.tau": 0.3, "hindsight.probability": 0.5}
    )
    assert chosen(changed) == {
        "uncertainty.w": 3.0,
        "q_ensemble.size": 2,
        "q_ensemble.tau": 0.3,
        "hindsight.probability": 0.5,
    }
    as_json_has_them = json.loads(json.dumps(hyperparameters(changed)))
    assert described(changed)["hyperparameters"] == as_json_has_them
    assert set(described(changed)["defaults"]) == hyperparameters(changed).keys() - chosen(changed)


def test_the_default_of_a_part_is_that_of_the_field_that_holds_it():
    @pytree
    class Noise:
        scale: float = 1.0

    @pytree
    class Mine(Agent):
        noise: Noise = Noise(0.5)
        more: tuple[Noise, ...] = ()

    def of(noise):
        return chosen(Mine(WeightedBC(), None, noise=noise))

    assert (of(Noise(0.5)), of(Noise(1.0))) == ({}, {"noise.scale": 1.0})


OWN_FILE = """
import dataclasses
from typing import Optional, Union
from goatrl.algorithms import register
from goatrl.learn.agent import Agent, weighted_regression
from goatrl.types import pytree, static

@pytree
class Mine:
    needs_value = False
    beta: float = 1.0
    maybe: Optional[float] = None
    either: Union[int, None] = static(default=3)
    steps: int = static(default=2)
    sure: bool = static(default=False)
    word: str = static(default="a")
    anything: object = 1.0

    def init(self, key, spec, architecture):
        return ()

@register("Own")
def {name}(settings):
    'Own.'
    return weighted_regression(settings, Mine())
"""


@pytest.mark.parametrize("first", ["", "from __future__ import annotations\n"])
def test_types_are_those_of_the_users_file_however_it_writes_them(tmp_path, first, monkeypatch):
    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))
    (tmp_path / "own.py").write_text(first + OWN_FILE.replace("{name}", "own"))
    algorithm = algorithms.load_file(tmp_path / "own.py").build(Settings())
    assert hyperparameters(algorithm)["mine.maybe"] is None
    asked_for = {
        "beta": ("1.5", 1.5),
        "maybe": ("0.25", 0.25),
        "either": ("7", 7),
        "steps": ("5", 5),
        "sure": ("true", True),
        "word": ("b", "b"),
        "anything": ("2.5", 2.5),
    }
    changed = override(algorithm, {f"mine.{name}": text for name, (text, _) in asked_for.items()})
    for name, (_, value) in asked_for.items():
        found = hyperparameters(changed)[f"mine.{name}"]
        assert (found, type(found)) == (value, type(value))
    assert hyperparameters(override(changed, {"mine.maybe": "none"}))["mine.maybe"] is None
    for name, text in (("beta", "none"), ("steps", "1.5"), ("sure", "1"), ("either", "x")):
        with pytest.raises(GoatError, match=rf"mine\.{name} must be a \w+, not '{text}'"):
            override(changed, {f"mine.{name}": text})


def test_an_annotation_that_cannot_be_evaluated_is_read_as_text():
    @pytree
    class Mine(Agent):
        other: Missing | None = None  # noqa: F821
        beta: float | None = None

    agent = Mine(WeightedBC(), None)
    assert override(agent, {"beta": "1.5"}).beta == 1.5
    assert "other" not in hyperparameters(agent)
