"""Send alerts about jobs: a mail to the owner, a request to a webhook, and a call of the administrator's command.

The settings say which kinds of alerts go where, and how many in an hour. They are sent one after the other beside
everything else. A receiver that begins to fail, and one that works again, are events.
"""

from __future__ import annotations

import asyncio
import shlex
import signal
import sys
from collections import deque
from contextlib import suppress
from datetime import UTC, datetime
from email.message import EmailMessage
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import msgspec

from cockpit.engine.alerting import owner_address
from cockpit.model.alerts import Alert, AlertKind
from cockpit.model.events import ReceiverFailed, ReceiverRecovered
from cockpit.model.ids import Millis
from cockpit.model.text import visible
from cockpit.present.events.alerts import HEADLINES, alert_sentence
from cockpit.present.moments import iso
from cockpit.runtime.alert_senders import SendFailed, Smtp, Webhook
from cockpit.runtime.faultpatrol import BY
from cockpit.runtime.tasks import report_defect, signal_process

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cockpit.engine.effects import SendAlert
    from cockpit.model.job import Job
    from cockpit.runtime.host import Host
    from cockpit.runtime.troubles import Outages

LONGEST_ADDRESS: Final = 320
"""The most characters of a mail address (RFC 3696, errata)."""
SECONDS: Final = 60
"""Time limit of a command; one that takes longer is killed and has failed."""


PAUSES: Final = (2, 10)
"""The seconds between the tries to send an alert to a receiver that fails in a way which may pass."""
MOST_WAITING: Final = 100
"""How many alerts wait to be sent; more are left out."""
HOUR_MS: Final = 3_600_000


class AlertLimit:
    """Bounds how many alerts are sent in an hour."""

    def __init__(self, per_hour: int) -> None:
        self._per_hour = per_hour
        self._sent: deque[Millis] = deque()
        self._is_logged = False

    def admits(self, now: Millis) -> bool:
        """Return whether an alert may be sent now, and count it. The first that may not is logged."""
        while self._sent and self._sent[0] <= now - HOUR_MS:
            self._sent.popleft()
        if len(self._sent) < self._per_hour:
            self._sent.append(now)
            self._is_logged = False
            return True
        if not self._is_logged:
            _log(f"alerts are not sent: more than {self._per_hour} in an hour")
            self._is_logged = True
        return False


EVERY_KIND: Final = frozenset(AlertKind)


class Channels(msgspec.Struct, frozen=True, kw_only=True):
    """The ways to send alerts, each with the kinds that it gets; an empty command line, or None, switches a way off."""

    mail: str = ""
    """The command line of a program that reads a message with its recipients from standard input (`sendmail -t`)."""
    smtp: Smtp | None = None
    """The mail server that takes the place of that program."""
    sender: str = ""
    """The sender of what the mail server gets."""
    mail_kinds: frozenset[AlertKind] = EVERY_KIND
    webhook: Webhook | None = None
    webhook_kinds: frozenset[AlertKind] = EVERY_KIND
    command: str = ""
    """The command line of a program that reads one line of JSON."""
    command_kinds: frozenset[AlertKind] = EVERY_KIND
    url: str = ""
    """The web address of a job, with `{job}` in place of its id; empty: jobs have none."""


