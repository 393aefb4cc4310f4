"""Send alerts about slow jobs: a mail to the address in the job, and a call of the administrator's command."""

from __future__ import annotations

import asyncio
import shlex
import sys
from contextlib import suppress
from email.message import EmailMessage
from typing import TYPE_CHECKING, Final

import msgspec

from cockpit.model.text import visible
from cockpit.present.events.interruptions import patrol_sentence

if TYPE_CHECKING:
    from cockpit.model.events import PerformanceFell
    from cockpit.model.job import Job

SECONDS: Final = 60
"""Time limit of a command; one that takes longer is killed and has failed."""


class Alerts:
    """The ways to send alerts; an empty command line switches a way off.

    `mail`: the command line of a program that reads a message with its recipients from standard input (`sendmail -t`).
    `command`: the command line of a program that reads one line of JSON.
    """

    def __init__(self, cluster: str, mail: str, command: str) -> None:
        self._cluster = cluster
        self._mail = shlex.split(mail)
        self._command = shlex.split(command)

    async def tell(self, job: Job, fell: PerformanceFell) -> None:
        """Send the alerts. Failures are written to the engine's log."""
        if self._mail and fell.address:
            await _run("the mail about", job, self._mail, bytes(_message(self._cluster, job, fell)))
        if self._command:
            await _run("the alert about", job, self._command, _line(self._cluster, job, fell))


def _message(cluster: str, job: Job, fell: PerformanceFell) -> EmailMessage:
    """Compose the mail. `visible` removes line breaks from names, which could otherwise add headers."""
    message = EmailMessage()
    message["To"] = visible(fell.address)
    message["Subject"] = visible(f"{job.shown_id} {job.spec.name} on {cluster} is slow")
    # So that no program answers the mail automatically (RFC 3834).
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(
        f"Job {job.shown_id} ({job.spec.name}): {patrol_sentence(fell)}.\n\ncockpit job {job.shown_id}\n"
    )
    return message


def _line(cluster: str, job: Job, fell: PerformanceFell) -> bytes:
    fields = {
        "alert": "performance",
        "cluster": cluster,
        "job": job.id,
        "name": job.spec.name,
        "user": job.submitter.name,
        "attempt": fell.attempt,
        "rank": fell.slow.rank,
        "hardware_ms": fell.slow.hardware_ms,
        "e2e_ms": fell.slow.e2e_ms,
        "threshold": fell.threshold,
        "elsewhere": fell.elsewhere,
        "text": patrol_sentence(fell),
    }
    return msgspec.json.encode(fields) + b"\n"


async def _run(what: str, job: Job, argv: list[str], text: bytes) -> None:
    if why := await _failure(argv, text):
        print(f"cockpit engine: {what} job {job.id}: {argv[0]} {why}", file=sys.stderr)  # noqa: T201 - the engine's log


async def _failure(argv: list[str], text: bytes) -> str:
    """Run a command; return why it failed, or an empty text."""
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(*argv, stdin=pipe, stdout=nothing, stderr=nothing)
    except OSError as error:
        return f"cannot be run: {error.strerror}"
    try:
        async with asyncio.timeout(SECONDS):
            # A command may end without reading its input, which is no failure.
            with suppress(BrokenPipeError, ConnectionResetError):
                await process.communicate(text)
            code = await process.wait()
    except TimeoutError:
        process.kill()
        return f"took more than {SECONDS} s"
    return f"ended with {code}" if code else ""
