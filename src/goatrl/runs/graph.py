"""What an agent does as a list of array operations, named as in ONNX, so that it can leave JAX.

The list is translated from the program that JAX traces, whatever algorithm wrote it: primitives of
`jax.lax` on the left, operations of ONNX on the right. What does not depend on the inputs is
computed here and becomes a constant.
"""

from __future__ import annotations

import dataclasses
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Literal

from goatrl.types import GoatError, Spec

BATCH = "batch"
ROWS = 10_007  # with which a program is traced: a prime, so that no other size is a multiple of it
INPUTS = ("observation", "goal")
OUTPUT = "action"
Policy = Callable[[np.ndarray, np.ndarray], np.ndarray]
Shape = tuple[int | str, ...]  # a text is a size that is known only when the policy runs


@dataclasses.dataclass(frozen=True)
class Node:
    op: str
    inputs: tuple[str, ...]
    output: str
    attributes: Mapping[str, Any]


@dataclasses.dataclass(frozen=True, eq=False)
class Graph:
    """Nodes in the order in which they run, from `INPUTS` to `OUTPUT`."""

    nodes: tuple[Node, ...]
    constants: Mapping[str, np.ndarray]


def trace(act: Callable[[jax.Array, jax.Array], jax.Array], spec: Spec) -> Graph:
    """The graph of act(observation, goal) → action, for any number of rows."""
    sizes = spec.observation_dim, spec.goal_dim
    program = jax.make_jaxpr(act)(*(jnp.zeros((ROWS, size)) for size in sizes))
    translation = _Translation()
    with jax.default_matmul_precision("float32"):
        inputs = [_Value((BATCH, size), name) for name, size in zip(INPUTS, sizes, strict=True)]
        (found,) = translation.run(program, inputs)
        action = translation.whole(found, (BATCH, spec.action_dim))
        translation.emit("Identity", action.shape, action, output=OUTPUT)
    return translation.graph()


@dataclasses.dataclass(frozen=True, eq=False)
class _Value:
    """A constant array, or what a node or an input holds.

    Where JAX has broadcast it, it may still have size 1: operations on single numbers broadcast
    by themselves.
    """

    shape: Shape
    name: str = ""
    array: Any = None  # of a constant

    @classmethod
    def constant(cls, array: Any) -> _Value:
        shape = _shape(jnp.shape(array))
        if not _fixed(shape):
            raise _refused("a constant for every row of a batch")
        return cls(shape, array=array)


