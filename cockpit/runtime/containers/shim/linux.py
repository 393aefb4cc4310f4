"""Linux system calls that Python 3.11 lacks, through libc, and what the shim's programs make of such calls.

Every failure is an OSError that names the call.
"""

from __future__ import annotations

import _socket
import contextlib
import ctypes
import fcntl
import os
import select
import signal
import stat
import struct

CLONE_NEWNS = 0x0002_0000
CLONE_NEWUTS = 0x0400_0000
CLONE_NEWIPC = 0x0800_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWPID = 0x2000_0000
CLONE_NEWNET = 0x4000_0000

MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_BIND = 4096
MS_REC = 16384
MS_SLAVE = 1 << 19
MNT_DETACH = 2
UMOUNT_NOFOLLOW = 8

ATTR_RDONLY = 1
ATTR_NOSUID = 2
ATTR_NODEV = 4
_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_MOUNT_SETATTR = 442
"""The call's number, the same on every architecture; C libraries have it by name only since 2022."""

_FALLOC_FL_KEEP_SIZE, _FALLOC_FL_PUNCH_HOLE = 1, 2

_IN_MOVED_TO = 0x80

_DETACH = 17
"""PTRACE_DETACH."""

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_PR_CAPBSET_READ = 23
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_ON = 1
_UNUSED_WORDS = (ctypes.c_ulong(0),) * 3
_CAPABILITY_VERSION_3 = 0x2008_0522
"""Version of the structures of capset(2): capability sets of 64 bits."""
_FLOCK = struct.Struct("@hhqqi0q")
"""struct flock of a 64-bit system: type, whence, start, length, pid."""

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def call(number: int, name: str, *arguments: int | bytes) -> int:
    """Make a system call by its number, for calls that C libraries lack."""
    words = (ctypes.c_ulong(each) if isinstance(each, int) else each for each in arguments)
    return _check(_libc.syscall(number, *words), name)


def _prctl(what: str, option: int, value: int | bytes) -> None:
    # The kernel refuses some options unless the words that they do not use are 0.
    _check(_libc.prctl(option, value, *_UNUSED_WORDS), what)


def unshare(flags: int) -> None:
    _check(_libc.unshare(flags), "unshare")


def setns(fd: int, flags: int) -> None:
    """Join the namespaces `flags` of a pidfd, or the one namespace of a namespace file."""
    _check(_libc.setns(fd, flags), "setns")


def mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    _check(
        _libc.mount(source.encode(), target.encode(), kind and kind.encode(), ctypes.c_ulong(flags), options.encode()),
        f"mount {kind or 'bind'} on {target}",
    )


def bind(source: str, target: str) -> None:
    """Bind `source`, with everything mounted below it, to `target`."""
    mount(source, target, None, MS_BIND | MS_REC)


def unmount(target: str) -> None:
    _check(_libc.umount2(target.encode(), MNT_DETACH | UMOUNT_NOFOLLOW), f"unmount {target}")


def restrict(target: str, attributes: int) -> None:
    """Set mount attributes (`ATTR_…`) on a mount and everything mounted below it. Needs Linux 5.12."""
    # struct mount_attr: the attributes to set and to clear, the propagation, and a user namespace; 0 changes nothing.
    wanted = struct.pack("=QQQQ", attributes, 0, 0, 0)
    arguments = (_AT_FDCWD, target.encode(), _AT_RECURSIVE, wanted, ctypes.c_size_t(len(wanted)))
    _check(_libc.syscall(_MOUNT_SETATTR, *arguments), f"restrict {target}")


def enter_root(folder: str) -> None:
    """Make a mount point the process's `/`, and unmount the old root."""
    os.chdir(folder)
    # With one folder as new and as old root, the old root lies over the new one and is unmounted from there, so that no
    # folder is needed for it (pivot_root(2)).
    _check(_libc.pivot_root(b".", b"."), f"pivot_root to {folder}")
    _check(_libc.umount2(b".", MNT_DETACH), "unmount the old root")
    os.chdir("/")


def sync_file_system(folder: str) -> None:
    """Return once everything that was written to the folder's file system is on its disk."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _check(_libc.syncfs(fd), f"syncfs {folder}")
    finally:
        os.close(fd)


def punch_hole(fd: int, offset: int, length: int) -> None:
    """Free the disk blocks of a part of a file, whose length does not change."""
    arguments = (ctypes.c_int64(offset), ctypes.c_int64(length))
    _check(_libc.fallocate(fd, _FALLOC_FL_KEEP_SIZE | _FALLOC_FL_PUNCH_HOLE, *arguments), "punch a hole")


def watch_renames(folder: str) -> int:
    """Return a descriptor that becomes readable whenever a file gets a name in the folder by a rename (inotify(7))."""
    fd = _check(_libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK), "inotify_init1")
    try:
        _check(_libc.inotify_add_watch(fd, folder.encode(), _IN_MOVED_TO), f"inotify_add_watch {folder}")
    except OSError:
        os.close(fd)
        raise
    return fd


def set_hostname(name: str) -> None:
    raw = name.encode()
    _check(_libc.sethostname(raw, len(raw)), "sethostname")


def name_process(name: str) -> None:
    """Set the process's name as `ps -o comm` shows it; at most 15 bytes."""
    _prctl("prctl name", _PR_SET_NAME, name.encode())


