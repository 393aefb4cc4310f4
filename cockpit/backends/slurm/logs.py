"""What jobs wrote, read over the same way in: the files that Slurm says they write to."""

from __future__ import annotations

import posixpath

from cockpit.backends.slurm.mapping import values
from cockpit.backends.slurm.mapping.ids import slurm_id
from cockpit.backends.slurm.reading import Reading
from cockpit.backends.slurm.wire.calls import Commands
from cockpit.errors import CockpitError, RequestRefused
from cockpit.model.asking import LogChunk, LogRequest, LogStream
from cockpit.model.ids import task_of
from cockpit.model.job import ENDED, Job
from cockpit.model.refusal import Refusal, RefusalKind

TAIL_BYTES = 4096
TAIL_LINES = 12
SECONDS = 20.0
_PATTERNS = {"j": 0, "J": 0, "A": 1, "a": 2, "x": 3, "u": 4, "N": 5, "n": 6, "t": 6}
"""Which of `_words` stands for which letter of a file pattern."""


async def read(commands: Commands, reading: Reading, job: Job, request: LogRequest) -> LogChunk:
    """A piece of the file. A file that is not there yet is empty."""
    ended = job.state in ENDED
    if job.attempt is None:
        return LogChunk(b"", 0, ended=ended)
    path = await _path(reading, job, request.stream)
    size = await _size(commands, path)
    if size is None:
        return LogChunk(b"", 0, ended=ended)
    start = max(0, size + request.offset) if request.offset < 0 else request.offset
    if start >= size:
        return LogChunk(b"", start, ended=ended)
    data = await _piece(commands, path, start, min(request.limit, size - start))
    return LogChunk(data, start, ended=ended and start + len(data) >= size)


async def tail(commands: Commands, reading: Reading, job: Job) -> str:
    """The last lines of what it wrote as errors, else of what it wrote; empty where nobody can read them."""
    for stream in (LogStream.STDERR, LogStream.STDOUT):
        try:
            chunk = await read(commands, reading, job, LogRequest(job=job.id, stream=stream, offset=-TAIL_BYTES))
        except CockpitError:
            return ""
        lines = chunk.data.decode(errors="replace").splitlines()[-TAIL_LINES:]
        if lines:
            return "\n".join(lines)
    return ""


async def _path(reading: Reading, job: Job, stream: LogStream) -> str:
    """As Slurm says while it remembers the job; else where sbatch would have written."""
    told = await reading.output_files(slurm_id(job.id))
    path = values.text(told.get(stream, "")) or values.text(told.get(LogStream.STDOUT, ""))
    folder = told.get("folder", "") or job.spec.output
    if not path:
        path = posixpath.join(folder, "slurm-%A_%a.out" if job.array is not None else "slurm-%j.out")
    return resolved(path if path.startswith("/") else posixpath.join(folder, path), job)


def resolved(path: str, job: Job) -> str:
    """The path with sbatch's patterns (`%j`, `%A_%a`, `%4t` …) in words; `\\` at its head takes their meaning away."""
    words = _words(job)
    found, rest = [], path
    while "%" in rest:
        before, _, rest = rest.partition("%")
        width = rest[: len(rest) - len(rest.lstrip("0123456789"))]
        letter = rest[len(width) : len(width) + 1]
        rest = rest[len(width) + 1 :]
        word = "%" if letter == "%" else words[_PATTERNS[letter]] if letter in _PATTERNS else f"%{width}{letter}"
        found += [before, word.zfill(int(width[:2])) if width and word.isdigit() else word]
    return "".join([*found, rest])


def _words(job: Job) -> tuple[str, ...]:
    number, task = task_of(job.id)
    node = job.attempt.placement[0].node if job.attempt is not None and job.attempt.placement else ""
    return str(number), str(number), str(task or 0), job.spec.name, job.submitter.name, node, "0"


async def _size(commands: Commands, path: str) -> int | None:
    printed = await commands.run(("stat", "--dereference", "--format=%s", "--", path), seconds=SECONDS)
    if printed.code == 0:
        return values.number(printed.stdout)
    if "Permission denied" in printed.stderr:
        raise RequestRefused(Refusal(RefusalKind.DENIED, f"{path} cannot be read: it belongs to somebody else."))
    return None


async def _piece(commands: Commands, path: str, start: int, size: int) -> bytes:
    """As text that survives every way in: bytes are encoded there and decoded here."""
    import base64

    flags = ("iflag=skip_bytes,count_bytes,fullblock", "status=none")
    printed = await commands.run(
        (
            "sh",
            "-c",
            'dd if="$1" skip="$2" count="$3" bs=65536 "$4" "$5" | base64 -w0',
            "sh",
            path,
            str(start),
            str(size),
            *flags,
        ),
        seconds=SECONDS,
    )
    if printed.code != 0 or (printed.stderr and not printed.stdout):
        raise RequestRefused(Refusal(RefusalKind.DENIED, f"{path} cannot be read: {printed.stderr.strip()[-200:]}"))
    return base64.b64decode(printed.stdout)
