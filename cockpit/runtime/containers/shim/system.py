"""The container's `/`: real folders and links, with one copy-on-write overlay per system folder of the machine.

    FOLDER/root         what becomes `/`
    FOLDER/upper, work  what the job changed in /usr, /etc, /opt …; only ever mounted by the one holder

One overlay per folder rather than one of `/`: an ordinary user's namespace refuses `lowerdir=/` (its mounts are
locked), and nothing of the machine that was not named can show through. `/` and the empty folders belong to the engine,
so that a job cannot put a link where the next holder mounts; the system folders belong to the submitter.
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
    """Fill FOLDER/root; gives the system folders that could only be shown read-only, because they take no overlay
    (something is mounted inside, or the state folder's file system cannot be an upper layer)."""
    os.chdir(attempt.path)
    make_empty(_EMPTY)
    return [f"/{name}" for name in _FOLDERS if os.path.lexists(f"/{name}") and not _make_folder(plan, name)]


def make_empty(names: Iterable[str]) -> None:
    """Folders of FOLDER/root, which is the working folder's."""
    for name in names:
        os.makedirs(f"root/{name}", exist_ok=True)


def inner_mounts(mount_points: Iterable[str], without: Iterable[str]) -> list[str]:
    """Mount points inside the system folders: an overlay shows only what lies below them. Those inside one of
    `without` are left out."""
    left_out = tuple(f"{path}/" for path in without)
    return [
        point
        for point in mount_points
        if point.split("/")[1] in _FOLDERS and point.count("/") > 1 and not point.startswith(left_out)
    ]


def mount_points() -> list[str]:
    """Every mount point of this namespace, in mounting order."""
    with open("/proc/self/mountinfo", "rb") as stream:
        return [_unescaped(line.split()[4]) for line in stream]


def is_system(path: str) -> bool:
    """Whether a path of the machine appears in the container by itself, being in a system folder."""
    return path.split("/")[1] in _FOLDERS


def _make_folder(plan: PlanDict, name: str) -> bool:
    if os.path.islink(f"/{name}"):
        if not os.path.lexists(f"root/{name}"):
            os.symlink(os.readlink(f"/{name}"), f"root/{name}")
        return True
    for layer in ("root", "upper", "work"):
        os.makedirs(f"{layer}/{name}", exist_ok=True)
    if name == "etc":
        introduce(plan, text_of)
    give_upper(plan, name)
    return mount_overlay(plan, f"/{name}", name)


def give_upper(plan: PlanDict, name: str) -> None:
    """Let the submitter write into a folder below `/`."""
    if not plan["rootless"]:
        os.chown(f"upper/{name}", plan["uid"], plan["gid"])
    if name == "usr":
        _link_tools(plan)


def _link_tools(plan: PlanDict) -> None:
    """Let a login shell, which has a search path of its own, find the commands of a batch script. Only into a layer
    that nothing of the job has been in: it might lead elsewhere."""
    names = spool.tools(plan)
    if not names or os.path.lexists("upper/usr/local"):
        return
    os.makedirs("upper/usr/local/bin", mode=0o755)
    for name in names:
        os.symlink(f"{spool.TOOLS}/{name}", f"upper/usr/local/bin/{name}")


def mount_overlay(plan: PlanDict, lower: str, name: str) -> bool:
    """False where it takes none. Relative paths: whatever the state folder is called, nothing in it needs escaping."""
    options = _ROOTLESS_OPTIONS if plan["rootless"] else _OPTIONS
    layers = f"lowerdir={lower},upperdir=upper/{name},workdir=work/{name}"
    try:
        linux.mount("overlay", f"root/{name}", "overlay", linux.MS_NOSUID | linux.MS_NODEV, f"{layers},{options}")
    except OSError:
        return False
    return True


def introduce(plan: PlanDict, text: Callable[[str], str]) -> None:
    """Let the container's own files know its host name, and a submitter whom only a directory service knows. `text`
    reads one of the files that it begins with."""
    name = plan["hostname"]
    add_once("hostname", f"{name}\n")
    known = "".join(f"{address} {host}\n" for host, address in plan.get("hosts", {}).items())
    add_once("hosts", f"{_whole_lines(text('/etc/hosts'))}{known or f'127.0.1.1 {name}' + chr(10)}")
    users = _whole_lines(text("/etc/passwd"))
    if not any(line.split(":")[2:3] == [str(plan["uid"])] for line in users.splitlines()):
        add_once("passwd", f"{users}{plan['user']}:x:{plan['uid']}:{plan['gid']}::{plan['home']}:/bin/sh\n")


def add_once(name: str, text: str) -> None:
    """A file of the container's own /etc."""
    path = f"upper/etc/{name}"
    if not os.path.lexists(path):
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        with open(fd, "w", encoding="utf-8", errors="surrogateescape") as stream:
            stream.write(text)


def text_of(path: str) -> str:
    """A file of the machine; empty where there is none."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as stream:
            return stream.read()
    except OSError:
        return ""


def _whole_lines(text: str) -> str:
    return text if text.endswith("\n") or not text else f"{text}\n"


def _unescaped(word: bytes) -> str:
    """mountinfo writes space, tab, newline and backslash as three octal digits."""
    first, *rest = word.split(b"\\")
    return os.fsdecode(first + b"".join(bytes([int(part[:3], 8)]) + part[3:] for part in rest))