class Alerts:
    """Sends the alerts of one engine."""

    def __init__(self, cluster: str, channels: Channels, host: Host, limit: AlertLimit, outages: Outages) -> None:
        self._cluster = cluster
        self._channels = channels
        self._host = host
        self._limit = limit
        self._outages = outages
        self._waiting: asyncio.Queue[tuple[Job, Alert]] = asyncio.Queue(MOST_WAITING)

    def offer(self, effect: SendAlert) -> None:
        """Have the alert sent, unless there were too many. Returns at once: a slow receiver delays nothing."""
        # the job as it is now: it may have left the state by the time the alert is sent
        job, alert = self._host.machine.state.jobs[effect.job], effect.alert
        if not any(self._ways(job, alert)) or not self._limit.admits(self._host.clock.now()):
            return
        try:
            self._waiting.put_nowait((job, alert))
        except asyncio.QueueFull:
            _log(f"the alert about job {job.id} is left out: {MOST_WAITING} others wait to be sent")

    async def send_forever(self) -> None:
        """Send the alerts that were offered, until cancelled."""
        while True:
            job, alert = await self._waiting.get()
            try:
                await self.tell(job, alert)
            except Exception as error:  # noqa: BLE001 - a defect here must not end the engine
                report_defect(f"alerting about job {job.id}", error)

    async def tell(self, job: Job, alert: Alert) -> None:
        """Send the alert in every way that its kind has. A receiver that fails keeps none of the others from it."""
        mail, webhook, command = self._ways(job, alert)
        if mail:
            await self._mail(job, alert)
        line = self._line(job, alert)
        if webhook and (hook := self._channels.webhook) is not None:
            # The time of each try, since receivers refuse old ones.
            await self._try(hook.name, lambda: hook.send(line.rstrip(), self._host.clock.now() // 1000))
        if command:
            await self._run("the alerts' command", self._channels.command, line)

    def _ways(self, job: Job, alert: Alert) -> tuple[bool, bool, bool]:
        """Return whether the alert goes by mail, to the webhook and to the command."""
        channels, kind = self._channels, alert.kind
        mails = kind in channels.mail_kinds and bool(channels.smtp or channels.mail) and bool(self._address_of(job))
        hooks = kind in channels.webhook_kinds and channels.webhook is not None
        return mails, hooks, kind in channels.command_kinds and bool(channels.command)

    def _address_of(self, job: Job) -> str:
        return owner_address(self._host.machine.state, job.submitter.name)

    async def _mail(self, job: Job, alert: Alert) -> None:
        message = self._message(job, alert)
        if (smtp := self._channels.smtp) is not None:
            message["From"] = visible(self._channels.sender, LONGEST_ADDRESS)
            message["Date"] = datetime.fromtimestamp(self._host.clock.now() / 1000, UTC)
            await self._try(smtp.name, lambda: smtp.send(message))
        else:
            await self._run("the alerts' mail program", self._channels.mail, bytes(message))

    async def _try(self, name: str, send: Callable[[], Awaitable[None]]) -> None:
        """Send, again after each of `PAUSES`; the last failure is noted as an outage of the receiver."""
        for pause in (*PAUSES, None):
            try:
                await send()
            except SendFailed as failed:
                if pause is None or not failed.passing:
                    await self._note(name, str(failed))
                    return
                await self._host.clock.wait_until(Millis(self._host.clock.now() + 1000 * pause))
            else:
                await self._note(name, "")
                return

    async def _run(self, what: str, command: str, text: bytes) -> None:
        argv = shlex.split(command)
        await self._note(f"{what} {visible(argv[0])}", await _failure(argv, text))

    async def _note(self, receiver: str, why: str) -> None:
        """Note that the receiver failed, or (empty `why`) works; where that has changed, it is an event."""
        if self._outages.note(receiver, why):
            body = ReceiverFailed(receiver, why) if why else ReceiverRecovered(receiver)
            await self._host.act_until_stored(lambda *_: [body], BY)

    def _message(self, job: Job, alert: Alert) -> EmailMessage:
        """Compose the mail. `visible` removes line breaks from names, which could otherwise add headers."""
        message = EmailMessage()
        message["To"] = visible(self._address_of(job), LONGEST_ADDRESS)
        message["Subject"] = visible(f"{job.shown_id} {job.spec.name} on {self._cluster} {HEADLINES[alert.kind]}")
        # So that no program answers the mail automatically (RFC 3834).
        message["Auto-Submitted"] = "auto-generated"
        opens = [visible(job_address(self._cluster, job)), f"cockpit job {job.shown_id}", self._url(job)]
        message.set_content(
            f"Job {job.shown_id} ({visible(job.spec.name)}): {alert_sentence(alert, alert.at, None)}.\n\n"
            + "".join(f"{each}\n" for each in opens if each)
        )
        return message

    def _url(self, job: Job) -> str:
        return self._channels.url.replace("{job}", quote(job.shown_id, safe=""))

    def _line(self, job: Job, alert: Alert) -> bytes:
        fields = {
            "alert": alert.kind,
            "cluster": self._cluster,
            "job": job.id,
            "address": job_address(self._cluster, job),
            "command": f"cockpit job {job.shown_id}",
            "url": self._url(job),
            "name": job.spec.name,
            "user": job.submitter.name,
            "at": iso(alert.at),
            "attempt": job.attempt.number if job.attempt is not None else 1,
            "text": alert_sentence(alert, alert.at, None),
        }
        return msgspec.json.encode(fields | _details(alert)) + b"\n"


def job_address(cluster: str, job: Job) -> str:
    """Return the job's address among clusters, as commands take it: `lab:4711`."""
    return f"{cluster}:{job.shown_id}"


def _details(alert: Alert) -> dict[str, object]:
    """Return the figures of an alert that only some kinds have."""
    if (slow := alert.slow) is not None:
        figures = {"rank": slow.rank, "hardware_ms": slow.hardware_ms, "e2e_ms": slow.e2e_ms}
        return {**figures, "threshold": alert.threshold, "elsewhere": alert.nodes}
    kill_at = {"kill_at": iso(alert.kill_at)} if alert.kill_at is not None else {}
    return {"nodes": alert.nodes, "continues": alert.continues, **kill_at}


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
        signal_process(process, signal.SIGKILL)
        await process.wait()
        return f"took more than {SECONDS} s"
    return f"ended with {code}" if code else ""
