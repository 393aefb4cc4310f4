"""bubblewrap's arguments: a pure function of what a container may see.

bubblewrap only *builds the view*, a mount namespace, and is gone before anything of the container runs: it is run with
the privileges that mounting takes, and starting a program from the container's own files (which the job may have
changed: its loader, its shell) with these would give them away. So its command is `/`, a folder, which cannot be
executed. `--block-fd` is read after the last mount; that its byte is gone is how one knows that the view is complete.
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
"""Owned by root, who needs no capability to write them: a job of root's must not change the machine through them."""


class View:
    """What a container sees. Sources are paths in the builder's mount namespace, targets are paths inside."""

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
        """Paths of the machine shown at the same place, read-only."""
        self.masked = masked
        """Folders shown empty, whatever they are part of."""
        self.devices = devices
        """Device nodes, each at its own path."""
        self.shared_memory_bytes = shared_memory_bytes


def installed() -> str:
    """Its path; empty: it is not here, and `unaided` does its work."""
    return next(filter(os.path.exists, (f"{folder}/{PROGRAM}" for folder in _SEARCH_PATH)), "")


def arguments(view: View, *, block_fd: int, info_fd: int) -> list[str]:
    """The whole vector, program name first."""
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
    return [word for path in paths for word in ("--tmpfs", path, "--remount-ro", path)]
