"""Run a program in a container: `boot.py enter FOLDER REQUEST CONTROL [STDIN STDOUT STDERR]`.

REQUEST is JSON (`EnterRequest`); the rest are numbers of inherited file descriptors. Three processes take part:

    this process        waits outside of the container, and at the end sends the exit code
    └─ the watcher      in the container's pid namespace, see `watcher`
       └─ the program   in the container's file system, as the submitter

1. Open the container by the identity of its holder (`_Container`).
2. Join its namespaces, which apply to children of this process only, and fork the watcher.
3. The watcher checks that the command has not ended meanwhile, and starts the program (`program.Start`).
4. The program takes a new pseudo terminal, or the three pipes, and gives up all privileges before it is executed.
5. The watcher ends with the program, or kills it when the other end of the control socket is closed.

The control socket first carries `+` when the program is about to run (with the terminal's descriptor attached if a
terminal was requested), or `-`, a sentence and a newline if it cannot. At the end it carries the exit code as four
bytes, big-endian.
"""

from __future__ import annotations

import _socket
import contextlib
import fcntl
import json
import os
import signal
import struct
import termios

from cockpit.runtime.containers.shim import limits, linux, program, view
from cockpit.runtime.containers.shim.attempt import Attempt
from cockpit.runtime.containers.shim.watcher import Watcher

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn, TypedDict

    from cockpit.runtime.containers.shim.attempt import PlanDict

    class EnterRequest(TypedDict):
        """A request of the engine."""

        command: list[str]
        """The program and its arguments; empty: a shell, which is interactive if there is a terminal."""
        terminal: list[int]
        """Rows and columns of the terminal; empty: the three pipes are used."""
        term: str
        """The value of TERM."""
        label: str
        """Text before the working folder in the prompt."""


# Without the mount namespace, which only the program enters (`program`): the watcher needs nothing of the container's
# files, which the job can change.
_NAMESPACES = linux.CLONE_NEWPID | linux.CLONE_NEWIPC | linux.CLONE_NEWUTS
_LOST = 255
"""Exit code of a program that could not be started, or whose end is not known."""
_WELCOME = b"+"


class EnterError(Exception):
    """The container cannot be entered; the text says why."""


