"""Build a container's file system, in a mount namespace of its own, and keep that namespace open.

1. Mount a tmpfs at FOLDER/stage, in the shim's mount namespace. It holds the container's own /tmp, /run, /root and
   /var/tmp, and the points at which the mounted folders are bound first.
2. Make the container's `/` at FOLDER/root: overlays of the machine's system folders (`system`) or of the image's
   folders (`imageroot`).
3. Open every folder that the job mounts with the submitter's credentials, and bind it below FOLDER/stage (`sources`).
4. Let bubblewrap, or else `without_bubblewrap`, make a new mount namespace in which all of these are at their final
   paths.
5. Keep that namespace open as descriptor `VIEW_FD`, through which programs enter it.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal

from cockpit.runtime.containers.shim import agentserver, bubblewrap, imageroot, linux, spool, system, without_bubblewrap
from cockpit.runtime.containers.shim.sources import Sources

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from cockpit.runtime.containers.shim.attempt import Attempt, MountDict, PlanDict

VIEW_FD = 100
"""The descriptor at which a holder keeps its container's mount namespace open, for programs that enter it."""

_OWN = (("tmp", 0o1777), ("var/tmp", 0o1777), ("run", 0o755), ("root", 0o700))
"""The container's own empty folders in memory, with their modes."""
_LONGEST_MILLISECONDS = 10_000
"""Time limit of bubblewrap. It needs a few milliseconds, unless a folder is on a file server that does not answer."""
_MIB = 1 << 20


class ViewError(Exception):
    """The container's file system could not be made; the text says why."""


class MakerDied(ViewError):
    """The program that makes the file system died without a message: it was killed, so another start may succeed."""


def opened_by(holder: int) -> str:
    """Return the path of the namespace that a holder keeps open. `holder`: its pid in the reader's /proc."""
    return f"/proc/{holder}/fd/{VIEW_FD}"


def build(attempt: Attempt, plan: PlanDict) -> list[str]:
    """Build the container's file system and keep it open as `VIEW_FD`.

    Returns the system folders that could only be mounted read-only, see `system`. The caller must be in a mount and a
    pid namespace of its own, and root in them.

    Raises ViewError or SourceError with a sentence, OSError where a call failed unexpectedly.
    """
    stage = _make_stage(attempt, plan)
    image = plan.get("image")
    view, read_only = _of_image(attempt, plan, stage, image) if image else _of_machine(attempt, plan, stage)
    view.devices = plan["devices"] if attempt.has_cards() else ()
    program = bubblewrap.installed()
    hold_open(_run_bubblewrap(view, program) if program else _make_without_bubblewrap(view))
    return read_only


def hold_open(view_fd: int) -> None:
    """Keep the mount namespace of this descriptor as the container's."""
    os.dup2(view_fd, VIEW_FD, inheritable=False)
    os.close(view_fd)


def beside_image(attempt: Attempt, plan: PlanDict) -> tuple[list[tuple[str, str, bool]], list[str]]:
    """Return the mounts (source, target, writable) and the masked folders of a container whose root podman makes.

    The caller must be in a mount namespace of its own. Raises SourceError or OSError.
    """
    sources = _mount_sources(plan, _make_stage(attempt, plan))
    for place, _, writable in sources.binds:
        if not writable:
            linux.restrict(place, linux.ATTR_RDONLY)  # also for mounts inside of it
    return [
        *_world(attempt),
        *_library(attempt),
        *_agent(plan),
        *_write_files(attempt, plan),
        *sources.binds,
    ], sources.masked


def _make_stage(attempt: Attempt, plan: PlanDict) -> str:
    stage = attempt.file("stage")
    os.makedirs(stage, exist_ok=True)
    linux.mount("cockpit", stage, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, f"size={plan['scratch_mib']}m,mode=0755")
    return stage


def _of_machine(attempt: Attempt, plan: PlanDict, stage: str) -> tuple[bubblewrap.View, list[str]]:
    # Listed before `make_root` adds mounts of its own.
    inner = system.mount_points()
    read_only = system.make_root(attempt, plan)
    sources = _mount_sources(plan, stage)
    # Real, since mount points are listed by real paths.
    state = os.path.realpath(attempt.state)
    view = _view(attempt, plan, stage, [*_make_own(stage, plan, _OWN), *_resolver()], sources)
    view.read_only = [*read_only, *system.inner_mounts(inner, without=[*read_only, state])]
    view.masked = [*([state] if system.is_system(state) else ()), *sources.masked]
    return view, read_only


