"""All combinations of some values of hyper-parameters, a run each."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence

from goatrl.runs.offline import RunConfig
from goatrl.types import GoatError


def values(text: str) -> list[str]:
    """Values between commas; one in brackets is a list: "8" is one, "1,2" two, "[8,8],[4]" two."""
    found, depth = [""], 0
    for letter in text:
        depth += (letter in "[({") - (letter in "])}")
        if letter == "," and not depth:
            found.append("")
        else:
            found[-1] += letter
    return [each.strip() for each in found]


def combinations(settings: Mapping[str, str]) -> list[dict[str, str]]:
    """Every value of each setting with every value of the others, the last one changing fastest."""
    varied = {name: values(text) for name, text in settings.items()}
    for name, found in varied.items():
        if "" in found:
            raise GoatError(f"{name}={settings[name]} has an empty value; write {name}=A,B,C")
    return [dict(zip(varied, each, strict=True)) for each in itertools.product(*varied.values())]


def names(configs: Sequence[RunConfig], settings: Sequence[Mapping[str, str]]) -> list[str]:
    """Folders for the runs of some combinations: by the values of what varies, as they are read.
    Where nothing does, by the algorithm.
    """
    for config, setting in zip(configs, settings, strict=True):
        for name, text in setting.items():
            if isinstance(config.hyperparameters[name], list) and text[0] not in "[(":
                raise GoatError(
                    f"{name} is a list, and commas divide values; write it in brackets: "
                    f'"{name}=[8,8],[16,16]"'
                )
    varied = [name for name in settings[0] if len({each[name] for each in settings}) > 1]
    found = [_name(config, varied) for config in configs]
    if twice := [name for place, name in enumerate(found) if name in found[:place]]:
        raise GoatError(f"{twice[0]} is there twice; give every value once")
    return found


def _name(config: RunConfig, varied: Iterable[str]) -> str:
    parts = [f"{name}={_text(config.hyperparameters[name])}" for name in varied]
    return "--".join(parts) or config.algorithm


def _text(value: object) -> str:
    """A value as part of a folder's name."""
    text = "x".join(map(str, value)) if isinstance(value, list) else str(value)
    return re.sub(r"[^\w.+-]", "_", text)
