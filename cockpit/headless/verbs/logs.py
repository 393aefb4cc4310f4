"""`cockpit logs`: what a replica wrote, without secrets, and on a terminal without control characters."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Sequence

import msgspec

from cockpit.errors import RequestRefused
from cockpit.headless.arguments import UsageError, Verb, add_reveal_option, count, reference
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.log_matches import LogReader, matching_lines
from cockpit.headless.merged_lines import FORMS, JSON, TEXT, MergedWriter
from cockpit.headless.services import Call
from cockpit.headless.streams import Streams
from cockpit.model.asking import LogRequest, LogSearch, LogStream, was_emptied
from cockpit.model.capabilities import Ability
from cockpit.model.ids import JobId
from cockpit.model.job import JobState
from cockpit.model.masked_logs import MaskedPieces, known_secrets
from cockpit.present.safe import LogText
from cockpit.present.states import exit_words

BLOCK = 1 << 16
"""Bytes read at a time when looking for the last lines."""


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "job", type=reference, metavar="ID", help="the job; 4711/2 is its replica 2, 4711#1 its first attempt"
    )
    parser.add_argument("--replica", type=count, metavar="N", help="of this replica, from 0")
    parser.add_argument("--step", metavar="STEP", default="", help="on a Slurm cluster: of this step, 0, 1 …")
    parser.add_argument("--attempt", type=count, metavar="K", help="of this attempt, from 1 (the last)")
    parser.add_argument("--stderr", action="store_true", help="its error stream instead of its output")
    parser.add_argument(
        "--merged", action="store_true", help="both streams merged by time; lines of the error stream begin with !"
    )
    parser.add_argument(
        "-o", "--output", choices=FORMS, default=TEXT, metavar="FORM", help=f"of --merged: {', '.join(FORMS)}"
    )
    parser.add_argument("--tail", type=count, metavar="N", help="only the last so many lines")
    parser.add_argument(
        "--search",
        type=search_text,
        metavar="TEXT",
        help="only lines with this text, each behind its first byte's offset",
    )
    parser.add_argument("--regex", action="store_true", help="TEXT is a regular expression, as of grep -P")
    parser.add_argument("--around", type=count, metavar="BYTE", help="only the lines around this offset")
    parser.add_argument("--lines", type=count, metavar="N", default=20, help="so many before and after it (20)")
    parser.add_argument("-f", "--follow", action="store_true", help="follow the log until the job has ended")
    add_reveal_option(parser)


async def run(call: Call) -> int:
    args, ref = call.args, call.args.job
    job = await call.job_id(ref)
    request = LogRequest(
        job=job,
        # The option, then the replica of the id (4711/2), then the one that failed first.
        rank=args.replica if args.replica is not None else ref.rank if ref.rank is not None else await _rank(call, job),
        attempt=args.attempt if args.attempt is not None else ref.attempt,
        stream=_stream(call),
        step=args.step,
    )
    if args.step and (no_steps := call.backend.capabilities.why_not(Ability.STEPS)):
        raise UsageError(no_steps)
    if args.search is not None or args.around is not None:
        return await print_part(call, request)
    offset = 0 if args.tail is None else await tail_offset(call, request, args.tail)
    await copy_from(call, request, offset)
    # For a program too if the job has failed: its output alone would look like a success.
    if request.stream is LogStream.STDOUT and (call.streams.stderr.isatty() or await _has_failed(call, job)):
        await point_to_errors(call, request)
    return ExitCode.OK


def _stream(call: Call) -> LogStream:
    """Return the stream that the options name. UsageError: they contradict each other, or the cluster has no times."""
    args = call.args
    if not args.merged:
        if args.output != TEXT:
            raise UsageError(f"-o {args.output} is a form of --merged; a single stream is printed as it was written.")
        return LogStream.STDERR if args.stderr else LogStream.STDOUT
    if reason := call.backend.capabilities.why_not(Ability.MERGED_LOGS):
        raise UsageError(reason)
    if args.stderr:
        raise UsageError("--merged prints both streams and --stderr one: leave one of them out.")
    if args.output != TEXT and (args.search is not None or args.around is not None):
        raise UsageError(f"-o {args.output} goes with neither --search nor --around.")
    if args.output == JSON and args.follow:
        raise UsageError("A JSON document ends with the log; use -o jsonl with --follow.")
    return LogStream.MERGED


def search_text(text: str) -> str:
    """Return a text to search for. ArgumentTypeError: it is empty."""
    if not text:
        raise ArgumentTypeError("there is no text to look for")
    return text


async def print_part(call: Call, request: LogRequest) -> int:
    """Print the lines that match, or those around an offset; the rest of the log is not read."""
    args = call.args
    if args.follow or args.tail is not None or (args.search is not None and args.around is not None):
        raise UsageError("--search and --around go neither together nor with --tail or --follow.")
    reader = LogReader(call.backend, request)
    writer = _Writer(call.streams, await _known_secrets(call, JobId(request.job)))
    await reader.open()
    if args.around is not None:
        async for data in reader.bytes_between(*await reader.around(args.around, args.lines)):
            writer.write(data)
        writer.finish()
        return ExitCode.OK
    found = False
    search = LogSearch(
        job=request.job,
        rank=request.rank,
        attempt=request.attempt,
        stream=request.stream,
        step=request.step,
        text=args.search,
        pattern=args.regex,
    )
    async for begin, data in matching_lines(call.backend, reader, search):
        found = True
        writer.write(f"{begin}:".encode() + data.removesuffix(b"\n") + b"\n")
    writer.finish()
    return ExitCode.OK if found else ExitCode.NOT_FOUND


async def _rank(call: Call, job: JobId) -> int:
    """Return the rank of the replica that failed first if the user names none, else of the first one."""
    if call.args.attempt is not None or call.args.job.attempt is not None:
        return 0
    failed = (await call.backend.job(job)).row.failed
    if failed is None:
        return 0
    rank, code = failed
    call.streams.say(f"Replica {rank} failed first ({exit_words(code)}): this is its output. Others: --replica N")
    return rank


async def _has_failed(call: Call, job: JobId) -> bool:
    """Whether the job or a replica of it ended with an error: then the reason is often in the error stream, for
    scripts and pagers too."""
    row = (await call.backend.job(job)).row
    return row.state is JobState.ERROR or row.failed is not None


async def point_to_errors(call: Call, request: LogRequest) -> None:
    """Print that there is an error stream, for users who look in the output for what went wrong."""
    # One byte from the end is enough to know whether there is anything.
    last = msgspec.structs.replace(request, stream=LogStream.STDERR, offset=-1, limit=1)
    if (await call.backend.logs(last)).data:
        call.streams.say(f"There are errors, too: cockpit logs {_job_argument(request)} --stderr")


def _job_argument(request: LogRequest) -> str:
    rank = f"/{request.rank}" if request.rank else ""
    return f"{request.job}{rank}" + (f"#{request.attempt}" if request.attempt else "")


async def tail_offset(call: Call, request: LogRequest, lines: int) -> int:
    """Return the position where the last lines begin. A newline at the very end ends a line and begins none."""
    chunk = await call.backend.logs(msgspec.structs.replace(request, offset=-BLOCK, limit=BLOCK))
    block = chunk.data
    if lines == 0:
        # `--tail 0`: only what comes from now on, for `--follow`.
        return chunk.offset + len(block)
    # The newline at the very end ends the last line.
    wanted = lines + block.endswith(b"\n")
    while block:
        breaks = block.count(b"\n")
        # This block contains the beginning of the wanted lines.
        if breaks >= wanted:
            return chunk.offset + _after_newline(block, breaks - wanted)
        wanted -= breaks
        # Before the hole of dropped output, if the block begins behind one.
        end = chunk.offset - chunk.left_out
        size = min(BLOCK, end)
        if size == 0:
            break
        chunk = await call.backend.logs(msgspec.structs.replace(request, offset=end - size, limit=size))
        # A block may reach into the one after it, which is counted already.
        block = chunk.data[: max(0, end - chunk.offset)]
    return 0


def _after_newline(block: bytes, skipped: int) -> int:
    """Return the index after the newline that follows `skipped` newlines."""
    at = -1
    for _ in range(skipped + 1):
        at = block.index(b"\n", at + 1)
    return at + 1


async def copy_from(call: Call, request: LogRequest, offset: int) -> None:
    """Write the log from this offset to its present end, with `--follow` to its last end."""
    is_merged = request.stream is LogStream.MERGED
    known = await _known_secrets(call, JobId(request.job))
    merged = MergedWriter(call.streams, known, call.args.output) if is_merged else None
    plain = _Writer(call.streams, known)
    while True:
        chunk = await call.backend.logs(msgspec.structs.replace(request, offset=offset, wait=call.args.follow))
        if merged is not None:
            merged.write(chunk)
        else:
            plain.write(chunk.data)
        if was_emptied(chunk, offset):
            call.streams.say("The log was emptied or replaced: its new text follows.")
            offset = 0
            continue
        offset = chunk.offset + len(chunk.data)
        # Without `--follow`, an empty piece is the present end.
        if chunk.ended or not (chunk.data or call.args.follow):
            break
    (merged or plain).finish()


async def _known_secrets(call: Call, job: JobId) -> tuple[str, ...]:
    """Return the values of the job's own secret variables."""
    try:
        return known_secrets((await call.backend.job(job)).job.spec.env)
    except RequestRefused:  # its log may be there longer than the job itself
        return ()


class _Writer:
    """Writes bytes for programs, and text without control characters for people; both without secrets."""

    def __init__(self, streams: Streams, known: Sequence[str]) -> None:
        self._streams = streams
        self._pieces = MaskedPieces(known)
        self._text = LogText() if streams.stdout.isatty() else None

    def write(self, data: bytes) -> None:
        self._put(self._pieces.feed(data))
        # At once: with `--follow`, output must not wait in a buffer.
        self._streams.flush()

    def finish(self) -> None:
        self._put(self._pieces.finish())
        if self._text is not None:
            self._streams.text(self._text.finish())

    def _put(self, data: bytes) -> None:
        if self._text is None:
            self._streams.write_masked(data)
        else:
            self._streams.text(self._text.feed(data))


LOGS = Verb(
    arguments,
    run,
    (
        "cockpit logs 4711",
        "cockpit logs 4711 -f --tail 20",
        "cockpit logs 4711/1 --stderr > errors.txt",
        "cockpit logs 4711 --merged -o jsonl",
        "cockpit logs 4711 --search 'out of memory'",
        "cockpit logs 4711 --around 182734551 --lines 5",
    ),
)
