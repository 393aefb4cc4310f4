"""Reads what jobs wrote, from the files that Slurm reports, over the same connection as its commands."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

from msgspec.structs import replace

from cockpit.backends.slurm.mapping import outputs, values
from cockpit.backends.slurm.mapping.jobs import LookedUpJob
from cockpit.backends.slurm.mapping.values import slurm_id
from cockpit.backends.slurm.past import look_up
from cockpit.backends.slurm.reading import Reading
from cockpit.backends.slurm.wire.calls import Commands, Garbled
from cockpit.errors import CockpitError, RequestRefused
from cockpit.model.asking import LogChunk, LogMatches, LogRequest, LogSearch, LogStream
from cockpit.model.ids import JobId
from cockpit.model.job import ENDED
from cockpit.model.jobdetail import StepRow
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.runtime.log_search import matches_of, part_of, refused_search, search_command

TAIL_BYTES = 4096
TAIL_LINES = 12
SECONDS = 20.0
_HOST = re.compile(r"%\d*N")


async def read(commands: Commands, reading: Reading, known: LookedUpJob, request: LogRequest) -> LogChunk:
    """Return a piece of the file. A file that does not exist yet counts as empty.

    Raises what `_file` raises.
    """
    ended = known.job.state in ENDED
    path, size = await _file(commands, reading, known, request)
    if not path:
        return LogChunk(b"", 0, ended=ended)
    # a negative offset counts from the end
    start = max(0, size + request.offset) if request.offset < 0 else request.offset
    if start >= size:
        return LogChunk(b"", start, ended=ended, size=size)
    data = await _piece(commands, path, start, min(request.limit, size - start))
    return LogChunk(data, start, ended=ended and start + len(data) >= size, size=size)


async def search(commands: Commands, reading: Reading, known: LookedUpJob, request: LogSearch) -> LogMatches:
    """Search a part of the file by programs of the machine that has it."""
    path, size = await _file(commands, reading, known, request)
    part = part_of(request, size)
    if part.begin >= part.end:
        return LogMatches((), 0, *part)
    printed = await commands.run(search_command(path, request, part), seconds=SECONDS)
    if printed.code != 0 or printed.stderr:
        raise refused_search(request, printed.stderr or f"exit code {printed.code}")
    try:
        return matches_of(request, part, printed.stdout)
    except ValueError:
        raise Garbled("grep", f"{printed.stdout[:20]!r} says not where a match is") from None


async def _file(
    commands: Commands, reading: Reading, known: LookedUpJob, request: LogRequest | LogSearch
) -> tuple[str, int]:
    """Return the path of the requested output and its size in bytes; an empty path if nothing was written yet.

    Raises `RequestRefused` for the output of an ended job whose file is unknown and cannot be guessed.
    """
    # A job that has not started has written nothing, and patterns such as %N have no value yet.
    if known.job.attempt is None:
        return "", 0
    path = await _path(reading, known, request)
    # The size first: it shows without transfer whether there is anything new.
    size = await _size(commands, path) if path else None
    if size is not None:
        return path, size
    # The path was guessed from a default: that no file is there does not mean that the job wrote nothing.
    if path and known.job.state in ENDED and not request.step and outputs.OUT not in await _files(reading, known):
        message = (
            f"Slurm no longer reports into which file job {slurm_id(known.job.id)} wrote its output, and there is "
            f"no {path}."
        )
        raise RequestRefused(Refusal(RefusalKind.NOT_FOUND, message))
    return "", 0


async def tail(commands: Commands, reading: Reading, known: LookedUpJob) -> str:
    """Return the last lines of the job's stderr, else of its stdout; empty if the files cannot be read."""
    # stderr says why a job failed; where both go to one file, it is that file.
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


async def output_path(reading: Reading, known: LookedUpJob, stream: LogStream = LogStream.STDOUT) -> str:
    """Return the path of the job's output as far as it is known; empty: the terminal of its srun. Sources in this
    order: Slurm's record, accounting, the options of sbatch, the default."""
    known = await _leader(reading, known)
    files = await _files(reading, known)
    path = outputs.written_path(files, known, errors=stream is LogStream.STDERR)
    return outputs.fill_patterns(path, await _words(reading, known, path)) if path else ""


async def _files(reading: Reading, known: LookedUpJob) -> dict[str, str]:
    """Return the files of the job, or of the one that runs its script, as far as Slurm reports them."""
    known = await _leader(reading, known)
    return await reading.output_files(_one_job(known)) or await _accounting_record(reading, known)


