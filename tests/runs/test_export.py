"""Exported policies act as they do in JAX, whatever traced them, and files hold nothing else."""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import onnxruntime
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import goatrl
from goatrl import algorithms, tasks
from goatrl.data import of_group
from goatrl.data.problems import open_problem
from goatrl.evaluation.summary import per_task
from goatrl.experiments import agents as benchmark
from goatrl.experiments import export as cards
from goatrl.experiments.loading import load, load_policy
from goatrl.experiments.records import Cell, CellConfig, Training, add
from goatrl.learn import normalize
from goatrl.learn.networks import view_of
from goatrl.learn.normalize import Normalizer
from goatrl.learn.parameters import described, override
from goatrl.runs import export, graph, numpy_policy, onnx_policy
from goatrl.runs.folder import Agents
from goatrl.runs.offline import Run, configure
from goatrl.training.offline import Members, init, prune_to_policy
from goatrl.types import ActionBounds, GoatError, Settings, Spec
from helpers import ROOT, acting, linear, own_algorithms

pytestmark = pytest.mark.usefixtures("few_percentiles")

FORMATS = ("onnx", "numpy")
# Every robot family: Reach; Push, PickAndPlace and Slide; the hand; the point; OGBench's arm.
SPECS = sorted({group.spec for group in tasks.groups().values()}, key=str)
SIZES = {
    f"{spec.observation_dim}/{spec.goal_dim}/{spec.action_dim}": dataclasses.replace(
        spec, horizon=49, goal_threshold=0.05
    )
    for spec in SPECS
}
ODD = Spec(5, 3, 2, 7, 0.1)
SMALL = (16, 16)
FILES = {"relay": ROOT / "examples" / "relay.py"}
POINT = "pointreach-expert-10"


def some(spec: Spec, algorithm, seeds: tuple[int, ...] = (0,)) -> Agents:
    """Agents that only act, in which no two numbers are alike, and none is at rest: neither biases
    nor scales.
    """
    rng = np.random.default_rng(1)
    members: Members = [(algorithm, seed) for seed in seeds]
    like = jax.eval_shape(lambda: init(members, spec))
    like = prune_to_policy(algorithm, spec, like)

    def drawn(leaf: jax.ShapeDtypeStruct) -> jax.Array:
        spread = leaf.shape[-2] ** -0.5 if len(leaf.shape) == 3 else 0.3
        return jnp.float32(rng.normal(0, spread, leaf.shape))

    known = Normalizer(
        *(
            jnp.float32(numbers)
            for size in (spec.observation_dim, spec.goal_dim)
            for numbers in (
                rng.normal(0, 5, (len(seeds), size)),
                rng.uniform(0.1, 3.0, (len(seeds), size)),
            )
        )
    )
    view = view_of(algorithm)
    ends = (np.full((len(seeds), spec.goal_dim), end) for end in (-0.5, 0.5))
    known = normalize.bounded(known, view, *ends)
    state = dataclasses.replace(
        jax.tree.map(drawn, like), normalizer=known, step=jnp.zeros(len(seeds), jnp.int32)
    )
    return Agents(Path("nowhere"), "Some", members, state, spec, None)


def built(name: str, **numbers):
    with own_algorithms():
        entry = algorithms.load_file(FILES[name]) if name in FILES else algorithms.get(name)
    known = {"architecture.hidden": SMALL, **numbers}
    return override(entry.build(Settings()), known)


