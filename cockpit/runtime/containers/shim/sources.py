"""Open the machine's folders that a container mounts, with the submitter's credentials, and bind them.

Each folder is opened once, and bound through its descriptor. So a user who replaces the folder by a link after the
check cannot make the engine mount another one.
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
    """A folder cannot be mounted; the text says which, where and why."""


def real_folder(plan: PlanDict, mount: MountDict) -> str:
    """Return the real path of a job's folder, for plain processes, which see the machine itself. Raises SourceError."""
    sources = Sources(plan, "")
    fd = sources.opened(mount["what"], mount["source"], create=mount["create"])
    try:
        real = os.readlink(f"/proc/self/fd/{fd}")
    finally:
        os.close(fd)
    list(sources.shows_engine(real, mount["what"], mount["target"]))
    return real


class Sources:
    """Opens folders and binds them to numbered folders of `stage`; collects the mounts for bubblewrap."""

    def __init__(self, plan: PlanDict, stage: str) -> None:
        self._plan = plan
        self._stage = stage
        self._places = 0
        self.binds: list[tuple[str, str, bool]] = []
        self.masked: list[str] = []
        """Paths in the container at which the engine's state or socket would be visible."""
        self._homes: list[str] = []
        """Paths in the container of writable home folders."""

    def add_mount(self, mount: MountDict) -> None:
        what, source, target = mount["what"], mount["source"], mount["target"]
        if os.path.normpath(target) != target or not (target == source or target.startswith("/workspace/")):
            raise SourceError(f"{what}: {target} is not a place in the container")
        if target == source and not self._is_to_be_bound(what, target):
            return
        if mount.get("copied"):
            # A copy is the engine's own, and contains none of its folders that would have to be masked.
            self.binds.append((self.bound(mount)[0], target, False))
        else:
            self._add(self.opened(what, source, create=mount["create"]), what, target, writable=mount["writable"])

    def _is_to_be_bound(self, what: str, folder: str) -> bool:
        """Return whether a folder that is to be at its own path must be mounted there. Raises SourceError.

        It need not be if it is in a mounted home or in a system folder, where it is visible already. A mount there
        would be dangerous: the user could put a link at the mount point, which would then be made where it leads.
        """
        os.close(self.opened(what, folder))
        return is_shown_at_its_path(folder) and not any(is_inside(folder, home) for home in self._homes)

    def bound(self, mount: MountDict) -> tuple[str, str]:
        """Bind a folder below `stage`; return that path and the folder's real path. Raises SourceError.

        The engine opens its own copies with its own rights.
        """
        if mount.get("copied"):
            fd = os.open(mount["source"], os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        else:
            fd = self.opened(mount["what"], mount["source"])
        return self._bind(fd)

    def add_home(self) -> None:
        """Mount the cluster's shared /home, if there is one, and the user's home, unless it is inside or forbidden."""
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
            # Not an error: the command gets /tmp as HOME then.
            return
        self._add(fd, "home", home, writable=access == "rw")

    def opened(self, what: str, source: str, *, create: bool = False) -> int:
        """Open the folder with the submitter's rights; return an O_PATH descriptor. Raises SourceError."""
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
        """Return the paths at which the engine's state and socket would be visible.

        Raises SourceError if the folder is inside of one of these.
        """
        for folder in map(os.path.realpath, (self._plan["state"], self._plan["socket"])):
            if os.path.commonpath([real, folder]) == folder:
                raise SourceError(f"{what}: {real} is in the engine's own folder {folder}; choose another one")
            if os.path.commonpath([real, folder]) == real:
                yield os.path.join(target, os.path.relpath(folder, real))


def is_shown_at_its_path(folder: str) -> bool:
    """Return whether a folder of the machine can be mounted at its own path.

    System folders and their parents cannot, since each container has its own.
    """
    top = folder.split("/")[1]
    return folder not in _OWN_PLACES_ALONE and top not in _OWN_TOPS | _SYSTEM_TOPS


def is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _may_be_shown(home: str) -> bool:
    """Return whether a path is a user's own folder: not `/`, not a system folder, not the parent of all homes."""
    if not home.startswith("/") or os.path.normpath(home) != home:
        return False
    parts = home.split("/")[1:]
    return home == "/root" or (len(parts) > 1 and parts[0] not in _OWN_TOPS and home not in _OWN_PLACES)


def _open_as(plan: PlanDict, path: str, *, create: bool) -> int:
    """Open a folder with the submitter's rights; return an O_PATH descriptor."""
    with credentials(plan):
        if create:
            os.makedirs(path, exist_ok=True)
        # For reading first: this checks the right to list the folder, which opening it with O_PATH does not (open(2)).
        listed = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return os.open(f"/proc/self/fd/{listed}", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        finally:
            os.close(listed)


class credentials:  # noqa: N801 - a context manager reads as a verb's object: `with credentials(plan)`
    """Use the submitter's ids inside of the `with` block. A rootless engine has no other ids, so nothing changes."""

    def __init__(self, plan: PlanDict | Order) -> None:
        self._plan = plan
        self._switches = not plan["rootless"]
        self._groups: list[int] = []

    def __enter__(self) -> None:
        if self._switches:
            # Groups and gid first: with the effective uid of a user, they could not be changed any more.
            self._groups = os.getgroups()
            os.setgroups(self._plan["groups"])
            os.setegid(self._plan["gid"])
            os.seteuid(self._plan["uid"])

    def __exit__(self, *_: object) -> None:
        if self._switches:
            # In the opposite order, for the same reason.
            os.seteuid(0)
            os.setegid(0)
            os.setgroups(self._groups)
