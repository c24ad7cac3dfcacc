"""How `Episodes` are made and checked. Both of their layouts are drawn at the top of `types`."""

from __future__ import annotations

from typing import Any

import numpy as np

from goatrl.types import Episodes, GoatError


def make_episodes(
    observations: Any,
    achieved: Any,
    actions: Any,
    goals: Any,
    *,
    lengths: Any = None,
    terminated: Any = None,
) -> Episodes:
    """Episodes from any arrays, as float32, after every check that can be made without knowing the
    task.

    Episodes of different lengths are lists of arrays, or arrays with `lengths`: padded at the end,
    or all steps one behind the other. Goals may have an axis of steps, if they change on the way.
    Whatever way they come, the same episodes have the same checksum.
    """
    given = {"observations": observations, "achieved": achieved, "actions": actions, "goals": goals}
    if lengths is None and any(_ragged(value) for value in given.values()):
        rows, lengths = _from_lists(given)
    else:
        arrays = {name: _numbers(name, value) for name, value in given.items()}
        if lengths is None:
            _check_regular(arrays)
            for name, array in arrays.items():
                _check_finite(name, array)
            ended = _flags(terminated, len(arrays["actions"]))
            if arrays["goals"].ndim == 2:
                return Episodes(**arrays, terminated=ended)  # type: ignore[arg-type]
            lengths = np.full(*arrays["actions"].shape[:2])
        lengths = _whole_lengths(lengths)
        rows = _from_arrays(arrays, lengths)
        for name, array in rows.items():
            _check_finite(name, array)
    return _in_order(rows, lengths, _flags(terminated, len(lengths)))


def _ragged(value: Any) -> bool:
    """Whether it is a list of arrays that differ in their first axis."""
    if not isinstance(value, list | tuple):
        return False
    try:
        return len({np.shape(each)[:1] for each in value}) > 1
    except ValueError:  # lists within it differ
        return False


def _numbers(name: str, value: Any) -> np.ndarray:
    """An array of numbers in float32."""
    try:
        array = np.asarray(value)
    except ValueError:
        raise GoatError(
            f"{name} must be an array, or a list of arrays with one row for every step"
        ) from None
    if array.dtype.kind not in "fiu":
        raise GoatError(f"{name} must contain numbers, not {array.dtype}")
    if array.size == 0:
        raise GoatError(
            f"{name} is empty (shape {array.shape}); a dataset needs at least one episode "
            "with one action"
        )
    with np.errstate(over="ignore"):
        return array.astype(np.float32)


def _check_finite(name: str, array: np.ndarray) -> None:
    if not np.isfinite(array).all():
        wrong = np.argwhere(~np.isfinite(array))
        values = "a value that is" if len(wrong) == 1 else f"{len(wrong):,} values that are"
        raise GoatError(
            f"{name} contains {values} not finite in float32, first at index "
            f"{tuple(map(int, wrong[0]))}; clean the data first"
        )


def _check_regular(arrays: dict[str, np.ndarray]) -> None:
    """Episodes of one length, in arrays with an axis of episodes and one of steps."""
    for name, array in arrays.items():
        if array.ndim != 3 and not (name == "goals" and array.ndim == 2):
            axes = "2 or 3 axes" if name == "goals" else "3 axes"
            raise GoatError(f"{name} must have {axes}, not shape {array.shape}")
    count, horizon = arrays["actions"].shape[:2]
    for name in ("observations", "achieved"):
        if arrays[name].shape[:2] != (count, horizon + 1):
            raise GoatError(
                f"{name} has shape {arrays[name].shape}, but {count} episodes with {horizon} "
                "actions need "
                f"({count}, {horizon + 1}, …): one more observation than actions"
            )
    size, goals = arrays["achieved"].shape[2], arrays["goals"]
    if (goals.shape[0], goals.shape[-1]) != (count, size):
        raise GoatError(
            f"goals has shape {goals.shape}, but {count} episodes with achieved goals of "
            f"{size} numbers need ({count}, {size})"
        )
    if goals.ndim == 3 and goals.shape[1] not in (horizon, horizon + 1):
        raise GoatError(
            f"goals has shape {goals.shape}, but goals that change in {count} episodes with "
            f"{horizon} actions need ({count}, {horizon}, {size})"
        )


def _whole_lengths(lengths: Any) -> np.ndarray:
    array = np.asarray(lengths)
    with np.errstate(invalid="ignore"):
        whole = array.dtype.kind in "iuf" and np.array_equal(array, array.astype(np.int32))
    if array.ndim != 1 or array.size == 0 or not whole:
        raise GoatError("lengths must be a list of whole numbers, the actions of each episode")
    if array.min() < 1:
        raise GoatError(
            f"episode {int(array.argmin())} has {array.min():g} actions; an episode needs at "
            "least one"
        )
    return array.astype(np.int32)


def _flags(terminated: Any, count: int) -> Any:
    """Which episodes their environment ended; None if it ended none."""
    if terminated is None:
        return None
    flags = np.asarray(terminated)
    if flags.shape != (count,) or not np.isin(flags, (0, 1)).all():
        raise GoatError(f"terminated must have a true or false for each of {count} episodes")
    return flags.astype(bool) if flags.any() else None


