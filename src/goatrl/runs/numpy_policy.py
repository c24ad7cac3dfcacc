"""A policy as a Python module of one file that imports NumPy alone: straight-line code, and its
weights as text.
"""

from __future__ import annotations

import ast
import base64
import importlib.util
import math
import pprint
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from goatrl.runs.graph import Graph, Node, Policy
from goatrl.types import Spec

LINE = 100  # letters of text
FIRST_LINE = '"""A policy for NumPy alone, exported by goatrl.'
MODULE = (
    FIRST_LINE
    + '''

    action = act(observation, goal)

It takes one observation and goal, or a batch of them, in the units of the training data, and
returns actions in the units of its data. It normalises its inputs itself.
"""

import base64
import math

import numpy as np

OBSERVATION_DIM, GOAL_DIM, ACTION_DIM = {dims}
ABOUT = {about}


def act(observation, goal):
    """(OBSERVATION_DIM,), (GOAL_DIM,) -> (ACTION_DIM,); with a leading axis, the same for each
    row.
    """
    observation, goal = np.asarray(observation, np.float32), np.asarray(goal, np.float32)
    rows = observation.shape[:-1]
    if (
        len(rows) > 1
        or observation.shape != (*rows, OBSERVATION_DIM)
        or goal.shape != (*rows, GOAL_DIM)
    ):
        raise ValueError(
            f"an observation needs {{OBSERVATION_DIM}} numbers and a goal {{GOAL_DIM}}, but their "
            f"shapes are {{observation.shape}} and {{goal.shape}}"
        )
    action = _policy(np.atleast_2d(observation), np.atleast_2d(goal))
    return action if rows else action[0]


def _policy(observation, goal):
{steps}
    return action


def _arrays(text, shapes):
    """Numbers of single precision, one array behind the other."""
    numbers = np.frombuffer(base64.b64decode(text), "<f4").astype(np.float32)
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    return [part.reshape(shape) for part, shape in zip(np.split(numbers, ends[:-1]), shapes)]


SHAPES = {shapes}
W = _arrays(
    """
{weights}
""",
    SHAPES,
)
'''
)


def write(graph: Graph, spec: Spec, about: Mapping[str, str | int]) -> bytes:
    """The content of the file. What others wrote, such as a label, is quoted: it is data."""
    arrays = [
        name
        for name, array in graph.constants.items()
        if array.dtype == np.float32 and array.ndim > 0
    ]
    words = {name: f"W[{place}]" for place, name in enumerate(arrays)}
    words |= {name: _literal(array) for name, array in graph.constants.items() if name not in words}
    steps = [
        f"    {node.output} = {_expression(node, [words.get(name, name) for name in node.inputs])}"
        for node in graph.nodes
    ]
    numbers = b"".join(graph.constants[name].astype("<f4").tobytes() for name in arrays)
    text = base64.b64encode(numbers).decode()
    module = MODULE.format(
        dims=f"{spec.observation_dim}, {spec.goal_dim}, {spec.action_dim}",
        about="\n".join(
            ["{", *(f"    {name!r}: {value!r}," for name, value in about.items()), "}"]
        ),
        steps="\n".join(steps),
        shapes=pprint.pformat([graph.constants[name].shape for name in arrays], compact=True),
        weights="\n".join(text[first : first + LINE] for first in range(0, len(text), LINE)),
    )
    return module.encode()


def _literal(array: np.ndarray) -> str:
    if array.dtype == np.float32:
        number = float(array)
        return f"np.float32({number if math.isfinite(number) else repr(str(number))})"
    return repr(tuple(array.tolist()) if array.ndim == 1 else array.tolist())


# Each operation of a graph, as NumPy says it; {0}, {1}, … are its inputs, names its attributes.
EXPRESSIONS = {
    "Identity": "{0}",
    "Add": "{0} + {1}",
    "Sub": "{0} - {1}",
    "Mul": "{0} * {1}",
    "Div": "{0} / {1}",
    "Max": "np.maximum({0}, {1})",
    "Min": "np.minimum({0}, {1})",
    "Neg": "-{0}",
    "Abs": "np.abs({0})",
    "Exp": "np.exp({0})",
    "Log": "np.log({0})",
    "Sin": "np.sin({0})",
    "Cos": "np.cos({0})",
    "Tanh": "np.tanh({0})",
    "Sigmoid": "0.5 * np.tanh(0.5 * {0}) + 0.5",  # which cannot overflow
    "Erf": "np.vectorize(math.erf, otypes=[np.float32])({0})",
    "Sqrt": "np.sqrt({0})",
    "Reciprocal": "1 / {0}",
    "Pow": "np.power({0}, {1})",
    "Greater": "np.greater({0}, {1})",
    "GreaterOrEqual": "np.greater_equal({0}, {1})",
    "Less": "np.less({0}, {1})",
    "LessOrEqual": "np.less_equal({0}, {1})",
    "Equal": "np.equal({0}, {1})",
    "And": "np.logical_and({0}, {1})",
    "Or": "np.logical_or({0}, {1})",
    "Not": "np.logical_not({0})",
    "Where": "np.where({0}, {1}, {2})",
    "MatMul": "{0} @ {1}",
    "Einsum": "np.einsum({equation!r}, {0}, {1})",
    "Gather": "np.take({0}, {1}, axis={axis})",
    "Reshape": "np.reshape({0}, {1})",
    "Squeeze": "np.squeeze({0}, axis={1})",
    "Unsqueeze": "np.expand_dims({0}, {1})",
    "Transpose": "np.transpose({0}, {perm})",
    "Expand": "np.broadcast_to({0}, {1})",
    "Shape": "np.shape({0})[{start}:{end}]",
    "ReduceSum": "np.sum({0}, axis={1})",
    "ReduceMax": "np.max({0}, axis=tuple({axes}))",
    "ReduceMin": "np.min({0}, axis=tuple({axes}))",
}


def _expression(node: Node, inputs: Sequence[str]) -> str:
    if node.op == "Concat":
        return f"np.concatenate(({', '.join(inputs)}), axis={node.attributes['axis']})"
    if node.op == "Cast":
        return f"{inputs[0]}.astype(np.{'bool_' if node.attributes['to'] == 'BOOL' else 'float32'})"
    if node.op == "Slice":
        starts, ends, axes, steps = map(ast.literal_eval, inputs[1:])
        parts = [":"] * (max(axes) + 1)
        for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
            parts[axis] = f"{start}:{end}" if step == 1 else f"{start}:{end}:{step}"
        return f"{inputs[0]}[{', '.join(parts)}]"
    return EXPRESSIONS[node.op].format(*inputs, **node.attributes)


def run(content: bytes) -> Policy:
    """As Python imports it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.py"
        path.write_bytes(content)
        spec = importlib.util.spec_from_file_location("policy", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    policy: Policy = module.act
    return policy