class _Translation:
    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.constants: dict[str, np.ndarray] = {}

    def graph(self) -> Graph:
        """What the output depends on."""
        needed, kept = {OUTPUT}, []
        for node in reversed(self.nodes):
            if node.output in needed:
                needed |= set(node.inputs)
                kept.append(node)
        constants = {name: array for name, array in self.constants.items() if name in needed}
        return Graph(tuple(reversed(kept)), constants)

    def run(self, program: Any, inputs: Sequence[_Value]) -> list[_Value]:
        """The outputs of a program for these inputs."""
        jaxpr, constants = (
            (program.jaxpr, program.consts) if isinstance(program, ClosedJaxpr) else (program, ())
        )
        values = dict(zip(jaxpr.constvars, map(_Value.constant, constants), strict=True))
        values |= dict(zip(jaxpr.invars, inputs, strict=True))

        def read(atom: Any) -> _Value:
            kind = atom.aval
            if isinstance(atom, Literal):
                return _Value.constant(np.asarray(atom.val, kind.dtype))
            return values[atom]

        for equation in jaxpr.eqns:
            found = self.equation(equation, [read(atom) for atom in equation.invars])
            values |= dict(zip(equation.outvars, found, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def equation(self, equation: Any, inputs: list[_Value]) -> list[_Value]:
        name, params = equation.primitive.name, equation.params
        if name in INLINED:
            return self.run(params[INLINED[name]], inputs)
        shapes = [_shape(atom.aval.shape) for atom in equation.invars]
        outputs = [_shape(atom.aval.shape) for atom in equation.outvars]
        fixed = all(map(_fixed, (*shapes, *outputs)))
        if all(value.array is not None for value in inputs) and (fixed or name in ELEMENTWISE):
            found = equation.primitive.bind(*(value.array for value in inputs), **params)
            several = equation.primitive.multiple_results
            return [_Value.constant(array) for array in (found if several else [found])]
        if name not in ELEMENTWISE and name not in STRUCTURAL and name != "broadcast_in_dim":
            raise _refused(f"'{name}'")
        for atom in equation.outvars:
            if atom.aval.dtype not in (jnp.float32, jnp.bool_):
                raise _refused(f"'{name}' of type {atom.aval.dtype}")
        if name in ELEMENTWISE:
            rule = ELEMENTWISE[name]
            return [
                self.each(rule, *inputs) if isinstance(rule, str) else rule(self, *inputs, **params)
            ]
        if name == "broadcast_in_dim":
            return [self.broadcast(inputs[0], outputs[0], params["broadcast_dimensions"])]
        whole = [self.whole(value, shape) for value, shape in zip(inputs, shapes, strict=True)]
        return STRUCTURAL[name](self, outputs, *whole, **params)

    def emit(
        self, op: str, shape: Shape, *inputs: _Value, output: str = "", **attributes: Any
    ) -> _Value:
        names = tuple(value.name or self.keep(value.array) for value in inputs)
        output = output or f"x{len(self.nodes)}"
        self.nodes.append(Node(op, names, output, attributes))
        return _Value(shape, output)

    def keep(self, array: Any) -> str:
        name = f"w{len(self.constants)}"
        self.constants[name] = np.asarray(array)
        return name

    def each(self, op: str, *inputs: _Value, **attributes: Any) -> _Value:
        """An operation on single numbers."""
        rank = max(len(value.shape) for value in inputs)
        shape: list[int | str] = [1] * rank
        for value in inputs:
            for axis, size in enumerate(value.shape):
                shape[axis] = size if size != 1 else shape[axis]
        return self.emit(op, tuple(shape), *inputs, **attributes)

    def broadcast(self, value: _Value, shape: Shape, axes: Sequence[int]) -> _Value:
        """With the rank of its broadcast shape, the new axes of size 1."""
        sizes: list[int | str] = [1] * len(shape)
        for axis, size in zip(axes, value.shape, strict=True):
            sizes[axis] = size
        if value.array is not None:
            return _Value.constant(jnp.reshape(value.array, sizes))
        new = [axis for axis in range(len(shape)) if axis not in axes]
        if not new:
            return value
        return self.emit("Unsqueeze", tuple(sizes), value, _integers(new))

    def whole(self, value: _Value, shape: Shape) -> _Value:
        """In the shape that it has in the program of JAX."""
        if value.shape == shape:
            return value
        if any(isinstance(size, str) and size != BATCH for size in shape):
            raise _refused(f"an array of shape ({', '.join(map(str, shape))})")
        return self.emit("Expand", shape, value, self.sizes(shape))

    def sizes(self, shape: Shape) -> _Value:
        if BATCH not in shape:
            return _integers(shape)
        rows = self.emit("Shape", (1,), _Value((), INPUTS[0]), start=0, end=1)
        parts = [rows if size == BATCH else _integers([size]) for size in shape]
        return self.emit("Concat", (len(shape),), *parts, axis=0)


def _shape(sizes: Sequence[int]) -> Shape:
    return tuple(size if not size or size % ROWS else _multiple(size // ROWS) for size in sizes)


def _multiple(times: int) -> str:
    return BATCH if times == 1 else f"{times} {BATCH}"


def _fixed(shape: Shape) -> bool:
    return all(isinstance(size, int) for size in shape)


def _integers(numbers: Sequence[Any]) -> _Value:
    return _Value((len(numbers),), array=np.array(numbers, np.int64))


def _number(value: float) -> _Value:
    return _Value.constant(np.float32(value))


def _refused(what: str) -> GoatError:
    return GoatError(
        f"cannot export this policy: its action uses {what}, which goatrl cannot translate "
        "(docs/deployment.md#limits)"
    )


# Programs within the program.
INLINED = {
    "jit": "jaxpr",
    "closed_call": "call_jaxpr",
    "remat2": "jaxpr",  # jax.checkpoint
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
}


def _select(t: _Translation, which: _Value, *cases: _Value) -> _Value:
    if which.array is not None and not which.shape:
        return cases[int(which.array)]
    if len(cases) != 2:
        raise _refused(f"'select_n' with {len(cases)} cases")
    return t.each("Where", which, cases[1], cases[0])


def _cast(t: _Translation, x: _Value, *, new_dtype: Any, **_: Any) -> _Value:
    return t.each("Cast", x, to="BOOL" if new_dtype == jnp.bool_ else "FLOAT")


# Operations on single numbers, which broadcast.
ELEMENTWISE: dict[str, str | Callable[..., _Value]] = {
    "add": "Add",
    "sub": "Sub",
    "mul": "Mul",
    "div": "Div",
    "max": "Max",
    "min": "Min",
    "neg": "Neg",
    "abs": "Abs",
    "exp": "Exp",
    "log": "Log",
    "sin": "Sin",
    "cos": "Cos",
    "tanh": "Tanh",
    "logistic": "Sigmoid",
    "erf": "Erf",
    "sqrt": "Sqrt",
    "pow": "Pow",
    "gt": "Greater",
    "ge": "GreaterOrEqual",
    "lt": "Less",
    "le": "LessOrEqual",
    "eq": "Equal",
    "and": "And",
    "or": "Or",
    "not": "Not",
    "ne": lambda t, x, y: t.each("Not", t.each("Equal", x, y)),
    "square": lambda t, x: t.each("Mul", x, x),
    "integer_pow": lambda t, x, *, y: t.each("Pow", x, _number(y)),
    "rsqrt": lambda t, x, **_: t.each("Reciprocal", t.each("Sqrt", x)),
    "log1p": lambda t, x, **_: t.each("Log", t.each("Add", x, _number(1))),
    "expm1": lambda t, x, **_: t.each("Sub", t.each("Exp", x), _number(1)),
    "erfc": lambda t, x: t.each("Sub", _number(1), t.each("Erf", x)),
    "clamp": lambda t, low, x, high: t.each("Min", t.each("Max", x, low), high),
    "select_n": _select,
    "convert_element_type": _cast,
    "copy": lambda t, x: x,
    "stop_gradient": lambda t, x, **_: x,
}


def _dot(
    t: _Translation, outputs: list[Shape], x: _Value, y: _Value, *, dimension_numbers: Any, **_: Any
) -> list[_Value]:
    (left, right), (left_rows, right_rows) = dimension_numbers
    last_by_first = (tuple(left), tuple(right)) == ((len(x.shape) - 1,), (0,))
    if last_by_first and len(y.shape) == 2:
        return [t.emit("MatMul", outputs[0], x, y)]
    letters = iter(string.ascii_letters)
    of_x, of_y = ([next(letters) for _ in value.shape] for value in (x, y))
    for mine, other in zip((*left_rows, *left), (*right_rows, *right), strict=True):
        of_y[other] = of_x[mine]
    of_rows = [of_x[axis] for axis in left_rows]
    of_sums = {of_x[axis] for axis in left}
    free = [each for each in (*of_x, *of_y) if each not in of_sums and each not in of_rows]
    equation = f"{''.join(of_x)},{''.join(of_y)}->{''.join([*of_rows, *free])}"
    return [t.emit("Einsum", outputs[0], x, y, equation=equation)]


def _gather(
    t: _Translation,
    outputs: list[Shape],
    x: _Value,
    places: _Value,
    *,
    dimension_numbers: Any,
    slice_sizes: Any,
    **_: Any,
) -> list[_Value]:
    """Whole columns, or what else lies at known places of one axis."""
    numbers = dimension_numbers
    if places.array is not None and len(numbers.start_index_map) == 1:
        (axis,) = numbers.start_index_map
        wanted = np.asarray(places.array)[..., 0].astype(np.int64)
        size, column = x.shape[axis], [*x.shape[:axis], 1, *x.shape[axis + 1 :]]
        kept = [*range(axis), *range(axis + wanted.ndim, len(outputs[0]))]
        if (
            isinstance(size, int)
            and not ((wanted < 0) | (wanted >= size)).any()
            and tuple(numbers.collapsed_slice_dims) == (axis,)
            and list(numbers.offset_dims) == kept
            and list(_shape(slice_sizes)) == column
        ):
            index = _Value(wanted.shape, array=wanted)
            return [t.emit("Gather", outputs[0], x, index, axis=axis)]
    raise _refused("'gather' of other than known columns")


def _part(
    t: _Translation,
    x: _Value,
    shape: Shape,
    starts: Sequence[int],
    steps: Sequence[int] | None = None,
) -> _Value:
    """What begins at `starts`, `steps` apart, and has this shape."""
    steps = steps or [1] * len(shape)
    axes = [axis for axis, size in enumerate(shape) if size != x.shape[axis]]
    if not axes:
        return x
    if not _fixed(tuple(x.shape[axis] for axis in axes)):
        raise _refused("some of the rows of a batch")
    first, step = ([numbers[axis] for axis in axes] for numbers in (starts, steps))
    ends = [starts[axis] + steps[axis] * (int(shape[axis]) - 1) + 1 for axis in axes]
    return t.emit("Slice", shape, x, *map(_integers, (first, ends, axes, step)))


def _slice(
    t: _Translation,
    outputs: list[Shape],
    x: _Value,
    *,
    start_indices: Any,
    strides: Any,
    **_: Any,
) -> list[_Value]:
    return [_part(t, x, outputs[0], start_indices, strides)]


def _dynamic_slice(
    t: _Translation, outputs: list[Shape], x: _Value, *starts: _Value, **_: Any
) -> list[_Value]:
    if any(start.array is None for start in starts):
        raise _refused("'dynamic_slice' at a place that depends on the inputs")
    # JAX moves what would reach beyond the end.
    room = [
        size - taken if isinstance(size, int) and isinstance(taken, int) else 0
        for size, taken in zip(x.shape, outputs[0], strict=True)
    ]
    places = [min(max(int(start.array), 0), most) for start, most in zip(starts, room, strict=True)]
    return [_part(t, x, outputs[0], places)]


def _split(
    t: _Translation, outputs: list[Shape], x: _Value, *, axis: int, sizes: Any
) -> list[_Value]:
    firsts = np.cumsum([0, *sizes[:-1]]).tolist()
    return [
        _part(t, x, shape, [first if each == axis else 0 for each in range(len(shape))])
        for first, shape in zip(firsts, outputs, strict=True)
    ]


def _stack(t: _Translation, outputs: list[Shape], *parts: _Value, axis: int) -> list[_Value]:
    one = (*outputs[0][:axis], 1, *outputs[0][axis + 1 :])
    columns = [t.emit("Unsqueeze", one, part, _integers([axis])) for part in parts]
    return [t.emit("Concat", outputs[0], *columns, axis=axis)]


def _reshape(t: _Translation, outputs: list[Shape], x: _Value, **_: Any) -> list[_Value]:
    sizes = [size if isinstance(size, int) else -1 for size in outputs[0]]
    if sizes.count(-1) > 1:
        raise _refused("'reshape' to more than one unknown size")
    return [t.emit("Reshape", outputs[0], x, _integers(sizes))]


def _reduced(op: str) -> Callable[..., list[_Value]]:
    def reduced(
        t: _Translation, outputs: list[Shape], x: _Value, *, axes: Any, **_: Any
    ) -> list[_Value]:
        if op == "ReduceSum":  # whose axes are an input since opset 13
            return [t.emit(op, outputs[0], x, _integers(axes), keepdims=0)]
        return [t.emit(op, outputs[0], x, axes=list(axes), keepdims=0)]

    return reduced


# Operations that need arrays as they are.
STRUCTURAL: dict[str, Callable[..., list[_Value]]] = {
    "dot_general": _dot,
    "gather": _gather,
    "slice": _slice,
    "dynamic_slice": _dynamic_slice,
    "split": _split,
    "reshape": _reshape,
    "concatenate": lambda t, outputs, *parts, dimension: [
        t.emit("Concat", outputs[0], *parts, axis=dimension)
    ],
    "stack": _stack,
    "squeeze": lambda t, outputs, x, *, dimensions: [
        t.emit("Squeeze", outputs[0], x, _integers(dimensions))
    ],
    "transpose": lambda t, outputs, x, *, permutation: [
        t.emit("Transpose", outputs[0], x, perm=list(permutation))
    ],
    "reduce_sum": _reduced("ReduceSum"),
    "reduce_max": _reduced("ReduceMax"),
    "reduce_min": _reduced("ReduceMin"),
}