class _Container:
    """The living container of an attempt, opened for entering."""

    def __init__(self, attempt: Attempt) -> None:
        holder = attempt.open_holder()
        if holder is None or attempt.read("started.json") is None:
            raise EnterError("there is no container to enter: it is still being made, or already removed")
        pid = (attempt.read("shim.json") or {})["pid"]
        self.attempt = attempt
        self.is_plain = bool((attempt.read("shim.json") or {}).get("plain"))
        self.plan = _as_plain(attempt) if self.is_plain else attempt.plan()
        self.holder = holder
        self.view = program.PLAIN if self.is_plain else view.opened_by(pid)
        proc = "/proc" if self.is_plain else f"/proc/{pid}/root/proc"
        self.proc_fd = os.open(proc, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        # checked after the paths by pid were opened: while the holder lives, its pid is no other process's
        if linux.has_ended(holder):
            raise EnterError("the container has just been removed")
        self.limits = limits.find(self.plan)
        self.kept = attempt.read("exit.json") is not None
        mark = attempt.read("kept.json")
        self.cards_freed = self.kept and (mark is None or mark["cards"] != "keep")

    def join(self) -> None:
        """Let future children of this process be in the container; the process itself stays outside."""
        if self.is_plain:
            return
        # The user namespace is that of the container: only with its rights may the others be joined (setns(2)).
        user = linux.CLONE_NEWUSER if self.plan["rootless"] else 0
        network = linux.CLONE_NEWNET if self.plan.get("network") else 0
        linux.setns(self.holder, _NAMESPACES | user | network)

    def entry(self, request: EnterRequest) -> program.Entry:
        plan = self.plan
        env = {**plan["env"], **(plan["kept_env"] if self.cards_freed else {}), **_extra(request)}
        hide = tuple(plan["devices"]) if self.cards_freed else ()
        return program.Entry(plan=plan, limits=self.limits, view=self.view, env=env, hide=hide)

    def check_again(self) -> None:
        """Raise EnterError if the command has ended since the container was opened: its cards may be another job's."""
        if self.has_just_ended():
            raise EnterError("the command has just ended; try again")

    def has_just_ended(self) -> bool:
        return not self.kept and not os.path.exists(self.attempt.file("running"))


def _as_plain(attempt: Attempt) -> PlanDict:
    from cockpit.runtime.containers.shim import plain

    return plain.outfit(attempt, attempt.plan())


def main(arguments: list[str]) -> int:
    folder, request_json = arguments[:2]
    control_fd, *pipes = inherited = [int(word) for word in arguments[2:]]
    # the program gets only its three streams, which `choose` makes by dup2: no other descriptor may reach it
    for fd in inherited:
        os.set_inheritable(fd, False)
    control = _socket.socket(fileno=control_fd)
    os.umask(0o022)
    try:
        container = _Container(Attempt(folder))
        container.join()
    except (OSError, EnterError) as error:
        _refuse(control, str(error))
        return 1
    pid = os.fork()
    if pid == 0:
        _inside(container, json.loads(request_json), control, pipes)
    # The program has its copies: while these are open, the engine would not see the end of the output.
    for fd in pipes:
        os.close(fd)
    _, status = linux.wait_for_end(pid)
    _send(control, struct.pack("!i", _shell_code(status)))
    return 0


def _inside(container: _Container, request: EnterRequest, control: _socket.socket, pipes: list[int]) -> NoReturn:
    code = _LOST
    try:
        # before the program is started, so that not even its end in the first moment is missed
        watcher = Watcher(control, container.proc_fd)
        container.check_again()
        pid = program.Start(container.entry(request), _chooser(request, control, pipes)).let_in()
        # A plain process gets its mark (`job_processes.MARK`) only when it is executed. If the job ended before that,
        # the holder did not find and kill it.
        if container.is_plain and container.has_just_ended():
            os.killpg(pid, signal.SIGKILL)
        for fd in pipes:
            os.close(fd)
        code = _shell_code(watcher.wait(pid))
    except (OSError, EnterError, program.StartError) as error:
        _refuse(control, str(error))
    finally:
        os._exit(code)


def _chooser(request: EnterRequest, control: _socket.socket, pipes: list[int]) -> Callable[[], list[str]]:
    """Return the function that connects the program's streams and returns its arguments.

    It runs in the program's process as the last step, with no more rights than the program will have.
    """

    def choose() -> list[str]:
        if request["terminal"]:
            _take_terminal(control, *request["terminal"])
        else:
            for number, fd in enumerate(pipes):
                os.dup2(fd, number)
            _send(control, _WELCOME)
        if request["command"]:
            return request["command"]
        return [program.shell(), "-i"] if request["terminal"] else [program.shell()]

    return choose


def _take_terminal(control: _socket.socket, rows: int, columns: int) -> None:
    """Open a pseudo terminal in the container's /dev/pts, so that its name is valid inside; send the master side."""
    # The process has entered the container, so this is the pseudo terminal file system of that container.
    outer, inner = os.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
    # It leads a session that has no terminal yet (`program`, step 1), and so may take this one (ioctl_tty(2)).
    fcntl.ioctl(inner, termios.TIOCSCTTY, 0)
    # In one message with the greeting, so that the engine has the terminal before the program writes to it.
    attached = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("i", outer))]
    control.sendmsg([_WELCOME], attached)
    for number in range(3):
        os.dup2(inner, number)


def _extra(request: EnterRequest) -> dict[str, str]:
    """Return variables for entered programs only.

    The label reaches the prompt through a variable, so that no shell expands it. PROMPT_COMMAND makes bash set the
    prompt once, after the user's own start-up files.
    """
    if not request["terminal"]:
        return {}
    extra = {"TERM": request["term"]}
    if not request["command"]:
        extra["COCKPIT_PROMPT"] = request["label"]
        extra["PROMPT_COMMAND"] = "PS1='${COCKPIT_PROMPT}:\\w\\$ '; unset PROMPT_COMMAND"
        extra["PS1"] = "${COCKPIT_PROMPT}:${PWD}$ "
    return extra


def _refuse(control: _socket.socket, sentence: str) -> None:
    _send(control, b"-" + sentence.replace("\n", " ").encode(errors="replace") + b"\n")


def _send(control: _socket.socket, message: bytes) -> None:
    """Send a message; the engine may have closed its end."""
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        control.sendall(message)


def _shell_code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code
