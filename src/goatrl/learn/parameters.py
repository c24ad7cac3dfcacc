"""The numbers inside a composition, by name, so that a run can list, record, override and sweep
them.

A field of the agent itself goes by its own name (`learning_rate`), a field of a part by the part's
name and its own (`uncertainty.w`, `q_ensemble.tau`).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from goatrl.types import GoatError, unknown

Number = float | int | bool | str | tuple[int, ...] | None


def _part_name(part: object) -> str:
    return re.sub(
        r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", type(part).__name__
    ).lower()


def hyperparameters(algorithm: Any, prefix: str = "") -> dict[str, Number]:
    """Every number and choice of a composition, in the order in which it is written."""
    found: dict[str, Number] = {}
    for field in dataclasses.fields(algorithm):
        value = getattr(algorithm, field.name)
        parts = value if isinstance(value, tuple) else (value,)
        if parts and all(dataclasses.is_dataclass(part) for part in parts):
            for part in parts:
                inner = hyperparameters(part, _part_name(part) + ".")
                if inner.keys() & found.keys():
                    raise GoatError(
                        f"this composition has two parts named {_part_name(part)}; their numbers "
                        "would share a name"
                    )
                found |= inner
        elif parts and (value is not None or "float" in _declared(field)):
            found[prefix + field.name] = value
    return found


def override(algorithm: Any, changes: Mapping[str, Number]) -> Any:
    """The same composition with other numbers; a name that it does not have is refused."""
    known = hyperparameters(algorithm)
    for name, value in changes.items():
        if name not in known:
            raise unknown("hyper-parameter", name, known)
        algorithm = _replace(algorithm, name, value, "")
    return algorithm


def _replace(part: Any, name: str, value: Number, prefix: str) -> Any:
    changes: dict[str, Any] = {}
    for field in dataclasses.fields(part):
        current = getattr(part, field.name)
        if prefix + field.name == name:
            changes[field.name] = _as_declared(name, value, _declared(field))
        elif isinstance(current, tuple) and all(map(dataclasses.is_dataclass, current)):
            changes[field.name] = tuple(
                _replace(each, name, value, _part_name(each) + ".") for each in current
            )
        elif dataclasses.is_dataclass(current):
            changes[field.name] = _replace(current, name, value, _part_name(current) + ".")
    return dataclasses.replace(part, **changes)


def _declared(field: dataclasses.Field) -> str:
    """The type of a field in words: it is text already where a module postpones its annotations."""
    return field.type.__name__ if isinstance(field.type, type) else str(field.type)


def _as_declared(name: str, value: Number, declared: str) -> Number:
    """`value`, a number or its text, as the type that the field declares."""
    wanted = declared.split(" ")[0]
    try:
        if str(value).lower() == "none" and "None" in declared:
            return None
        if wanted == "bool":
            return {"true": True, "false": False}[str(value).lower()]
        if wanted.startswith("tuple"):
            sizes = value if isinstance(value, tuple | list) else str(value).split(",")
            return tuple(int(size) for size in sizes)
        if wanted == "int":
            return int(str(value))
        return float(str(value)) if wanted == "float" else str(value)
    except (KeyError, ValueError) as error:
        raise GoatError(f"hyper-parameter {name} needs a {wanted}, not '{value}'") from error


def stack(algorithms: Sequence[Any]) -> Any:
    """Compositions that differ only in floats, as one with a leading sweep axis."""
    if len({jax.tree.structure(each) for each in algorithms}) != 1:
        raise GoatError(
            "only compositions that differ in float hyper-parameters can train together"
        )
    return jax.tree.map(lambda *leaves: jnp.asarray(leaves, jnp.float32), *algorithms)
