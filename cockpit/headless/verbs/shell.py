"""`cockpit shell`: a shell or one command inside of a job's container, running or held."""

from __future__ import annotations

import os
from argparse import ArgumentParser
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.headless.arguments import UsageError, Verb, count, reference
from cockpit.headless.services import Call
from cockpit.model.asking import ShellRequest
from cockpit.model.capabilities import Ability
from cockpit.model.ids import JobId

if TYPE_CHECKING:
    from cockpit.backends.base import ShellSession
    from cockpit.headless.recording import Recording


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("job", type=reference, metavar="ID", help="the job; 4711/2 is its replica 2")
    parser.add_argument("--replica", type=count, metavar="N", help="enter this replica, from 0")
    parser.add_argument(
        "--image", metavar="IMAGE", default="", help="on Kubernetes: in a container of this image beside its own"
    )
    parser.add_argument(
        "--record",
        metavar="FILE",
        help="record what is shown, not what is typed, as asciicast v2; FILE must not exist",
    )
    parser.usage = "cockpit shell ID [--replica N] [--image IMAGE] [--record FILE] [-- CMD …]"


async def run(call: Call) -> int:
    ref = call.args.job
    if call.args.image and (reason := call.backend.capabilities.why_not(Ability.DEBUG_IMAGE)):
        raise UsageError(reason)
    job = await call.job_id(ref)
    rank = call.args.replica if call.args.replica is not None else ref.rank
    return await enter(call, job, await _usual_rank(call, job) if rank is None else rank, call.args.image)


async def _usual_rank(call: Call, job: JobId) -> int:
    """Return the replica that failed first if it may be held, else the first one."""
    row = (await call.backend.job(job)).row
    return row.failed[0] if row.held_until is not None and row.failed is not None else 0


async def enter(call: Call, job: JobId, rank: int = 0, image: str = "") -> int:
    """Open a shell, or run the command behind `--`, in the container, and return its exit code. `image`: in a container
    of this image beside it."""
    streams = call.streams
    request = replace(requested(call, job, rank), image=image)
    # Details are printed only for people who open a shell.
    detail = await call.backend.job(JobId(request.job)) if request.terminal and not request.command else None
    # Before the shell is opened: an error of the file must not leave a shell behind.
    recording = await _recording(call, request)
    try:
        session = await call.backend.open_shell(request)
        if detail is not None:
            from cockpit.present.entering import entry_lines

            streams.say("\n".join(entry_lines(detail, request.rank, session.notice, call.context())))
        elif session.notice:
            streams.say(session.notice)
        # What was printed must be on the screen before the shell writes to it.
        streams.flush()
        return _relay(call, session, recording)
    finally:
        if recording is not None:
            recording.close()
            if recording.failure:
                streams.say(recording.failure)


def _relay(call: Call, session: ShellSession, recording: Recording | None) -> int:
    streams = call.streams
    if session.terminal_fd is not None:
        from cockpit.headless.terminal import relay_terminal
        from cockpit.present.entering import KILLED, WAS_KILLED

        code = relay_terminal(session, streams.stdin.fileno(), streams.stdout.fileno(), recording)
        if code == KILLED:
            streams.say(f"\n{WAS_KILLED}")
        return code
    from cockpit.headless.pipes import relay_pipes
    from cockpit.headless.recording import PipedRecording

    piped = None if recording is None else PipedRecording(recording)
    return relay_pipes(session, streams.stdin.fileno(), streams.stdout.fileno(), streams.stderr.fileno(), piped)


async def _recording(call: Call, request: ShellRequest) -> Recording | None:
    """Create the file to record to; None: nothing is recorded. Raises `CockpitError`."""
    # `session` opens a shell, too, and has no such option.
    name: str | None = getattr(call.args, "record", None)
    if name is None:
        return None
    from cockpit.headless.recording import Recording
    from cockpit.model.masked_logs import known_secrets

    known = known_secrets((await call.backend.job(JobId(request.job))).job.spec.env)
    title = f"cockpit shell {request.job}"
    return Recording(name, request.columns, request.rows, title=title, term=request.term, known=known)


def requested(call: Call, job: JobId, rank: int) -> ShellRequest:
    """Return the request: with a terminal only if stdin and stdout both are one, else bytes pass unchanged."""
    streams = call.streams
    terminal = streams.stdin.isatty() and streams.stdout.isatty()
    size = os.get_terminal_size(streams.stdout.fileno()) if terminal else os.terminal_size((80, 24))
    return ShellRequest(
        job=job,
        rank=rank,
        command=call.args.command_words,
        terminal=terminal,
        rows=size.lines,
        columns=size.columns,
        # TERM decides which escape sequences programs write; `dumb` means none.
        term=os.environ.get("TERM") or "dumb",
    )


SHELL = Verb(
    arguments,
    run,
    (
        "cockpit shell 4715",
        "cockpit shell 4715 --replica 1",
        "cockpit shell 4715 -- nvidia-smi",
        "cockpit shell 4715 --record session.cast",
        "cockpit shell 4715 -- tar c outputs > outputs.tar",
    ),
)