def _of_image(attempt: Attempt, plan: PlanDict, stage: str, image: MountDict) -> tuple[bubblewrap.View, list[str]]:
    sources = _mount_sources(plan, stage)
    place, engine = imageroot.placed(sources, image)
    # What the job mounts below `/` replaces a folder of the image.
    shown = frozenset(target.split("/")[1] for _, target, _ in sources.binds)
    root = imageroot.ImageRoot(attempt, plan, place, kept_out=shown)
    taken = root.make()
    # An image with a /var keeps its own /var/tmp, for example.
    own = [each for each in _OWN if each[0].split("/")[0] not in taken]
    view = _view(attempt, plan, stage, [*root.binds, *_make_own(stage, plan, own)], sources)
    view.masked = [*(path for path in engine if path.split("/")[1] in taken), *sources.masked]
    return view, [target for _, target, writable in root.binds if not writable and os.path.isdir(place + target)]


def _mount_sources(plan: PlanDict, stage: str) -> Sources:
    sources = Sources(plan, stage)
    sources.add_home()
    for mount in plan["mounts"]:
        sources.add_mount(mount)
    return sources


def _view(
    attempt: Attempt, plan: PlanDict, stage: str, first: list[tuple[str, str, bool]], sources: Sources
) -> bubblewrap.View:
    """Compose the description of the file system. `first`: mounts that come before the job's."""
    given = _write_files(attempt, plan)
    targets = [target for _, target, _ in (*given, *sources.binds)]
    _make_parents(attempt.file("root"), targets)
    _make_parents(os.path.join(stage, "own"), [each for each in targets if _is_in_own_folder(first, each)])
    return bubblewrap.View(
        root=attempt.file("root"),
        # bubblewrap's binds come in this order; the job's own folders are last, and may lie inside of the others.
        binds=[*first, *_world(attempt), *_library(attempt), *_agent(plan), *given, *sources.binds],
        shared_memory_bytes=(plan["memory_mib"] or plan["scratch_mib"]) * _MIB,
    )


def _is_in_own_folder(binds: Iterable[tuple[str, str, bool]], target: str) -> bool:
    """Return whether a path is in one of the container's own folders, which are mounted over those of its root."""
    return any(target.startswith(f"{place}/") for _, place, _ in binds if place[1:] in dict(_OWN))


def _make_own(stage: str, plan: PlanDict, own: Iterable[tuple[str, int]]) -> list[tuple[str, str, bool]]:
    """Make the container's own, empty folders in memory, and return their mounts."""
    own = list(own)
    for name, mode in own:
        folder = os.path.join(stage, "own", name)
        os.makedirs(folder)
        os.chmod(folder, mode)
        if not plan["rootless"]:
            os.chown(folder, plan["uid"], plan["gid"])
    return [(os.path.join(stage, "own", name), f"/{name}", True) for name, _ in own]


def _make_parents(root: str, targets: Iterable[str]) -> None:
    """Make the parents of mount points: bubblewrap would make them readable only by root."""
    for target in targets:
        os.makedirs(root + os.path.dirname(target), exist_ok=True)


def _resolver() -> list[tuple[str, str, bool]]:
    """Return a mount of the target of /etc/resolv.conf, if that is a link into /run, which the container has empty."""
    real = os.path.realpath("/etc/resolv.conf")
    return [(real, real, False)] if real.startswith("/run/") and os.path.isfile(real) else []


def _world(attempt: Attempt) -> list[tuple[str, str, bool]]:
    """Return an elastic job's mounts: the folder of the engine's worker lists, and the folder of heartbeats."""
    shown = (("world", "/run/cockpit", False), ("pulse", "/run/cockpit-pulse", True))
    return [
        (attempt.file(name), place, writable) for name, place, writable in shown if os.path.isdir(attempt.file(name))
    ]


def _library(attempt: Attempt) -> list[tuple[str, str, bool]]:
    """Return the mount of the packages that every job can import, see `library`."""
    folder = os.path.join(attempt.state, "python")
    return [(folder, "/run/cockpit-python", False)] if os.path.isdir(folder) else []


def _agent(plan: PlanDict) -> list[tuple[str, str, bool]]:
    """Return a multi-replica job's mount: the folder with the agent program and the sockets of all replicas."""
    return (
        [(os.path.join(plan["network"], agentserver.SHOWN), "/run/cockpit-launch", False)]
        if plan.get("network")
        else []
    )


