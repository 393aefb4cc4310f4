"""Send alerts about slow jobs: a mail to the owner, a request to a webhook, and a call of the administrator's command.

The number of alerts is bounded (`AlertLimits`), and they are sent one after the other beside everything else.
"""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections import deque
from contextlib import suppress
from datetime import UTC, datetime
from email.message import EmailMessage
from typing import TYPE_CHECKING, Final

import msgspec

from cockpit.model.ids import Millis
from cockpit.model.text import visible
from cockpit.present.events.interruptions import patrol_sentence
from cockpit.runtime.alert_senders import SendFailed, Smtp, Webhook
from cockpit.runtime.tasks import report_defect

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cockpit.model.events import PerformanceFell
    from cockpit.model.ids import JobId
    from cockpit.model.job import Job
    from cockpit.runtime.clock import Timekeeper
    from cockpit.runtime.troubles import Outages

LONGEST_ADDRESS: Final = 320
"""The most characters of a mail address (RFC 3696, errata)."""
SECONDS: Final = 60
"""Time limit of a command; one that takes longer is killed and has failed."""


TRIES: Final = 3
"""How often an alert is sent to a receiver that fails in a way which may pass."""
PAUSES: Final = (2, 10)
"""The seconds between these tries."""
MOST_WAITING: Final = 100
"""How many alerts wait to be sent; more are left out."""
HOUR_MS: Final = 3_600_000


class AlertLimits:
    """Bounds how many alerts are sent: one for each job in a time, and a number of all in an hour."""

    def __init__(self, per_job_seconds: int, per_hour: int) -> None:
        self._per_job_seconds = per_job_seconds
        self._per_hour = per_hour
        self._sent: deque[tuple[Millis, JobId]] = deque()
        self._silenced: set[str] = set()

    def admits(self, job: JobId, now: Millis) -> bool:
        """Return whether an alert about the job may be sent now, and count it. The first that may not is logged."""
        longest = max(HOUR_MS, 1000 * self._per_job_seconds)
        while self._sent and self._sent[0][0] <= now - longest:
            self._sent.popleft()
        of_job = [at for at, each in self._sent if each == job and at > now - 1000 * self._per_job_seconds]
        in_hour = sum(at > now - HOUR_MS for at, _ in self._sent)
        bounds = {
            f"more than one about job {job} in {self._per_job_seconds} s": not of_job,
            f"more than {self._per_hour} in an hour": in_hour < self._per_hour,
        }
        for bound, is_kept in bounds.items():
            if is_kept:
                self._silenced.discard(bound)
            elif bound not in self._silenced:
                self._silenced.add(bound)
                _log(f"alerts are left out: {bound}")
        if not all(bounds.values()):
            return False
        self._sent.append((now, job))
        return True


class Channels(msgspec.Struct, frozen=True, kw_only=True):
    """The ways to send alerts; an empty command line, or None, switches a way off."""

    mail: str = ""
    """The command line of a program that reads a message with its recipients from standard input (`sendmail -t`)."""
    smtp: Smtp | None = None
    """The mail server that takes the place of that program."""
    sender: str = ""
    """The sender of what the mail server gets."""
    webhook: Webhook | None = None
    command: str = ""
    """The command line of a program that reads one line of JSON."""


class Alerts:
    """Sends the alerts of one engine."""

    def __init__(
        self, cluster: str, channels: Channels, clock: Timekeeper, limits: AlertLimits, outages: Outages
    ) -> None:
        self._cluster = cluster
        self._channels = channels
        self._clock = clock
        self._limits = limits
        self._outages = outages
        self._waiting: asyncio.Queue[tuple[Job, PerformanceFell]] = asyncio.Queue(MOST_WAITING)

    async def offer(self, job: Job, fell: PerformanceFell) -> None:
        """Have the alert sent, unless there were too many. Returns at once: a slow receiver delays nothing."""
        if not self._limits.admits(job.id, self._clock.now()):
            return
        try:
            self._waiting.put_nowait((job, fell))
        except asyncio.QueueFull:
            _log(f"the alert about job {job.id} is left out: {MOST_WAITING} others wait to be sent")

    async def send_forever(self) -> None:
        """Send the alerts that were offered, until cancelled."""
        while True:
            job, fell = await self._waiting.get()
            try:
                await self.tell(job, fell)
            except Exception as error:  # noqa: BLE001 - a defect here must not end the engine
                report_defect(f"alerting about job {job.id}", error)

    async def tell(self, job: Job, fell: PerformanceFell) -> None:
        """Send the alert in every way. Failures are written to the engine's log."""
        channels = self._channels
        if fell.address:
            await self._mail(job, fell)
        if (webhook := channels.webhook) is not None:
            body = _line(self._cluster, job, fell).rstrip()
            # The time of each try, since receivers refuse old ones.
            await self._try(webhook.name, lambda: webhook.send(body, self._clock.now() // 1000))
        if channels.command:
            await _run("the alert about", job, shlex.split(channels.command), _line(self._cluster, job, fell))

    async def _mail(self, job: Job, fell: PerformanceFell) -> None:
        message = _message(self._cluster, job, fell)
        if (smtp := self._channels.smtp) is not None:
            message["From"] = visible(self._channels.sender, LONGEST_ADDRESS)
            message["Date"] = datetime.fromtimestamp(self._clock.now() / 1000, UTC)
            await self._try(smtp.name, lambda: smtp.send(message))
        elif self._channels.mail:
            await _run("the mail about", job, shlex.split(self._channels.mail), bytes(message))

    async def _try(self, name: str, send: Callable[[], Awaitable[None]]) -> None:
        """Send, up to `TRIES` times; the last failure is noted as an outage of the receiver."""
        for pause in (*PAUSES, None):
            try:
                await send()
            except SendFailed as failed:
                if pause is None or not failed.passing:
                    self._outages.note(name, str(failed))
                    return
                await self._clock.wait_until(Millis(self._clock.now() + 1000 * pause))
            else:
                self._outages.note(name, "")
                return


def job_address(cluster: str, job: Job) -> str:
    """Return the job's address among clusters, as commands take it: `lab:4711`."""
    return f"{cluster}:{job.shown_id}"


def _message(cluster: str, job: Job, fell: PerformanceFell) -> EmailMessage:
    """Compose the mail. `visible` removes line breaks from names, which could otherwise add headers."""
    message = EmailMessage()
    message["To"] = visible(fell.address, LONGEST_ADDRESS)
    message["Subject"] = visible(f"{job.shown_id} {job.spec.name} on {cluster} is slow")
    # So that no program answers the mail automatically (RFC 3834).
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(
        f"Job {job.shown_id} ({job.spec.name}): {patrol_sentence(fell)}.\n\n{visible(job_address(cluster, job))}\n"
        f"cockpit job {job.shown_id}\n"
    )
    return message


def _line(cluster: str, job: Job, fell: PerformanceFell) -> bytes:
    fields = {
        "alert": "performance",
        "cluster": cluster,
        "job": job.id,
        "address": job_address(cluster, job),
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
        _log(f"{what} job {job.id}: {argv[0]} {why}")


def _log(sentence: str) -> None:
    print(f"cockpit engine: {sentence}", file=sys.stderr)  # noqa: T201 - the engine's log


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
