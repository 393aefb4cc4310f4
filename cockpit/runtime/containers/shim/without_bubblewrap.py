"""Make a container's file system without bubblewrap: the same mounts in the same order.

1. Fork a child, which enters a new mount namespace, makes the mounts there, and reports that it is ready.
2. Open the child's mount namespace, then let the child end. It ends before any program of the container runs.
"""

from __future__ import annotations

import os
import signal

from cockpit.runtime.containers.shim import linux
from cockpit.runtime.containers.shim.bubblewrap import KERNEL_SETTINGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from cockpit.runtime.containers.shim.bubblewrap import View

_DONE = b"."
_NODES = ("null", "zero", "full", "random", "urandom", "tty")
_LINKS = (
    ("ptmx", "pts/ptmx"),
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
)
_GUARDED = linux.ATTR_NOSUID | linux.ATTR_NODEV
"""Attributes of mounts with files: none of these gives privileges or opens a device of the machine."""


def make(view: View, *, within_milliseconds: int) -> tuple[int, str]:
    """Return a descriptor of the mount namespace and an empty text; or -1 and why it could not be made."""
    ready_read, ready_write = os.pipe()
    end_read, end_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(end_write)
        _child(view, ready_write, end_read)
    os.close(ready_write)
    os.close(end_read)
    try:
        if not linux.is_readable(ready_read, within_milliseconds=within_milliseconds):
            os.kill(pid, signal.SIGKILL)
            return -1, "the file server of a mounted folder does not answer"
        message = os.read(ready_read, 4096)
        if message != _DONE:
            return -1, message.decode(errors="replace")
        return os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC), ""
    finally:
        os.close(ready_read)
        os.close(end_write)  # ends the child
        os.waitpid(pid, 0)


def _child(view: View, ready_write: int, end_read: int) -> NoReturn:
    try:
        _build(view)
        os.write(ready_write, _DONE)
        os.read(end_read, 1)
    except BaseException as error:  # noqa: BLE001 - the child ends here: the parent reports
        sentence = getattr(error, "strerror", None) or str(error)
        os.write(ready_write, sentence.encode(errors="replace")[:4096])
    finally:
        os._exit(0)


def _build(view: View) -> None:
    linux.unshare(linux.CLONE_NEWNS)
    linux.mount("none", "/", None, linux.MS_REC | linux.MS_SLAVE)
    root = view.root
    # pivot_root(2) accepts only a mount point.
    _bind(root, root, linux.ATTR_NOSUID | linux.ATTR_NODEV)
    for path in view.read_only:
        _show(path, root + path, _GUARDED | linux.ATTR_RDONLY)
    linux.mount("proc", f"{root}/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
    for path in (f"{root}{name}" for name in KERNEL_SETTINGS):
        _show(path, path, _GUARDED | linux.ATTR_RDONLY)
    _show("/sys", f"{root}/sys", _GUARDED | linux.ATTR_RDONLY)
    _make_devices(view, f"{root}/dev")
    for source, target, writable in view.binds:
        _show(source, root + target, _GUARDED | (0 if writable else linux.ATTR_RDONLY))
    for path in view.masked:
        os.makedirs(root + path, exist_ok=True)
        _tmpfs(root + path, "mode=0755")
        # Read-only after it is made: nothing is put into it.
        linux.restrict(root + path, linux.ATTR_RDONLY)
    linux.enter_root(root)


def _make_devices(view: View, folder: str) -> None:
    """Make the devices that bubblewrap's --dev makes, and the cards."""
    _tmpfs(folder, "mode=0755")
    for name in _NODES:
        _show(f"/dev/{name}", f"{folder}/{name}", linux.ATTR_NOSUID)
    for name, target in _LINKS:
        os.symlink(target, f"{folder}/{name}")
    for name in ("pts", "shm"):
        os.mkdir(f"{folder}/{name}")
    # A new instance, in which no terminal of another container can be opened.
    linux.mount(
        "devpts", f"{folder}/pts", "devpts", linux.MS_NOSUID | linux.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620"
    )
    _tmpfs(f"{folder}/shm", f"mode=1777,size={view.shared_memory_bytes}")
    for device in view.devices:
        _show(device, folder.removesuffix("/dev") + device, linux.ATTR_NOSUID)


def _tmpfs(target: str, options: str) -> None:
    linux.mount("tmpfs", target, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, options)


def _show(source: str, target: str, attributes: int) -> None:
    """Bind a file or folder of the machine to its place; do nothing if the machine does not have it."""
    if not os.path.exists(source):
        return
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    elif not os.path.lexists(target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_CLOEXEC, 0o644))
    _bind(source, target, attributes)


def _bind(source: str, target: str, attributes: int) -> None:
    linux.bind(source, target)
    linux.restrict(target, attributes)