def _write_files(attempt: Attempt, plan: PlanDict) -> list[tuple[str, str, bool]]:
    """Write the plan's files, and return their read-only mounts."""
    folder = spool.lay_out(attempt, plan)
    mounts = [(folder, spool.PLACE, False)] if folder else []
    for number, (path, text) in enumerate(plan.get("files", {}).items()):
        if spool.is_spooled(path):
            continue
        # Named by numbers, since the paths in the container may have any characters.
        os.makedirs(attempt.file("given"), exist_ok=True)
        with open(attempt.file("given", str(number)), "w", encoding="utf-8") as stream:
            stream.write(text)
        os.chmod(stream.name, 0o755 if text.startswith("#!") else 0o644)
        mounts.append((stream.name, path, False))
    return mounts


def _make_without_bubblewrap(view: bubblewrap.View) -> int:
    view_fd, why = without_bubblewrap.make(view, within_milliseconds=_LONGEST_MILLISECONDS)
    if view_fd < 0:
        raise ViewError(
            f"the container's file system could not be made: bubblewrap (bwrap) is not installed on this node, and "
            f"without it {why}; install it: apt-get install bubblewrap"
        )
    return view_fd


def _run_bubblewrap(view: bubblewrap.View, program: str) -> int:
    """Run bubblewrap and return a descriptor of the mount namespace that it has made.

    1. bubblewrap writes the pid of its child to the info pipe, before it mounts anything.
    2. Open that child's mount namespace while bubblewrap waits on the block pipe for a byte.
    3. Write the byte. bubblewrap reads it after its last mount, then fails to execute its command, a folder (see
       `bubblewrap`), and ends. If the byte is still in the pipe, a mount has failed.
    """
    block_read, block_write = os.pipe()
    info_read, info_write = os.pipe()
    errors = os.memfd_create("bubblewrap", os.MFD_CLOEXEC)
    try:
        for fd in (block_read, info_write):
            os.set_inheritable(fd, True)
        pid = _spawn(program, bubblewrap.arguments(view, block_fd=block_read, info_fd=info_write), errors)
        os.close(info_write)
        info = _read_all(info_read, pid)
        if not info:
            # bubblewrap has ended without making a namespace.
            _await_end(pid)
            raise _failure(errors)
        try:
            view_fd = os.open(f"/proc/{json.loads(info)['child-pid']}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)  # 2
        except FileNotFoundError:  # it has died
            _await_end(pid)
            raise _failure(errors) from None
        os.write(block_write, b".")  # 3
        _await_end(pid)
        if _is_empty(block_read):
            return view_fd
        os.close(view_fd)
        raise _failure(errors)
    finally:
        for fd in (block_read, block_write, info_read, errors):
            os.close(fd)


def _spawn(program: str, arguments: list[str], errors: int) -> int:
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    try:
        actions = [(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, null, 1)]
        actions.append((os.POSIX_SPAWN_DUP2, errors, 2))
        return os.posix_spawn(program, arguments, {}, file_actions=actions, setsigmask=[])
    finally:
        os.close(null)


def _read_all(fd: int, pid: int) -> bytes:
    parts: list[bytes] = []
    while True:
        _await_readable(fd, pid)
        part = os.read(fd, 4096)
        if not part:
            return b"".join(parts)
        parts.append(part)


def _await_end(pid: int) -> None:
    pidfd = os.pidfd_open(pid)
    try:
        _await_readable(pidfd, pid)
    finally:
        os.close(pidfd)
    os.waitpid(pid, 0)


def _await_readable(fd: int, pid: int) -> None:
    """Wait until the descriptor is readable. After the time limit, kill bubblewrap and raise ViewError."""
    if not linux.is_readable(fd, within_milliseconds=_LONGEST_MILLISECONDS):
        # Not waited for: one that hangs in a file system cannot die, and this process ends after it has reported.
        os.kill(pid, signal.SIGKILL)
        raise ViewError(
            "the container's file system could not be made: bubblewrap (bwrap) hangs on this node; "
            "try `bwrap --bind / / true` there"
        )


def _is_empty(pipe: int) -> bool:
    fcntl.fcntl(pipe, fcntl.F_SETFL, os.O_NONBLOCK)
    try:
        return os.read(pipe, 1) == b""
    except BlockingIOError:
        return True


def _failure(errors: int) -> ViewError:
    """Return the error with the message of a bubblewrap that has ended."""
    text = os.pread(errors, 1000, 0).decode(errors="replace").strip()
    if not text:
        return MakerDied("the container's file system could not be made: bubblewrap (bwrap) was killed")
    return ViewError(f"the container's file system could not be made: {text}")
