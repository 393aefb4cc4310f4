"""Search a log by the programs of the machine that has the file: `dd` reads a part of it, `grep` finds matches, and
`awk` prints only where they are. So no text of a log is transmitted, and a slow pattern costs cockpit nothing.

A part begins and ends anywhere in a line. It is read from one byte earlier, so that `^` does not match in the middle
of a line, and `EDGE` bytes further, so that a match across the end is found; only matches that begin within the part
count. A match longer than `EDGE` may be cut there.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from cockpit.errors import RequestRefused
from cockpit.model.asking import LogMatches, LogSearch
from cockpit.model.refusal import Refusal, RefusalKind

if TYPE_CHECKING:
    from collections.abc import Callable

FORWARD_BYTES, BACKWARD_BYTES = 128 << 20, 16 << 20
"""Largest part that one request searches. Backwards all matches of the part have to be found for the last one."""
EDGE: Final = 64 << 10
MOST_MATCHES: Final = 10_000
"""Most matches of one answer, which has to fit a frame of the protocol."""
LONGEST_TEXT: Final = 10_000
SECONDS: Final = 20.0
"""A pattern that takes longer over one part is ended."""
STDIN: Final = "/dev/stdin"
"""The path of a log that is open as the program's standard input."""

# No path and no text becomes a part of the shell's program: all are its arguments.
_READ: Final = (
    'dd if="$1" skip="$2" count="$3" bs=262144 iflag=skip_bytes,count_bytes,fullblock status=none'
    # grep's options and the text, then awk's bounds.
    ' | LC_ALL=C grep -a -b -o {options} -e "$4" | LC_ALL=C awk -v first="$5" -v last="$6" \'{program}\''
)
_LINES: Final = 'dd if="$1" skip="$2" count="$3" bs=262144 iflag=skip_bytes,count_bytes,fullblock status=none | wc -l'
# grep prints `offset:text`, which is the offset where awk takes it for a number. The length is that of the text.
_MATCH: Final = "{ at = $0 + 0; if (at < first) next; if (at >= last) exit; %s }"
_PRINT: Final = "print at, length($0) - length(at) - 1"


class Part(NamedTuple):
    """The part of a log that one request searches: bytes from `begin` to `end` of a log of `size` bytes."""

    begin: int
    end: int
    size: int


def part_of(request: LogSearch, size: int) -> Part:
    """Return the part that this request searches in a log of this size. Refused for a text that cannot be found."""
    if "\n" in request.text or "\0" in request.text or len(request.text) > LONGEST_TEXT:
        message = f"The text to look for has a line break, a NUL or more than {LONGEST_TEXT} characters: shorten it."
        raise RequestRefused(Refusal(RefusalKind.INVALID, message))
    end = size if request.end is None else max(0, min(request.end, size))
    begin = max(0, min(request.begin, end))
    if request.backward:
        return Part(max(begin, end - BACKWARD_BYTES), end, size)
    return Part(begin, min(end, begin + FORWARD_BYTES), size)


def search_command(path: str, request: LogSearch, part: Part) -> tuple[str, ...]:
    """Return the command that searches the part and prints what `matches_of` reads."""
    if not request.text:
        return "sh", "-c", _LINES, "sh", path, str(part.begin), str(part.end - part.begin)
    before = 1 if part.begin else 0
    options = ("P" if request.pattern else "F") + ("i" if request.any_case else "")
    most = min(request.most, MOST_MATCHES)
    if most == 0:
        program = _MATCH % "n++" + " END { print n + 0 }"
    elif request.backward:
        program = _MATCH % _PRINT
    else:
        program = _MATCH % f"{_PRINT}; if (++n == {most}) exit"
        # grep stops after so many lines; one more, as the first one may have a match before the part only.
        options += f" -m {most + 1}"
    script = _READ.format(options=f"-{options}", program=program)
    script += f" | tail -n {most}" if request.backward and most else ""
    length = part.end - part.begin
    numbers = (str(part.begin - before), str(length + before + EDGE))
    return "sh", "-c", script, "sh", path, *numbers, request.text, str(before), str(length + before)


def matches_of(request: LogSearch, part: Part, stdout: str) -> LogMatches:
    """Return the matches that the command printed, and the part that they cover. ValueError: it printed something
    else."""
    if not request.text or not request.most:
        return LogMatches((), int(stdout), *part)
    base = part.begin - (1 if part.begin else 0)
    rows = [line.split() for line in stdout.splitlines()]
    found = tuple((base + int(at), int(length)) for at, length in rows)
    # With as many as were wanted there may be more behind the last one, or before the first one.
    if len(found) >= min(request.most, MOST_MATCHES):
        part = part._replace(begin=found[0][0]) if request.backward else part._replace(end=found[-1][0] + 1)
    return LogMatches(found, len(found), *part)


def refused_search(request: LogSearch, stderr: str) -> RequestRefused:
    """Return the error for what the programs printed about the text or the file."""
    words = stderr.strip().splitlines()[0][-200:]
    what = "The pattern" if request.pattern else "The text"
    return RequestRefused(Refusal(RefusalKind.INVALID, f"{what} {request.text!r} cannot be searched: {words}"))


async def search_file(fd: int, request: LogSearch, narrowed: Callable[[Part], Part] | None = None) -> LogMatches:
    """Search an open file. `narrowed` makes the part smaller, around what the file does not store."""
    import asyncio  # only here: short commands use the rest of this module, and start without it

    part = part_of(request, os.fstat(fd).st_size)
    if narrowed is not None:
        part = narrowed(part)
    if part.begin >= part.end:
        return LogMatches((), 0, *part)
    argv = search_command(STDIN, request, part)
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *argv, stdin=fd, stdout=pipe, stderr=pipe, start_new_session=True, cwd="/"
    )
    try:
        async with asyncio.timeout(SECONDS):
            out, err = await process.communicate()
    except TimeoutError:
        message = f"The search for {request.text!r} takes longer than {SECONDS:g} s: look for something simpler."
        raise RequestRefused(Refusal(RefusalKind.UNAVAILABLE, message)) from None
    finally:
        # Also when the request is cancelled; the session is the pipe's alone.
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if err:
        raise refused_search(request, err.decode(errors="backslashreplace"))
    return matches_of(request, part, out.decode())
