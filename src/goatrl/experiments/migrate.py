"""Writes the records of a folder again, in the schema of today; their rows stay as they are.

    python -m goatrl.experiments.migrate FOLDER... [--revision ALGORITHM=NUMBER...]

Old records are read without that, too. But they do not say which revision of an algorithm they are
of, which counts as 1; who knows better says so here, once.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from goatrl import algorithms
from goatrl.disk.files import remove
from goatrl.disk.identity import Identity, from_schema_1
from goatrl.disk.reading import parquet
from goatrl.experiments import curves, records
from goatrl.learn.parameters import described
from goatrl.runs.offline import composition


def migrate(folder: Path, revisions: Mapping[str, int]) -> dict[Path, Path]:
    """Where every record of an older schema lay → where it lies now."""
    moved = {}
    for path in sorted(folder.glob("*.parquet")):
        with records.reading(path) as file:
            table = parquet(file).read(use_threads=False)
            ((kind, stored),) = records.contents(table.schema)
        if "schema" in stored:
            continue
        about = from_schema_1(stored["config"], revisions, _defaults(stored["config"]))
        identity = Identity(kind, about, curves.BESIDE if kind == records.CURVE else ())
        rest = {name: value for name, value in stored.items() if name not in ("format", "config")}
        moved[path] = path
        if kind == records.CELL:
            moved[path] = records.CellConfig.from_identity(identity).path(folder)
        records.write_table(moved[path], table, identity, rest)
        if moved[path] != path:
            remove(path)
    return moved


def _defaults(config: Mapping[str, Any]) -> list[str]:
    """The hyper-parameters that were at their default: those at that of today."""
    acting = config.get("algorithm") or config["by"]
    name = config["from"]["algorithm"] if acting == "own" else acting
    numbers = from_schema_1(config)["hyperparameters"]
    built = composition(algorithms.get(name), config["group"], numbers)
    return list(described(built)["defaults"])


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--revision", nargs="*", default=[], metavar="ALGORITHM=NUMBER")
    chosen = parser.parse_args(words)
    revisions = {name: int(number) for name, number in (r.split("=") for r in chosen.revision)}
    for folder in chosen.folders:
        print(f"{folder}: {len(migrate(folder, revisions))} records written again")


if __name__ == "__main__":
    main()
