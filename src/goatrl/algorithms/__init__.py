"""The algorithms. Every module of this folder is imported, and registers what it defines: one more
file, one more algorithm.
"""

import importlib
import pkgutil

from goatrl.algorithms.registry import (
    Entry,
    entries,
    fault,
    get,
    load_content,
    load_file,
    recorded,
    register,
    resolve,
)

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = [
    "Entry",
    "entries",
    "fault",
    "get",
    "load_content",
    "load_file",
    "recorded",
    "register",
    "resolve",
]
