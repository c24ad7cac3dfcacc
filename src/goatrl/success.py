"""When a goal is reached: the one definition, for NumPy and for JAX arrays.

Numbers stay in the precision they come in, so that rewards within a compiled program, recorded
episodes and exported datasets agree.
"""

from __future__ import annotations

from typing import Any


def distance(achieved: Any, goal: Any) -> Any:
    """‖φ(s) − g‖: (…, goal_dim) → (…)."""
    difference = achieved - goal
    numpy = difference.__array_namespace__()  # NumPy's or JAX's
    return numpy.sqrt(numpy.sum(difference**2, axis=-1))


def reached(achieved: Any, goal: Any, threshold: float) -> Any:
    """Whether ‖φ(s) − g‖ ≤ δ: (…, goal_dim) → (…)."""
    return distance(achieved, goal) <= threshold
