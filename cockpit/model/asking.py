"""Arguments of requests to a cluster beyond a job's id: a piece of a log, a shell in a container."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

import msgspec
from msgspec.structs import replace

from cockpit.model.resilience import Elastic
from cockpit.model.spec import JobSpec, PriorityWord


class SiteFactor(msgspec.Struct, frozen=True):
    """Added to the priority that a job's factors come to, or below 0 taken from it; 0: nothing any more."""

    factor: int


WantedPriority = PriorityWord | int | SiteFactor
"""A word; for administrators also a number in the place of the computed one, or what is added to that."""


class WantedLimit(msgspec.Struct, frozen=True):
    """A time limit; `beside`: what is added to the present one, or below 0 taken from it."""

    seconds: int
    beside: bool = False


class WantedWorkers(msgspec.Struct, frozen=True):
    """The number of workers of an elastic job; `beside`: what is added to the present one, or below 0 taken from it."""

    count: int
    beside: bool = False

    def count_of(self, elastic: Elastic) -> int:
        """Return the number of workers that a job will have."""
        return self.count + (elastic.workers if self.beside else 0)

    def of(self, spec: JobSpec) -> JobSpec:
        """Return an elastic job's specification with so many workers."""
        assert spec.elastic is not None
        workers = self.count_of(spec.elastic)
        return replace(spec, nodes=workers, elastic=replace(spec.elastic, workers=workers))


class LogStream(StrEnum):
    STDOUT = "stdout"
    STDERR = "stderr"
    MERGED = "merged"
    """The lines of both by time, as one log with offsets of its own (`Ability.MERGED_LOGS`)."""


WRITTEN_STREAMS: Final = (LogStream.STDOUT, LogStream.STDERR)
"""The streams that have a file of their own."""


class LogRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of one replica's log."""

    job: int
    rank: int = 0
    attempt: int | None = None
    """The attempt to read; None: the last one."""
    stream: LogStream = LogStream.STDOUT
    offset: int = 0
    """First byte to read; negative: counted from the end."""
    # A MiB at a time: an answer has to fit one frame of the protocol, and a reader shows the first of it at once.
    limit: int = 1 << 20
    wait: bool = False
    """Whether to answer only when there is something to read, or the replica has ended, or the log is shorter than
    `offset`: its file was emptied or replaced."""
    step: str = ""
    """On Slurm, the step (`0`, `1` …) that wrote the log, with `rank` as its task; empty: the batch script."""


class LogChunk(msgspec.Struct, frozen=True):
    data: bytes
    offset: int
    """Position of the first byte of `data` in the log."""
    ended: bool
    """Whether the log is complete: nothing follows `data`."""
    left_out: int = 0
    """Bytes before `offset` that were not stored; `data` begins with a line that says so."""
    size: int = 0
    """Bytes of the whole log at that moment; 0 also from an engine that does not report it."""
    errors: tuple[tuple[int, int], ...] = ()
    """Of a merged log, first byte and end of each part of `data` that is from stderr."""
    moments: tuple[tuple[int, int], ...] = ()
    """Of a merged log, the end of each part of `data`, and when it had been written, in milliseconds UTC."""


def was_emptied(chunk: LogChunk, offset: int) -> bool:
    """Return whether this answer to a request from `offset` on shows that the log was emptied or replaced since."""
    # Only then a request that waits gets an answer without bytes from a log that goes on.
    return not chunk.data and not chunk.ended and chunk.size < offset


class LogSearch(msgspec.Struct, frozen=True, kw_only=True):
    """A search in one replica's log, which runs where the file is. One request covers a part of a large log: the
    answer says which, and the next request goes on there. So there is progress, and who stops asking has cancelled."""

    job: int
    rank: int = 0
    attempt: int | None = None
    stream: LogStream = LogStream.STDOUT
    step: str = ""
    text: str = ""
    """The text to look for, within one line; empty: the ends of lines, which are only counted."""
    pattern: bool = False
    """Whether `text` is a regular expression (PCRE, as `grep -P` reads it)."""
    any_case: bool = True
    """Whether capital and small ASCII letters are the same."""
    begin: int = 0
    """First byte at which a match may begin."""
    end: int | None = None
    """The byte before which a match has to begin; None: the end of the log."""
    backward: bool = False
    """Whether the last matches before `end` are wanted in place of the first ones from `begin` on."""
    most: int = 1
    """Most matches in one answer; 0: they are only counted."""


class LogMatches(msgspec.Struct, frozen=True):
    """The matches in a part of a log."""

    found: tuple[tuple[int, int], ...]
    """First byte and length of each match, in the order of the log."""
    count: int
    """Number of matches between `begin` and `end`."""
    begin: int
    end: int
    """The part of the log that was searched."""
    size: int
    """Bytes of the whole log at that moment."""


TerminalSize = Annotated[int, msgspec.Meta(ge=0, le=65_535)]
"""The size of a terminal, as the kernel counts it."""


class ShellRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Enter a replica's container, running or kept."""

    job: int
    rank: int = 0
    command: tuple[str, ...] = ()
    """The command to run; empty: a shell, which is interactive at a terminal."""
    terminal: bool = False
    """Give it a pseudo terminal; else three pipes."""
    # 24 × 80 is what programs assume where they learn of no size.
    rows: TerminalSize = 24
    columns: TerminalSize = 80
    term: str = "xterm-256color"
    image: str = ""
    """Open it in a container of this image beside the replica's own; empty: in its own."""


class ShellOpened(msgspec.Struct, frozen=True):
    """The file descriptors follow: the control socket, then the terminal's master side or stdin, stdout, stderr."""

    terminal: bool
    kept: bool
    """The command has ended; the container is kept."""
    remounted: bool
    """The holder was gone: processes and /tmp are lost."""
    cards_freed: bool
    """Whether the job had cards and has lost them."""
    plain: bool = False
    """Whether the job runs as plain processes among all others of its user, without a container."""
