"""Strict arithmetic for every test, and small problems that many of them share."""

from __future__ import annotations

import os
from pathlib import Path

import jax
import numpy as np
import pytest
from hypothesis import settings as hypothesis_settings

from goatrl import tasks
from goatrl.data import of_group
from goatrl.types import Episodes, make_episodes

jax.config.update("jax_numpy_rank_promotion", "raise")
# Strict dtype promotion is not possible as well: optax raises Python floats to integer powers.

hypothesis_settings.register_profile("goatrl", deadline=None, max_examples=60, derandomize=True)
hypothesis_settings.load_profile("goatrl")

REFERENCE_DATA = Path(
    os.environ.get("GOATRL_REFERENCE_DATA", Path(__file__).parents[2] / "shared" / "reference-data")
)


@pytest.fixture(scope="session")
def reference_data() -> Path:
    """The authors' own files; they are not part of the repository."""
    if not REFERENCE_DATA.is_dir():
        pytest.skip(
            f"the authors' data files are not at {REFERENCE_DATA}; set GOATRL_REFERENCE_DATA to "
            "their folder"
        )
    return REFERENCE_DATA


@pytest.fixture(scope="session")
def point_episodes() -> Episodes:
    return of_group(tasks.get("pointreach-non-expert-10"))


@pytest.fixture(scope="session")
def odd_episodes() -> Episodes:
    """Every dimension different, so that a mixed-up axis cannot pass: observation 5, goal 3, action
    2, T = 7, N = 4.
    """
    rng = np.random.default_rng(0)
    achieved = rng.normal(size=(4, 8, 3))
    observations = np.concatenate([achieved, rng.normal(size=(4, 8, 2))], axis=-1)
    return make_episodes(
        observations, achieved, rng.uniform(-1, 1, (4, 7, 2)), rng.normal(size=(4, 3))
    )
