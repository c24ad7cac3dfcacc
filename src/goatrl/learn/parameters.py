"""The numbers inside a composition, by name, so that a run can list, record, override and sweep
them.

A field of the agent itself goes by its own name (`learning_rate`), a field of a part by the part's
name and its own (`uncertainty.w`, `q_ensemble.tau`).
"""

from __future__ import annotations

import dataclasses
import functools
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from types import NoneType, UnionType
from typing import Any

import jax
import jax.numpy as jnp

from goatrl.types import GoatError, unknown

Number = float | int | bool | str | tuple[int, ...] | None
# In the order in which text is tried as one of them: every text is a str.
_PLAIN: dict[str, type] = {
    "None": NoneType,
    "bool": bool,
    "int": int,
    "float": float,
    "tuple": tuple,
    "str": str,
}
_READ: dict[type, Callable[[str], Number]] = {
    NoneType: lambda text: {"none": None}[text.lower()],
    bool: lambda text: {"true": True, "false": False}[text.lower()],
    int: int,
    float: float,
    tuple: lambda text: tuple(int(each) for each in re.findall(r"[^()\[\], ]+", text)),
    str: str,
}


def _part_name(part: object) -> str:
    return re.sub(
        r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", type(part).__name__
    ).lower()


def hyperparameters(algorithm: Any) -> dict[str, Number]:
    """Every number and choice of a composition, in the order in which it is written."""
    return {name: value for name, value, _ in _walk(algorithm, None, "")}


def chosen(algorithm: Any) -> dict[str, Number]:
    """The numbers of a composition without those at their default."""
    return {name: value for name, value, default in _walk(algorithm, None, "") if not default}


def described(algorithm: Any) -> dict[str, Any]:
    """The numbers of a composition as an identity has them, and JSON: all, and which are at their
    default.
    """
    own = chosen(algorithm)
    numbers = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in hyperparameters(algorithm).items()
    }
    defaults = tuple(name for name in numbers if name not in own)
    return {"hyperparameters": numbers, "defaults": defaults}


def _walk(part: Any, default: Any, prefix: str) -> list[tuple[str, Number, bool]]:
    """Name, value and whether that is the default, of all numbers in a part. `default` is the part
    that stands there if nothing else is said, if there is one.
    """
    found: list[tuple[str, Number, bool]] = []
    for field in dataclasses.fields(part):
        value, usual = getattr(part, field.name), _default(field, default)
        parts = value if isinstance(value, tuple) else (value,)
        if parts and all(dataclasses.is_dataclass(each) for each in parts):
            usual_parts = usual if isinstance(usual, tuple) else (usual,)
            for place, each in enumerate(parts):
                beside = usual_parts[place] if place < len(usual_parts) else None
                inner = _walk(
                    each, beside if type(beside) is type(each) else None, _part_name(each) + "."
                )
                if {name for name, _, _ in inner} & {name for name, _, _ in found}:
                    raise GoatError(
                        f"this composition has two parts named {_part_name(each)}, whose "
                        "hyper-parameters would clash; rename one class"
                    )
                found += inner
        elif parts and (value is not None or _types(part, field) - {NoneType}):
            found.append((prefix + field.name, value, value is usual or value == usual))
    return found


def _default(field: dataclasses.Field, part: Any) -> Any:
    """What a field holds if nothing else is said; MISSING where something must be."""
    if part is not None:
        return getattr(part, field.name)
    made = field.default_factory
    return field.default if made is dataclasses.MISSING else made()


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
            types = _types(part, field)
            if not types - {NoneType}:
                types = {*types, str if current is None else type(current)}
            changes[field.name] = _as_declared(name, value, types)
        elif isinstance(current, tuple) and all(map(dataclasses.is_dataclass, current)):
            changes[field.name] = tuple(
                _replace(each, name, value, _part_name(each) + ".") for each in current
            )
        elif dataclasses.is_dataclass(current):
            changes[field.name] = _replace(current, name, value, _part_name(current) + ".")
    return dataclasses.replace(part, **changes)


def _types(part: Any, field: dataclasses.Field) -> set[type]:
    """The plain types that a field declares, None among them; none where it declares others."""
    declared = _annotations(part.__class__).get(field.name)
    if declared is None:
        words = set(re.findall(r"\w+", str(field.type)))
        return {each for name, each in _PLAIN.items() if name in words}
    union = typing.get_origin(declared) in (typing.Union, UnionType)
    options = typing.get_args(declared) if union else (declared,)
    plain = {typing.get_origin(each) or each for each in options}  # tuple[int, ...] is a tuple
    return plain & set(_PLAIN.values())


@functools.lru_cache(maxsize=256)  # a suite asks for those of the same few classes a thousand times
def _annotations(part: type) -> dict[str, Any]:
    """What the fields of a part declare; empty where an annotation cannot be evaluated, such as an
    import for types alone.
    """
    try:
        return typing.get_type_hints(part)
    except Exception:
        return {}


def _as_declared(name: str, value: Number, types: set[type]) -> Number:
    """`value`, a number or its text, as the first of these types that can hold it."""
    text = str(value)
    for each in (each for each in _PLAIN.values() if each in types):
        try:
            return _READ[each](text)
        except (KeyError, ValueError):
            continue
    wanted = " or ".join(word for word, each in _PLAIN.items() if each in types - {NoneType})
    raise GoatError(f"hyper-parameter {name} must be a {wanted}, not '{value}'")


def stack(algorithms: Sequence[Any]) -> Any:
    """Compositions that differ only in floats, as one with a leading sweep axis."""
    if len({jax.tree.structure(each) for each in algorithms}) != 1:
        raise GoatError(
            "only compositions that differ in nothing but float hyper-parameters can train together"
        )
    return jax.tree.map(lambda *leaves: jnp.asarray(leaves, jnp.float32), *algorithms)
