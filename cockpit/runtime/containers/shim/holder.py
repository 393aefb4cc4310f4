"""The first process of a container, or the ancestor of plain processes: the holder.

It waits for signals in one loop (`Holder.run`):

1. Wait for a dead child, a signal of the engine, or the next time limit.
2. Obey the signal: end the command, kill everything, hand on a batch script's early signal, or leave.
3. Reap dead children. When one of the job's programs has ended, start the next: the script before the command, the
   command, the script after it. After the last, kill what is left of the job and compose the exit record.
4. Copy a batch script's own output files into the logs.
5. Write the exit record, if there is one, and wake the engine. Failures (a full disk) are tried again.

Afterwards the holder stays, so that the container of a failed job can be entered, until the engine ends the hold.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import time

from cockpit.runtime.containers.shim import linux, program
from cockpit.runtime.containers.shim.programs import AFTER, BEFORE, COMMAND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from cockpit.runtime.containers.shim.attempt import Attempt, Record
    from cockpit.runtime.containers.shim.job_processes import JobProcesses
    from cockpit.runtime.containers.shim.limits import ReplicaLimits
    from cockpit.runtime.containers.shim.programs import Programs

TERMINATE = signal.SIGRTMIN + 1
"""Signal of the engine: ask the command to end."""
KILL = signal.SIGRTMIN + 2
"""Signal of the engine: kill everything in the container at once."""
EARLY = signal.SIGRTMIN + 4
"""Signal of the engine: give the batch script the signal that it asked for before its time limit."""
LEAVE = signal.SIGRTMIN + 3
"""Signal of the engine: kill everything and end, since the container is no longer held.

Real-time signals are queued, so an equal signal that a job sends cannot displace the engine's."""

LOOK_SECONDS = 5.0
"""Interval at which the holder of a held container checks whether the hold has expired."""
_RETRY_SECONDS = 0.5
"""Interval between two tries to write the exit record."""
_DRAIN_SECONDS = 2.0
"""Longest time for processes that read pipes of the ended command, such as `tee`, to write their last output."""
_KIB_PER_MIB = 1024


