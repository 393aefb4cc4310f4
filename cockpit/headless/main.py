"""One command from its words to its exit code. Output on stdout, sentences on stderr, never a traceback uninvited."""

from __future__ import annotations

import os
from collections.abc import Sequence

from cockpit.backends.drive import drive
from cockpit.errors import CockpitError, ProtocolMismatch, RequestRefused, Unreachable
from cockpit.headless.arguments import TextAsked, UsageError, Verb, parse
from cockpit.headless.exitcodes import ExitCode, exit_code_of
from cockpit.headless.services import Call, Services
from cockpit.headless.streams import Streams

TRACEBACK_VARIABLE = "COCKPIT_TRACEBACK"
"""Set: a defect shows its traceback."""


def run(argv: Sequence[str], services: Services, streams: Streams) -> int:
    """Do what the words ask for (without the program's name); the process's exit code."""
    try:
        code = _told(argv, services, streams)
        streams.flush()
    except BrokenPipeError:
        streams.abandon_output()
        return ExitCode.BROKEN_PIPE
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    return code


def _told(argv: Sequence[str], services: Services, streams: Streams) -> int:
    try:
        return _act(argv, services, streams)
    except TextAsked as asked:
        streams.line(str(asked))
        return ExitCode.OK
    except UsageError as wrong:
        streams.say(f"cockpit: {wrong}")
        return ExitCode.USAGE
    except RequestRefused as no:
        from cockpit.present.refusals import refusal_text

        streams.say(refusal_text(no.refusal, streams.now(), streams.zone))
        return exit_code_of(no)
    except CockpitError as error:
        streams.say(str(error))
        return exit_code_of(error)
    except BrokenPipeError:
        raise
    except Exception as defect:
        if os.environ.get(TRACEBACK_VARIABLE):
            raise
        streams.say(
            f"cockpit has a defect here: {type(defect).__name__}: {defect}\n"
            f"Please report it, with what {TRACEBACK_VARIABLE}=1 shows."
        )
        return ExitCode.INTERNAL


def _act(argv: Sequence[str], services: Services, streams: Streams) -> int:
    verb, args = parse(argv)
    args.cluster = _cluster(args.cluster, vars(args))
    args.saved_filters = services.saved(args.cluster)
    return int(drive(_run(verb, Call(args, services, streams))))


async def _run(verb: Verb, call: Call) -> int:
    try:
        if "job" in call.args or "jobs" in call.args:
            from cockpit.headless.naming import resolve_jobs

            await resolve_jobs(call)
        return await verb.run(call)
    except Unreachable as error:
        advice = call.services.advice(call.args.cluster) if not isinstance(error, ProtocolMismatch) else ""
        if not advice:
            raise
        raise Unreachable(f"{error}\n{advice}") from error
    finally:
        await call.close()


def _cluster(chosen: str | None, args: dict[str, object]) -> str | None:
    """The cluster of `-c` and of every `lab:123` among the arguments, which must be one."""
    given = args.get("jobs") or [args.get("job")]
    named = {ref.cluster for ref in given if getattr(ref, "cluster", "")} if isinstance(given, list) else set()
    if chosen is not None:
        named.add(chosen)
    if len(named) > 1:
        raise UsageError(f"one command speaks to one cluster, not to {', '.join(sorted(named))}")
    return next(iter(named), None)
