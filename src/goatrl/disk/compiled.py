"""Compiled programs on disk: a second run of a command, or of a script, compiles nothing."""

from __future__ import annotations

from typing import Any

import jax

from goatrl.disk.files import cache_folder


def keep_compiled_programs() -> None:
    """Keep all, however small, in the user's cache, unless JAX already keeps them elsewhere."""
    config: Any = jax.config
    if config.jax_compilation_cache_dir is None:
        config.update("jax_compilation_cache_dir", str(cache_folder("xla")))
        config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
