"""The maker: has podman lay a container out for its holder, and hands over the view.

    the shim      leaves the machine's namespaces and forks the holder
    └─ the holder the first process of the container, as ever; asks for the view
    the maker     stays in the machine's pid namespace: podman writes down numbers of processes, which must mean the
                  same to everybody; in a mount namespace of its own it opens what the job is shown, as the submitter

A container to be made again was kept: an image is made of what its job left (`commit`), and a container of that is
run, without the cards that are free. What is only in memory, /dev/shm, is not in it.
"""

from __future__ import annotations

import _socket
import os
import signal
import struct
import sys

from cockpit.runtime.containers.shim import linux, podman, view
from cockpit.runtime.containers.shim.attempt import Attempt
from cockpit.runtime.containers.shim.sources import SourceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from cockpit.runtime.containers.shim.attempt import PlanDict

_TMP, _FOR_EVERYBODY = "/tmp", 0o1777  # noqa: S108 - the container's own
_ALWAYS = (_TMP, "/home", "/workspace")
_DONE = b"+"
_LONGEST = 4096
_NUMBER = struct.Struct("!i")


class Maker:
    """Forked before anything is left. `again`: the container was kept."""

    def __init__(self, attempt: Attempt, plan: PlanDict, *, again: bool) -> None:
        self._here, there = _socket.socketpair()
        if os.fork() == 0:
            self._here.close()
            _make(attempt, plan, there, again=again)
        there.close()

    def begin(self, holder: int) -> None:
        """The holder is there. Without this nothing is made."""
        self._here.sendall(_NUMBER.pack(holder))

    def wait(self) -> list[str]:
        """By the holder, in place of `view.build`. Raises ViewError."""
        said, attached, _, _ = self._here.recvmsg(_LONGEST, _socket.CMSG_SPACE(4))
        self._here.close()
        if said != _DONE:
            raise view.ViewError(said.decode(errors="replace") or "the container could not be made: its maker is gone")
        view.hold_open(struct.unpack("i", attached[0][2])[0])
        return []


def forget(folder: str) -> int:
    """Remove what podman has of an attempt, once its maker, who may still be at it, is gone: `boot.py forget`."""
    attempt = Attempt(folder)
    _leave_mounts()
    attempt.wait_unlocked()
    try:
        container = podman.Container(attempt.plan())
        container.remove()
        if attempt.read("kept.json") is not None:
            container.forget_kept()
    except podman.PodmanError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _leave_mounts() -> None:
    """What is mounted from here on, nobody else sees."""
    linux.unshare(linux.CLONE_NEWNS)
    linux.mount("none", "/", None, linux.MS_REC | linux.MS_SLAVE)


def _make(attempt: Attempt, plan: PlanDict, there: _socket.socket, *, again: bool) -> NoReturn:
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        linux.name_process("cockpit-maker")
        number = there.recv(_NUMBER.size)
        if number:
            _answer(attempt, plan, there, _NUMBER.unpack(number)[0], again=again)
    finally:
        os._exit(0)


def _answer(attempt: Attempt, plan: PlanDict, there: _socket.socket, holder: int, *, again: bool) -> None:
    container = podman.Container(plan)
    try:
        seen = _laid_out(attempt, plan, container, holder, again=again)
    except (podman.PodmanError, SourceError) as error:
        there.sendall(str(error).encode(errors="replace")[:_LONGEST])
        return
    except OSError as error:
        there.sendall(f"the container could not be made: {error}".encode(errors="replace")[:_LONGEST])
        return
    try:
        there.sendmsg([_DONE], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("i", seen))])
    except BrokenPipeError:  # the holder was killed meanwhile, and nobody else knows of this container
        if not again:
            container.remove()


def _laid_out(attempt: Attempt, plan: PlanDict, container: podman.Container, holder: int, *, again: bool) -> int:
    """The view's mount namespace, open."""
    _leave_mounts()
    if again:
        container.commit()
    else:
        container.remove()  # an engine may have died just here
    binds, masked = view.beside_image(attempt, plan)
    layout = podman.Layout(binds, masked, plan["devices"] if attempt.has_cards() else ())
    image = container.kept_image if again else plan["podman"]
    pid = container.run(image, layout, holder, attempt.file("podman.pid"))
    seen = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    if os.readlink(f"/proc/{pid}/ns/pid") != os.readlink(f"/proc/{holder}/ns/pid"):
        raise podman.PodmanError("what podman ran in the container ended at once")
    _complete(seen)
    return seen


def _complete(seen: int) -> None:
    """Every container has these folders, and a /tmp for everybody, whatever its image has. They lie right below `/`, so
    that no link is followed; where something of the machine may be shown, nothing is changed."""
    pid = os.fork()
    if pid == 0:
        try:
            linux.setns(seen, linux.CLONE_NEWNS)
            for name in _ALWAYS:
                if not os.path.lexists(name):
                    os.mkdir(name)
            if not os.path.islink(_TMP):
                os.chmod(_TMP, _FOR_EVERYBODY)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
