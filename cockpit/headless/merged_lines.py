"""Write the lines of stdout and stderr merged by time: those of stderr with a sign, or each as a JSON object."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from cockpit.model.asking import LogStream
from cockpit.model.ids import Millis
from cockpit.model.masked_logs import MaskedPieces
from cockpit.present.moments import iso

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cockpit.headless.streams import Streams
    from cockpit.model.asking import LogChunk

TEXT, JSON, JSONL = "text", "json", "jsonl"
FORMS: Final = (TEXT, JSON, JSONL)
SIGNS: Final = {LogStream.STDOUT: b"  ", LogStream.STDERR: b"! "}


class MergedWriter:
    """Writes the pieces of a merged log. `known`: values of the job's secret variables, which are masked."""

    def __init__(self, streams: Streams, known: Sequence[str], form: str) -> None:
        self._streams, self._form = streams, form
        # Apart, so that a line of one does not end what may be a secret in the other.
        self._masks = {stream: MaskedPieces(known) for stream in SIGNS}
        self._begun = dict.fromkeys(SIGNS, b"")
        """The line of each stream whose end has not come."""
        self._is_first = True

    def write(self, chunk: LogChunk) -> None:
        """Write the lines that are complete."""
        for stream, at, data in parts_of(chunk):
            *lines, rest = (self._begun[stream] + self._masks[stream].feed(data)).split(b"\n")
            self._begun[stream] = rest
            for each in lines:
                self._line(stream, at, each)
        # At once: with `--follow`, output must not wait in a buffer.
        self._streams.flush()

    def finish(self) -> None:
        """Write what has no end of its line."""
        for stream, masks in self._masks.items():
            for each in (self._begun[stream] + masks.finish()).splitlines():
                self._line(stream, None, each)
        if self._form == JSON:
            self._streams.write(b"[]\n" if self._is_first else b"\n]\n")

    def _line(self, stream: LogStream, at: int | None, data: bytes) -> None:
        if self._form == TEXT:
            self._streams.write(SIGNS[stream] + data + b"\n")
            return
        time = iso(Millis(at)) if at is not None else None
        record = {"time": time, "stream": str(stream), "line": data.decode("utf-8", "backslashreplace")}
        text = json.dumps(record, ensure_ascii=False).encode(errors="backslashreplace")
        if self._form == JSONL:
            self._streams.write(text + b"\n")
        else:
            self._streams.write((b"[\n  " if self._is_first else b",\n  ") + text)
        self._is_first = False


def parts_of(chunk: LogChunk) -> Iterator[tuple[LogStream, int | None, bytes]]:
    """Yield the parts of a piece of a merged log: the stream, when it had been written in ms UTC, and its bytes."""
    times, errors = dict(chunk.moments), {at for at, _ in chunk.errors}
    ends = sorted(({*times} | errors) - {chunk.offset})
    begin = chunk.offset
    for end in ends or [chunk.offset + len(chunk.data)]:
        # Each part of stderr has a moment of its own, so it ends where the next part begins.
        stream = LogStream.STDERR if begin in errors else LogStream.STDOUT
        yield stream, times.get(end), chunk.data[begin - chunk.offset : end - chunk.offset]
        begin = end
