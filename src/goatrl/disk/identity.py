"""What a run or a record is: all that decides its numbers, comparable across versions of goatrl.

Files hold the whole description, every hyper-parameter included. Two descriptions mean the same if
they agree in what both know, and if what only one of them knows is a hyper-parameter at its
default: an algorithm may gain a hyper-parameter without orphaning what was recorded before.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any, TypedDict

from goatrl.disk.reading import typed
from goatrl.types import GoatError

SCHEMA = 2
# Hyper-parameters that were recorded under another name: old → new.
RENAMED = {
    "best_advantage.alpha_max": "percentile_selection.alpha_max",
    "best_advantage.alpha_growth": "percentile_selection.alpha_growth",
    "best_advantage.floor": "percentile_selection.floor",
    "best_advantage.scale": "percentile_selection.scale",
    "best_advantage.capacity": "percentile_selection.capacity",
    "adaptive_selection.beta": "learned_selection.beta",
    "adaptive_selection.floor": "learned_selection.floor",
    "adaptive_selection.learning_rate": "learned_selection.learning_rate",
    "maximization.pessimism": "ddpg_objective.pessimism",
    "maximization.action_penalty": "ddpg_objective.action_penalty",
    "conservative.alpha": "cql_penalty.alpha",
    "conservative.actions": "cql_penalty.actions",
    "relabel": "hindsight.probability",
    "target_keep": "polyak",
    "target_every": "target_period",
}
_RENAMED_FACTS = {"judge_every": "evaluate_every", "judged_episodes": "evaluated_episodes"}


class _Numbers(TypedDict, total=False):
    """What is compared name by name."""

    hyperparameters: dict[str, Any]
    defaults: list[str]
    revisions: dict[str, int]


@dataclasses.dataclass(frozen=True)
class Identity:
    """A kind of thing, and its description as JSON holds it.

    `about["hyperparameters"]` are all of them, `about["defaults"]` the names of those at their
    default, and `about["revisions"]` the revision of every algorithm that took part.
    """

    kind: str
    about: Mapping[str, Any]
    beside: tuple[str, ...] = ()  # what of it decides nothing, such as where the data lies

    @cached_property  # records are compared with every column of every suite
    def facts(self) -> dict[str, Any]:
        """What decides the result; hyper-parameters at their default do not appear."""
        kept: dict[str, Any] = json.loads(json.dumps(self.about))
        for name in kept.pop("defaults", ()):
            kept["hyperparameters"].pop(name, None)
        for name in self.beside:
            *path, last = name.split(".")
            holder: Any = kept
            for step in path:
                holder = holder.get(step, {})
            if isinstance(holder, dict):
                holder.pop(last, None)
        return kept

    def digest(self) -> str:
        """A short name for files."""
        text = json.dumps({"kind": self.kind, **self.facts}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def diff(self, other: Identity) -> list[str]:
        """The names of all that differs."""
        if self.kind != other.kind:
            return ["kind"]
        mine, theirs = self.facts, other.facts
        found = []
        for name in dict.fromkeys([*mine, *theirs]):
            if name == "revisions":
                found += [f"revision of {each}" for each in self._other_revisions(other)]
            elif name == "hyperparameters":
                found += [f"{name}.{each}" for each in self._other_numbers(other)]
            else:
                found += _differences(name, mine.get(name), theirs.get(name))
        return found

    def _other_revisions(self, other: Identity) -> list[str]:
        """Of the algorithms that took part in both; another algorithm is another fact."""
        mine, theirs = (each.about.get("revisions", {}) for each in (self, other))
        return [name for name in mine if name in theirs and mine[name] != theirs[name]]

    def _other_numbers(self, other: Identity) -> list[str]:
        mine, theirs = self._numbers, other._numbers
        defaults = {*self.about.get("defaults", ()), *other.about.get("defaults", ())}
        both = mine.keys() & theirs.keys()
        return [
            name
            for name in dict.fromkeys([*mine, *theirs])
            if (mine[name] != theirs[name] if name in both else name not in defaults)
        ]

    @cached_property
    def _numbers(self) -> dict[str, Any]:
        """All hyper-parameters, as JSON holds them."""
        found: dict[str, Any] = json.loads(json.dumps(self.about.get("hyperparameters", {})))
        return found

    def require(self, wanted: Identity, what: str, instead: str = "choose another --out") -> None:
        """Raise an error that names the difference, unless this is what was asked for."""
        for name in self._other_revisions(wanted):
            raise GoatError(
                f"{what} was recorded with revision {self.about['revisions'][name]} of {name}, but "
                f"this is revision {wanted.about['revisions'][name]}; {instead}"
            )
        if different := self.diff(wanted):
            file = "; your algorithm's file has changed" if "source" in different else ""
            raise GoatError(
                f"{what} has another configuration (differs in {', '.join(different)}{file}); "
                f"{instead}"
            )

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, "kind": self.kind, "config": self.about}

    @classmethod
    def from_json(
        cls, stored: Mapping[str, Any], kind: str, where: object, beside: tuple[str, ...] = ()
    ) -> Identity:
        """What a file at `where` holds, of this schema or of an older one."""
        schema = stored.get("schema", 1)
        if schema > SCHEMA:
            raise GoatError(
                f"{where} was written by a newer version of goatrl (schema {schema}; this one "
                f"reads up to {SCHEMA}); upgrade goatrl, or use another folder"
            )
        config = typed(dict[str, Any], stored["config"])
        about = config if schema == SCHEMA else from_schema_1(config)
        typed(_Numbers, about)
        return cls(str(stored.get("kind", kind)), about, beside)


def from_schema_1(
    config: Mapping[str, Any],
    revisions: Mapping[str, int] | None = None,
    defaults: Collection[str] = (),
    renamed: Mapping[str, str] = RENAMED,
) -> dict[str, Any]:
    """A description of schema 1 as schema 2 has it.

    Schema 1 knew neither revisions, which count as 1, nor which hyper-parameters were at their
    default, so that none counts as such. Who knows better says so, by the names of today.
    """
    about = {_RENAMED_FACTS.get(name, name): value for name, value in config.items()}
    origin = about.get("from")
    taught = [origin["algorithm"]] if isinstance(origin, Mapping) else []
    acting = about.get("algorithm", about.get("by"))
    names = dict.fromkeys([*taught, *([] if acting in ("own", None) else [acting])])
    about["revisions"] = {name: (revisions or {}).get(name, 1) for name in names}
    about["hyperparameters"] = _with_new_names(about.get("hyperparameters", {}), renamed)
    if "overrides" in about:
        about["overrides"] = _with_new_names(about["overrides"], renamed)
    if isinstance(origin, Mapping):
        overrides = _with_new_names(origin.get("overrides", {}), renamed)
        about["from"] = {**origin, "overrides": overrides}
    about["defaults"] = [name for name in about["hyperparameters"] if name in defaults]
    return about


def _with_new_names(numbers: Mapping[str, Any], renamed: Mapping[str, str]) -> dict[str, Any]:
    return {renamed.get(name, name): value for name, value in numbers.items()}


def _differences(name: str, mine: Any, theirs: Any) -> list[str]:
    """Where two facts differ, by dotted names."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        names = dict.fromkeys([*mine, *theirs])
        return [
            found
            for each in names
            for found in _differences(f"{name}.{each}", mine.get(each), theirs.get(each))
        ]
    return [] if mine == theirs else [name]
