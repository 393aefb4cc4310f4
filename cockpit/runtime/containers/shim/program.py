"""Start one program in the container.

1. Fork. The child becomes the leader of a new session and joins the container's cgroups.
2. The child waits until the parent calls `let_in`: the container's file system may still be being built.
3. Enter the container's mount namespace, and hide the cards that are no longer the container's.
4. Become the submitter: ids, groups, and no capabilities that could ever be regained.
5. Connect the standard streams (`choose`), change to the working folder, reset the signals.
6. Install the system call filter, and execute the program.

No file of the container is executed, loaded or imported before step 6, since the job can change its files and could
otherwise gain the shim's privileges.
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
    from cockpit.runtime.containers.shim.limits import ReplicaLimits

PLAIN = ""
"""The view of a plain process: the machine's own file system."""
_FALLBACK_PATH = "/usr/local/bin:/usr/bin:/bin"
_SHELLS = ("/bin/bash", "/bin/sh")
_NOT_FOUND = 127
_NOT_EXECUTABLE = 126
"""These two are the exit codes of a shell for a missing program and for one that cannot be executed."""


class Entry:
    """What is needed to start a program in a container: plan, limits, view and environment."""

    def __init__(
        self, *, plan: PlanDict, limits: ReplicaLimits, view: str, env: dict[str, str], hide: tuple[str, ...] = ()
    ) -> None:
        self.plan = plan
        self.limits = limits
        self.view = view
        """Path of the mount namespace's file, opened when the program is let in; `PLAIN`: there is no namespace."""
        self.env = env
        """The environment; HOME becomes /tmp if the container does not have that folder."""
        self.hide = hide
        """Device nodes to remove from the container's file system."""


class StartError(Exception):
    """The program could not be started; the text says why."""


class Start:
    """A program that is forked and waits for `let_in`.

    The fork comes early because joining a cgroup v1 takes an RCU grace period, in which the caller can build the view.
    `choose` runs in the child, inside the container and without privileges: it connects standard input, output and
    error, and returns the program's arguments.
    """

    def __init__(self, entry: Entry, choose: Callable[[], list[str]]) -> None:
        # Two pipes: on `go` the parent lets the child continue; on `error` the child reports why it could not. The
        # write end of `error` is closed by a successful execve, so that the parent then reads an empty text.
        go_read, self._go_write = os.pipe()
        self._error_read, error_write = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._go_write)
            _run(entry, choose, go_read, error_write)
        # The child's ends: with these open here, this process would not see the child close them.
        os.close(go_read)
        os.close(error_write)

    def let_in(self) -> int:
        """Let the program start, and return its pid once it has been executed.

        A program that cannot be executed reports that on its standard error and ends with 127 or 126, as in a shell.
        Raises StartError if an earlier step fails.
        """
        with contextlib.suppress(BrokenPipeError):  # killed while waiting, by its memory limit: the wait status says so
            os.write(self._go_write, b".")
        os.close(self._go_write)
        with open(self._error_read, "rb") as stream:
            complaint = stream.read()
        if complaint:
            os.waitpid(self._pid, 0)
            raise StartError(complaint.decode())
        return self._pid


def shell() -> str:
    """Return the path of a shell in the container that this process has entered."""
    return next((path for path in _SHELLS if os.access(path, os.X_OK)), _SHELLS[-1])


def _run(entry: Entry, choose: Callable[[], list[str]], go_read: int, error_write: int) -> NoReturn:
    try:
        os.setsid()  # 1
        entry.limits.join(entry.plan)
        if not os.read(go_read, 1):  # 2: the end of the pipe means that the parent has died
            os._exit(1)
        if entry.view == PLAIN:
            # A plain process has no pid namespace that would die with its holder.
            linux.end_with_parent()
        else:
            _enter_view(entry)  # 3
            become_submitter(entry.plan)  # 4
        entry.limits.join_late(entry.plan)
        linux.drop_capabilities()
        # after the privileges are gone: files and folders are opened with the submitter's rights
        arguments = choose()  # 5
        os.chdir(entry.plan["workdir"])
        _restore_signals()
        env = {**entry.env, "HOME": _home(entry.env), **_temporary(entry.env)}
        _filter_calls(entry)  # 6: last, since the steps above need calls that the filter refuses
    except BaseException as error:  # noqa: BLE001 - the child ends here: the parent reports
        os.write(error_write, f"the command could not be started: {error}".encode(errors="replace"))
        os._exit(1)
    _execute(arguments, env)


