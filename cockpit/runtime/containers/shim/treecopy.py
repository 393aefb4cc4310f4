"""Copy a folder with its whole content, in a way that an interrupted copy can be continued.

The content is identified by a key: a digest of every name, size, time, owner and mode. A file is skipped if its copy
has its size and time, since the time is set last. Links are copied as links; devices, pipes and sockets are left out. A
copy has the owner and mode of its original, so that the same users can read both.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat

from cockpit.runtime.containers.shim.metering import FetchError
from cockpit.runtime.containers.shim.sources import credentials

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cockpit.runtime.containers.shim.metering import Measure, Meter, Order

    Entry = tuple[str, os.stat_result]

_PIECE = 1 << 22
"""Bytes that are copied at a time, after which the progress is reported."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_INSIDE = _FOLDER | os.O_NOFOLLOW
"""Flags for folders below the source: only the path of the source itself may contain links."""
_PERMISSIONS = 0o1777
"""The bits of a mode that are taken over, without set-user-id and set-group-id."""


def measure(order: Order, meter: Meter) -> Measure:
    """Return the folder's key and the total size of its files. Raises FetchError or OSError."""
    tree = _Tree(order, meter)
    root = tree.open_root()
    try:
        tree.note_root(root)
        tree.measure(root, "")
    finally:
        os.close(root)
    return {"key": tree.key, "size": tree.size}


def copy(order: Order, meter: Meter) -> int:
    """Copy into the existing folder `target`, and return the total size of the files.

    Raises FetchError, also if the source has changed since it was measured, DiskFull or OSError.
    """
    tree = _Tree(order, meter)
    root, target = tree.open_root(), os.open(order["target"], _FOLDER)
    try:
        tree.note_root(root)
        tree.copy(root, target, "")
        # After the content: with its final mode, the folder might not be writable for an ordinary user's engine.
        tree.finish_folder(target, os.fstat(root))
    finally:
        os.close(root)
        os.close(target)
    if tree.key != order["key"]:
        raise FetchError(f"{order['source']} changed while it was copied; submit the job again")
    return tree.size