async def with_outputs(reading: Reading, known: LookedUpJob, steps: Iterable[StepRow]) -> tuple[StepRow, ...]:
    """Return the steps, with the paths of those that write files of their own."""
    return tuple([replace(each, output=await _step_path(reading, known, each, None)) for each in steps])


async def _path(reading: Reading, known: LookedUpJob, request: LogRequest | LogSearch) -> str:
    """Return the path of the requested output: of a step, else of the job."""
    if request.step:
        _, steps = await reading.sacct.accounted(slurm_id(known.job.id))
        step = next((each for each in steps if each.name == request.step), None)
        if step is None:
            message = f"Accounting knows no step {request.step} of job {slurm_id(known.job.id)}."
            raise RequestRefused(Refusal(RefusalKind.NOT_FOUND, message))
        if path := await _step_path(reading, known, step, request.rank):
            return path
    return await output_path(reading, known, request.stream)


async def _step_path(reading: Reading, known: LookedUpJob, step: StepRow, rank: int | None) -> str:
    """Return the path of a step's output, empty without one. A relative path begins at the job's working folder."""
    if not step.output:
        return ""
    folder = (await reading.output_files(_one_job(known)) or dict(known.fields)).get("folder", "")
    path = step.output if step.output.startswith("/") else posixpath.join(folder or known.job.spec.output, step.output)
    return outputs.fill_patterns(path, outputs.step_words(await _words(reading, known, path), step, rank))


async def _leader(reading: Reading, known: LookedUpJob) -> LookedUpJob:
    """Return the first component of a heterogeneous job: it runs the script, and alone has a file."""
    leader = known.leader
    return await look_up(reading, leader) if leader is not None else known


def _one_job(known: LookedUpJob) -> str:
    """Return Slurm's id of the job; of an array's waiting tasks that of the first: squeue finds no `12_[1-9]`."""
    waiting = known.listed.tasks if known.listed is not None and known.job.id == known.listed.id else ()
    array = known.job.array
    return slurm_id(JobId(array.array), waiting[0]) if waiting and array is not None else slurm_id(known.job.id)


async def _words(reading: Reading, known: LookedUpJob, path: str) -> dict[str, str]:
    attempt = known.job.attempt
    node = attempt.placement[0].node if attempt is not None and attempt.placement else None
    # One command more, so only where the path needs it.
    host = await reading.host_of(node) if node is not None and _HOST.search(path) else node or ""
    return outputs.batch_words(known, await reading.version(), host)


async def _accounting_record(reading: Reading, known: LookedUpJob) -> dict[str, str]:
    """Return the record from accounting of a job that Slurm has forgotten."""
    files = outputs.of_record(known.fields)
    if outputs.OUT not in files and (script := await reading.sacct.script(slurm_id(known.job.id))):
        files = outputs.of_script(script) | files
    return files


async def _size(commands: Commands, path: str) -> int | None:
    """Return the size of a file in bytes; None if it does not exist. Refused for a file of another user."""
    printed = await commands.run(("stat", "--dereference", "--format=%s", "--", path), seconds=SECONDS)
    if printed.code == 0:
        if (size := values.number(printed.stdout)) is None:
            raise Garbled("stat", f"{printed.stdout[:20]!r} is not the size of a file")
        return size
    if "Permission denied" in printed.stderr:
        raise RequestRefused(Refusal(RefusalKind.DENIED, f"{path} cannot be read: it belongs to another user."))
    return None


async def _piece(commands: Commands, path: str, start: int, size: int) -> bytes:
    """Read a piece of a file as text that every connection transmits: the bytes are encoded there and decoded here."""
    import base64

    flags = ("iflag=skip_bytes,count_bytes,fullblock", "status=none")
    printed = await commands.run(
        (
            "sh",
            "-c",
            # `"$1"` and so on: no path becomes a part of the shell's program.
            'dd if="$1" skip="$2" count="$3" bs=65536 "$4" "$5" | base64 -w0',
            "sh",
            path,
            str(start),
            str(size),
            *flags,
        ),
        seconds=SECONDS,
    )
    # The pipe's exit code is that of base64, so an error of dd shows only on stderr.
    if printed.code != 0 or (printed.stderr and not printed.stdout):
        raise RequestRefused(Refusal(RefusalKind.DENIED, f"{path} cannot be read: {printed.stderr.strip()[-200:]}"))
    try:
        data = base64.b64decode(printed.stdout.strip(), validate=True)
    except ValueError:
        raise Garbled("base64", f"it is no piece of {path}") from None
    # `_size` has just found more there; an empty answer would read as the end of the file.
    if size and not data:
        raise Garbled("base64", f"it has nothing of {path}")
    return data
