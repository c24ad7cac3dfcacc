"""Where a file is written that the user names."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from goatrl.types import GoatError


def target(path: Path) -> Path:
    """The file itself where `path` is a symbolic link, which stays. What is no file is refused: a
    device or a pipe would be replaced by one.
    """
    try:
        mode = os.stat(path).st_mode
    except OSError:  # there is nothing yet, or whoever writes it will say why not
        mode = stat.S_IFREG
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise GoatError(f"cannot write {path}: it is a device or a pipe; name a file")
    return Path(os.path.realpath(path)) if path.is_symlink() else path
