"""Let podman make the file system of a container, and pass it to the container's holder: the maker process.

    the shim      leaves the machine's namespaces and forks the holder
    └─ the holder the first process of the container, as without podman; it waits for the file system
    the maker     stays in the machine's pid namespace, since podman records pids, which must be valid for all users of
                  podman; it opens the job's folders in a mount namespace of its own, as the submitter

1. The shim forks the maker before it leaves any namespace (`Maker`).
2. The shim sends the holder's pid (`begin`).
3. The maker lets podman run a container in the holder's pid namespace, and opens its mount namespace (`_laid_out`).
4. It sends that descriptor to the holder (`wait`), which keeps it open in place of the one that `view.build` makes.

For a held container (`again`) podman first commits its files to an image, and then runs a container of that image,
without the cards that were freed. What was in memory only (/dev/shm) is lost.
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

_TMP, _STICKY_FOR_ALL = "/tmp", 0o1777  # noqa: S108 - the container's own
_ALWAYS = (_TMP, "/home", "/workspace")
_DONE = b"+"
_LONGEST = 4096
"""Longest message between maker and holder, in bytes."""
_NUMBER = struct.Struct("!i")


class Maker:
    """The maker of one container, as the shim and the holder see it. `again`: the container is held."""

    def __init__(self, attempt: Attempt, plan: PlanDict, *, again: bool) -> None:
        self._holder_side, maker_side = _socket.socketpair()
        if os.fork() == 0:
            self._holder_side.close()
            _make(attempt, plan, maker_side, again=again)
        maker_side.close()

    def begin(self, holder: int) -> None:
        """Tell the maker the holder's pid. The maker ends without having done anything if the shim dies before."""
        self._holder_side.sendall(_NUMBER.pack(holder))

    def wait(self) -> list[str]:
        """Wait, in the holder, for the file system, and keep it open. Raises ViewError."""
        message, attached, _, _ = self._holder_side.recvmsg(_LONGEST, _socket.CMSG_SPACE(4))
        self._holder_side.close()
        if message != _DONE:
            sentence = message.decode(errors="replace")
            # The connection was closed without a message.
            if not sentence:
                raise view.MakerDied("the container could not be made: its maker process was killed")
            raise view.ViewError(sentence)
        view.hold_open(struct.unpack("i", attached[0][2])[0])
        return []


def forget(folder: str) -> int:
    """Remove podman's container and image of an attempt, after its maker has ended: `boot.py forget`."""
    attempt = Attempt(folder)
    _leave_mounts()
    # The maker may still be running podman for a holder that was just killed.
    attempt.wait_unlocked()
    try:
        container = podman.Container(attempt.plan())
        container.remove()
        # Only a held container was ever committed to an image.
        if attempt.read("kept.json") is not None:
            container.forget_kept()
    except podman.PodmanError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _leave_mounts() -> None:
    """Enter a new mount namespace, so that later mounts are visible only to this process."""
    linux.unshare(linux.CLONE_NEWNS)
    linux.mount("none", "/", None, linux.MS_REC | linux.MS_SLAVE)


def _make(attempt: Attempt, plan: PlanDict, maker_side: _socket.socket, *, again: bool) -> NoReturn:
    try:
        # The shim has blocked the engine's signals, and a mask is inherited: podman must get all of them.
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        linux.name_process("cockpit-maker")
        number = maker_side.recv(_NUMBER.size)
        # Nothing: the shim has died before it had a holder.
        if number:
            _answer(attempt, plan, maker_side, _NUMBER.unpack(number)[0], again=again)
    finally:
        os._exit(0)


def _answer(attempt: Attempt, plan: PlanDict, maker_side: _socket.socket, holder: int, *, again: bool) -> None:
    container = podman.Container(plan)
    try:
        seen = _laid_out(attempt, plan, container, holder, again=again)
    except (podman.PodmanError, SourceError) as error:
        maker_side.sendall(str(error).encode(errors="replace")[:_LONGEST])
        return
    except OSError as error:
        maker_side.sendall(f"the container could not be made: {error}".encode(errors="replace")[:_LONGEST])
        return
    try:
        maker_side.sendmsg([_DONE], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("i", seen))])
    except BrokenPipeError:  # the holder was killed meanwhile, and no other process knows this container
        if not again:
            container.remove()


def _laid_out(attempt: Attempt, plan: PlanDict, container: podman.Container, holder: int, *, again: bool) -> int:
    """Let podman run the container, and return a descriptor of its mount namespace."""
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
    # podman's own program may have ended at once, and its pid be another process's by now.
    if os.readlink(f"/proc/{pid}/ns/pid") != os.readlink(f"/proc/{holder}/ns/pid"):
        raise podman.PodmanError("what podman ran in the container ended at once")
    _complete(seen)
    return seen


def _complete(seen: int) -> None:
    """Make the folders that every container has, and a /tmp writable for all, whatever the image has.

    They are directly below `/`, so that no link is followed. Other existing folders are not changed, since they may be
    mounts of the machine's folders.
    """
    # In a child, since this process still needs the machine's paths.
    pid = os.fork()
    if pid == 0:
        try:
            linux.setns(seen, linux.CLONE_NEWNS)
            for name in _ALWAYS:
                if not os.path.lexists(name):
                    os.mkdir(name)
            if not os.path.islink(_TMP):
                os.chmod(_TMP, _STICKY_FOR_ALL)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