def module_at(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("exported", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def runs(content: bytes, format: str, folder: Path) -> Callable[..., np.ndarray]:
    """A policy as a robot runs it, with none of our code."""
    if format == "numpy":
        path = folder / "exported.py"
        path.write_bytes(content)
        return module_at(path).act
    session = onnxruntime.InferenceSession(content)
    return lambda observation, goal: session.run(
        ["action"], {"observation": np.float32(observation), "goal": np.float32(goal)}
    )[0]


def inputs(spec: Spec, rows: int = 500, seed: int = 7) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    spread = rng.choice([1.0, 5.0, 50.0], size=(rows, 1))
    sizes = spec.observation_dim, spec.goal_dim
    observation, goal = (spread * rng.normal(size=(rows, size)) for size in sizes)
    return observation.astype(np.float32), goal.astype(np.float32)


def assert_same(agents: Agents, seed: int, format: str, folder: Path) -> export.Exported:
    made = export.export(agents, seed, format)
    assert made.difference <= export.TOLERANCE
    pair = inputs(agents.spec)
    expected = agents.policy(seed)(*pair)
    found = runs(made.content, format, folder)(*pair)
    assert (found.shape, found.dtype) == (expected.shape, np.float32)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    assert np.abs(expected).max() > 0.1, "it does act"
    return made


@pytest.mark.parametrize("name", [*sorted(algorithms.entries()), *FILES])
def test_every_algorithm(name: str, tmp_path: Path) -> None:
    agents = some(ODD, built(name))
    for format in FORMATS:
        assert_same(agents, 0, format, tmp_path)


@pytest.mark.parametrize("name", ["goat", "hiql", "relay"])  # one network acts, or two, or a user's
def test_every_robot(name: str, tmp_path: Path) -> None:
    algorithm = built(name)
    for spec in SIZES.values():
        agents = some(spec, algorithm)
        for format in FORMATS:
            assert_same(agents, 0, format, tmp_path)


def test_the_robots_are_those_of_the_paper_and_of_ogbench() -> None:
    assert set(SIZES) == {"2/2/2", "10/3/4", "25/3/4", "63/15/20", "28/3/5"}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    "numbers",
    [
        {"policies": 3},
        {"inputs": "difference", "achieved": (0, 2, 1)},
        {"inputs": "goal-frame", "achieved": (4, 0, 2)},
        {"inputs": "goal-frame", "achieved": (5, 0, 2), "positions": (1, 3, 6)},
        {"inputs": "upright-frame", "achieved": (4, 0, 2), "vertical": (2,)},
        {
            "inputs": "bounded-frame",
            "achieved": (4, 0, 2),
            "positions": (1, 3, 6),
            "vertical": (2,),
        },
        *({"activation": each} for each in ("gelu", "tanh", "silu")),
        *({"activation": each, "layer_norm": True} for each in ("relu", "gelu", "tanh", "silu")),
        {"inputs": "difference", "achieved": (1, 2, 0), "layer_norm": True, "hidden": (32,)},
    ],
    ids=lambda numbers: " ".join(map(str, numbers.values())),
)
def test_views_activations_and_norms(numbers: dict, format: str, tmp_path: Path) -> None:
    spec = dataclasses.replace(ODD, observation_dim=7)
    architecture = {f"architecture.{name}": value for name, value in numbers.items()}
    assert_same(some(spec, built("goat", **architecture)), 0, format, tmp_path)


@pytest.mark.parametrize("format", FORMATS)
def test_numbers_computed_by_hand(format: str, tmp_path: Path) -> None:
    """tanh(0.5 s − 2 g + 0.25) of what is normalised and clipped at 10."""
    algorithm = built("bc")
    network = linear(0.5, -2.0, bias=0.25)
    state = acting(policy=jax.tree.map(lambda leaf: leaf[None], network))
    known = Normalizer(*(jnp.float32([[each]]) for each in (1.0, 2.0, -3.0, 4.0)))
    state = dataclasses.replace(state, normalizer=known, step=jnp.zeros(1, jnp.int32))
    agents = Agents(Path("nowhere"), "", [(algorithm, 0)], state, Spec(1, 1, 1, 1, 1.0), None)
    act = runs(export.export(agents, 0, format).content, format, tmp_path)
    # (3 − 1) / 2 = 1, (−1 + 3) / 4 = 0.5: 0.5 − 1 + 0.25
    # (201 − 1) / 2 = 100, clipped to 10, (7 + 3) / 4 = 2.5: 5 − 5 + 0.25
    # (−3 − 1) / 2 = −2, (−1003 + 3) / 4 = −250, clipped to −10: −1 + 20 + 0.25
    found = act(np.array([[3.0], [201.0], [-3.0]]), np.array([[-1.0], [7.0], [-1003.0]]))
    np.testing.assert_allclose(found[:, 0], np.tanh([-0.25, 0.25, 19.25]), atol=1e-6)


@pytest.mark.parametrize("format", FORMATS)
def test_actions_are_in_the_units_of_the_data(format: str, tmp_path: Path) -> None:
    spec = Spec(observation_dim=3, goal_dim=2, action_dim=2, horizon=5, goal_threshold=0.1)
    native = some(spec, built("bc"))
    wide = dataclasses.replace(native, action_bounds=ActionBounds((0.0, -5.0), (10.0, 15.0)))
    acts = {
        agents.action_bounds: runs(export.export(agents, 0, format).content, format, tmp_path)
        for agents in (native, wide)
    }
    seen = inputs(spec)
    expected = np.array([5.0, 5.0]) + np.array([5.0, 10.0]) * acts[None](*seen)
    np.testing.assert_allclose(acts[wide.action_bounds](*seen), expected, atol=2e-5)
    np.testing.assert_allclose(wide.policy(0)(*seen), expected, atol=2e-5)


@pytest.mark.parametrize("format", FORMATS)
def test_any_number_of_rows(format: str, tmp_path: Path) -> None:
    agents = some(ODD, built("goat"), seeds=(4, 9))
    contents = [export.export(agents, seed, format).content for seed in (4, 9)]
    act = runs(contents[1], format, tmp_path)
    pair = inputs(ODD, rows=6)
    whole = act(*pair)
    np.testing.assert_allclose(whole, agents.policy(9)(*pair), atol=1e-5)
    assert np.abs(whole - agents.policy(4)(*pair)).max() > 0.01, "seeds differ"
    for row in range(6):
        one = act(*(each[row : row + 1] for each in pair))
        np.testing.assert_allclose(one, whole[row : row + 1], atol=1e-6)
    assert act(*(each[:0] for each in pair)).shape == (0, 2)
    assert export.export(agents, 9, format).content == contents[1] != contents[0]


def test_the_module_takes_one_pair_or_a_batch(tmp_path: Path) -> None:
    agents = some(ODD, built("goat"))
    path = tmp_path / "policy.py"
    path.write_bytes(export.export(agents, 0, "numpy").content)
    module = module_at(path)
    assert (module.OBSERVATION_DIM, module.GOAL_DIM, module.ACTION_DIM) == (5, 3, 2)
    observations, goals = inputs(ODD, rows=3)
    one = module.act(observations[1].astype(float), goals[1].tolist())
    assert (one.shape, one.dtype) == ((2,), np.float32)
    np.testing.assert_allclose(one, module.act(observations, goals)[1], atol=1e-6)
    for bad in (
        (observations, goals[0]),
        (observations[0], goals),
        (observations, goals[:2]),
        (observations[:, :4], goals),
        (observations, goals[:, :2]),
        (observations[None], goals[None]),
        (0.0, 0.0),
    ):
        with pytest.raises(ValueError, match="needs 5 numbers and a goal 3"):
            module.act(*bad)


def test_the_module_needs_nothing_but_numpy(tmp_path: Path) -> None:
    agents = some(ODD, built("goat", **{"architecture.activation": "gelu"}))
    path = tmp_path / "policy.py"
    path.write_bytes(export.export(agents, 0, "numpy").content)
    tree = ast.parse(path.read_text(), feature_version=(3, 8))
    imported = {
        name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names
    }
    assert imported == {"base64", "math", "numpy"}
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    called = {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not called & {"exec", "eval", "compile", "open", "__import__"}
    code = (
        "import sys\n"
        "for name in ('jax', 'jaxlib', 'goatrl', 'onnx', 'scipy', 'pickle5'):\n"
        "    sys.modules[name] = None\n"  # whoever imports it fails
        "import policy\n"
        "print(policy.act([0.0] * 5, [1.0] * 3).tolist())\n"
    )
    found = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    expected = agents.policy(0)(np.zeros(5), np.ones(3))
    np.testing.assert_allclose(json.loads(found.stdout), expected, atol=1e-5)


def test_the_graph_says_what_it_is() -> None:
    made = export.export(some(ODD, built("goat"), seeds=(3,)), 3, "onnx")
    assert made.checked_with == "onnxruntime"
    model = onnx.load_from_string(made.content)
    onnx.checker.check_model(model, full_check=True)
    assert {prop.key: prop.value for prop in model.metadata_props} == {
        "goatrl": goatrl.__version__,
        "algorithm": "Some",
        "seed": "3",
        "updates": "0",
        "observation_dim": "5",
        "goal_dim": "3",
        "action_dim": "2",
        "opset": "17",
    }
    assert [(each.domain, each.version) for each in model.opset_import] == [("", 17)]
    shapes = {
        value.name: [each.dim_param or each.dim_value for each in value.type.tensor_type.shape.dim]
        for value in (*model.graph.input, *model.graph.output)
    }
    assert shapes == {
        "observation": ["batch", 5],
        "goal": ["batch", 3],
        "action": ["batch", 2],
    }
    # Normalised, clipped, two hidden layers and one more; nothing of the critics.
    ops = [node.op_type for node in model.graph.node]
    assert ops == [
        *["Sub", "Div", "Max", "Min"] * 2,
        "Concat",
        *["MatMul", "Add", "Max"] * 2,
        *["MatMul", "Add", "Tanh", "Identity"],
    ]


LABEL = "'''\"\"\"\n{0}\\ import os; os.abort() #"


def test_a_label_is_only_text(tmp_path: Path) -> None:
    agents = dataclasses.replace(some(ODD, built("bc")), label=LABEL)
    path = tmp_path / "policy.py"
    path.write_bytes(export.export(agents, 0, "numpy").content)
    assert module_at(path).ABOUT["algorithm"] == LABEL
    assert "import os" not in path.read_text().replace(repr(LABEL), "")


# Programs of users: every operation that is translated, and some that are not.
WEIGHTS = np.random.default_rng(0).normal(size=(4, 8, 2)).astype(np.float32)


def _ensemble(s, g):
    return jnp.tanh(jnp.einsum("bi,nij->bnj", jnp.concatenate([s, g], 1), WEIGHTS).mean(1))


def _branches(s, g):
    exact = jax.nn.gelu(s[:, 2:4], approximate=False)
    chosen = jnp.where(s[:, :2] > g[:, 1:], exact, jax.nn.softplus(g[:, :2]))
    outside = (s[:, :2] >= 0.5) | ~((s[:, 1:3] <= 0.1) & (g[:, :2] < 0.3))
    return jnp.where(outside, chosen, jnp.where(jnp.array([True, False])[None], -s[:, :2], 2.0))


def _rows_of_constants(s, g):
    ones = jnp.ones((s.shape[0], 1)) * 3.0
    return jnp.concatenate([ones, jnp.sin(s[:, :1])], 1) + jnp.sum(ones * 2.0, 1, keepdims=True)


def _softmax_and_stride(s, g):
    wide = jnp.broadcast_to(g[:, :1], (s.shape[0], 2))
    return jax.nn.softmax(s, axis=-1)[:, 1:5:3] + jnp.concatenate([wide, s], 1)[:, 1:3]


def _columns(s, g):
    norm = jnp.linalg.norm(s + 1.0, axis=1)
    return jnp.stack([s[:, 0] * g[:, -1], norm + s[:, np.array([3, 1])].min(1)], 1)


def _smooth(s, g):
    first, second, _ = jnp.split(s, [2, 4], axis=1)
    inner = jax.checkpoint(
        lambda x: jnp.cos(x) ** 3 + jnp.exp(-jnp.abs(x)) * jax.lax.rsqrt(x * x + 1)
    )
    sigmoid = jax.lax.stop_gradient(jax.nn.sigmoid(30 * first))
    return jnp.logaddexp(sigmoid, second) + inner(first) + jax.nn.elu(second) + (first != 0)


def _shapes(s, g):
    turned = jnp.transpose(s.reshape(-1, 5, 1), (0, 2, 1)).reshape(s.shape)
    slid = jax.lax.dynamic_slice(turned, (0, 9), (s.shape[0], 2))  # moved back to column 3
    return jax.lax.clamp(-0.5, slid, 0.5) + jnp.max(g, 1, keepdims=True) ** jnp.ones((1, 2))


def _each_row(s, g):
    return jax.vmap(lambda x, y: jnp.array([x @ x, y.max()]) @ WEIGHTS[0, :2].T)(s, g)


def _is_positive(s, g):
    return (s[:, :2] > 0).astype(jnp.float32) * jax.nn.log_sigmoid(s[:, 1:3])


OWN = (
    _ensemble,
    _branches,
    _rows_of_constants,
    _softmax_and_stride,
    _columns,
    _smooth,
    _shapes,
    _each_row,
    _is_positive,
)


def observed(program) -> tuple[graph.Graph, tuple[np.ndarray, ...], np.ndarray]:
    rng = np.random.default_rng(2)
    sizes = (50, 5), (50, 3)
    pair = tuple(rng.normal(size=size).astype(np.float32) for size in sizes)
    return graph.trace(program, ODD), pair, np.asarray(program(*pair))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("program", OWN, ids=lambda program: program.__name__)
def test_a_program_of_ones_own(program, format: str, tmp_path: Path) -> None:
    traced, pair, expected = observed(program)
    written = {"onnx": onnx_policy, "numpy": numpy_policy}[format].write(traced, ODD, {})
    found = runs(written, format, tmp_path)(*pair)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=2e-6, rtol=2e-6)


def test_every_operation_is_tried() -> None:
    tried = {node.op for program in OWN for node in observed(program)[0].nodes}
    assert tried == {*numpy_policy.EXPRESSIONS, "Concat", "Cast", "Slice"}


def test_what_nothing_depends_on_is_left_out() -> None:
    traced = graph.trace(lambda s, g: (jnp.exp(s) @ WEIGHTS[0, :5], s[:, :2])[1], ODD)
    assert [node.op for node in traced.nodes] == ["Slice", "Identity"]
    assert len(traced.constants) == 4, "starts, ends, axes and steps"


@pytest.mark.parametrize(
    ("program", "what"),
    [
        (lambda s, g: jnp.sort(s, axis=1)[:, :2], "'sort'"),
        (lambda s, g: jax.lax.fori_loop(0, 3, lambda _, x: jnp.tanh(x), s[:, :2]), "'scan'"),
        (lambda s, g: jnp.argmax(s, 1)[:, None] * jnp.ones((1, 2)), "'argmax'"),
        (lambda s, g: s[:, :2].astype(jnp.bfloat16).astype(jnp.float32), "of type bfloat16"),
        (lambda s, g: s[np.array([1, 0])][:, :2].sum() + s[:, :2], "'gather' of other than known"),
        (lambda s, g: s[:, :2] * s[:, :1].astype(int), "of type int32"),
        (lambda s, g: s[:3, :2].sum() + s[:, :2], "some of the rows"),
        (lambda s, g: s[:, :2] + np.ones((s.shape[0], 2), np.float32), "constant for every row"),
        (lambda s, g: jnp.zeros((2 * len(s), 2)).sum() + s[:, :2], "shape (2 batch, 2)"),
    ],
)
def test_what_is_not_translated_is_named(program, what: str) -> None:
    with pytest.raises(GoatError) as caught:
        graph.trace(program, ODD)
    assert str(caught.value).startswith("cannot export this policy: its action uses ")
    assert what in str(caught.value)
    assert "\n" not in str(caught.value)


def steep(agents: Agents, factor: float) -> Agents:
    """The same with larger weights: the policy magnifies all that is rounded on the way."""
    params = jax.tree.map(lambda leaf: factor * leaf, agents.state.params)
    return dataclasses.replace(agents, state=dataclasses.replace(agents.state, params=params))


def off_by(agents: Agents, distance: float) -> Callable[..., np.ndarray]:
    policy = agents.policy(0)
    return lambda *pair: policy(*pair) + np.float32(distance)


def test_a_difference_is_refused() -> None:
    agents = some(ODD, built("bc"))
    assert export._compare(off_by(agents, 9e-6), agents, 0) == pytest.approx(9e-6, rel=0.02)
    with pytest.raises(GoatError, match=r"differs from JAX by 2\.0e-05, which rounding does not"):
        export._compare(off_by(agents, 2e-5), agents, 0)


def test_rounding_that_a_steep_policy_magnifies_is_not() -> None:
    agents = steep(some(ODD, built("bc")), 6.0)
    assert 1e-5 < export.export(agents, 0, "numpy").difference < 1e-4
    with pytest.raises(GoatError, match=r"differs from JAX by 1\.1e-04"):
        export._compare(off_by(agents, 1.1e-4), agents, 0)


def test_an_agent_that_is_not_a_number_is_refused() -> None:
    agents = some(ODD, built("bc"))
    with pytest.raises(GoatError, match="differs from JAX by nan"), np.errstate(all="ignore"):
        export.export(steep(agents, float("nan")), 0, "numpy")


def test_inputs_are_known_ones_and_clipped_ones() -> None:
    known = Normalizer(*(jnp.float32(each) for each in ([5.0, -2.0], [2.0, 0.1], [3.0], [0.5])))
    observations, goals = export._inputs(known)
    assert (observations.shape, goals.shape) == ((10_000, 2), (10_000, 1))
    for values, mean, std in ((observations, [5.0, -2.0], [2.0, 0.1]), (goals, [3.0], [0.5])):
        normal = (values - mean) / std
        clipped = np.abs(normal) > 10
        assert 0.45 < clipped[0::2].mean() < 0.55, "P(|z| > 10 / 15) = 0.505"
        assert not clipped[1::2].any()
        np.testing.assert_allclose(normal[1::2].std(axis=0), 1.0, atol=0.05)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two agents of a run, trained for a moment and evaluated, with success by chance."""
    folder = tmp_path_factory.mktemp("export") / "run"
    agents = goatrl.train(
        "goat",
        goatrl.load_dataset(POINT),
        seeds=(0, 2),
        updates=8,
        set={"architecture.hidden": SMALL},
        out=folder,
    )
    rows = goatrl.evaluate(agents)
    chance = np.where(rows.column("seed").to_numpy() == 2, 0.7, 0.3)
    success = pa.array(np.random.default_rng(0).random(len(chance)) < chance)
    column = rows.column_names.index("success")
    rows = rows.set_column(column, "success", success)
    Run(folder).write_episodes(rows, tasks.get(POINT), agents.step)
    return folder


@pytest.mark.parametrize("format", FORMATS)
def test_a_run_becomes_a_file_and_a_card(format: str, run: Path, tmp_path: Path) -> None:
    path = tmp_path / f"policy{export.SUFFIXES[format]}"
    made = goatrl.export_policy(run, path, seed=2, format=format)
    assert (made.path, made.card) == (path, tmp_path / f"{path.name}.md")
    pair = np.float32([[1.0, 2.0], [-30.0, 4.0]]), np.float32([[9.0, -9.0], [500.0, 0.0]])
    found = runs(path.read_bytes(), format, tmp_path / "..")(*pair)
    np.testing.assert_allclose(found, load_policy(run, 2)(*pair), atol=1e-5)
    assert sorted(each.name for each in tmp_path.iterdir()) == [path.name, f"{path.name}.md"]


def test_the_card(run: Path, tmp_path: Path) -> None:
    made = goatrl.export_policy(run, tmp_path / "policy.py", seed=2, format="numpy")
    card = made.card.read_text()
    data = of_group(tasks.get(POINT))
    digest = hashlib.sha256(made.path.read_bytes()).hexdigest()
    for line in (
        "# Agent card: GOAT, seed 2",
        f"| SHA-256 | `{digest}` |",
        "| algorithm | GOAT (`goat` revision 1) |",
        "| updates | 8 |",
        f"{made.difference:.1e} (NumPy) |",
        "| `observation` | 2 |",
        f"| source | task group `{POINT}` |",
        f"| SHA-256 of its arrays | `{data.checksum()}` |",
        f"| episodes | {data.count} |",
        "| `architecture.hidden` | `[16, 16]` |",
    ):
        assert line in card, line
    assert "`architecture.activation`" not in card, "that is at its default"
    assert "`q_ensemble.size`" not in card, "GOAT has five critics, whatever others have"
    for each in per_task(pq.read_table(run / "episodes.parquet")):
        mine, low, high = each.success[1], each.success.min(), each.success.max()
        # Of two seeds, a quarter of all resamples have one of them twice.
        sure = rf"{each.success.mean():.2f} \[{low:.2f}, {high:.2f}\]"
        count = each.episodes // 2
        noise = np.sqrt(mine * (1 - mine) / (count - 1))
        row = rf"\| {each.task} \| \w+ \| {count} \| {mine:.2f} ± {noise:.2f} \| {sure} \|"
        assert re.search(row, card), (row, card)


def test_a_card_lists_what_is_unusual_for_the_algorithm_not_for_its_parts() -> None:
    numbers = {"q_ensemble.size": 2, "uncertainty.w": 2.0}
    about = {"hyperparameters": numbers, "defaults": ("q_ensemble.size",)}
    assert list(cards._settings({**about, "revisions": {"goat": 1}}))[1:] == [
        "| `q_ensemble.size` | `2` |"
    ]
    assert list(cards._settings({**about, "revisions": {"my_own": 1}}))[1:] == [
        "| `uncertainty.w` | `2.0` |"
    ]


def test_episodes_of_an_earlier_checkpoint_are_not_its_own(run: Path, tmp_path: Path) -> None:
    agents = load(run)
    later = dataclasses.replace(agents.state, step=agents.state.step + 8)
    assert cards._episodes(agents) is not None
    assert cards._episodes(dataclasses.replace(agents, state=later)) is None
    lines = "\n".join(cards._measured(dataclasses.replace(agents, state=later), 0))
    assert lines.startswith("Not measured")


def test_what_differs_leaves_no_file(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "policy.py"
    wrong = {**numpy_policy.EXPRESSIONS, "Tanh": "np.sin({0})"}
    with monkeypatch.context() as patch:
        patch.setattr(numpy_policy, "EXPRESSIONS", wrong)
        with pytest.raises(GoatError, match="so nothing was written"):
            goatrl.export_policy(run, path, format="numpy")
    assert not list(tmp_path.iterdir())
    goatrl.export_policy(run, path, format="numpy")
    before = path.read_bytes()
    monkeypatch.setattr(numpy_policy, "EXPRESSIONS", wrong)
    with pytest.raises(GoatError, match="so nothing was written"):
        goatrl.export_policy(run, path, seed=2, format="numpy")
    assert path.read_bytes() == before


def test_a_file_of_ones_own_is_not_overwritten(run: Path, tmp_path: Path) -> None:
    path = tmp_path / "policy.py"
    path.write_text("print('mine')\n")
    with pytest.raises(GoatError, match=r"policy.py is not a policy of goatrl; choose another"):
        goatrl.export_policy(run, path, format="numpy")
    assert path.read_text() == "print('mine')\n"
    path.unlink()
    first = goatrl.export_policy(run, path, seed=0, format="numpy").path.read_bytes()
    assert goatrl.export_policy(run, path, seed=2, format="numpy").path.read_bytes() != first


@pytest.mark.parametrize(
    ("name", "format", "seed", "message"),
    [
        ("policy.onnx", "onnx", 1, "has no seed 1; it has 0, 2"),
        ("policy.onnx", "onxn", 0, "unknown format 'onxn'; did you mean onnx?"),
        ("policy.onnx", "numpy", 0, r"ends in \.py \(or use the format onnx\)"),
        ("policy.py", "onnx", 0, r"ends in \.onnx \(or use the format numpy\)"),
        ("policy", "onnx", 0, r"name a file that ends in \.onnx$"),
    ],
)
def test_what_is_misspelt_is_refused(
    name: str, format: str, seed: int, message: str, run: Path, tmp_path: Path
) -> None:
    with pytest.raises(GoatError, match=message):
        goatrl.export_policy(run, tmp_path / name, seed=seed, format=format)
    assert not list(tmp_path.iterdir())


def test_without_onnx(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(GoatError, match=r"run `pip install 'goatrl\[export\]'`"):
        goatrl.export_policy(run, tmp_path / "policy.onnx")
    assert not list(tmp_path.iterdir())
    goatrl.export_policy(run, tmp_path / "policy.py", format="numpy")


def test_without_onnxruntime(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    made = goatrl.export_policy(run, tmp_path / "policy.onnx")
    assert made.checked_with == "onnx.reference"
    assert made.difference < 1e-5
    assert "(onnx.reference) |" in made.card.read_text()


def test_agents_of_a_benchmark(tmp_path: Path) -> None:
    """Without critics, and with the record beside them."""
    group = tasks.get(POINT)
    algorithm = override(
        algorithms.get("goat").build(group.settings), {"architecture.hidden": SMALL}
    )
    config = CellConfig(
        POINT,
        "goat",
        "",
        spec=group.spec,
        checksum=of_group(group).checksum(),
        evaluation=group.evaluation_checksum(),
        updates=8,
        batch_size=8,
        revisions={"goat": 1},
        **described(algorithm),
    )
    agents = some(group.spec, algorithm, seeds=(3, 5))
    training = Training((3, 5), {}, 2, 1.0)
    benchmark.save(tmp_path, config, training, agents.state)
    (file,) = (tmp_path / "agents").iterdir()
    made = goatrl.export_policy(file, tmp_path / "a.py", seed=5, format="numpy")
    pair = inputs(group.spec)
    expected = agents.policy(5)(*pair)
    np.testing.assert_allclose(module_at(made.path).act(*pair), expected, atol=1e-5)
    assert "Not measured" in made.card.read_text()
    rows = goatrl.evaluate(dataclasses.replace(agents, group=POINT))
    add(tmp_path, Cell("pointreach", "GOAT", config, (training,), rows))
    card = goatrl.export_policy(file, tmp_path / "a.py", seed=5, format="numpy").card.read_text()
    assert f"| source | task group `{POINT}` |" in card
    assert f"| R10 | mixed | 20 | {per_task(rows)[0].success[1]:.2f} ± " in card
    assert "| `architecture.hidden` | `[16, 16]` |" in card


def test_the_card_of_data_of_ones_own(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    seen = rng.normal(size=(6, 5, 2))
    path = tmp_path / "secret folder" / "mine.npz"
    path.parent.mkdir()
    np.savez(
        path,
        observations=seen,
        achieved=seen,
        actions=rng.uniform(-1, 1, (6, 4, 2)),
        goals=seen[:, -1],
    )
    problem = open_problem(None, path, 0.5)
    config = configure(
        "bc", problem, data=path, overrides={"architecture.hidden": (8,)}, updates=20
    )
    run = Run(tmp_path / "run")
    run.train(config, problem)
    card = goatrl.export_policy(run.folder, tmp_path / "a.py", format="numpy").card.read_text()
    assert "| source | `mine.npz` |" in card
    assert "secret" not in card
    assert "| episodes | 6 |" in card
    assert "Not measured" in card
    path.unlink()
    card = goatrl.export_policy(run.folder, tmp_path / "a.py", format="numpy").card.read_text()
    assert "| episodes | unknown: the data is not here |" in card


def test_the_card_of_what_learned_online() -> None:
    origin = {"group": POINT, "data": "0" * 64, "source": ""}
    tuned = {"from": origin, "by": "ddpg_her", "group": "push-left-right", "episodes": 4_000}
    lines = "\n".join(cards._data(tuned, 49, 0.05))
    assert f"| source | task group `{POINT}`, or a file in its place |" in lines
    assert "unknown: the data is not here" in lines, "its checksum is another one"
    right = {**origin, "data": of_group(tasks.get(POINT)).checksum()}
    assert f"| source | task group `{POINT}` |" in "\n".join(
        cards._data({**tuned, "from": right}, 49, 1.0)
    )
    assert "by `ddpg_her` on the tasks of `push-left-right`, 4,000 episodes" in lines
    begun = "\n".join(cards._data({**tuned, "from": "random"}, 49, 0.05))
    assert begun.startswith("None: it learned online, in simulation.")
    assert "\n".join(cards._data({"expert": "push"}, 49, 0.05)) == begun.splitlines()[0]


def test_a_dataset_of_the_robots_is_known_by_its_checksum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # where it has not been made
    group = tasks.get("push-left-right")
    known = cards.checksums()[group.name]
    assert cards._count(group.name, None, known, 0.05) == group.collection.episodes
    assert cards._count(group.name, None, "0" * 64, 0.05) is None
