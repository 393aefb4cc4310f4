"""The first process of a container, or the ancestor of plain ones: reaps, listens to the engine, sees that what the job
runs is run in its order, tells how the command ended, stays.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import time

from cockpit.runtime.containers.shim import program
from cockpit.runtime.containers.shim.programs import AFTER, BEFORE, COMMAND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from cockpit.runtime.containers.shim.attempt import Attempt, Record
    from cockpit.runtime.containers.shim.job_processes import JobProcesses
    from cockpit.runtime.containers.shim.limits import Limits
    from cockpit.runtime.containers.shim.programs import Programs

TERMINATE = signal.SIGRTMIN + 1
"""From the engine: ask the command to end."""
KILL = signal.SIGRTMIN + 2
"""From the engine: kill everything in the container, now."""
EARLY = signal.SIGRTMIN + 4
"""From the engine: give the batch script the signal that it wants before its time limit."""
LEAVE = signal.SIGRTMIN + 3
"""From the engine: kill everything and end, the container is no longer kept.

Real-time signals are queued: one that a job sends cannot swallow the engine's."""

LOOK_SECONDS = 5.0
"""How often the holder of a kept container looks whether its window is over."""
_RETRY_SECONDS = 0.5
_DRAIN_SECONDS = 2.0
"""How long those that read the pipes of a command that has ended may go on."""
_KIB_PER_MIB = 1024


