"""The fork server's side: forks a session for each request, and gives it the rights and the streams of its user.

1. The server sends a `StartRequest` with the descriptors of the session's standard streams.
2. The fork server forks a process that forks the session and ends at once, so that the session becomes a child of the
   server, which is a subreaper meanwhile. The server collects its exit code, also when the fork server is gone.
3. The session gets its terminal, closes all other descriptors, drops its rights and replaces its environment.
4. Only then does the fork server answer: with the number of the process, or with the reason why there is none.

All modules were imported before, from folders of the administrator: nothing of a user's is read before step 3 is done.
The sessions share the memory of the modules, and also the layout of their addresses.
"""

from __future__ import annotations

import atexit
import locale
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from cockpit.serve.process_title import show_command, show_environment
from cockpit.serve.starting import command_line, take_terminal

READY: Final = b"ready"
LARGEST: Final = 96 << 10
"""Bytes of a request."""
STREAMS: Final = 3


class Identity(msgspec.Struct, frozen=True):
    """The ids of the user that a session becomes."""

    uid: int
    gid: int
    groups: list[int]


class StartRequest(msgspec.Struct, frozen=True):
    """A session to start."""

    words: list[str]
    env: dict[str, str]
    home: str
    terminal: bool
    identity: Identity | None
    """None: the user of the server."""


class StartAnswer(msgspec.Struct, frozen=True):
    """What became of it."""

    pid: int = 0
    error: str = ""


def serve_forks(control: socket.socket, run: Callable[[], object]) -> None:
    """Fork a session for each request, which calls `run`, until the server closes its end of `control`."""
    control.send(READY)
    while True:
        data, streams, _, _ = socket.recv_fds(control, LARGEST, STREAMS)
        if not data:
            return
        try:
            request = msgspec.json.decode(data, type=StartRequest)
            answer = _fork(control, request, streams, run)
        except OSError as error:
            answer = StartAnswer(error=str(error))
        finally:
            for stream in streams:
                os.close(stream)
        control.send(msgspec.json.encode(answer))


def _fork(
    control: socket.socket, request: StartRequest, streams: Sequence[int], run: Callable[[], object]
) -> StartAnswer:
    reader, writer = os.pipe()
    try:
        middle = os.fork()
    except OSError:
        os.close(reader)
        os.close(writer)
        raise
    if middle == 0:
        # Whatever happens here, this process must never go on in the caller.
        try:
            _fork_again(control, request, streams, writer, run)
        finally:
            os._exit(1)
    os.close(writer)
    with open(reader, "rb") as reports:  # noqa: PTH123 - a descriptor
        # To its end: the middle process has ended, and the session has closed its copy.
        lines = reports.read().splitlines()
    os.waitpid(middle, 0)
    pid, error = 0, ""
    for line in lines:
        kind, _, rest = line.decode().partition(" ")
        if kind == "pid":
            pid = int(rest)
        else:
            error = rest
    return StartAnswer(pid, error or ("" if pid else "the fork server could not fork"))


def _fork_again(
    control: socket.socket, request: StartRequest, streams: Sequence[int], writer: int, run: Callable[[], object]
) -> None:
    try:
        session = os.fork()
        if session:
            os.write(writer, f"pid {session}\n".encode())
            os._exit(0)
        control.detach()  # closed by number below; a later clean-up must not close another file of this number
        become_session(request, streams, writer)
    except Exception as error:  # noqa: BLE001 - reported to the server, whatever it is
        os.write(writer, f"error {' '.join(str(error).split())}\n".encode())
        os._exit(1)
    os.close(writer)
    # After the answer: a home on a server that does not answer stops this session alone.
    try:
        os.chdir(request.home)
    except OSError:
        os.chdir("/")
    _run(run)


def become_session(request: StartRequest, streams: Sequence[int], keep: int) -> None:
    """Make this process the session's, with no descriptor but its streams and `keep`. Raises `OSError`."""
    os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    _close_all_but({0, 1, 2, keep})
    if request.terminal:
        take_terminal()
    if request.identity is not None:
        _become_user(request.identity)
    _set_environment(request.env)
    # After that: the C library's variables lay where these are shown.
    show_command(command_line(request.words))
    show_environment(request.env)
    _open_streams(_set_locale())
    sys.argv[1:] = request.words


def _become_user(identity: Identity) -> None:
    """Take the user's ids for good. Raises `OSError`."""
    uid, gid = identity.uid, identity.gid
    os.setgroups(identity.groups)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    if os.getresuid() != (uid, uid, uid) or os.getresgid() != (gid, gid, gid):
        raise OSError(f"the process did not become user {uid}")


def _close_all_but(kept: set[int]) -> None:
    for descriptor in [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]:
        # That of the listing itself is closed by now.
        with suppress(OSError):
            if descriptor not in kept:
                os.close(descriptor)


def _set_environment(env: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(env)
    time.tzset()


def _set_locale() -> str:
    """Set the locale of the environment as Python does at its start (PEP 538); return how its streams treat bytes that
    are no text."""
    try:
        name = locale.setlocale(locale.LC_CTYPE, "")
    except locale.Error:
        name = "C"  # the machine does not have it
    if name in {"C", "POSIX"}:
        os.environ["LC_CTYPE"] = name = locale.setlocale(locale.LC_CTYPE, "C.UTF-8")
    return "surrogateescape" if name == "C.UTF-8" else "strict"


def _open_streams(errors: str) -> None:
    """Open Python's streams anew, as at its start: they depend on whether they are a terminal."""
    options = {"encoding": "utf-8", "newline": "\n", "closefd": False}
    sys.stdin = sys.__stdin__ = open(0, errors=errors, **options)  # type: ignore[misc,call-overload]  # noqa: SIM115 - descriptors of the whole process
    sys.stdout = sys.__stdout__ = open(1, "w", errors=errors, **options)  # type: ignore[misc,call-overload]  # noqa: SIM115 - as above
    sys.stderr = sys.__stderr__ = open(2, "w", buffering=1, errors="backslashreplace", **options)  # type: ignore[misc,call-overload]  # noqa: SIM115 - as above


def _run(run: Callable[[], object]) -> None:
    """Call it, and end the process as the interpreter does."""
    code = 0
    try:
        run()
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:  # noqa: BLE001 - printed, as the interpreter does
        traceback.print_exc()
        code = 1
    atexit._run_exitfuncs()  # noqa: SLF001 - as the interpreter does; nothing public does it
    sys.stdout.flush()
    os._exit(code)
