"""The programs of one container, which run one after the other: the job's script before its command, the command, and
the script after it. All of them write into the job's logs, and have its rights, folders and environment.
"""

from __future__ import annotations

import contextlib
import os
import signal

from cockpit.runtime.containers.shim import logbounds, logorder, program, scriptfiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cockpit.runtime.containers.shim.attempt import PlanDict
    from cockpit.runtime.containers.shim.limits import ReplicaLimits
    from cockpit.runtime.containers.shim.logbounds import LogBounds

BEFORE, COMMAND, AFTER = "before_start", "command", "after_end"


class Programs:
    """The programs of one attempt. `seen`: the file system view in which they are started, see `program.Entry`."""

    def __init__(self, plan: PlanDict, limits: ReplicaLimits, seen: str) -> None:
        self._plan = plan
        self._limits = limits
        self._view = seen
        self._hooks = plan.get("hooks") or {}
        self.mirrors = scriptfiles.OutputMirrors()
        """Copies of a batch script's own files into the logs."""

    @property
    def first(self) -> str:
        return BEFORE if self._hooks.get(BEFORE) else COMMAND

    @property
    def seconds_after(self) -> int:
        """Longest run time of the script after the command in seconds; 0: there is none."""
        return self._plan["grace_seconds"] if self._hooks.get(AFTER) else 0

    def start(self, which: str, variables: dict[str, str] | None = None) -> program.Start:
        """Start one of the programs, with additional `variables`. Raises OSError or `program.StartError`."""
        streams = self._streams(which)

        def choose() -> list[str]:
            for number, fd in enumerate(streams):
                os.dup2(fd, number)
            return self._arguments(which)

        env = {**self._plan["env"], **(variables or {})}
        entry = program.Entry(plan=self._plan, limits=self._limits, view=self._view, env=env)
        try:
            return program.Start(entry, choose)
        finally:
            # The child has its own copies since the fork.
            for fd in streams:
                os.close(fd)

    def _streams(self, which: str) -> list[int]:
        if which == COMMAND and self._plan.get("script_files"):
            return scriptfiles.open_streams(self._plan, self._log, self.mirrors)
        return [os.open("/dev/null", os.O_RDONLY), *(self._log(name) for name in ("stdout", "stderr"))]

    def send_early_signal(self, command: int) -> None:
        """Send a batch script the signal that it asked for before its time limit (`--signal`).

        As in Slurm it goes to the script's own process (`B:`), or else to its steps, which hand it on to their tasks.
        `command`: the pid of the script.
        """
        early = self._plan.get("early_signal")
        if early is None:
            return
        number = getattr(signal, f"SIG{early['name']}")
        for pid in [command] if early["shell"] else _steps_of(command):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def log_bounds(self) -> LogBounds:
        """Return the object that limits the size of the job's logs and records when they grow."""
        limit = self._plan.get("log_limit_mib", logbounds.USUAL_MIB) << 20
        logs = (self._plan["stdout"], self._plan["stderr"])
        order = logorder.LogOrder(*logs, logorder.order_path(self._plan["stdout"]))
        return logbounds.LogBounds(logs, limit, order)

    def complain(self, sentence: str) -> None:
        """Write a message of cockpit into the job's stderr log."""
        fd = self._log("stderr")
        try:
            os.write(fd, f"cockpit: {sentence}\n".encode(errors="replace"))
        finally:
            os.close(fd)

    def _arguments(self, which: str) -> list[str]:
        """Return the program's arguments. Called inside of the container, since the hooks use the container's shell."""
        if which == COMMAND:
            return self._plan["argv"]
        return [program.shell(), "-c", self._hooks[which], which]

    def _log(self, name: str) -> int:
        """Open one of the logs.

        The file belongs to the submitter, so that `>/dev/stderr` works inside. Its folder does not, so that the
        submitter cannot replace the file by a link.
        """
        path = self._plan["stderr"] if name == "stderr" else self._plan["stdout"]
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        if not self._plan["rootless"]:
            os.fchown(fd, self._plan["uid"], self._plan["gid"])
        return fd


def _steps_of(command: int) -> list[int]:
    """Return the `srun` processes of a batch script, which are in its session."""
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