class Holder:
    """`running` is the pid of the first of the programs; None for both where the last had ended before this holder."""

    SIGNALS = frozenset({signal.SIGCHLD, TERMINATE, KILL, EARLY, LEAVE})
    """Blocked since before the holder was forked, so that none is missed."""

    def __init__(
        self, attempt: Attempt, limits: Limits, inmates: JobProcesses, programs: Programs | None, running: int | None
    ) -> None:
        self._attempt = attempt
        self._processes = inmates
        self._limits = limits
        self._programs = programs
        self._logs = programs.log_bounds() if programs is not None else None
        self._running = running
        self._which = programs.first if programs is not None else COMMAND
        self._asked_to_end = self._killed = False
        self._how: Record = {}
        """How the command ended, while the script after it runs."""
        self._after_until = 0.0
        self._untold: Record | None = None
        """The exit record, until it is written and the engine told."""

    def run(self) -> NoReturn:
        while True:
            self._take(self._wait())
            self._reap()
            self._copy_output()
            self._tell()

    def _wait(self) -> signal.struct_siginfo | None:
        if self._untold is not None:
            return signal.sigtimedwait(self.SIGNALS, _RETRY_SECONDS)
        if self._running is None:
            return signal.sigtimedwait(self.SIGNALS, LOOK_SECONDS)
        if self._logs is None:
            return signal.sigwaitinfo(self.SIGNALS)
        seconds = self._logs.look()
        if self._is_after and not self._killed:
            seconds = min(seconds, max(0.0, self._after_until - time.monotonic()))
        if self._programs is not None and self._programs.mirrors:
            seconds = min(seconds, self._programs.mirrors.seconds)
        return signal.sigtimedwait(self.SIGNALS, seconds)

    def _take(self, received: signal.struct_siginfo | None) -> None:
        if received is None:
            if self._is_after and not self._killed and time.monotonic() >= self._after_until:
                self._kill()
            if self._running is None and self._is_over():
                self._leave()
            return
        if received.si_signo == signal.SIGCHLD or self._processes.sent(received):
            return
        if received.si_signo == LEAVE:
            self._leave()
        if received.si_signo == EARLY:
            if self._programs is not None and self._running is not None and self._which == COMMAND:
                self._programs.send_early_signal(self._running)
            return
        self._asked_to_end = True
        if received.si_signo == KILL:
            self._kill()
        elif self._running is not None and not self._is_after:
            _signal_group(self._running)

    def _leave(self) -> NoReturn:
        self._processes.leave()
        os._exit(0)

    def _is_over(self) -> bool:
        """Kept for longer than its window, and no engine runs that would end it. Files wait for the next engine."""
        kept = self._attempt.read("kept.json")
        until = None if kept is None else kept.get("until")
        if until is None or time.time_ns() // 1_000_000 < until:  # noqa: TID251 - outlives the engine and its clock
            return False
        return not self._attempt.is_served()

    @property
    def _is_after(self) -> bool:
        """The script after the command runs."""
        return self._which == AFTER and self._running is not None

    def _kill(self) -> None:
        self._killed = True
        self._processes.kill()

    def _reap(self) -> None:
        for pid, status in _ended_children():
            if pid == self._running:
                self._running = None
                self._go_on(os.waitstatus_to_exitcode(status))

    def _go_on(self, code: int) -> None:
        """One of the programs has ended: with the next one, or to the end."""
        if self._which == AFTER:
            if code:
                self._complain(f"after_end {_words(code)}")
        elif self._which == BEFORE and code == 0 and not self._asked_to_end:
            if self._begins(COMMAND):
                return
        else:
            self._how = self._outcome(code)
            if self._begins_after():
                return
        self._end()

    def _outcome(self, code: int) -> Record:
        """Of the command, or of the script before it in its stead."""
        if self._which == BEFORE:
            code = code or -signal.SIGTERM
            self._complain(f"before_start {_words(code)}; the command is not run")
        how: Record = {"code": code} if code >= 0 else {"signal": -code}
        hook = {"hook": BEFORE} if self._which == BEFORE else {}
        return {**how, **hook, "oom": code != 0 and self._limits.saw_oom()}

    def _begins_after(self) -> bool:
        """Not once the time to end is over."""
        if self._programs is None or self._killed or not self._programs.seconds_after:
            return False
        self._after_until = time.monotonic() + self._programs.seconds_after
        code = self._how.get("code", 128 + self._how.get("signal", 0))
        return self._begins(AFTER, {"COCKPIT_EXIT_CODE": str(code)})

    def _begins(self, which: str, told: dict[str, str] | None = None) -> bool:
        assert self._programs is not None
        self._which = which
        try:
            self._running = self._programs.start(which, told).let_in()
        except (OSError, program.StartError) as error:
            self._complain(f"{which}: {error}")
            if which == COMMAND:
                self._how = {"lost": str(error)}
            return False
        return True

    def _complain(self, sentence: str) -> None:
        if self._programs is not None:
            with contextlib.suppress(OSError):
                self._programs.complain(sentence)

    def _end(self) -> None:
        """The record says that everything is dead, so first everything is. Who enters looks for `running` once inside:
        either they see that it is gone, or they are killed here."""
        self._attempt.forget("running")
        self._let_pipes_drain()
        self._kill_everything()
        if self._programs is not None:
            self._programs.mirrors.step()
        if self._logs is not None:
            self._logs.look()
        ended_at = time.time_ns() // 1_000_000  # noqa: TID251 - outlives the engine and its clock
        self._untold = {**self._how, "ended_at": ended_at, **_used()}
        self._tell()

    def _let_pipes_drain(self) -> None:
        """A script that says `exec > >(tee log)` has ended before `tee` has written its last lines. The end of such a
        reader wakes this process, whose child it has become."""
        until = time.monotonic() + _DRAIN_SECONDS
        while not self._killed and self._processes.read_pipes() and (left := until - time.monotonic()) > 0:
            received = signal.sigtimedwait(self.SIGNALS, left)
            _ended_children()
            if received is None or received.si_signo == signal.SIGCHLD or self._processes.sent(received):
                continue
            if received.si_signo == LEAVE:
                self._leave()
            self._killed = received.si_signo == KILL

    def _copy_output(self) -> None:
        """Of a batch script that runs: what it wrote into its own files goes into the logs."""
        if self._programs is not None and self._running is not None:
            self._programs.mirrors.step()

    def _kill_everything(self) -> None:
        """Returns when none of them lives. One that the kernel cannot end yet keeps its devices: wait for it."""
        while True:
            self._processes.kill()
            _ended_children()
            if not self._processes.are_left():
                return
            time.sleep(0.001)

    def _tell(self) -> None:
        """Write the exit record and tell the engine; what fails (disk full, the engine busy) is tried again."""
        if self._untold is None:
            return
        try:
            if self._attempt.read("exit.json") is None:
                self._attempt.write_exit(self._untold)
        except OSError:
            return
        if self._attempt.notify():
            self._untold = None


def _words(code: int) -> str:
    return f"ended with {code}" if code >= 0 else f"was ended by {signal.Signals(-code).name}"


def _used() -> Record:
    """By all that have been waited for: CPU time, and the memory of the largest. For where no cgroup counts."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"cpu_ms": int((used.ru_utime + used.ru_stime) * 1000), "peak_memory_mib": used.ru_maxrss // _KIB_PER_MIB}


def _ended_children() -> list[tuple[int, int]]:
    """Reap every dead child: (pid, wait status)."""
    ended: list[tuple[int, int]] = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended.append((pid, status))


def _signal_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGTERM)