def _home(env: dict[str, str]) -> str:
    """Return the requested home folder if the container has it, else /tmp."""
    home = env.get("HOME", "")
    return home if home != "/" and os.path.isdir(home) else "/tmp"  # noqa: S108 - the container's own


def _temporary(env: dict[str, str]) -> dict[str, str]:
    """Return TMPDIR as Slurm sets it: the requested folder, created if missing, or /tmp if it is not usable.

    A submitted environment may name a folder that only the login node has.
    """
    folder = env.get("TMPDIR")
    if folder is None:
        return {}
    with contextlib.suppress(OSError):
        os.mkdir(folder, 0o700)
    usable = os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)
    return {"TMPDIR": folder if usable else "/tmp"}  # noqa: S108 - the container's own


def _enter_view(entry: Entry) -> None:
    """Enter the container's mount namespace, and remove hidden devices. The process still has all privileges."""
    view_fd = os.open(entry.view, os.O_RDONLY | os.O_CLOEXEC)
    linux.setns(view_fd, linux.CLONE_NEWNS)
    os.close(view_fd)
    for device in entry.hide:
        _take_out(device)


def become_submitter(plan: PlanDict) -> None:
    """Take exactly the submitter's ids and groups, with no capability to be regained.

    In a rootless container, a new user namespace maps the engine's user to the submitter's uid. A plain process is the
    submitter already: an engine that cannot make namespaces serves only its own user.
    """
    if plan["rootless"]:
        _own_namespace(plan["uid"], plan["gid"])
    # First, since it needs CAP_SETPCAP, which a process loses with uid 0 (capabilities(7)).
    linux.drop_bounding_capabilities()
    if not plan["rootless"]:
        # The uid is last: without uid 0 the process could change neither its groups nor its gid (setresuid(2)).
        os.setgroups(plan["groups"])
        os.setresgid(plan["gid"], plan["gid"], plan["gid"])
        os.setresuid(plan["uid"], plan["uid"], plan["uid"])


def _filter_calls(entry: Entry) -> None:
    """Install the system call filter; a plan of an older engine, without the key, is filtered too.

    Plain processes run without the filter if the kernel refuses it, since nothing else isolates them either.
    """
    if not entry.plan.get("filtered", True):
        return
    try:
        syscalls.install()
    except OSError:
        if entry.view != PLAIN:
            raise


def map_ids(uid: int, gid: int, *, outside_uid: int, outside_gid: int) -> None:
    """Map the one user and group of the user namespace that this process has just made."""
    # A process without CAP_SETGID outside may write `gid_map` only after it gave up setgroups: user_namespaces(7).
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
    """Remove a bound device node, and the file below it; repeating it does no harm."""
    try:
        linux.unmount(device)
        os.unlink(device)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOENT):
            raise


def _restore_signals() -> None:
    """Restore default signal handling: Python ignores two signals, who started the engine may ignore others (nohup),
    and the holder blocks those it waits for."""
    for number in signal.valid_signals():
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def _execute(arguments: list[str], env: dict[str, str]) -> NoReturn:
    name = arguments[0]
    folders = [""] if "/" in name else env.get("PATH", _FALLBACK_PATH).split(":")
    # as execvp(3): a file that cannot be executed does not end the search, but decides the exit code
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
    """Execute a file; a script without `#!` is run by the shell, as execvp(3) does."""
    try:
        os.execve(path, arguments, env)  # noqa: S606 - no shell is the point
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
        os.execve("/bin/sh", ["/bin/sh", path, *arguments[1:]], env)  # noqa: S606 - its own script
