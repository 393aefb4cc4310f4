"""`cockpit wait`: returns when the jobs' commands have ended, with their exit code."""

from __future__ import annotations

import math
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Sequence

from cockpit.headless.arguments import Verb, reference, seconds
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.services import Call
from cockpit.model.ids import JobId
from cockpit.model.job import Job, JobState
from cockpit.present.safe import safe

# As ssh has it where a command's own status is not known.
NO_EXIT_CODE = 255
"""The job did not succeed, and no command of it failed: stopped before its start, lost, or ended well only after its
time limit."""


def timeout(text: str) -> float:
    """Parse seconds, with or without decimals, or a duration with its unit."""
    try:
        found = float(text)
    except ValueError:
        return seconds(text)
    if not 0 <= found < math.inf:
        raise ArgumentTypeError(f"{safe(text)} is not a number of seconds")
    return found


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("jobs", type=reference, nargs="+", metavar="ID", help="jobs, tasks such as 4711_3, or arrays")
    parser.add_argument(
        "--timeout",
        type=timeout,
        metavar="SECONDS",
        help=f"give up after so many, or a time such as 10m, with exit code {int(ExitCode.TIMED_OUT)}",
    )


async def run(call: Call) -> int:
    """Wait for the jobs; return the first exit code that is not 0, in their order. A debug hold prolongs no wait."""
    until = None if call.args.timeout is None else call.streams.now() + call.args.timeout * 1000
    # In reverse, as a stack: the tasks of an array come next, in place of the array.
    left = [(await call.job_id(ref), ref.task is None) for ref in reversed(call.args.jobs)]
    codes = []
    while left:
        job_id, whole = left.pop()
        # One limit for all jobs together.
        seconds_left = None if until is None else max(until - call.streams.now(), 0) / 1000
        job = await call.backend.wait(job_id, timeout_seconds=seconds_left)
        if job is None:
            call.streams.hint(f"{job_id} has not ended yet")
            return ExitCode.TIMED_OUT
        codes.append(exit_code(job))
        # An array is named by its first task; the others are known only once that one was looked at.
        left += [(each, False) for each in reversed(_other_tasks(job))] if whole else []
    # In the order of the arguments and not of the ends, so that a repeated call gives the same code.
    return next((code for code in codes if code), ExitCode.OK)


def _other_tasks(job: Job) -> Sequence[JobId]:
    """Return the other tasks of an array that is named by its first task."""
    if job.array is None or job.array.array != job.id:
        return ()
    return [JobId(each) for each in range(job.id + 1, job.id + job.array.count)]


def exit_code(job: Job) -> int:
    """Return the exit code of the job's command, but never 0 for a job that did not succeed."""
    if job.state is JobState.SUCCEEDED:
        return ExitCode.OK
    return (job.exit.shell_code if job.exit else 0) or NO_EXIT_CODE


WAIT = Verb(arguments, run, ("cockpit wait 4711 && cockpit logs 4711", "cockpit wait 4711 4712 --timeout 600"))
