"""Unpack a root file system from a tar file, plain or compressed by gzip, bzip2 or xz, inside of a target folder.

The file may be malicious. Each member is created relative to descriptors, never through a link; a member outside of the
target ends the unpacking. Links are created but never followed. Device files and pipes are left out, set-user-id bits
are removed, and everything belongs to the engine. The copy's key is the digest of the tar file.
"""

from __future__ import annotations

import contextlib
import hashlib
import lzma
import os
import stat
import tarfile
import zlib

from cockpit.runtime.containers.shim.metering import FetchError
from cockpit.runtime.containers.shim.sources import credentials

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Protocol

    from cockpit.runtime.containers.shim.metering import Measure, Meter, Order

    class Readable(Protocol):
        def read(self, size: int = -1) -> bytes: ...


PIECE = 1 << 20
"""Bytes that are read at a time."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_MEMBERS = 5_000_000
"""Most members of an archive: real images have some hundred thousand files."""
_MOST_DEPTH = 200
"""Most folders above a member."""
_EVERY_ROOT_HAS = ("bin", "usr")
_SAVED = "manifest.json"
"""The file at the top of an archive that `docker save` wrote."""
_PERMISSIONS = 0o777
"""The bits of a file's mode that are taken over, without set-user-id, set-group-id and sticky."""
_UNSAID_MODE = 0o755
"""Mode of a folder for which the archive has no member of its own."""


def measure(order: Order, meter: Meter) -> Measure:
    """Return the digest and the size of the tar file. Raises FetchError or OSError."""
    with contextlib.closing(_File(order, meter)) as file:
        # An unchanged file was hashed before, and is not read again.
        key = order["known"].get(file.seen, "")
        while not key and file.read(PIECE):
            pass
        return {"key": key or file.digest, "size": file.size, "seen": file.seen}


def copy(order: Order, meter: Meter) -> int:
    """Unpack into the existing folder `target`; return the total size of the files.

    Raises FetchError, DiskFull or OSError.
    """
    with contextlib.closing(_File(order, meter)) as file:
        size = unpack(order, meter, file)
        # To the end of the file: the digest covers what follows the end mark of the archive, too.
        while file.read(PIECE):
            pass
        if file.digest != order["key"]:
            raise FetchError(f"{order['source']} changed while it was unpacked; submit the job again")
    return size


def unpack(order: Order, meter: Meter, stream: Readable) -> int:
    """Unpack an archive from a stream; return the total size of its files.

    Raises FetchError, also if the archive is not a root file system, DiskFull or OSError.
    """
    unpacked = _Unpacking(order, meter)
    try:
        # As a stream (`|`): the source may be a pipe, and is read once.
        with tarfile.open(fileobj=stream, mode="r|*", errorlevel=2) as archive:  # type: ignore[call-overload] # it only reads
            unpacked.take(archive)
    except (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, ValueError, UnicodeError) as error:
        raise FetchError(
            f"{order['source']} is damaged, or no tar file (plain or packed by gzip, bzip2 or xz): {error}"
        ) from None
    finally:
        unpacked.close()
    _check_root(order)
    return unpacked.size


def _check_root(order: Order) -> None:
    names = os.listdir(order["target"])
    if any(name in names for name in _EVERY_ROOT_HAS):
        return
    if _SAVED in names:
        hint = "it was written by `docker save`; write one by `docker export` of a container"
    else:
        hint = "it has neither bin nor usr at its top; pack one from within: tar -C ROOT -cf FILE ."
    raise FetchError(f"{order['source']} holds no root file system: {hint}")