class Holder:
    """The loop of a holder.

    `running`: the pid of the first program. It and `programs` are None if the command ended under an earlier holder.
    """

    SIGNALS = frozenset({signal.SIGCHLD, TERMINATE, KILL, EARLY, LEAVE})
    """Blocked since before the holder was forked, so that none is missed."""

    def __init__(
        self,
        attempt: Attempt,
        limits: ReplicaLimits,
        processes: JobProcesses,
        programs: Programs | None,
        running: int | None,
    ) -> None:
        self._attempt = attempt
        self._processes = processes
        self._limits = limits
        self._programs = programs
        self._logs = programs.log_bounds() if programs is not None else None
        self._running = running
        self._which = programs.first if programs is not None else COMMAND
        self._asked_to_end = self._killed = False
        self._how: Record = {}
        """How the command ended, while the script after it runs."""
        self._after_until = 0.0
        """When the script after the command is killed (monotonic clock, seconds)."""
        self._unreported: Record | None = None
        """The exit record, until it is written and the engine is notified."""

    def run(self) -> NoReturn:
        while True:
            self._take(self._wait())  # 1, 2
            self._reap()  # 3
            self._copy_output()  # 4
            self._report()  # 5

    def _wait(self) -> signal.struct_siginfo | None:
        # the exit record is not on the disk yet: try again soon, and obey signals meanwhile
        if self._unreported is not None:
            return signal.sigtimedwait(self.SIGNALS, _RETRY_SECONDS)
        # the command has ended: only the engine's signals and the end of the hold are left
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
        # A process of the job may send these signals too, and must not command the holder.
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
        # the script after the command is not asked to end: it has a time limit of its own (`_after_until`)
        elif self._running is not None and not self._is_after:
            _signal_group(self._running)

    def _leave(self) -> NoReturn:
        self._processes.leave()
        os._exit(0)

    def _is_over(self) -> bool:
        """Return whether the hold has expired and no engine runs that would end it. The next engine deletes the
        files."""
        kept = self._attempt.read("kept.json")
        until = None if kept is None else kept.get("until")
        if until is None or time.time_ns() // 1_000_000 < until:  # noqa: TID251 - outlives the engine and its clock
            return False
        return not self._attempt.is_served()

    @property
    def _is_after(self) -> bool:
        """Whether the script after the command is running."""
        return self._which == AFTER and self._running is not None

    def _kill(self) -> None:
        self._killed = True
        self._processes.kill()

    def _reap(self) -> None:
        # the others are orphans of the job, whose parent this process has become: they are only reaped
        for pid, status in linux.ended_children():
            if pid == self._running:
                self._running = None
                self._continue_after(os.waitstatus_to_exitcode(status))

    def _continue_after(self, code: int) -> None:
        """Start the program that follows the one that has ended with this code, or end the attempt."""
        # The outcome is the command's, whatever the script after it does.
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
        """Return the outcome of the command, or of the script before it if the command is not run."""
        if self._which == BEFORE:
            code = code or -signal.SIGTERM  # the script succeeded, but the job was asked to end meanwhile
            self._complain(f"before_start {_words(code)}; the command is not run")
        how: Record = {"code": code} if code >= 0 else {"signal": -code}
        hook = {"hook": BEFORE} if self._which == BEFORE else {}
        return {**how, **hook, "oom": code != 0 and self._limits.saw_oom()}

    def _begins_after(self) -> bool:
        """Start the script after the command, unless there is none or the job was killed."""
        if self._programs is None or self._killed or not self._programs.seconds_after:
            return False
        self._after_until = time.monotonic() + self._programs.seconds_after
        # the code that a shell reports for a command that a signal has ended
        code = self._how.get("code", 128 + self._how.get("signal", 0))
        return self._begins(AFTER, {"COCKPIT_EXIT_CODE": str(code)})

    def _begins(self, which: str, variables: dict[str, str] | None = None) -> bool:
        assert self._programs is not None
        self._which = which
        try:
            self._running = self._programs.start(which, variables).let_in()
        except (OSError, program.StartError) as error:
            self._complain(f"{which}: {error}")
            # Without the command there is no outcome but this; a script after it leaves the command's.
            if which == COMMAND:
                self._how = {"lost": str(error)}
            return False
        return True

    def _complain(self, sentence: str) -> None:
        if self._programs is not None:
            with contextlib.suppress(OSError):
                self._programs.complain(sentence)

    def _end(self) -> None:
        """Kill what is left of the job, and compose the exit record, which states that everything is dead.

        `running` is removed before the kill. A program that is just being entered checks that file once it is inside:
        either it sees that the file is gone and ends, or it is already among the processes that are killed here.
        """
        self._attempt.forget("running")
        # readers of pipes first: once they are killed, their last lines are lost
        self._let_pipes_drain()
        self._kill_everything()
        if self._programs is not None:
            self._programs.mirrors.step()
        if self._logs is not None:
            self._logs.look()
        ended_at = time.time_ns() // 1_000_000  # noqa: TID251 - outlives the engine and its clock
        self._unreported = {**self._how, "ended_at": ended_at, **_children_usage()}
        self._report()

    def _let_pipes_drain(self) -> None:
        """Wait a moment for processes that still read the command's output.

        A script with `exec > >(tee log)` ends before `tee` has written its last lines. Such a reader has become a child
        of the holder, so that its end wakes the holder.
        """
        until = time.monotonic() + _DRAIN_SECONDS
        while not self._killed and self._processes.read_pipes() and (left := until - time.monotonic()) > 0:
            received = signal.sigtimedwait(self.SIGNALS, left)
            linux.ended_children()
            if received is None or received.si_signo == signal.SIGCHLD or self._processes.sent(received):
                continue
            if received.si_signo == LEAVE:
                self._leave()
            self._killed = received.si_signo == KILL

    def _copy_output(self) -> None:
        """Copy what a running batch script has written into its own output files to the logs."""
        if self._programs is not None and self._running is not None:
            self._programs.mirrors.step()

    def _kill_everything(self) -> None:
        """Kill all processes of the job, and return when none lives.

        A process inside of a driver may take long to die. Its cards are in use until then, so the job has not ended.
        """
        # One round is not enough: a process may fork while it is being killed.
        while True:
            self._processes.kill()
            linux.ended_children()
            if not self._processes.are_left():
                return
            time.sleep(0.001)

    def _report(self) -> None:
        """Write the exit record and notify the engine. After an error (such as a full disk) the next call retries."""
        if self._unreported is None:
            return
        try:
            # It is written once; if only the notification failed, the next call repeats that alone.
            if self._attempt.read("exit.json") is None:
                self._attempt.write_exit(self._unreported)
        except OSError:
            return
        if self._attempt.notify():
            self._unreported = None


def _words(code: int) -> str:
    return f"ended with {code}" if code >= 0 else f"was ended by {signal.Signals(-code).name}"


def _children_usage() -> Record:
    """Return CPU time and peak memory of the reaped processes, for machines where no cgroup counts them."""
    # ru_maxrss is that of the largest child, in KiB, and no sum over all (getrusage(2))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"cpu_ms": int((used.ru_utime + used.ru_stime) * 1000), "peak_memory_mib": used.ru_maxrss // _KIB_PER_MIB}


def _signal_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGTERM)
