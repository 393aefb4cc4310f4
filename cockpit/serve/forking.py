"""Starts sessions as forks of a process that has imported cockpit already: the fork server of `cockpit serve`.

Sessions then open without half a second of imports, and share the memory of the modules. The fork server is a child of
the server with one thread, one socket and no secret. Where it cannot fork, a session starts by executing Python.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from cockpit.runtime.containers.shim.linux import adopt_orphans
from cockpit.serve.accounts import USUAL_PATH, Account
from cockpit.serve.forked import LARGEST, READY, Identity, StartAnswer, StartRequest
from cockpit.serve.starting import Process, start_program

ANSWER_SECONDS: Final = 10.0
"""Longest wait for a fork, which takes milliseconds: the server serves no other session meanwhile."""
SPACE: Final = 8 << 10
"""Bytes of the command and of the environment that `ps` can show of a session (`process_title`)."""
LONGEST_PAUSE: Final = 60
"""Seconds between attempts to start a fork server that ends again and again."""
_UTF8: Final = re.compile(r"(C|POSIX|.*\.(utf-?8))", re.IGNORECASE)
"""Locales of the encoding that the fork server has."""


class ForkedProcess:
    """A session that was forked; a child of this process."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    @property
    def pid(self) -> int:
        return self._pid

    def wait(self) -> int:
        _, status = os.waitpid(self._pid, 0)
        return os.waitstatus_to_exitcode(status)


class ForkServer:
    """Keeps a fork server running. Use it from the event loop's thread only."""

    def __init__(self, report: Callable[[str], None], module: str = "cockpit.session_forks") -> None:
        """`report`: writes a line of the log. `module`: what the fork server runs."""
        self._report, self._module = report, module
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._is_ready = False
        self._failures = 0
        self._next: asyncio.TimerHandle | None = None
        self._adopted: set[int] = set()
        """Orphans of sessions that this process got while it was a subreaper."""

    def launch(self) -> None:
        """Start the fork server, and another one whenever it ends. Sessions fork from it as soon as it is ready."""
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(ANSWER_SECONDS)
        try:
            # The control socket is its standard input, so that it inherits no other descriptor.
            self._process = subprocess.Popen(
                [sys.executable, _isolation(), "-m", self._module, " " * SPACE],
                stdin=its.fileno(),
                stdout=subprocess.DEVNULL,
                env=_environment(),
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            self._report(f"no fork server could be started: {error}")
            self._try_again()
            return
        finally:
            its.close()
        self._control = ours
        asyncio.get_running_loop().add_reader(ours, self._hear)

    def start(
        self,
        words: Sequence[str],
        account: Account,
        env: Mapping[str, str],
        theirs: tuple[int, int, int],
        *,
        terminal: bool,
    ) -> Process:
        """Start a session (`StartProgram`): a fork where that is possible, or else as `start_program` does."""
        identity = None if account.is_own else Identity(account.uid, account.gid, account.groups())
        data = msgspec.json.encode(StartRequest(list(words), dict(env), account.home, terminal, identity))
        if self._control is not None and self._is_ready and len(data) <= LARGEST and _UTF8.fullmatch(env["LANG"]):
            pid = self._fork(self._control, data, theirs)
            if pid:
                return ForkedProcess(pid)
        return start_program(words, account, env, theirs, terminal=terminal)

    def close(self) -> None:
        """End the fork server; sessions go on."""
        if self._next is not None:
            self._next.cancel()
        self._discard()

    def _fork(self, control: socket.socket, data: bytes, theirs: tuple[int, int, int]) -> int:
        """Return the process of a new session, or 0 without a fork server. Raises `OSError` if it cannot be had."""
        self._collect()
        before = _children()
        adopt_orphans(True)
        try:
            try:
                socket.send_fds(control, [data], theirs)
            except OSError:
                self._end_of_fork_server("has ended")
                return 0
            answer = self._answer(control)
        finally:
            adopt_orphans(False)
            self._adopted |= _children() - before
        if answer.error:
            raise OSError(answer.error)
        self._adopted.discard(answer.pid)
        return answer.pid

    def _answer(self, control: socket.socket) -> StartAnswer:
        """Return the answer to a request. Raises `OSError` without one: executing Python could start the session
        twice."""
        try:
            if data := control.recv(LARGEST):
                return msgspec.json.decode(data, type=StartAnswer)
        except TimeoutError:
            self._end_of_fork_server("does not answer")
            raise
        self._end_of_fork_server("has ended")
        raise ConnectionResetError("the fork server has ended")

    def _hear(self) -> None:
        """Take note that it is ready, or has ended."""
        assert self._control is not None
        data = b""
        with suppress(OSError):
            data = self._control.recv(len(READY))
        if data == READY:
            self._is_ready, self._failures = True, 0
            self._report(f"sessions start from process {self._process.pid if self._process else 0}")
        else:
            self._end_of_fork_server("has ended")

    def _end_of_fork_server(self, what: str) -> None:
        self._discard()
        self._report(f"the fork server {what}; sessions go on, and another one starts")
        self._try_again()

    def _try_again(self) -> None:
        pause = min(2**self._failures - 1, LONGEST_PAUSE)
        self._failures += 1
        self._next = asyncio.get_running_loop().call_later(pause, self.launch)

    def _discard(self) -> None:
        self._is_ready = False
        if self._control is not None:
            asyncio.get_running_loop().remove_reader(self._control)
            self._control.close()
            self._control = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _collect(self) -> None:
        """Free the entries of adopted processes that have ended."""
        for pid in list(self._adopted):
            try:
                ended = os.waitpid(pid, os.WNOHANG)[0] == pid
            except ChildProcessError:
                ended = True
            if ended:
                self._adopted.discard(pid)


def _isolation() -> str:
    """Return the option of Python that decides where modules come from."""
    # Root's process must not depend on a variable or on a folder that is not root's own (python(1), -I).
    return "-I" if os.geteuid() == 0 else "-P"


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("HOME", "PYTHONPATH") if name in os.environ} if os.geteuid() else {}
    return {"PATH": USUAL_PATH, "LANG": "C.UTF-8", **kept, "COCKPIT_SPACE": " " * SPACE}


def _children() -> set[int]:
    # The kernel gives orphans to the first thread of their new parent.
    pid = os.getpid()
    return set(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
