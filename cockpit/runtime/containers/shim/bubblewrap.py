"""Compose bubblewrap's arguments from the description of a container's file system.

bubblewrap only makes the mount namespace, and ends before any program of the container runs. It runs with the
privileges that mounting needs; a program from the container's files (whose loader or shell the job may have changed)
must not get these. So the command given to bubblewrap is `/`, a folder, which cannot be executed. bubblewrap reads the
byte of `--block-fd` after the last mount: if the byte has been read, the file system is complete.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PROGRAM = "bwrap"
_SEARCH_PATH = ("/usr/bin", "/bin", "/usr/local/bin")
_NEVER_RUN = "/"
KERNEL_SETTINGS = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs")
"""Folders that root can write without any capability. They are read-only, or a job of root could change the machine."""


class View:
    """A container's file system. Sources are paths in the builder's mount namespace, targets are paths inside."""

    def __init__(
        self,
        *,
        root: str,
        binds: Sequence[tuple[str, str, bool]] = (),
        read_only: Sequence[str] = (),
        masked: Sequence[str] = (),
        devices: Sequence[str] = (),
        shared_memory_bytes: int,
    ) -> None:
        self.root = root
        self.binds = binds
        """(source, target, writable), in order."""
        self.read_only = read_only
        """Paths of the machine that are mounted read-only at the same path."""
        self.masked = masked
        """Folders that are mounted over by an empty one."""
        self.devices = devices
        """Device nodes, each at its own path."""
        self.shared_memory_bytes = shared_memory_bytes


def installed() -> str:
    """Return bubblewrap's path; empty if it is not installed, and `without_bubblewrap` must be used instead."""
    return next(filter(os.path.exists, (f"{folder}/{PROGRAM}" for folder in _SEARCH_PATH)), "")


def arguments(view: View, *, block_fd: int, info_fd: int) -> list[str]:
    """Return the argument vector, beginning with the program's name."""
    # The order counts, since each mount lies over those before it: the machine's system folders, then /proc, /sys and
    # /dev, then the job's folders, and last the masks, which must lie over everything that could show the engine's
    # folders.
    return [
        PROGRAM,
        *("--bind", view.root, "/"),
        *_each("--ro-bind-try", ((path, path) for path in view.read_only)),
        *("--proc", "/proc"),
        *_each("--ro-bind-try", ((path, path) for path in KERNEL_SETTINGS)),
        *("--ro-bind-try", "/sys", "/sys"),
        *("--dev", "/dev"),
        *("--perms", "1777", "--size", str(view.shared_memory_bytes), "--tmpfs", "/dev/shm"),  # noqa: S108 - the container's own
        *_each("--dev-bind-try", ((path, path) for path in view.devices)),
        *_binds(view.binds),
        *_masks(view.masked),
        *("--cap-drop", "ALL"),
        *("--info-fd", str(info_fd), "--block-fd", str(block_fd)),
        *("--", _NEVER_RUN),
    ]


def _each(option: str, pairs: Iterable[tuple[str, str]]) -> list[str]:
    return [word for source, target in pairs for word in (option, source, target)]


def _binds(binds: Iterable[tuple[str, str, bool]]) -> list[str]:
    return [
        word for source, target, writable in binds for word in ("--bind" if writable else "--ro-bind", source, target)
    ]


def _masks(paths: Iterable[str]) -> list[str]:
    # First the tmpfs, then read-only: in the other order there would be nothing yet to be remounted.
    return [word for path in paths for word in ("--tmpfs", path, "--remount-ro", path)]
