"""Start programs in a container on request of the job's other containers (their agents are `agentscript`).

The server runs beside the command, in the container's pid namespace. It starts programs as the command was started,
with the replica's own environment. Its socket is NETWORK/shown/<host>.sock; only this job's containers see that folder.

1. A request is a length as four bytes, big-endian, with standard input, output and error attached as descriptors.
2. That many bytes follow: the text for the shell, which is run in a session of its own.
3. While it runs, each further four bytes are the number of a signal for the program's process group.
4. The answer is the exit code, as four bytes. If the connection is closed before, the program's group is killed.
"""

from __future__ import annotations

import _socket
import contextlib
import os
import select
import signal
import struct

from cockpit.runtime.containers.shim import linux, program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from cockpit.runtime.containers.shim.attempt import PlanDict

SHOWN = "shown"
"""The subfolder of the network's folder that the job's containers see."""
_LENGTH = struct.Struct("!I")
_CODE = struct.Struct("!i")
_STREAMS = struct.Struct("3i")
_LONGEST = 1 << 20
"""Longest text of a request, in bytes."""
_WAITING = 128
"""Connections that may wait to be accepted."""

_REAP_MILLISECONDS = 1000
"""Longest time for which an ended child stays a zombie."""


def start(plan: PlanDict, entry: program.Entry) -> None:
    """Fork the server. Its socket exists when this returns."""
    listener = _listen(plan)
    if os.fork() == 0:
        try:
            linux.name_process("cockpit-agent")
            linux.drop_pipes()
            linux.end_with_parent()
            # Beside the programs, but outside of the container's files: it enters them anew for each request.
            _serve(listener, entry)
        finally:
            os._exit(1)  # after any error: the child must not continue as a second holder
    listener.close()


def _listen(plan: PlanDict) -> _socket.socket:
    """Listen on the agent's socket, whatever folder the caller works in."""
    os.chdir(os.path.join(plan["network"], SHOWN))
    return linux.listen(f"{plan['hostname']}.sock", _WAITING)


def _serve(listener: _socket.socket, entry: program.Entry) -> NoReturn:
    while True:
        with contextlib.suppress(OSError):
            if linux.is_readable(listener.fileno(), within_milliseconds=_REAP_MILLISECONDS):
                _serve_one(listener, entry)
        # The processes that have answered are its children, and nothing else reaps them.
        linux.ended_children()


def _serve_one(listener: _socket.socket, entry: program.Entry) -> None:
    # By the C class: importing `socket`, which wraps it, takes 15 ms of a start.
    fd, _ = listener._accept()  # type: ignore[attr-defined] # noqa: SLF001 - socket.socket's own
    try:
        if os.fork() == 0:
            try:
                listener.close()
                _answer(_socket.socket(fileno=fd), entry)
            finally:
                os._exit(0)
    finally:
        os.close(fd)


def _answer(client: _socket.socket, entry: program.Entry) -> None:
    try:
        text, streams = _request(client)
        code = _run(client, entry, text, streams)
        client.sendall(_CODE.pack(code))
    except (OSError, ValueError, program.StartError):
        pass


def _request(client: _socket.socket) -> tuple[str, tuple[int, ...]]:
    """Read a request: its text and its three descriptors. Raises ValueError if it is malformed."""
    head, attached, _, _ = client.recvmsg(_LENGTH.size, _socket.CMSG_SPACE(_STREAMS.size))
    if len(head) != _LENGTH.size or len(attached) != 1 or len(attached[0][2]) != _STREAMS.size:
        raise ValueError("no request")
    # Read no further than the longest text: the length comes from a program of the job.
    left = min(_LENGTH.unpack(head)[0], _LONGEST)
    text = b""
    while left and (part := client.recv(left)):
        text += part
        left -= len(part)
    return text.decode(errors="surrogateescape"), _STREAMS.unpack(attached[0][2])


def _signal_of(client: _socket.socket) -> int:
    """Read the number of the requested signal; SIGKILL if the connection is closed or the number is invalid."""
    try:
        word = client.recv(_LENGTH.size, _socket.MSG_WAITALL)
    except OSError:
        return signal.SIGKILL
    number = _LENGTH.unpack(word)[0] if len(word) == _LENGTH.size else 0
    return int(number) if 0 < number < signal.NSIG else signal.SIGKILL


def _run(client: _socket.socket, entry: program.Entry, text: str, streams: tuple[int, ...]) -> int:
    def choose() -> list[str]:
        for number, fd in enumerate(streams):
            os.dup2(fd, number)
        return ["/bin/sh", "-c", text]

    pid = program.Start(entry, choose).let_in()
    # With these copies open, readers of the program's output would never see its end.
    for fd in streams:
        os.close(fd)
    pidfd = os.pidfd_open(pid)
    poll = select.poll()
    for fd in (client.fileno(), pidfd):
        poll.register(fd, select.POLLIN)
    # Its end comes first: a signal that arrives with it concerns no process any more.
    while pidfd not in dict(poll.poll()):
        number = _signal_of(client)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, number)
        if number == signal.SIGKILL:
            # Killed because its caller is gone: what it may still send does not matter.
            break
    status = os.waitstatus_to_exitcode(linux.wait_for_end(pid)[1])
    return status if status >= 0 else 128 - status
