"""Read a replica's stdout and stderr as one log, their lines merged by time, by windows of any size.

The merged log has offsets of its own. Each record of the order (`containers.shim.logorder`) says how long both logs
were at a moment; what stdout grew since the record before comes first, then what stderr grew. So the offset behind a
record is the sum of its two lengths, any offset is found by a binary search in the file of records, and nothing of the
logs is read but the wanted window. What a job has written last appears once it is recorded, which takes a second at
most; the rest of an ended job's logs, such as a last line without a line break, comes at the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from msgspec.structs import replace

from cockpit.errors import RequestRefused
from cockpit.model.asking import WRITTEN_STREAMS, LogChunk, LogMatches
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.present.log_lines import left_out_line
from cockpit.runtime.containers.shim.logorder import RECORD, order_path
from cockpit.runtime.log_search import MOST_MATCHES, part_of
from cockpit.runtime.logs import LOOK_SECONDS, MAX_CHUNK, data_extent, log_path, search_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cockpit.model.asking import LogRequest, LogSearch
    from cockpit.model.ids import ReplicaId

MOST_PIECES: Final = 4096
"""Most parts of one answer, which has to fit a frame of the protocol with the ends of all of them."""
PATIENCE_LOOKS: Final = 30
"""Looks, of `LOOK_SECONDS`, for the record of a running job that has written something: it begins with the job."""
NO_ORDER: Final = (
    "When the lines of this job came was not recorded, so stdout and stderr cannot be merged: it was started by an "
    "earlier version of cockpit. Show them apart."
)


class Record(NamedTuple):
    """How long both logs were at a moment."""

    at: int
    """Milliseconds UTC."""
    stdout: int
    stderr: int

    @property
    def offset(self) -> int:
        """Offset in the merged log of what comes behind this record."""
        return self.stdout + self.stderr


class Piece(NamedTuple):
    """A part of one of the logs, which is one in the merged log, too."""

    is_error: bool
    begin: int
    """Offset in its own log."""
    length: int
    at: int


class MergedLog:
    """The open files of one replica. `over`: nothing more is written, so that the rest of both logs counts as well."""

    def __init__(self, folder: Path, replica: ReplicaId, *, over: bool) -> None:
        """Open the files. FileNotFoundError: no order is recorded."""
        self._paths = [log_path(folder, replica, stream) for stream in WRITTEN_STREAMS]
        self._open = contextlib.ExitStack()
        with contextlib.ExitStack() as opened:
            self._order = opened.enter_context(Path(order_path(str(self._paths[0]))).open("rb", buffering=0)).fileno()
            self._fds = [
                opened.enter_context((path if path.exists() else Path(os.devnull)).open("rb", buffering=0)).fileno()
                for path in self._paths
            ]
            self._open = opened.pop_all()
        self._count = os.fstat(self._order).st_size // RECORD.size
        self.sizes = [os.fstat(fd).st_size for fd in self._fds]
        self._rest = self._records_of_rest() if over else []
        self.size = self._record(self._total - 1).offset

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    @property
    def _total(self) -> int:
        return self._count + len(self._rest)

    def _records_of_rest(self) -> list[Record]:
        last = self._stored(self._count - 1)
        out, err = (max(end, size) for end, size in zip(last[1:], self.sizes, strict=True))
        at = max(last.at, *(os.fstat(fd).st_mtime_ns // 1_000_000 for fd in self._fds)) if self._count else 0
        whole = out == last.stdout or os.pread(self._fds[0], 1, out - 1) == b"\n"
        # A line without its end comes last, so that no other one follows in it.
        between = Record(at, out, last.stderr) if whole else Record(at, last.stdout, err)
        return [each for each in (between, Record(at, out, err)) if each.offset > last.offset]

    def _stored(self, number: int) -> Record:
        if number < 0:
            return Record(0, 0, 0)
        return Record(*RECORD.unpack(os.pread(self._order, RECORD.size, number * RECORD.size)))

    def _record(self, number: int) -> Record:
        return self._stored(number) if number < self._count else self._rest[number - self._count]

    def _first_beyond(self, length: Callable[[Record], int], offset: int) -> int:
        """Return the number of the first record whose length is beyond the offset."""
        low, high = 0, self._total
        while low < high:
            middle = (low + high) // 2
            if length(self._record(middle)) > offset:
                high = middle
            else:
                low = middle + 1
        return low

    def positions(self, offset: int) -> tuple[int, int]:
        """Return how much of stdout and of stderr comes before this offset."""
        number = self._first_beyond(lambda each: each.offset, offset)
        before = self._record(number - 1)
        if number >= self._total:
            return before.stdout, before.stderr
        grown = min(offset - before.offset, self._record(number).stdout - before.stdout)
        return before.stdout + grown, offset - before.stdout - grown

    def offset_of(self, is_error: bool, position: int) -> int:
        """Return the offset of a byte of one of the logs."""
        number = self._first_beyond(lambda each: each[1 + is_error], position)
        if number >= self._total:
            return self.size
        return position + (self._record(number).stdout if is_error else self._record(number - 1).stderr)

    def pieces(self, offset: int) -> Iterator[Piece]:
        """Yield what comes from this offset on, in order."""
        out, err = self.positions(offset)
        for number in range(self._first_beyond(lambda each: each.offset, offset), self._total):
            record = self._record(number)
            if record.stdout > out:
                yield Piece(False, out, record.stdout - out, record.at)
            if record.stderr > err:
                yield Piece(True, err, record.stderr - err, record.at)
            out, err = record.stdout, record.stderr

    def read(self, offset: int, limit: int, *, over: bool) -> LogChunk:
        """Return the bytes from an offset on. What was dropped of the logs is left out, and a line says so."""
        data, errors, moments = bytearray(), list[tuple[int, int]](), list[tuple[int, int]]()
        at = offset
        extents = [(0, 0), (0, 0)]
        for piece in self.pieces(offset):
            begin, end = extents[piece.is_error]
            if not begin <= piece.begin < end:
                begin, end = extents[piece.is_error] = data_extent(self._fds[piece.is_error], piece.begin)
            skipped = min(max(0, begin - piece.begin), piece.length)
            if skipped and data:
                break  # the next answer begins behind it
            at += skipped
            length = min(piece.length - skipped, limit - len(data), end - piece.begin - skipped)
            if length <= 0:
                continue
            got = os.pread(self._fds[piece.is_error], length, piece.begin + skipped)
            length = len(got)  # less if the job has just emptied its log
            data += got
            if piece.is_error:
                errors.append((at + len(data) - length, at + len(data)))
            moments.append((at + len(data), piece.at))
            if len(data) >= limit or len(moments) >= MOST_PIECES or length < piece.length - skipped:
                break
        left = at - offset
        marker = f"{left_out_line(left)}\n".encode()
        if data and len(marker) <= left:
            data[:0], at = marker, at - len(marker)
        ended = over and at + len(data) >= self.size
        dropped = at - offset if left else 0
        return LogChunk(bytes(data), at, ended, dropped, self.size, tuple(errors), tuple(moments))


async def read_merged(folder: Path, replica: ReplicaId, request: LogRequest, ended: Callable[[], bool]) -> LogChunk:
    """Read a piece of the merged log, as `logs.read_log` does of one. Refused where no order was recorded."""
    patience = PATIENCE_LOOKS
    while True:
        # Asked before reading: otherwise bytes written in between could be missed at the end.
        over = ended()
        try:
            with MergedLog(folder, replica, over=over) as log:
                offset = max(0, log.size + request.offset) if request.offset < 0 else request.offset
                if offset < log.size or over or not request.wait:
                    return log.read(offset, max(1, min(request.limit, MAX_CHUNK)), over=over)
                if log.size < offset:  # it was emptied
                    return LogChunk(b"", offset, ended=False, size=log.size)
        except FileNotFoundError:
            if not _has_written(folder, replica):
                if over or not request.wait:
                    return LogChunk(b"", 0, ended=over)
            elif over or not patience:
                raise RequestRefused(Refusal(RefusalKind.UNAVAILABLE, NO_ORDER)) from None
            else:
                patience -= 1
        await asyncio.sleep(LOOK_SECONDS)


def _has_written(folder: Path, replica: ReplicaId) -> bool:
    paths = (log_path(folder, replica, stream) for stream in WRITTEN_STREAMS)
    return any(path.exists() and path.stat().st_size for path in paths)


async def search_merged(folder: Path, replica: ReplicaId, request: LogSearch, *, over: bool) -> LogMatches:
    """Search a part of the merged log: both logs are searched, and their matches are put in its order."""
    try:
        log = MergedLog(folder, replica, over=over)
    except FileNotFoundError:
        if _has_written(folder, replica):
            raise RequestRefused(Refusal(RefusalKind.UNAVAILABLE, NO_ORDER)) from None
        return LogMatches((), 0, 0, 0, 0)
    with log:
        part = part_of(request, log.size)
        begin, end = part.begin, part.end
        while True:
            found, count, first, last = await _search_both(folder, replica, log, request, begin, end)
            # A log with a hole was searched in a smaller part, and the matches in the rest of the other do not count.
            if (first, last) == (begin, end) or (request.most and request.text):
                break
            begin, end = first, last
        found = [each for each in found if first <= each[0] < last]
    if not request.most or not request.text:
        return LogMatches((), count, first, last, log.size)
    most = min(request.most, MOST_MATCHES)
    if len(found) >= most:
        found = found[-most:] if request.backward else found[:most]
        first, last = (found[0][0], last) if request.backward else (first, found[-1][0] + 1)
    return LogMatches(tuple(found), len(found), first, last, log.size)


async def _search_both(
    folder: Path, replica: ReplicaId, log: MergedLog, request: LogSearch, begin: int, end: int
) -> tuple[list[tuple[int, int]], int, int, int]:
    """Return the matches in both logs in order, their number, and the part that was searched in both."""
    found, count, first, last = list[tuple[int, int]](), 0, begin, end
    for is_error, low, high in zip((False, True), log.positions(begin), log.positions(end), strict=True):
        if low == high:
            continue
        path = log_path(folder, replica, WRITTEN_STREAMS[is_error])
        answer = await search_log(path, replace(request, stream=WRITTEN_STREAMS[is_error], begin=low, end=high))
        found += [(log.offset_of(is_error, at), length) for at, length in answer.found]
        count += answer.count
        if answer.end < high:
            last = min(last, log.offset_of(is_error, answer.end))
        if answer.begin > low and request.backward:
            first = max(first, log.offset_of(is_error, answer.begin))
    return sorted(found), count, min(first, last), last
