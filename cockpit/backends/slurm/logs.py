"""What jobs wrote, read over the same way in: the files that Slurm says they write to."""

from __future__ import annotations

import posixpath

from cockpit.backends.slurm.mapping import outputs, values
from cockpit.backends.slurm.mapping.ids import slurm_id
from cockpit.backends.slurm.mapping.jobs import Found
from cockpit.backends.slurm.reading import Reading
from cockpit.backends.slurm.wire.calls import Commands
from cockpit.errors import CockpitError, RequestRefused
from cockpit.model.asking import LogChunk, LogRequest, LogStream
from cockpit.model.job import ENDED
from cockpit.model.refusal import Refusal, RefusalKind

TAIL_BYTES = 4096
TAIL_LINES = 12
SECONDS = 20.0


async def read(commands: Commands, reading: Reading, known: Found, request: LogRequest) -> LogChunk:
    """A piece of the file. A file that is not there yet is empty."""
    ended = known.job.state in ENDED
    if known.job.attempt is None:
        return LogChunk(b"", 0, ended=ended)
    path = await _path(reading, known, request.stream)
    size = await _size(commands, path)
    if size is None:
        return LogChunk(b"", 0, ended=ended)
    start = max(0, size + request.offset) if request.offset < 0 else request.offset
    if start >= size:
        return LogChunk(b"", start, ended=ended)
    data = await _piece(commands, path, start, min(request.limit, size - start))
    return LogChunk(data, start, ended=ended and start + len(data) >= size)


async def tail(commands: Commands, reading: Reading, known: Found) -> str:
    """The last lines of what it wrote as errors, else of what it wrote; empty where nobody can read them."""
    for stream in (LogStream.STDERR, LogStream.STDOUT):
        try:
            wanted = LogRequest(job=known.job.id, stream=stream, offset=-TAIL_BYTES)
            chunk = await read(commands, reading, known, wanted)
        except CockpitError:
            return ""
        lines = chunk.data.decode(errors="replace").splitlines()[-TAIL_LINES:]
        if lines:
            return "\n".join(lines)
    return ""


async def _path(reading: Reading, known: Found, stream: LogStream) -> str:
    """As Slurm says while it remembers the job; else as accounting does, or as sbatch was asked; else where it would
    have written."""
    job = known.job
    told = await reading.output_files(slurm_id(job.id)) or await _remembered(reading, known)
    path = values.text(told.get(stream, "")) or values.text(told.get(LogStream.STDOUT, ""))
    folder = told.get("folder", "") or job.spec.output
    if not path:
        path = "slurm-%A_%a.out" if job.array is not None else "slurm-%j.out"
    whole = path if path.startswith("/") else posixpath.join(folder, path)
    return outputs.resolved(whole, known, await reading.version())


async def _remembered(reading: Reading, known: Found) -> dict[str, str]:
    """What Slurm has forgotten and its accounting has not."""
    told = outputs.of_record(known.fields)
    if outputs.OUT not in told and (script := await reading.script(slurm_id(known.job.id))):
        told = outputs.of_script(script) | told
    return told


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