class _File:
    """The file, read as the submitter, with the digest of all that was read."""

    def __init__(self, order: Order, meter: Meter) -> None:
        with credentials(order):
            try:
                self._fd = os.open(order["source"], os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError as error:
                why = (error.strerror or "cannot be read").lower()
                raise FetchError(f"{order['source']}: {why} for user {order['user']}") from None
        status = os.fstat(self._fd)
        if not stat.S_ISREG(status.st_mode):
            os.close(self._fd)
            raise FetchError(f"{order['source']} is no file; write dir:{order['source']} for a folder")
        self.size = status.st_size
        # With ctime, which no program can set: a changed file whose mtime was restored is not taken for unchanged.
        self.seen = f"{status.st_dev}:{status.st_ino}:{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}"
        self._digest = hashlib.sha256()
        self._meter = meter

    def close(self) -> None:
        os.close(self._fd)

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()

    def read(self, size: int = -1) -> bytes:
        piece = os.read(self._fd, size if size >= 0 else PIECE)
        self._digest.update(piece)
        self._meter.count(len(piece))
        return piece


class _Unpacking:
    def __init__(self, order: Order, meter: Meter) -> None:
        self._meter = meter
        self._most = order["most_bytes"]
        self._root = os.open(order["target"], _FOLDER)
        self.size = 0
        self._members = 0

    def close(self) -> None:
        os.close(self._root)

    def take(self, archive: tarfile.TarFile) -> None:
        for member in archive:
            archive.members = []  # type: ignore[attr-defined] # it would keep every header
            self._members += 1
            if self._members > _MOST_MEMBERS:
                raise FetchError(f"holds more than {_MOST_MEMBERS} files")
            self._take(archive, member)

    def _take(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        parts = _parts(member.name)
        if not parts:
            return
        parent = self._folder(parts[:-1], member.name)
        try:
            if member.isdir():
                self._make_folder(parts[-1], parent, member)
            elif member.issym():
                _clear(parts[-1], parent, member.name)
                os.symlink(member.linkname, parts[-1], dir_fd=parent)
            elif member.islnk():
                self._link(parts[-1], parent, member)
            # Devices and FIFOs are left out: nothing in a container needs one from its image.
            elif member.isreg():
                self._write(archive, parts[-1], parent, member)
        finally:
            os.close(parent)

    def _folder(self, parts: Iterable[str], name: str) -> int:
        """Open a folder of the target, and make it if it is missing, without following links."""
        here = os.dup(self._root)
        for part in parts:
            try:
                try:
                    # A link in place of a folder is refused (O_NOFOLLOW), wherever it leads.
                    inner = os.open(part, _FOLDER, dir_fd=here)
                except FileNotFoundError:
                    os.mkdir(part, dir_fd=here)
                    os.chmod(part, _UNSAID_MODE, dir_fd=here)
                    inner = os.open(part, _FOLDER, dir_fd=here)
            except NotADirectoryError:
                raise FetchError(f"its member {name!r} is inside {part!r}, which is not a folder") from None
            finally:
                os.close(here)
            here = inner
        return here

    def _make_folder(self, name: str, parent: int, member: tarfile.TarInfo) -> None:
        try:
            os.mkdir(name, 0o700, dir_fd=parent)
        except FileExistsError:
            if not stat.S_ISDIR(os.lstat(name, dir_fd=parent).st_mode):
                raise FetchError(f"its member {member.name!r} is a folder and something else") from None
        # Always accessible for the engine, which fills the folder and deletes it one day.
        os.chmod(name, member.mode & 0o1777 | 0o700, dir_fd=parent)

    def _link(self, name: str, parent: int, member: tarfile.TarInfo) -> None:
        """Make a hard link to an earlier member."""
        target = _parts(member.linkname)
        if not target:
            raise FetchError(f"its member {member.name!r} is a link to nothing")
        folder = self._folder(target[:-1], member.linkname)
        try:
            _clear(name, parent, member.name)
            if not stat.S_ISREG(os.lstat(target[-1], dir_fd=folder).st_mode):
                return
            os.link(target[-1], name, src_dir_fd=folder, dst_dir_fd=parent, follow_symlinks=False)
        finally:
            os.close(folder)

    def _write(self, archive: tarfile.TarFile, name: str, parent: int, member: tarfile.TarInfo) -> None:
        self.size += member.size
        if self.size > self._most:
            raise FetchError(f"holds more than {self._most >> 30} GiB")
        source = archive.extractfile(member)
        assert source is not None
        _clear(name, parent, member.name)
        written = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=parent)
        with open(written, "wb") as target:
            while piece := source.read(PIECE):
                target.write(piece)
                # The bytes were counted when they were read; this only checks the disk.
                self._meter.count(0)
            os.fchmod(written, member.mode & _PERMISSIONS | 0o600)
        os.utime(name, (member.mtime, member.mtime), dir_fd=parent, follow_symlinks=False)


def _parts(name: str) -> list[str]:
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise FetchError(f"its member {name!r} leads out of it")
    if len(parts) > _MOST_DEPTH:
        raise FetchError(f"its member {name[:100]!r}… is deeper than {_MOST_DEPTH} folders")
    return parts


def _clear(name: str, parent: int, path: str) -> None:
    """Remove an earlier member of the same name, which the later one replaces."""
    try:
        os.unlink(name, dir_fd=parent)
    except FileNotFoundError:
        pass
    except (IsADirectoryError, PermissionError):
        raise FetchError(f"its member {path!r} is a folder and something else") from None
