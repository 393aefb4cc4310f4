"""Keep references to background tasks, and report their errors, which asyncio would drop silently."""

from __future__ import annotations

import asyncio
import os
import sys
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


class Tasks:
    """A set of running tasks; a defect in one is reported on stderr and ends that task alone."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Start `work` as a background task."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    async def complete(self, work: Coroutine[Any, Any, T], name: str) -> T:
        """Run `work` and return its result. It runs to its end even if the caller is cancelled."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        # An error goes to the caller, and is not reported here.
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)

    def __len__(self) -> int:
        return len(self._tasks)

    async def cancel_all(self) -> None:
        """Cancel all tasks but the current one, and wait until they have ended."""
        # A task may stop everything, itself included; it would wait for its own end.
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            report_defect(task.get_name(), error)


def signal_process(process: asyncio.subprocess.Process, number: int) -> None:
    """Send a signal to a process of asyncio, unless it has ended.

    Its own methods (`kill`, `terminate`, `send_signal`) first look whether the process has ended, and take its exit
    status before the thread of asyncio that waits for it. That one then logs "Unknown child process", and the process
    seems to have ended with 255.
    """
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, number)


def report_defect(what: str, error: BaseException) -> None:
    """Write an error with its traceback to the engine's log. `what` must be free of control characters."""
    print(f"cockpit: {what} failed", file=sys.stderr)  # noqa: T201 - the engine's log is its stderr
    traceback.print_exception(error)
