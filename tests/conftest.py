"""Strict arithmetic for every test, and small problems that many of them share."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import jax
import numpy as np
import pytest
from hypothesis import settings as hypothesis_settings

from goatrl import tasks
from goatrl.data import of_group
from goatrl.episodes import make_episodes
from goatrl.experiments import estimate
from goatrl.types import Episodes
from helpers import keep_few_advantages

# Each worker has one core of two; more threads of XLA would only wait for each other.
os.environ["NPROC"] = "1"
# Code that is emitted in the simplest way, as one piece, takes a third of the time to compile. An
# XLA that does not know a flag ends the process, so that others than the pinned one get none.
if jax.__version_info__[:2] == (0, 10):
    flags = "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flags}"

ROOT = Path(__file__).parents[1]
LIBC = ctypes.CDLL(None)
STATM = Path("/proc/self/statm")
# Bytes, after which a worker gives some back: within a file, and between two.
MEMORY, BETWEEN = 1.6e9, 1.1e9
# Measured on a quiet machine: what takes more than about two seconds by itself, and is not the
# arithmetic of tests/learn.
SLOW = {
    "contract",
    "fuzz",
    "probe",
    "training",
    "runs",
    "test_ablate",
    "test_api",
    "test_architecture",
    "test_benchmarks",
    "test_cli",
    "test_cli_data",
    "test_cli_export",
    "test_cluster",
    "test_collect",
    "test_crashes",
    "test_data_figures",
    "test_docs",
    "test_environments",
    "test_estimate",
    "test_evaluate_robots",
    "test_examples",
    "test_figures",
    "test_finetuning_suite",
    "test_grid",
    "test_gym",
    "test_jobs",
    "test_minari",
    "test_mujoco",
    "test_new_group",
    "test_new_robot",
    "test_newer",
    "test_packing",
    "test_page",
    "test_planning",
    "test_spent",
    "test_strangers",
    "test_sweep",
    "test_theory",
    "test_timing",
    "test_trust",
    "test_uncertainty",
    "test_view",
}

jax.config.update("jax_numpy_rank_promotion", "raise")
# Strict dtype promotion is not possible as well: optax raises Python floats to integer powers.

hypothesis_settings.register_profile("goatrl", deadline=None, max_examples=60, derandomize=True)
hypothesis_settings.load_profile("goatrl")

# Tests' programs run for less time than it takes to optimise them.
jax.config.update("jax_disable_most_optimizations", True)
# Workers, and runs, share what they compile, however small.
jax.config.update("jax_compilation_cache_dir", str(ROOT / ".pytest_cache" / "xla"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)

REFERENCE_DATA = Path(
    os.environ.get("GOATRL_REFERENCE_DATA", Path(__file__).parents[2] / "shared" / "reference-data")
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`make test-fast` leaves out what is slow."""
    for item in items:
        if SLOW & {item.path.stem, *item.path.relative_to(ROOT).parts}:
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Thousands of tests and all that they import stay: nobody searches them for garbage, neither
    while they are collected nor afterwards.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def _programs_are_forgotten() -> Iterator[None]:
    """Hundreds of them fill gigabytes. A few remain: the next file may need the same."""
    yield
    _give_memory_back(BETWEEN)


@pytest.fixture(autouse=True)
def _memory_is_bounded() -> Iterator[None]:
    yield
    _give_memory_back(MEMORY)


@pytest.fixture(autouse=True)
def _nothing_is_learned_from_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """About how long something takes; nor do tests depend on what was learned before."""
    file = tmp_path.with_name(f"{tmp_path.name}-estimates") / "ratios.json"
    monkeypatch.setattr(estimate, "_file", lambda: file)


@pytest.fixture(scope="module")
def few_percentiles() -> Iterator[None]:
    """For files whose tests train briefly."""
    with pytest.MonkeyPatch.context() as patch:
        keep_few_advantages(patch)
        yield


def _give_memory_back(limit: float) -> None:
    """Where more than `limit` is held, or nobody knows."""
    if STATM.exists() and int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") < limit:
        return
    jax.clear_caches()
    if simulator := sys.modules.get("goatrl.robots.physics.simulator"):
        simulator._spare.clear()  # states of thousands of robots
    gc.collect()
    if hasattr(LIBC, "malloc_trim"):  # glibc keeps what is freed, unless asked for it
        LIBC.malloc_trim(0)


@pytest.fixture
def compilations() -> Iterator[list[str]]:
    """The names of all programs that are compiled, or read from the cache on disk, from now on."""
    found: list[str] = []

    def listen(event: str, seconds: float, **about: str | int) -> None:
        if event == "/jax/core/compile/backend_compile_duration":
            found.append(str(about["fun_name"]).removeprefix("jit(").removesuffix(")"))

    jax.monitoring.register_event_duration_secs_listener(listen)
    jax.clear_caches()
    yield found
    jax.monitoring.unregister_event_duration_listener(listen)


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
