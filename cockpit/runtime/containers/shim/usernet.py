"""Connects a job's network to the outside for an ordinary user's engine, through slirp4netns or pasta. These programs
make the job's connections with sockets of that user.

They enter a network from outside. So a process remains in the machine's namespaces before the first container leaves
them, starts the program on request, and ends it once the last container of the job is gone.
"""

from __future__ import annotations

import _socket
import errno
import fcntl
import os
import select
import signal
import struct
import time

from cockpit.runtime.containers.shim import linux

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

PROGRAMS = ("slirp4netns", "pasta")
_FOLDERS = ("/usr/bin", "/usr/local/bin", "/bin")
_TUN = "/dev/net/tun"
_ADDRESSES = "198.19.0.0/24"
_NUMBER = struct.Struct("!i")
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
"""pasta takes it for a failure where the first of them is ignored already."""
_READY_SECONDS = 10
"""Time limit for the program to connect the network."""
_STEP_MILLISECONDS = 10
"""Interval between two looks for the default route."""
_LOOK_SECONDS = 1.0
"""Interval between two looks for the last container of the job."""
_LONGEST = 1000
"""Longest message of the program, in bytes."""


def installed() -> str:
    """Return the path of the first program that is installed; empty: none is."""
    programs = (f"{folder}/{name}" for name in PROGRAMS for folder in _FOLDERS)
    return next((path for path in programs if os.access(path, os.X_OK)), "")


def arguments(program: str, pid: int, interface: str) -> list[str]:
    """Return the arguments that give the network of process `pid` an interface to the outside, but not to this
    machine's `localhost`."""
    user, network = (f"/proc/{pid}/ns/{kind}" for kind in ("user", "net"))
    if os.path.basename(program) == "slirp4netns":
        options = ["--configure", f"--cidr={_ADDRESSES}", "--disable-host-loopback", "--netns-type=path"]
        return [program, *options, f"--userns-path={user}", network, interface]
    ports = [word for option in ("-t", "-u", "-T", "-U") for word in (option, "none")]
    options = ["--config-net", "--foreground", "--quiet", "--no-map-gw", "--no-netns-quit", *ports]
    return [program, *options, "--ns-ifname", interface, "--userns", user, "--netns", network]


class HostSideProcess:
    """A process on the machine's side of the network. `lock`: the path of the network's lock; `in_use`: whether a
    container of the job runs."""

    def __init__(self, interface: str, lock: str, in_use: Callable[[], bool]) -> None:
        self._interface = interface
        self._holder_side, helper_side = _socket.socketpair()
        if os.fork() == 0:
            self._holder_side.close()
            _stay(helper_side, interface, lock, in_use)
        helper_side.close()

    def connect(self) -> str:
        """Start the program from inside the new network, and return its name once the interface leads outside. Raises
        OSError if it does not."""
        program = installed()
        if not program:
            raise OSError(errno.ENOENT, f"neither {' nor '.join(PROGRAMS)} is installed")
        if not os.access(_TUN, os.R_OK | os.W_OK):
            raise OSError(errno.EACCES, f"{_TUN} is not open to this user")
        # The process on the machine's side lets the program enter the namespaces of this process.
        self._holder_side.sendall(_NUMBER.pack(os.getpid()))
        deadline = time.monotonic() + _READY_SECONDS
        while not _leads_outward(self._interface):
            if linux.is_readable(self._holder_side.fileno(), within_milliseconds=_STEP_MILLISECONDS):
                raise OSError(
                    errno.EIO, self._holder_side.recv(_LONGEST).decode(errors="replace") or "its helper is gone"
                )
            if time.monotonic() > deadline:
                raise OSError(errno.ETIME, f"{program} is not ready within {_READY_SECONDS} seconds")
        return os.path.basename(program)


def _leads_outward(interface: str) -> bool:
    """Return whether the default route of this network uses the interface. Source: proc(5), /proc/net/route."""
    with open("/proc/self/net/route", encoding="ascii") as stream:
        return any(line.split()[:2] == [interface, "00000000"] for line in stream)


def _stay(helper_side: _socket.socket, interface: str, lock: str, in_use: Callable[[], bool]) -> NoReturn:
    try:
        linux.name_process("cockpit-outpost")
        _close_all_but(helper_side.fileno())
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        request = helper_side.recv(_NUMBER.size)
        # Nothing is received if the shim fails or dies before it has made the network.
        if request:
            _serve(helper_side, arguments(installed(), _NUMBER.unpack(request)[0], interface), lock, in_use)
    finally:
        os._exit(0)


def _close_all_but(kept: int) -> None:
    """Close all other descriptors, above all the attempt's lock: a process that has it open counts as the holder."""
    os.closerange(3, kept)
    os.closerange(kept + 1, os.sysconf("SC_OPEN_MAX"))


def _serve(helper_side: _socket.socket, words: list[str], lock: str, in_use: Callable[[], bool]) -> None:
    complaints = os.memfd_create("complaints")
    streams = [(os.POSIX_SPAWN_DUP2, complaints, number) for number in (1, 2)]
    child = os.posix_spawn(words[0], words, {}, file_actions=streams, setsigdef=_IGNORED_BY_PYTHON)
    try:
        if _await_either(helper_side.fileno(), os.pidfd_open(child)):
            helper_side.sendall(_last_words(complaints))
            return
        # The container that made the network has left, but siblings may use the network without it.
        while not _is_left(lock, in_use):
            time.sleep(_LOOK_SECONDS)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _await_either(maker: int, program: int) -> bool:
    """Wait, and return whether the program has ended; False: the network's maker is gone, and others may still be in
    it."""
    poll = select.poll()
    for fd in (maker, program):
        poll.register(fd, select.POLLIN)
    return program in dict(poll.poll())


def _is_left(lock: str, in_use: Callable[[], bool]) -> bool:
    """Return whether no process is in the network any more, or about to join it."""
    try:
        fd = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        # A shim that is about to join holds the lock; after it, `in_use` sees its holder.
        fcntl.flock(fd, fcntl.LOCK_EX)
        return not in_use()
    finally:
        os.close(fd)


def _last_words(complaints: int) -> bytes:
    lines = os.pread(complaints, _LONGEST, 0).strip().splitlines()
    return lines[-1] if lines else b"its helper ended without a message"
