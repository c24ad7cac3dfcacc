"""Who works in a folder or at a file: one process at a time, which others can name.

RUN/.in-use   process, machine and command, as one line of JSON; removed at the end

The lock is the kernel's (flock) and ends with its process, however that ends. Some network file
systems have no such locks, or count them on each machine alone. There the file itself decides: as
long as a process works, it touches the file every few seconds.
"""

from __future__ import annotations

import dataclasses
import datetime
import errno
import fcntl
import json
import os
import platform
import secrets
import shlex
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from goatrl.disk.files import WriteError, make_folder, remove_left_overs
from goatrl.disk.reading import text_of
from goatrl.types import GoatError

TOUCHED_EVERY = 5.0  # seconds
PATIENCE = 30.0  # seconds without a touch after which a process on another machine has ended
LONG_AGO = 600.0  # seconds since its last touch that clocks of two machines never differ by
SETTLED = 0.5  # seconds after which whoever has come at the same time has written its name


class InUse(GoatError):
    """Another process works here."""

    exit_code = 1

    def __init__(self, what: Path, holder: Holder | None) -> None:
        who = "another process" if holder is None else str(holder)
        super().__init__(f"{what} is in use by {who}; wait until it has ended, or stop it first")


@dataclasses.dataclass(frozen=True)
class Holder:
    """Who works here, as its file says."""

    pid: int
    host: str
    command: str
    since: str
    token: str  # no two are alike

    @classmethod
    def this_process(cls) -> Holder:
        program, *words = sys.argv or [""]
        return cls(
            os.getpid(),
            platform.node(),
            shlex.join([Path(program).name, *words])[:200],
            datetime.datetime.now().astimezone().isoformat(" ", "seconds"),
            secrets.token_hex(8),
        )

    @classmethod
    def read(cls, path: Path) -> Holder | None:
        """None of a file that says nothing, such as one that is just being written."""
        try:
            found = cls(**json.loads(text_of(path)))
        except (OSError, ValueError, TypeError):
            return None
        return found if isinstance(found.pid, int) and found.pid > 0 else None

    def __str__(self) -> str:
        text = f"process {self.pid} on {self.host} ({self.command}, since {self.since})"
        return "".join(letter if letter.isprintable() else "?" for letter in text)

    def is_alive(self) -> bool:
        """Whether a process of this machine still runs."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return True


def working_in(folder: Path) -> Holder | None:
    """Which process of this machine works in a folder, as far as its file says."""
    found = Holder.read(folder / ".in-use")
    here = found is not None and found.host == platform.node() and found.is_alive()
    return found if here else None


@contextmanager
def claimed(what: Path, file: Path | None = None, wait: float = 0.0) -> Iterator[None]:
    """Work in a folder, or at what `file` stands for, as the only process that does. Refused by the
    name of the process that does already, if it still does after some seconds of waiting.
    """
    path = what / ".in-use" if file is None else file
    try:
        make_folder(path.parent)
        descriptor = _take(what, path, time.monotonic() + wait)
    except OSError as error:
        raise WriteError(path, error) from error
    ended = threading.Event()

    def touch() -> None:
        while not ended.wait(TOUCHED_EVERY):
            with suppress(OSError):
                os.utime(descriptor)

    toucher = threading.Thread(target=touch, daemon=True)
    toucher.start()
    try:
        remove_left_overs(path.parent)
        yield
    finally:
        ended.set()
        toucher.join()
        try:
            with suppress(OSError):  # the lock ends all the same
                os.unlink(path)
        finally:
            os.close(descriptor)


def _take(what: Path, path: Path, until: float) -> int:
    """The open file of a claim, which is this process's from now on."""
    while True:
        try:
            if (descriptor := _try(what, path)) is not None:
                return descriptor
        except InUse:
            if time.monotonic() >= until:
                raise
            time.sleep(SETTLED / 20)


def _try(what: Path, path: Path) -> int | None:
    """The same, or nothing if its holder ended, and removed it, since it was opened."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    taken = False
    try:
        locks = _lock(descriptor, what, path)
        if not _is_at(descriptor, path):
            return None
        _require_ended(Holder.read(path), locks, what, path)
        mine = Holder.this_process()
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(dataclasses.asdict(mine)).encode(), 0)
        os.fsync(descriptor)
        if not locks:
            time.sleep(SETTLED)
            if (found := Holder.read(path)) != mine:
                raise InUse(what, found)
        taken = True
        return descriptor
    finally:
        if not taken:
            os.close(descriptor)


def _lock(descriptor: int, what: Path, path: Path) -> bool:
    """Whether the file system has locks. Refuses what is locked."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InUse(what, _named(path)) from None
    except OSError:
        return False
    return True


def _named(path: Path) -> Holder | None:
    """Who has locked a file. It writes its name right after that."""
    until = time.monotonic() + SETTLED
    while (found := Holder.read(path)) is None and time.monotonic() < until:
        time.sleep(SETTLED / 20)
    return found


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
    except OSError as error:
        if error.errno == errno.ESTALE:  # as NFS says of a file that another machine removed
            return False
        raise


def _require_ended(holder: Holder | None, locks: bool, what: Path, path: Path) -> None:
    """Refuse what a process works at that no lock has shown. That of this machine is asked for; one
    on another machine is given time to touch its file.
    """
    if holder is None:
        return
    if holder.host == platform.node():
        if not locks and holder.is_alive():
            raise InUse(what, holder)
        return
    seen, until = _touched(path), time.monotonic() + PATIENCE
    if seen is not None and time.time() - seen / 1e9 > LONG_AGO:
        return
    while time.monotonic() < until:
        time.sleep(min(1.0, PATIENCE / 10))
        if _touched(path) != seen:
            raise InUse(what, holder)


def _touched(path: Path) -> int | None:
    """When, by the clock of the file system. Opening makes network file systems look again."""
    try:
        with path.open("rb") as file:
            return os.fstat(file.fileno()).st_mtime_ns
    except OSError:
        return None