class _Tree:
    def __init__(self, order: Order, meter: Meter) -> None:
        self._order = order
        self._meter = meter
        self._digest = hashlib.sha256()
        self.size = 0

    @property
    def key(self) -> str:
        return self._digest.hexdigest()

    def open_root(self) -> int:
        """Open the source, following links in its path, as for a mounted folder."""
        order = self._order
        try:
            with credentials(order):
                return os.open(order["source"], _FOLDER)
        except OSError as error:
            raise FetchError(f"{order['source']}: {self._error_words(error)}") from None

    def note_root(self, root: int) -> None:
        """Add the real path to the key: equal folders at different paths do not share a copy."""
        self._digest.update(os.fsencode(os.path.realpath(f"/proc/self/fd/{root}")))

    def measure(self, folder: int, path: str) -> None:
        for name, found in self._entries(folder, path):
            if stat.S_ISDIR(found.st_mode):
                inner = self._open(name, folder, f"{path}/{name}", _INSIDE)
                try:
                    self.measure(inner, f"{path}/{name}")
                finally:
                    os.close(inner)
            elif stat.S_ISREG(found.st_mode):
                self.size += found.st_size

    def copy(self, folder: int, target: int, path: str) -> None:
        for name, found in self._entries(folder, path):
            where = f"{path}/{name}"
            if stat.S_ISDIR(found.st_mode):
                self._copy_folder(name, folder, target, where)
            elif stat.S_ISLNK(found.st_mode):
                self._copy_link(name, folder, target, found)
            elif stat.S_ISREG(found.st_mode):
                self.size += found.st_size
                # What is complete was copied by an earlier try, which was interrupted.
                if not _is_there(name, target, found):
                    self._copy_file(name, folder, target, where)
                else:
                    self._meter.count(found.st_size)

    def finish_folder(self, target: int, status: os.stat_result) -> None:
        self._own(target, status)
        os.fchmod(target, stat.S_IMODE(status.st_mode) & _PERMISSIONS)

    def _entries(self, folder: int, path: str) -> Iterator[Entry]:
        """Yield the entries of a folder, sorted by name, and add each to the digest."""
        with credentials(self._order):
            try:
                names = sorted(os.listdir(folder))
            except OSError as error:
                raise self._error(error, path) from None
        for name in names:
            with credentials(self._order):
                status = os.lstat(name, dir_fd=folder)
            if stat.S_IFMT(status.st_mode) in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
                self._take_in(f"{path}/{name}", status)
                yield name, status

    def _take_in(self, path: str, status: os.stat_result) -> None:
        folder = stat.S_ISDIR(status.st_mode)
        # The size and time of a folder also change when an entry comes and goes, so they are not part of its content.
        facts = (
            status.st_mode,
            status.st_uid,
            status.st_gid,
            *(() if folder else (status.st_size, status.st_mtime_ns)),
        )
        self._digest.update(os.fsencode(path) + b"\0" + repr(facts).encode())

    def _open(self, name: str, folder: int, path: str, flags: int) -> int:
        with credentials(self._order):
            try:
                return os.open(name, flags, dir_fd=folder)
            except OSError as error:
                raise self._error(error, path) from None

    def _copy_folder(self, name: str, folder: int, target: int, path: str) -> None:
        source = self._open(name, folder, path, _INSIDE)
        try:
            _make_folder(name, target)
            inner = os.open(name, _INSIDE, dir_fd=target)
            try:
                self.copy(source, inner, path)
                self.finish_folder(inner, os.fstat(source))
            finally:
                os.close(inner)
        finally:
            os.close(source)

    def _copy_link(self, name: str, folder: int, target: int, status: os.stat_result) -> None:
        _remove(name, target)
        os.symlink(os.readlink(name, dir_fd=folder), name, dir_fd=target)
        if not self._order["rootless"]:
            os.chown(name, status.st_uid, status.st_gid, dir_fd=target, follow_symlinks=False)

    def _copy_file(self, name: str, folder: int, target: int, path: str) -> None:
        # O_NOFOLLOW, O_NONBLOCK: since it was listed, a link or a FIFO may have taken its place
        source = self._open(name, folder, path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            status = os.fstat(source)
            # Made anew with O_EXCL, so that nothing in its place, such as a link, is ever opened for writing.
            _remove(name, target)
            written = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=target)
            try:
                self._copy_bytes(source, written)
                self._own(written, status)
                os.fchmod(written, stat.S_IMODE(status.st_mode) & _PERMISSIONS)
                # last: with this time the file counts as complete (`_is_there`)
                os.utime(written, ns=(status.st_mtime_ns, status.st_mtime_ns))
            finally:
                os.close(written)
        finally:
            os.close(source)

    def _copy_bytes(self, source: int, written: int) -> None:
        while count := _piece(source, written):
            self._meter.count(count)

    def _own(self, fd: int, status: os.stat_result) -> None:
        if not self._order["rootless"]:
            os.fchown(fd, status.st_uid, status.st_gid)

    def _error(self, error: OSError, path: str) -> FetchError:
        return FetchError(f"{self._order['source']}{path}: {self._error_words(error)}")

    def _error_words(self, error: OSError) -> str:
        return f"{(error.strerror or 'cannot be read').lower()} for user {self._order['user']}"


def _piece(source: int, written: int) -> int:
    """Copy one piece, inside of the kernel if the file systems support it; return its size in bytes."""
    try:
        return os.copy_file_range(source, written, _PIECE)
    except OSError as error:
        # The file systems cannot do it; read and write instead.
        if error.errno not in (errno.EXDEV, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS):
            raise
    piece = os.read(source, _PIECE)
    rest = piece
    while rest:
        rest = rest[os.write(written, rest) :]
    return len(piece)


def _is_there(name: str, target: int, status: os.stat_result) -> bool:
    try:
        copied = os.lstat(name, dir_fd=target)
    except FileNotFoundError:
        return False
    return stat.S_ISREG(copied.st_mode) and (copied.st_size, copied.st_mtime_ns) == (status.st_size, status.st_mtime_ns)


def _make_folder(name: str, target: int) -> None:
    """Make a folder that only the engine can read until it is complete."""
    try:
        os.mkdir(name, 0o700, dir_fd=target)
    except FileExistsError:
        os.chmod(name, 0o700, dir_fd=target)


def _remove(name: str, target: int) -> None:
    """Remove an incomplete file of an earlier try."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=target)