def _from_lists(given: dict[str, Any]) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Lists of arrays, one for each episode, as rows one behind the other."""
    count = len(given["actions"])
    for name, value in given.items():
        if len(value) != count:
            raise GoatError(f"{name} has {len(value)} episodes, but actions has {count}")
    parts = {
        name: [_numbers(f"{name} of episode {n}", each) for n, each in enumerate(value)]
        for name, value in given.items()
    }
    for name, arrays in parts.items():
        for n, array in enumerate(arrays):
            _check_finite(f"{name} of episode {n}", array)
    axes = dict.fromkeys(given, 2) | {"goals": parts["goals"][0].ndim}
    for name, each in parts.items():
        size = each[0].shape[-1] if each[0].ndim else 0
        for n, array in enumerate(each):
            if array.ndim != axes[name] or axes[name] not in (1, 2) or array.shape[-1] != size:
                raise GoatError(
                    f"{name} of episode {n} has shape {array.shape}; every episode needs rows of "
                    "as many numbers as the first"
                )
    lengths = np.array([len(each) for each in parts["actions"]], np.int32)
    for name in ("observations", "achieved", "goals"):
        for n, array in enumerate(parts[name]):
            more = len(array) - lengths[n]
            if array.ndim == 2 and more != 1 and not (name == "goals" and more == 0):
                raise GoatError(
                    f"{name} of episode {n} has {len(array)} rows, but its {lengths[n]} actions "
                    f"need {lengths[n] + 1}: one more than actions"
                )
    if axes["goals"] == 2:
        parts["goals"] = [goals[:last] for goals, last in zip(parts["goals"], lengths, strict=True)]
    joined = {name: np.concatenate(each) for name, each in parts.items() if name != "goals"}
    joined["goals"] = (np.stack if axes["goals"] == 1 else np.concatenate)(parts["goals"])
    return joined, lengths


def _from_arrays(arrays: dict[str, np.ndarray], lengths: np.ndarray) -> dict[str, np.ndarray]:
    """Arrays that are padded, or have one row for every step, without what is not part of an
    episode: achieved and observations of all steps, actions and goals of all transitions.
    """
    count, steps = len(lengths), int(lengths.sum()) + len(lengths)
    last = np.cumsum(lengths + 1) - 1  # rows that no action follows
    longest = int(lengths.max())
    rows = {}
    for name, array in arrays.items():
        per_action = name in ("actions", "goals")
        if name == "goals" and array.ndim == 2 and len(array) == count:
            rows[name] = array
        elif array.ndim == 3 and len(array) == count and array.shape[1] >= longest + 1 - per_action:
            inside = np.arange(array.shape[1])[None] < (lengths + 1 - per_action)[:, None]
            rows[name] = array[inside]
        elif array.ndim == 2 and len(array) == steps:
            rows[name] = np.delete(array, last, axis=0) if per_action else array
        elif array.ndim == 2 and per_action and len(array) == steps - count:
            rows[name] = array
        else:
            raise GoatError(
                f"{name} has shape {array.shape}, but {count} episodes of up to {longest} actions "
                f"need {steps} rows, or ({count}, {longest + 1}, …) padded"
            )
    return rows


def _in_order(rows: dict[str, np.ndarray], lengths: np.ndarray, terminated: Any) -> Episodes:
    """Episodes of these rows, in the regular layout if it can hold them."""
    goals, size = rows["goals"], rows["achieved"].shape[-1]
    if goals.shape[-1] != size:
        raise GoatError(
            f"goals have {goals.shape[-1]} numbers, but achieved goals have {size}; both must be "
            "places in the same space"
        )
    first, changing = np.cumsum(lengths) - lengths, len(goals) != len(lengths)
    if changing and np.array_equal(goals, np.repeat(goals[first], lengths, axis=0)):
        goals, changing = goals[first], False
    if not changing and (lengths == lengths[0]).all():
        shape = (len(lengths), int(lengths[0]))
        return Episodes(
            rows["observations"].reshape(shape[0], shape[1] + 1, -1),  # type: ignore[arg-type]
            rows["achieved"].reshape(shape[0], shape[1] + 1, -1),  # type: ignore[arg-type]
            rows["actions"].reshape(*shape, -1),  # type: ignore[arg-type]
            goals,  # type: ignore[arg-type]
            terminated=terminated,
        )
    last = np.cumsum(lengths)  # where a row is put in that no action follows
    actions = np.insert(rows["actions"], last, 0.0, axis=0)
    if changing:
        goals = np.insert(goals, last, goals[last - 1], axis=0)
    return Episodes(
        rows["observations"],  # type: ignore[arg-type]
        rows["achieved"],  # type: ignore[arg-type]
        actions,  # type: ignore[arg-type]
        goals,  # type: ignore[arg-type]
        lengths,  # type: ignore[arg-type]
        terminated,
    )
