"""Make the `/` of a container without an image: one copy-on-write overlay for each system folder of the machine.

    FOLDER/root         the folder that becomes `/`
    FOLDER/upper, work  what the job has changed in /usr, /etc, /opt …; mounted by one holder only

There is no single overlay of `/` for two reasons: an ordinary user's namespace refuses `lowerdir=/` (its mounts are
locked), and folders that are not listed must not be visible. `/` and the empty folders belong to the engine, so that a
job cannot put a link where the next holder mounts. The system folders belong to the submitter.
Source: Documentation/filesystems/overlayfs.rst.
"""

from __future__ import annotations

import os

from cockpit.runtime.containers.shim import linux, spool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cockpit.runtime.containers.shim.attempt import Attempt, PlanDict

_FOLDERS = ("usr", "etc", "opt", "bin", "sbin", "lib", "lib32", "lib64", "libx32")
_EMPTY = (
    *("dev", "proc", "sys", "tmp", "run", "root", "home", "workspace", "mnt", "media", "srv"),
    *("var/tmp", "var/cache", "var/lib", "var/log"),
)
_OPTIONS = "redirect_dir=off,index=off,metacopy=off"
_ROOTLESS_OPTIONS = "userxattr"


def make_root(attempt: Attempt, plan: PlanDict) -> list[str]:
    """Fill FOLDER/root, and return the system folders that must be mounted read-only because an overlay failed.

    It fails if something is mounted inside, or if the state folder's file system cannot be an upper layer.
    """
    os.chdir(attempt.path)
    make_empty(_EMPTY)
    return [f"/{name}" for name in _FOLDERS if os.path.lexists(f"/{name}") and not _make_folder(plan, name)]


def make_empty(names: Iterable[str]) -> None:
    """Make empty folders in FOLDER/root; FOLDER is the working folder."""
    for name in names:
        os.makedirs(f"root/{name}", exist_ok=True)


def inner_mounts(mount_points: Iterable[str], without: Iterable[str]) -> list[str]:
    """Return the mount points inside of the system folders, except those inside of the folders `without`.

    They must be mounted again, since an overlay shows only the files under a mount point.
    """
    left_out = tuple(f"{path}/" for path in without)
    return [
        point
        for point in mount_points
        if point.split("/")[1] in _FOLDERS and point.count("/") > 1 and not point.startswith(left_out)
    ]


def mount_points() -> list[str]:
    """Return every mount point of this namespace, in mounting order."""
    with open("/proc/self/mountinfo", "rb") as stream:
        return [_unescape(line.split()[4]) for line in stream]


def is_system(path: str) -> bool:
    """Return whether a path is in a system folder, and therefore visible in the container without a mount."""
    return path.split("/")[1] in _FOLDERS


def _make_folder(plan: PlanDict, name: str) -> bool:
    if os.path.islink(f"/{name}"):
        # A holder that mounts a held container again has the link already.
        if not os.path.lexists(f"root/{name}"):
            os.symlink(os.readlink(f"/{name}"), f"root/{name}")
        return True
    for layer in ("root", "upper", "work"):
        os.makedirs(f"{layer}/{name}", exist_ok=True)
    if name == "etc":
        # Before the overlay is mounted: its upper layer must not be changed from outside while it is mounted
        # (overlayfs.rst, "Changes to underlying filesystems").
        introduce(plan, text_of)
    give_upper(plan, name)
    return mount_overlay(plan, f"/{name}", name)


def give_upper(plan: PlanDict, name: str) -> None:
    """Let the submitter write into one of the overlays below `/`."""
    if not plan["rootless"]:
        os.chown(f"upper/{name}", plan["uid"], plan["gid"])
    if name == "usr":
        _link_tools(plan)


def _link_tools(plan: PlanDict) -> None:
    """Link a batch script's commands into /usr/local/bin, since login shells replace PATH.

    Only in a new layer: a job that has run could have put a link to another place there.
    """
    names = spool.tools(plan)
    if not names or os.path.lexists("upper/usr/local"):
        return
    os.makedirs("upper/usr/local/bin", mode=0o755)
    for name in names:
        os.symlink(f"{spool.TOOLS}/{name}", f"upper/usr/local/bin/{name}")


def mount_overlay(plan: PlanDict, lower: str, name: str) -> bool:
    """Mount an overlay; return False if that fails. Paths are relative, so that the state folder needs no escaping."""
    options = _ROOTLESS_OPTIONS if plan["rootless"] else _OPTIONS
    layers = f"lowerdir={lower},upperdir=upper/{name},workdir=work/{name}"
    try:
        linux.mount("overlay", f"root/{name}", "overlay", linux.MS_NOSUID | linux.MS_NODEV, f"{layers},{options}")
    # Whatever the reason, the folder can still be mounted read-only.
    except OSError:
        return False
    return True


def introduce(plan: PlanDict, text: Callable[[str], str]) -> None:
    """Write the host name, the job's hosts and the submitter (who may only be in LDAP) into the container's own /etc.

    `text` reads the original of a file.
    """
    name = plan["hostname"]
    add_once("hostname", f"{name}\n")
    known = "".join(f"{address} {host}\n" for host, address in plan.get("hosts", {}).items())
    add_once("hosts", f"{_whole_lines(text('/etc/hosts'))}{known or f'127.0.1.1 {name}' + chr(10)}")
    users = _whole_lines(text("/etc/passwd"))
    # By the uid, not by the name: programs look up the user that they run as.
    if not any(line.split(":")[2:3] == [str(plan["uid"])] for line in users.splitlines()):
        add_once("passwd", f"{users}{plan['user']}:x:{plan['uid']}:{plan['gid']}::{plan['home']}:/bin/sh\n")


def add_once(name: str, text: str) -> None:
    """Write a file of the container's own /etc, unless it exists."""
    path = f"upper/etc/{name}"
    if not os.path.lexists(path):
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        with open(fd, "w", encoding="utf-8", errors="surrogateescape") as stream:
            stream.write(text)


def text_of(path: str) -> str:
    """Read a file of the machine; return an empty text if there is none."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as stream:
            return stream.read()
    except OSError:
        return ""


def _whole_lines(text: str) -> str:
    return text if text.endswith("\n") or not text else f"{text}\n"


def _unescape(word: bytes) -> str:
    """Decode a path of mountinfo, which writes space, tab, newline and backslash as three octal digits."""
    first, *rest = word.split(b"\\")
    return os.fsdecode(first + b"".join(bytes([int(part[:3], 8)]) + part[3:] for part in rest))
