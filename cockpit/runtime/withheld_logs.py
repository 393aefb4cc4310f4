"""Keep the values of a job's secret variables from users who may read its log but do not own the job.

A value becomes as many asterisks as it has bytes, so that every other byte of the log keeps its place. A search finds
nothing in a value either: otherwise a user could guess it piece by piece.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from cockpit.errors import RequestRefused
from cockpit.model.asking import LogMatches, LogRequest
from cockpit.model.masked_logs import known_secrets, withheld_piece
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.runtime.log_search import MOST_MATCHES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from cockpit.model.asking import LogChunk, LogSearch
    from cockpit.model.job import Job

    Read = Callable[[LogRequest], Awaitable[LogChunk]]

_LOOKS_AROUND: Final = ("(?", "(*", "\\K", "\\G")
"""What lets a pattern depend on text that is no part of its match."""


def secrets_withheld(job: Job, *, own: bool) -> tuple[str, ...]:
    """Return the values that the log of this job must not show; none to its owner."""
    return () if own else known_secrets(job.spec.env)


async def without_secrets(read: Read, request: LogRequest, secrets: Sequence[str]) -> LogChunk:
    """Read a piece of a log without these values, also those that lie only partly in the piece."""
    chunk = await read(request)
    if not secrets or not chunk.data:
        return chunk
    margin = _longest(secrets) - 1
    begin = max(0, chunk.offset - margin)
    # Before the line about dropped bytes is nothing that belongs to the text behind it.
    before = b"" if chunk.left_out else await _read(read, request, begin, chunk.offset - begin)
    after = await _read(read, request, chunk.offset + len(chunk.data), margin)
    return replace(chunk, data=withheld_piece(chunk.data, before, after, secrets))


async def search_without_secrets(
    search: Callable[[LogSearch], Awaitable[LogMatches]], read: Read, request: LogSearch, secrets: Sequence[str]
) -> LogMatches:
    """Search a log for matches that have no byte of these values."""
    if not secrets or not request.text:
        return await search(request)
    if request.pattern and any(each in request.text for each in _LOOKS_AROUND):
        message = (
            f"The log of another user's job cannot be searched for {request.text!r}: leave out "
            f"{', '.join(_LOOKS_AROUND)}, or search for plain text."
        )
        raise RequestRefused(Refusal(RefusalKind.DENIED, message))
    # The places are needed to look at each match, also where only the number is wanted.
    matches = await search(replace(request, most=request.most or MOST_MATCHES))
    log = LogRequest(
        job=request.job, rank=request.rank, attempt=request.attempt, stream=request.stream, step=request.step
    )
    found = tuple([each for each in matches.found if not await _meets(read, log, each, secrets)])
    return replace(matches, found=found if request.most else (), count=len(found))


async def _meets(read: Read, log: LogRequest, match: tuple[int, int], secrets: Sequence[str]) -> bool:
    """Return whether a match has a byte of one of the values."""
    at, length = match
    margin = _longest(secrets) - 1
    begin = max(0, at - margin)
    around = await _read(read, log, begin, at - begin + length + margin)
    before, data = around[: at - begin], around[at - begin : at - begin + length]
    return withheld_piece(data, before, around[at - begin + length :], secrets) != data


async def _read(read: Read, log: LogRequest, offset: int, size: int) -> bytes:
    """Return bytes of the log; none where the log has a gap."""
    if size <= 0:
        return b""
    chunk = await read(replace(log, offset=offset, limit=size, wait=False))
    return chunk.data if chunk.offset == offset and not chunk.left_out else b""


def _longest(secrets: Sequence[str]) -> int:
    return max(len(secret.encode("utf-8", "surrogateescape")) for secret in secrets)
