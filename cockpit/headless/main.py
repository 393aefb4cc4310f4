"""Runs one command of the command line and returns its exit code.

Output goes to stdout, messages to stderr. A traceback is shown only if COCKPIT_TRACEBACK is set. Secrets are masked in
all of them unless `--reveal` is given.

1. Parse the words into a verb and its arguments (`arguments.parse`).
2. Choose the cluster: of `-c`, or of a job that is named as `lab:123`.
3. Replace names of jobs and folded ids by ids (`naming.resolve_jobs`).
4. Run the verb, which connects to the cluster when it needs it (`Call.backend`).
5. Turn an error into a message and an exit code (`exitcodes`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cockpit.backends.drive import drive
from cockpit.errors import CockpitError, ProtocolMismatch, RequestRefused, SpecErrors, Unreachable
from cockpit.headless.arguments import TextAsked, UsageError, Verb, parse
from cockpit.headless.exitcodes import ExitCode, exit_code_of
from cockpit.headless.services import Call, Services
from cockpit.headless.streams import Streams
from cockpit.model.masking import revealed
from cockpit.present.safe import safe, shortened

if TYPE_CHECKING:
    from cockpit.model.requests import RequestOutcome

TRACEBACK_VARIABLE = "COCKPIT_TRACEBACK"
"""Environment variable; when it is set, a defect of cockpit shows its traceback."""


def run(argv: Sequence[str], services: Services, streams: Streams) -> int:
    """Run the command line `argv` (without the program's name) and return the exit code of the process."""
    try:
        code = _run_reporting_errors(argv, services, streams)
        # Here, where a closed pipe is still handled: Python's flush at its end would print a traceback.
        streams.flush()
    except BrokenPipeError:
        streams.abandon_output()
        return ExitCode.BROKEN_PIPE
    except KeyboardInterrupt:
        # No message: the user has just pressed the key.
        return ExitCode.INTERRUPTED
    return code


def _run_reporting_errors(argv: Sequence[str], services: Services, streams: Streams) -> int:
    """Run the command and write its error, if any, to stderr (step 5)."""
    try:
        return _act(argv, services, streams)
    except TextAsked as text:
        streams.line(str(text))
        return ExitCode.OK
    except UsageError as wrong:
        streams.say(shortened(f"cockpit: {wrong}"))
        return ExitCode.USAGE
    except RequestRefused as no:
        from cockpit.present.requests import refusal_text

        streams.say(refusal_text(no.refusal, streams.now(), streams.zone))
        return exit_code_of(no)
    except CockpitError as error:
        streams.say(shortened(str(error)))
        return exit_code_of(error)
    # The reader of the output has gone, which is no defect; `run` ends without a message.
    except BrokenPipeError:
        raise
    except Exception as defect:  # noqa: BLE001 - whatever it is, it is reported
        streams.say(_defect_text(defect))
        return ExitCode.INTERNAL


def _defect_text(defect: Exception) -> str:
    if os.environ.get(TRACEBACK_VARIABLE):
        import traceback

        return "".join(traceback.format_exception(defect)).rstrip()
    return (
        f"cockpit has a defect here: {type(defect).__name__}: {shortened(str(defect))}\n"
        f"Please report it, with what {TRACEBACK_VARIABLE}=1 shows."
    )


def _act(argv: Sequence[str], services: Services, streams: Streams) -> int:
    verb, args = parse(argv)  # step 1
    args.cluster = _cluster(args.cluster, vars(args))  # step 2
    args.saved_filters = services.saved(args.cluster)
    # Without an event loop: the backends of commands block, and importing asyncio takes longer than most commands.
    return int(drive(_run(verb, Call(args, services, streams))))


async def _run(verb: Verb, call: Call) -> int:
    try:
        if "job" in call.args or "jobs" in call.args:
            from cockpit.headless.naming import resolve_jobs

            outcome = await resolve_jobs(call)  # step 3
            if outcome is not None:
                return await _answer_again(call, outcome)
        if getattr(call.args, "reveal", False):
            await _check_owner(call)
            with revealed():
                return await verb.run(call)  # step 4
        return await verb.run(call)  # step 4
    except (UsageError, RequestRefused, SpecErrors):
        # A change may have made its own repetition impossible: what `delete` named is gone.
        outcome = await call.earlier_outcome()
        if outcome is None:
            raise
        return await _answer_again(call, outcome)
    # Where no cluster answers, the user needs to know what to do about it.
    except Unreachable as error:
        advice = call.services.advice(call.args.cluster) if not isinstance(error, ProtocolMismatch) else ""
        if not advice:
            raise
        raise Unreachable(f"{error}\n{advice}") from error
    finally:
        # Before the exit, so that a connection over SSH is not left to time out.
        await call.close()


async def _check_owner(call: Call) -> None:
    """Raise `UsageError` where secrets of another user's job would be shown; files of jobs are the user's own."""
    if "job" not in call.args:
        return
    from cockpit.config.places import user_name

    job = (await call.backend.job(call.args.job.job, task=call.args.job.task)).job
    owner = job.submitter.name
    if owner != (call.backend.user or user_name()):
        raise UsageError(f"--reveal shows secrets of your own jobs; job {job.id} is of {safe(owner)}. Leave it out.")


async def _answer_again(call: Call, outcome: RequestOutcome) -> ExitCode:
    """Print the answer of a command that was accepted before under its `--request-id`: the jobs that it submitted, and
    that it was accepted."""
    from cockpit.headless.naming import submitted_before
    from cockpit.present.requests import accepted_text

    for job, name in await submitted_before(call, outcome):
        call.streams.line(f"submitted {safe(name)} as {job}")
    call.streams.say(accepted_text(call.args.request_id, outcome, call.streams.now(), call.streams.zone))
    return ExitCode.OK


def _cluster(chosen: str | None, args: dict[str, object]) -> str | None:
    """Return the cluster of `-c` or of the jobs named as `lab:123`. Raises `UsageError` when they are several."""
    # A verb has one job or several; of neither, no job names a cluster.
    refs = args.get("jobs") or [args.get("job")]
    named = {ref.cluster for ref in refs if getattr(ref, "cluster", "")} if isinstance(refs, list) else set()
    if chosen is not None:
        named.add(chosen)
    if len(named) > 1:
        raise UsageError(f"one command speaks to one cluster, not to {', '.join(sorted(named))}")
    return next(iter(named), None)
