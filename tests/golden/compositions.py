"""Writes compositions.json: the numbers of every registered algorithm, and its revision.

python tests/golden/compositions.py
"""

from __future__ import annotations

import json
from pathlib import Path

from goatrl import algorithms
from goatrl.learn.parameters import described
from goatrl.types import Settings

PATH = Path(__file__).with_suffix(".json")


def compositions() -> dict[str, dict]:
    """As JSON holds them."""
    found = {
        name: {
            "revision": entry.revision,
            "numbers": described(entry.build(Settings()))["hyperparameters"],
        }
        for name, entry in sorted(algorithms.entries().items())
        if not entry.source
    }
    return json.loads(json.dumps(found))


if __name__ == "__main__":
    PATH.write_text(json.dumps(compositions(), indent=1) + "\n")
