"""Folders of the machine that a container is shown, opened with the submitter's credentials and bound from there.

A folder is opened once; what is bound is what was opened, whatever its path names a moment later.
"""

from __future__ import annotations

import os

from cockpit.runtime.containers.shim import linux

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cockpit.runtime.containers.shim.attempt import MountDict, PlanDict
    from cockpit.runtime.containers.shim.metering import Order

_HOMES = "/home"
_OWN_PLACES = ("/var/tmp",)  # noqa: S108 - the container's own
_OWN_PLACES_ALONE = frozenset({"/", "/run", "/var", "/var/lib", "/var/log", "/var/cache", "/run/cockpit-slurm"})
_SYSTEM_TOPS = frozenset({"boot", "lib", "lib32", "lib64", "libx32", "opt"})
_OWN_TOPS = frozenset({"bin", "dev", "etc", "proc", "sbin", "sys", "usr", "workspace"})


class SourceError(Exception):
    """A folder cannot be shown; the text says which, where and why."""


def real_folder(plan: PlanDict, mount: MountDict) -> str:
    """Where a folder of the job really is, for who is shown the machine itself. Raises SourceError."""
    sources = Sources(plan, "")
    fd = sources.opened(mount["what"], mount["source"], create=mount["create"])
    try:
        real = os.readlink(f"/proc/self/fd/{fd}")
    finally:
        os.close(fd)
    list(sources.shows_engine(real, mount["what"], mount["target"]))
    return real


class Sources:
    """Opens and binds folders into numbered places of `stage`, and collects what bubblewrap is told about them."""

    def __init__(self, plan: PlanDict, stage: str) -> None:
        self._plan = plan
        self._stage = stage
        self._places = 0
        self.binds: list[tuple[str, str, bool]] = []
        self.masked: list[str] = []
        """Where the engine's state and socket would show through."""
        self._homes: list[str] = []
        """Places of homes that are shown as they are, writable."""

    def add_mount(self, mount: MountDict) -> None:
        what, source, target = mount["what"], mount["source"], mount["target"]
        if os.path.normpath(target) != target or not (target == source or target.startswith("/workspace/")):
            raise SourceError(f"{what}: {target} is not a place in the container")
        if target == source and not self._is_to_be_bound(what, target):
            return
        if mount.get("copied"):
            self.binds.append((self.bound(mount)[0], target, False))
        else:
            self._add(self.opened(what, source, create=mount["create"]), what, target, writable=mount["writable"])

    def _is_to_be_bound(self, what: str, folder: str) -> bool:
        """Whether a folder that is to stand at its own path is not there by itself: in the home, or as a part of the
        container's own system folders. It must be there in any case. Raises SourceError.

        Nothing is mounted inside of a home or of a system folder: whoever may write there could put a link where the
        mount is made, and a mount point would be made wherever that leads."""
        os.close(self.opened(what, folder))
        return is_shown_at_its_path(folder) and not any(is_inside(folder, home) for home in self._homes)

    def bound(self, mount: MountDict) -> tuple[str, str]:
        """A place where the folder is bound for nobody to see yet, and where it really is. What the engine has copied
        for the submitter, it opens itself. Raises SourceError."""
        if mount.get("copied"):
            fd = os.open(mount["source"], os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        else:
            fd = self.opened(mount["what"], mount["source"])
        return self._bind(fd)

    def add_home(self) -> None:
        """Show the cluster's /home where there is one, and the home where it is not in there and may be shown."""
        home, access = self._plan["home"], self._plan["home_access"]
        if access == "none":
            return
        shared = self._plan.get("shared_home", "")
        if shared:
            self._add(self.opened("home", shared), "home", _HOMES, writable=access == "rw")
        if not _may_be_shown(home) or (shared and home.startswith(f"{_HOMES}/")):
            return
        try:
            fd = _open_as(self._plan, home, create=False)
        except OSError:
            return
        self._add(fd, "home", home, writable=access == "rw")

    def opened(self, what: str, source: str, *, create: bool = False) -> int:
        """A path descriptor of the folder. Raises SourceError."""
        try:
            return _open_as(self._plan, source, create=create)
        except OSError as error:
            reason = (error.strerror or "cannot be opened").lower()
            raise SourceError(f"{what}: {source}: {reason} for user {self._plan['user']}") from None

    def _add(self, fd: int, what: str, target: str, *, writable: bool) -> None:
        if what == "home" and writable:
            self._homes.append(target)
        place, real = self._bind(fd)
        self.binds.append((place, target, writable))
        self.masked.extend(self.shows_engine(real, what, target))

    def _bind(self, fd: int) -> tuple[str, str]:
        real = os.readlink(f"/proc/self/fd/{fd}")
        self._places += 1
        place = os.path.join(self._stage, str(self._places))
        os.mkdir(place)
        linux.bind(f"/proc/self/fd/{fd}", place)
        os.close(fd)
        return place, real

    def shows_engine(self, real: str, what: str, target: str) -> Iterator[str]:
        """Where the engine's state and socket would be seen. Raises SourceError where nothing else would be."""
        for folder in map(os.path.realpath, (self._plan["state"], self._plan["socket"])):
            if os.path.commonpath([real, folder]) == folder:
                raise SourceError(f"{what}: {real} lies in the engine's own folder {folder}; choose another one")
            if os.path.commonpath([real, folder]) == real:
                yield os.path.join(target, os.path.relpath(folder, real))


def is_shown_at_its_path(folder: str) -> bool:
    """Whether a folder of the machine can stand at its own path in a container: no system folder, of which each
    container has its own, and nothing above one."""
    top = folder.split("/")[1]
    return folder not in _OWN_PLACES_ALONE and top not in _OWN_TOPS | _SYSTEM_TOPS


def is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _may_be_shown(home: str) -> bool:
    """A home is somebody's own folder: not the root, not a system folder, not the parent of all homes."""
    if not home.startswith("/") or os.path.normpath(home) != home:
        return False
    parts = home.split("/")[1:]
    return home == "/root" or (len(parts) > 1 and parts[0] not in _OWN_TOPS and home not in _OWN_PLACES)


def _open_as(plan: PlanDict, path: str, *, create: bool) -> int:
    """A path descriptor of a folder, with no more rights than the submitter has."""
    with credentials(plan):
        if create:
            os.makedirs(path, exist_ok=True)
        listed = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return os.open(f"/proc/self/fd/{listed}", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        finally:
            os.close(listed)


class credentials:  # noqa: N801 - read as a word in front of what is done with them
    """While inside: the submitter's ids, for the kernel's checks. An ordinary user's shim has no others anyway."""

    def __init__(self, plan: PlanDict | Order) -> None:
        self._plan = plan
        self._switches = not plan["rootless"]
        self._groups: list[int] = []

    def __enter__(self) -> None:
        if self._switches:
            self._groups = os.getgroups()
            os.setgroups(self._plan["groups"])
            os.setegid(self._plan["gid"])
            os.seteuid(self._plan["uid"])

    def __exit__(self, *_: object) -> None:
        if self._switches:
            os.seteuid(0)
            os.setegid(0)
            os.setgroups(self._groups)
