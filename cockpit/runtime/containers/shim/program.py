"""Starts one program in the container: joins its limits and view, gives up every privilege, and only then executes.

Nothing of the container is executed, loaded or imported before that: its files are the job's to change.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal

from cockpit.runtime.containers.shim import linux, syscalls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from cockpit.runtime.containers.shim.attempt import PlanDict
    from cockpit.runtime.containers.shim.limits import Limits

PLAIN = ""
"""The view of a plain process: the machine as it is."""
_FALLBACK_PATH = "/usr/local/bin:/usr/bin:/bin"
_SHELLS = ("/bin/bash", "/bin/sh")
_NOT_FOUND = 127
_NOT_EXECUTABLE = 126


class Entry:
    """How a program is started in a container."""

    def __init__(
        self, *, plan: PlanDict, limits: Limits, view: str, env: dict[str, str], hide: tuple[str, ...] = ()
    ) -> None:
        self.plan = plan
        self.limits = limits
        self.view = view
        """Path of the view's namespace file, opened once the program is let in; `PLAIN`: there is none."""
        self.env = env
        """HOME becomes /tmp where the container does not have it."""
        self.hide = hide
        """Device nodes to take out of the view."""


class StartError(Exception):
    """The program could not be started; the text says why."""


class Start:
    """Forks the program, as leader of a new session, and has it join its limits: on cgroup v1 the kernel takes a
    scheduler's grace period for that, in which the view can be made. Then `let_in`.

    `choose` runs in the child, inside the container and without privileges: it connects standard input, output and
    error, and gives the program's arguments.
    """

    def __init__(self, entry: Entry, choose: Callable[[], list[str]]) -> None:
        waits, self._lets_in = os.pipe()
        self._told, tell = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._lets_in)
            _run(entry, choose, waits, tell)
        os.close(waits)
        os.close(tell)

    def let_in(self) -> int:
        """The program's pid, once it has been executed. One that cannot be executed says so on its standard error
        and ends with 127 or 126, as in a shell. Raises StartError where it does not come that far."""
        with contextlib.suppress(BrokenPipeError):  # it died waiting, of its memory limit: its wait status tells
            os.write(self._lets_in, b".")
        os.close(self._lets_in)
        with open(self._told, "rb") as stream:
            complaint = stream.read()
        if complaint:
            os.waitpid(self._pid, 0)
            raise StartError(complaint.decode())
        return self._pid


def shell() -> str:
    """Of the container that this process has entered."""
    return next((path for path in _SHELLS if os.access(path, os.X_OK)), _SHELLS[-1])


def _run(entry: Entry, choose: Callable[[], list[str]], waits: int, tell: int) -> NoReturn:
    try:
        os.setsid()
        entry.limits.join(entry.plan)
        if not os.read(waits, 1):
            os._exit(1)
        if entry.view == PLAIN:
            linux.end_with_parent()
        else:
            _enter_view(entry)
            become_submitter(entry.plan)
        entry.limits.join_late(entry.plan)
        linux.drop_capabilities()
        arguments = choose()
        os.chdir(entry.plan["workdir"])
        _restore_signals()
        env = {**entry.env, "HOME": _home(entry.env), **_temporary(entry.env)}
        _filter_calls(entry)
    except BaseException as error:  # noqa: BLE001 - this is the end of the child: the parent reports
        os.write(tell, f"the command could not be started: {error}".encode(errors="replace"))
        os._exit(1)
    _execute(arguments, env)


def _home(env: dict[str, str]) -> str:
    """The one asked for where the container has it."""
    home = env.get("HOME", "")
    return home if home != "/" and os.path.isdir(home) else "/tmp"  # noqa: S108 - the container's own


def _temporary(env: dict[str, str]) -> dict[str, str]:
    """TMPDIR as Slurm gives it: the folder asked for, made where it is missing, else /tmp. A submitter's shell may name
    one that only their login node has."""
    folder = env.get("TMPDIR")
    if folder is None:
        return {}
    with contextlib.suppress(OSError):
        os.mkdir(folder, 0o700)
    usable = os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)
    return {"TMPDIR": folder if usable else "/tmp"}  # noqa: S108 - the container's own


def _enter_view(entry: Entry) -> None:
    """See what the container sees, still with all privileges."""
    view_fd = os.open(entry.view, os.O_RDONLY | os.O_CLOEXEC)
    linux.setns(view_fd, linux.CLONE_NEWNS)
    os.close(view_fd)
    for device in entry.hide:
        _take_out(device)


def become_submitter(plan: PlanDict) -> None:
    """Exactly the submitter's ids; no capability to be gained. A new user namespace shows a rootless one's own uid.
    A plain process is the submitter already: an engine that may make no namespaces serves nobody else."""
    if plan["rootless"]:
        _own_namespace(plan["uid"], plan["gid"])
    linux.drop_bounding_capabilities()
    if not plan["rootless"]:
        os.setgroups(plan["groups"])
        os.setresgid(plan["gid"], plan["gid"], plan["gid"])
        os.setresuid(plan["uid"], plan["uid"], plan["uid"])


def _filter_calls(entry: Entry) -> None:
    """The last step: what was done before needs calls that the filter refuses. A plan of an older engine says nothing
    of it and is filtered. Plain processes go without where the kernel refuses: nothing keeps these apart anyway."""
    if not entry.plan.get("filtered", True):
        return
    try:
        syscalls.install()
    except OSError:
        if entry.view != PLAIN:
            raise


def map_ids(uid: int, gid: int, *, outside_uid: int, outside_gid: int) -> None:
    """Name the one user and group of the user namespace that this process has just made."""
    for name, line in (
        ("setgroups", "deny"),
        ("uid_map", f"{uid} {outside_uid} 1"),
        ("gid_map", f"{gid} {outside_gid} 1"),
    ):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as stream:
            stream.write(line)


def _own_namespace(uid: int, gid: int) -> None:
    outside_uid, outside_gid = os.geteuid(), os.getegid()
    linux.unshare(linux.CLONE_NEWUSER)
    map_ids(uid, gid, outside_uid=outside_uid, outside_gid=outside_gid)


def _take_out(device: str) -> None:
    """Remove a bound device node, and the file below it. Done again, it finds nothing to do."""
    try:
        linux.unmount(device)
        os.unlink(device)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOENT):
            raise


def _restore_signals() -> None:
    """Python ignores these, and the holder blocks the ones it waits for; a program expects neither."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def _execute(arguments: list[str], env: dict[str, str]) -> NoReturn:
    name = arguments[0]
    folders = [""] if "/" in name else env.get("PATH", _FALLBACK_PATH).split(":")
    worst = OSError(errno.ENOENT, os.strerror(errno.ENOENT))
    for folder in folders:
        try:
            _execute_file(os.path.join(folder, name), arguments, env)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                worst = error
    os.write(2, f"{name}: {worst.strerror}\n".encode(errors="replace"))
    os._exit(_NOT_FOUND if worst.errno == errno.ENOENT else _NOT_EXECUTABLE)


def _execute_file(path: str, arguments: list[str], env: dict[str, str]) -> None:
    """A script without a first line that names its interpreter is one for the shell, as for execvp(3)."""
    try:
        os.execve(path, arguments, env)  # noqa: S606 - no shell is the point
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
        os.execve("/bin/sh", ["/bin/sh", path, *arguments[1:]], env)  # noqa: S606 - its own script
