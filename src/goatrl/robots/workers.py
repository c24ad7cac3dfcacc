"""Processes that simulate, one for each core: neither the interpreter's lock nor a thread that
trains holds them up.

A cluster can take their place (`simulating_on`). Here, each is served by a thread, which sends it a
function with its arguments and waits for the result. They are started by name, not by
`multiprocessing`, which would execute a user's script once more in each of them.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import IO, Any, Protocol

from goatrl.robots.threads import NICENESS
from goatrl.types import GoatError

START = "from goatrl.robots.workers import serve; serve()"
Process = subprocess.Popen[bytes]
# One thread each, and the accelerator is not theirs.
ENVIRONMENT = {"NPROC": "1", "OMP_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu"}


class Lost(GoatError):
    """Work that was given up, as the processes that did it have ended."""

    exit_code = 1


class Pending(Protocol):
    """The result of a call, in time."""

    def result(self) -> Any: ...

    def cancel(self) -> object: ...


class Pool(Protocol):
    """Processes that simulate, wherever they are."""

    @property
    def count(self) -> int:
        """How many calls run at the same time."""

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Pending:
        """Call a function, which a process must be able to import, in the next one that is free."""

    def share(self, value: Any) -> Any:
        """What stands for a value among the arguments of many calls."""


class Workers:
    """Processes that are started when they are first needed, and end with this one."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._own = threading.local()
        self._started: list[Process] = []
        self._threads = ThreadPoolExecutor(count, "worker")

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        return self._threads.submit(self._call, function, arguments)

    def share(self, value: Any) -> Any:
        return value

    def _call(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        if not hasattr(self._own, "process"):
            self._own.process = _start()
            self._started.append(self._own.process)
        process: Process = self._own.process
        # As bytes within the stream: what it cannot import fails this call, not the process.
        call = pickle.dumps((function, arguments))
        try:
            pickle.dump(call, _open(process.stdin))
            _open(process.stdin).flush()
            succeeded, result = pickle.load(_open(process.stdout))
        except Exception:  # its last words may be anything
            del self._own.process  # the next call starts another one
            process.kill()
            raise Lost(
                f"a process that simulates has ended unexpectedly (exit code {process.wait()}); "
                "if memory ran out, free some and rerun the command to resume"
            ) from None
        if not succeeded:
            raise result
        return result

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)
        for process in self._started:
            with contextlib.suppress(BrokenPipeError), process:  # closes pipes and waits
                pass


_ELSEWHERE: list[Pool] = []


def workers() -> Pool:
    """Where this process simulates now."""
    return _ELSEWHERE[-1] if _ELSEWHERE else _here()


@contextlib.contextmanager
def simulating_on(pool: Pool) -> Iterator[None]:
    """Whatever is simulated meanwhile, by whichever thread, is simulated there."""
    _ELSEWHERE.append(pool)
    try:
        yield
    finally:
        _ELSEWHERE.remove(pool)


@cache
def _here() -> Workers:
    """Processes of this one, as many as it has cores."""
    found = Workers(len(os.sched_getaffinity(0)))
    atexit.register(found.close)
    return found


def _open(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


def _start() -> Process:
    path = os.pathsep.join(place or os.getcwd() for place in sys.path)
    return subprocess.Popen(
        [sys.executable, "-P", "-c", START],  # files of the current folder are not modules
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **ENVIRONMENT, "PYTHONPATH": path},
        process_group=0,  # Ctrl-C reaches the first process alone, which decides
    )


def portable(value: Any) -> bool:
    """Whether another process could import all that a value is made of."""
    try:
        return b"__main__" not in pickle.dumps(value)
    except Exception:
        return False


def the_same(value: Any) -> Any:
    """What first came to this process as equal data: a robot's model is made once for each."""
    return _KNOWN.setdefault(pickle.dumps(value), value)


_KNOWN: dict[bytes, Any] = {}


def serve() -> None:
    """What a process does until the one that started it has gone."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints does not get between the replies
    os.setpriority(os.PRIO_PROCESS, 0, max(NICENESS, os.getpriority(os.PRIO_PROCESS, 0)))
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            call = pickle.load(requests)
            try:
                function, arguments = pickle.loads(call)
                reply = True, function(*arguments)
            except GoatError as error:
                reply = False, error
            except Exception:
                reply = False, RuntimeError(traceback.format_exc())
            pickle.dump(reply, replies)
            replies.flush()
