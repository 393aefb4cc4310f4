"""Make the `/` of a container with an image: one copy-on-write overlay for each folder of the image.

No link of the image is followed, and none of its files is executed or trusted, while the file system is made. So its
folders are mounted one by one into a `/` that belongs to the engine, as in `system`. The container's own folders, such
as /dev, /tmp and /workspace, never come from the image: so no link of the image can be at a mount point.
"""

from __future__ import annotations

import os
import re
import stat

from cockpit.runtime.containers.shim import system
from cockpit.runtime.containers.shim.sources import SourceError, credentials

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cockpit.runtime.containers.shim.attempt import Attempt, MountDict, PlanDict
    from cockpit.runtime.containers.shim.sources import Sources

    Bind = tuple[str, str, bool]

_OWN = frozenset({"dev", "home", "proc", "root", "run", "sys", "tmp", "workspace"})
_EVERY_ROOT_HAS = ("bin", "usr")
_NAME = re.compile(r"[\w.+-]+", re.ASCII)
"""Names that need no escaping in an overlay's options."""
_MOST_BYTES = 1 << 20
"""Largest size of the image's passwd and hosts files; a larger one is ignored."""
_RESOLVER = "/etc/resolv.conf"


class ImageRoot:
    """The root that is made of the image at `place`, a folder in the shim's own mount namespace."""

    def __init__(self, attempt: Attempt, plan: PlanDict, place: str, *, kept_out: frozenset[str] = frozenset()) -> None:
        """`kept_out`: names below `/` at which other folders are mounted."""
        self._plan = plan
        # Relative, as `mount_overlay` needs it: so the state folder's path needs no escaping.
        self._place = os.path.relpath(place, attempt.path)
        self._kept_out = _OWN | kept_out
        self.binds: list[Bind] = []
        """Mounts of the image's files, and of its folders that allow no overlay, which are read-only then."""
        os.chdir(attempt.path)
        system.make_empty(("mnt", "media", "srv", *_OWN))

    def make(self) -> frozenset[str]:
        """Fill FOLDER/root, and return the names below `/` that come from the image. `etc` is always among them."""
        names = [name for name in sorted(os.listdir(self._place)) if name not in self._kept_out]
        taken = frozenset(name for name in names if self._take(name)) | {"etc"}
        if not os.path.lexists("root/etc"):
            self._make_etc()
        return taken

    def _take(self, name: str) -> bool:
        path = f"{self._place}/{name}"
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            if not os.path.lexists(f"root/{name}"):
                # Taken over as it is: where it leads is decided inside of the container, when a program follows it.
                os.symlink(os.readlink(path), f"root/{name}")
            return True
        if stat.S_ISDIR(mode):
            return self._take_folder(name)
        if stat.S_ISREG(mode):
            self.binds.append((os.path.abspath(path), f"/{name}", False))
        return stat.S_ISREG(mode)

    def _take_folder(self, name: str) -> bool:
        for layer in ("root", "upper", "work"):
            os.makedirs(f"{layer}/{name}", exist_ok=True)
        # Before the overlay is mounted: its upper layer must not be changed from outside while it is mounted
        # (overlayfs.rst, "Changes to underlying filesystems").
        if name == "etc":
            self._introduce()
        system.give_upper(self._plan, name)
        if not (_NAME.fullmatch(name) and system.mount_overlay(self._plan, f"{self._place}/{name}", name)):
            self.binds.append((os.path.abspath(f"{self._place}/{name}"), f"/{name}", False))
        return True

    def _make_etc(self) -> None:
        """Make the /etc of an image without one."""
        os.makedirs("upper/etc", exist_ok=True)
        self._introduce()
        system.give_upper(self._plan, "etc")
        self.binds.append((os.path.abspath("upper/etc"), "/etc", True))

    def _introduce(self) -> None:
        system.introduce(self._plan, self._text)
        system.add_once("resolv.conf", system.text_of(_RESOLVER))

    def _text(self, path: str) -> str:
        """Read a file of the image with the submitter's rights, without following a link at its end."""
        with credentials(self._plan):
            try:
                # O_NONBLOCK: opening a FIFO of the image would wait for a writer.
                fd = os.open(f"{self._place}{path}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError:
                return ""
        with open(fd, encoding="utf-8", errors="surrogateescape") as stream:
            status = os.fstat(fd)
            return stream.read() if stat.S_ISREG(status.st_mode) and status.st_size <= _MOST_BYTES else ""


def placed(sources: Sources, mount: MountDict) -> tuple[str, list[str]]:
    """Open and bind the image's folder; return it, and the paths at which the engine's own folders would be visible.

    Raises SourceError, also if the folder is not a root file system.
    """
    place, real = sources.bound(mount)
    if not any(os.path.lexists(f"{place}/{name}") for name in _EVERY_ROOT_HAS):
        raise SourceError(f"image: {mount['source']} is not a root file system: it has neither bin nor usr")
    return place, [] if mount.get("copied") else list(_engine_paths_in(sources, real, mount))


def _engine_paths_in(sources: Sources, real: str, mount: MountDict) -> Iterator[str]:
    return sources.shows_engine(real, mount["what"], "/")
