"""Compiled programs are kept, in the user's cache or where JAX was told to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import pytest

from goatrl.disk.compiled import keep_compiled_programs

CONFIG: Any = jax.config


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = CONFIG.jax_compilation_cache_dir
    yield
    CONFIG.update("jax_compilation_cache_dir", before)


def test_in_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    CONFIG.update("jax_compilation_cache_dir", None)
    keep_compiled_programs()
    assert CONFIG.jax_compilation_cache_dir == str(tmp_path / "goatrl" / "xla")
    assert CONFIG.jax_persistent_cache_min_compile_time_secs == 0.0, "small ones too"


def test_where_jax_was_told_to(tmp_path: Path) -> None:
    CONFIG.update("jax_compilation_cache_dir", str(tmp_path))
    keep_compiled_programs()
    assert CONFIG.jax_compilation_cache_dir == str(tmp_path)
