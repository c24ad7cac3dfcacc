"""How large a number on the command line may be: more would fill the memory before anything could
say so, or fit no integer of a program.
"""

import dataclasses
from typing import Any

from goatrl.types import GoatError

INT32 = 2**31 - 1
# Option → lowest and highest number. What is too low for an option without a lowest one here is
# refused where it is used, from Python too.
LIMITS: dict[str, tuple[int | None, int]] = {
    "seed": (0, INT32),
    "seeds": (None, 1_000),
    "threads": (1, 1_024),
    "updates": (None, INT32),
    "batch_size": (None, 1_000_000),
    "episodes": (None, 1_000_000),
    "horizon": (None, 100_000),
    "rounds": (None, 1_000_000),
}


def check(command: Any) -> None:
    """Refuse numbers of a command that are beyond their limits."""
    for field in dataclasses.fields(command):
        value = getattr(command, field.name)
        low, high = LIMITS.get(field.name, (None, INT32))
        if not isinstance(value, int) or isinstance(value, bool):
            continue
        option = f"--{field.name.replace('_', '-')}"
        if low is not None and value < low:
            raise GoatError(f"{option} must be at least {low}, not {value}")
        if value > high:
            raise GoatError(f"{option} must be at most {high:,}, not {value:,}")