def drop_pipes() -> None:
    """Close the pipes that this process has inherited; standard input becomes /dev/null.

    A holder waits at the end of its job for all processes that read a pipe (`JobProcesses.read_pipes`): a process that
    serves the job, and has copies of the holder's own pipes, would delay that by seconds.
    """
    for fd in map(int, os.listdir("/proc/self/fd")):
        # The descriptor of the listing itself is closed by now.
        with contextlib.suppress(OSError):
            if stat.S_ISFIFO(os.fstat(fd).st_mode):
                os.close(fd)
                if fd == 0:
                    os.open("/dev/null", os.O_RDWR)  # the lowest free number, which is 0


def become_subreaper() -> None:
    """Adopt orphaned descendants of this process, instead of leaving them to the namespace's first process."""
    _prctl("prctl subreaper", _PR_SET_CHILD_SUBREAPER, _ON)


def adopt_orphans(wanted: bool) -> None:
    """Be a subreaper, or be one no longer."""
    _prctl("prctl subreaper", _PR_SET_CHILD_SUBREAPER, int(wanted))


def end_with_parent() -> None:
    """Let the kernel kill this process, also after it executes another program, when its parent dies."""
    _prctl("prctl death signal", _PR_SET_PDEATHSIG, signal.SIGKILL)


def drop_bounding_capabilities() -> None:
    """Make sure that no program executed from here on can gain a capability."""
    # The ambient set first, by which capabilities pass an execve without a file that has them.
    _prctl("prctl ambient", _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    capability = 0
    # Up to the first number that this kernel does not know.
    while _libc.prctl(_PR_CAPBSET_READ, capability) >= 0:
        _prctl("prctl bounding set", _PR_CAPBSET_DROP, capability)
        capability += 1


def drop_capabilities() -> None:
    """Give up every capability of this process, and any way to new privileges."""
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    # The three sets (effective, permitted, inheritable), each of two words, all empty.
    _check(_libc.capset(header, bytes(24)), "capset")
    _prctl("prctl no_new_privs", _PR_SET_NO_NEW_PRIVS, _ON)


def try_lock(fd: int) -> bool:
    """Take the write lock of this open file, until every copy of `fd` is closed. Returns False if it is taken."""
    try:
        # A lock of the open file (F_OFD_…): a forked holder keeps it, while a lock of the process would end with the
        # shim (fcntl(2)).
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    except BlockingIOError:
        return False
    return True


def is_locked(fd: int) -> bool:
    """Return whether another process holds the lock, without taking it."""
    answer = fcntl.fcntl(fd, fcntl.F_OFD_GETLK, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    return bool(_FLOCK.unpack(answer)[0] != fcntl.F_UNLCK)


def wait_for_end(pid: int, options: int = 0) -> tuple[int, int]:
    """Return what `os.waitpid` returns of a child that has ended.

    A program can declare its parent its tracer (PTRACE_TRACEME), and is then stopped by each of its signals until the
    tracer has decided. It is detached, so that the signal does what it does to any program.
    """
    while True:
        ended, status = os.waitpid(pid, options)
        if not os.WIFSTOPPED(status):
            return ended, status
        number = os.WSTOPSIG(status)
        # A traced program is stopped by SIGTRAP in each `exec` too.
        _libc.ptrace(_DETACH, ended, None, ctypes.c_void_p(0 if number == signal.SIGTRAP else number))


def ended_children() -> list[tuple[int, int]]:
    """Reap all children that have ended, without waiting; return the pid and the wait status of each."""
    ended: list[tuple[int, int]] = []
    while True:
        try:
            pid, status = wait_for_end(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended.append((pid, status))


def has_ended(pidfd: int, *, within_milliseconds: int = 0) -> bool:
    """Return whether the process of a pidfd is dead (or a zombie), or dies within the time."""
    return is_readable(pidfd, within_milliseconds=within_milliseconds)


def listen(name: str, waiting: int) -> _socket.socket:
    """Return a listening socket of this name in the present folder, which every user may connect to.

    The name is relative, since a socket's path is short. The socket gets it only once it accepts connections: a client
    that is refused gives up, while its own caller may wait for ever.
    """
    draft = f".{name}"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(draft)
    listener = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
    listener.bind(draft)
    os.chmod(draft, 0o666)  # noqa: S103 - it is shown in the submitter's containers alone
    listener.listen(waiting)
    os.rename(draft, name)
    return listener


def is_readable(fd: int, *, within_milliseconds: int) -> bool:
    """Return whether a read returns at once, also at the end of the file, or will within the time."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(within_milliseconds))
