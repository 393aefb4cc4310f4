"""What runs in one container, one after the other: the job's own script before its command, the command, and the script
after it. All of them write into the job's logs and have its rights, folders and environment.
"""

from __future__ import annotations

import contextlib
import os
import signal

from cockpit.runtime.containers.shim import logbounds, program, scriptfiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cockpit.runtime.containers.shim.attempt import PlanDict
    from cockpit.runtime.containers.shim.limits import Limits
    from cockpit.runtime.containers.shim.logbounds import LogBounds

BEFORE, COMMAND, AFTER = "before_start", "command", "after_end"


class Programs:
    """Of one attempt. `seen`: the view that they are started in, see `program.Entry`."""

    def __init__(self, plan: PlanDict, limits: Limits, seen: str) -> None:
        self._plan = plan
        self._limits = limits
        self._seen = seen
        self._hooks = plan.get("hooks") or {}
        self.mirrors = scriptfiles.Mirrors()
        """Copies of a batch script's own files into the logs."""

    @property
    def first(self) -> str:
        return BEFORE if self._hooks.get(BEFORE) else COMMAND

    @property
    def seconds_after(self) -> int:
        """So long the script after the command may run; 0: there is none."""
        return self._plan["grace_seconds"] if self._hooks.get(AFTER) else 0

    def start(self, which: str, told: dict[str, str] | None = None) -> program.Start:
        """`told`: further variables. Raises OSError or `program.StartError`."""
        streams = self._streams(which)

        def choose() -> list[str]:
            for number, fd in enumerate(streams):
                os.dup2(fd, number)
            return self._arguments(which)

        env = {**self._plan["env"], **(told or {})}
        entry = program.Entry(plan=self._plan, limits=self._limits, view=self._seen, env=env)
        try:
            return program.Start(entry, choose)
        finally:
            for fd in streams:
                os.close(fd)

    def _streams(self, which: str) -> list[int]:
        if which == COMMAND and self._plan.get("script_files"):
            return scriptfiles.opened(self._plan, self._log, self.mirrors)
        return [os.open("/dev/null", os.O_RDONLY), *(self._log(name) for name in ("stdout", "stderr"))]

    def send_early_signal(self, command: int) -> None:
        """Before the time limit ends a batch script: to its own process, or to its steps, which hand it on to their
        tasks. `command`: the pid of the script."""
        early = self._plan.get("early_signal")
        if early is None:
            return
        number = getattr(signal, f"SIG{early['name']}")
        for pid in [command] if early["shell"] else _steps_of(command):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def log_bounds(self) -> LogBounds:
        """What bounds the logs that all of them write into."""
        limit = self._plan.get("log_limit_mib", logbounds.USUAL_MIB) << 20
        return logbounds.LogBounds((self._plan["stdout"], self._plan["stderr"]), limit)

    def complain(self, sentence: str) -> None:
        """Into the job's own log of errors, for whoever reads it."""
        fd = self._log("stderr")
        try:
            os.write(fd, f"cockpit: {sentence}\n".encode(errors="replace"))
        finally:
            os.close(fd)

    def _arguments(self, which: str) -> list[str]:
        """Inside of the container, whose shells these are."""
        if which == COMMAND:
            return self._plan["argv"]
        return [program.shell(), "-c", self._hooks[which], which]

    def _log(self, name: str) -> int:
        """It belongs to the submitter, so that `>/dev/stderr` works inside; its folder does not, so that it stays a
        file."""
        path = self._plan["stderr"] if name == "stderr" else self._plan["stdout"]
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        if not self._plan["rootless"]:
            os.fchown(fd, self._plan["uid"], self._plan["gid"])
        return fd


def _steps_of(command: int) -> list[int]:
    """The `srun` processes of a batch script, which stay in its session."""
    return [pid for name in os.listdir("/proc") if name.isdigit() and _is_step(pid := int(name), command)]


def _is_step(pid: int, command: int) -> bool:
    try:
        if os.getsid(pid) != command:
            return False
        with open(f"/proc/{pid}/cmdline", "rb") as stream:
            words = stream.read().split(b"\0")
    except OSError:
        return False
    return any(os.path.basename(word) == b"srun" for word in words[:3]) and pid != command
