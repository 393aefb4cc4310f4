"""Alerts over the network: to a real web server with a signature that it checks, and to a real SMTP server."""

from __future__ import annotations

import asyncio
import datetime as dt
import hashlib
import hmac
import json
import ssl
from email import message_from_bytes
from email.policy import default
from typing import TYPE_CHECKING, Any

import pytest
from aiosmtpd.smtp import SMTP, AuthResult
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from msgspec.structs import replace

from cockpit.model.attempt import Slow
from cockpit.model.events import PerformanceFell
from cockpit.model.ids import JobId, Millis
from cockpit.model.outside import SmtpTls
from cockpit.runtime.alert_senders import Smtp, Webhook
from cockpit.runtime.alerts import PAUSES, AlertLimits, Alerts, Channels
from cockpit.runtime.troubles import Outages
from tests.builders import HOUR, MINUTE, NOON
from tests.doubles.http_service import HttpService, Reply
from tests.doubles.samples import job
from tests.runtime.host_world import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

FELL = PerformanceFell(JobId(4711), 1, Slow(rank=0, hardware_ms=95.0, e2e_ms=100.0), 0.9, "ann@example.org")
SECRET, PASSWORD = "the-secret-of-the-hook", "the-password-of-the-mail"


class PatientClock:
    """Shows one time, and remembers for what it was waited."""

    def __init__(self) -> None:
        self.waits: list[int] = []

    def now(self) -> Millis:
        return Millis(NOON)

    def offset_millis(self) -> int:
        return 0

    async def wait_until(self, at: Millis) -> None:
        self.waits.append(at - NOON)


def alerts(outages: Outages | None = None, limits: AlertLimits | None = None, **channels: Any) -> Alerts:
    return Alerts("lab", Channels(**channels), PatientClock(), limits or AlertLimits(600, 60), outages or Outages())


def private(file: Path, text: str, mode: int = 0o600) -> str:
    file.write_text(text)
    file.chmod(mode)
    return str(file)


@pytest.mark.req("EL-13", "TR-10")
async def test_a_webhook_gets_the_alert_with_the_jobs_address_and_can_check_the_signature(
    http_service: HttpService, tmp_path: Path
) -> None:
    http_service.answer("POST /in?key=1", status=204)
    webhook = Webhook(url=f"{http_service.address}/in?key=1", secret_file=private(tmp_path / "secret", f"{SECRET}\n"))
    await alerts(webhook=webhook).tell(job(), FELL)
    (request,) = http_service.requests
    said = json.loads(request.body)
    assert (said["alert"], said["address"], said["job"]) == ("performance", f"lab:{job().shown_id}", job().id)
    assert request.headers["content-type"] == "application/json"
    stamp = request.headers["x-cockpit-timestamp"]
    assert int(stamp) == NOON // 1000
    signed = hmac.new(SECRET.encode(), f"{stamp}.".encode() + request.body, hashlib.sha256).hexdigest()
    assert request.headers["x-cockpit-signature"] == f"sha256={signed}"
    assert SECRET.encode() not in request.body


@pytest.mark.req("EL-13")
async def test_a_webhook_without_a_secret_is_not_signed(http_service: HttpService) -> None:
    http_service.answer("POST /in")
    await alerts(webhook=Webhook(url=f"{http_service.address}/in")).tell(job(), FELL)
    assert "x-cockpit-signature" not in http_service.requests[0].headers


@pytest.mark.req("EL-13")
async def test_a_webhook_that_fails_is_tried_three_times_and_reported_once(
    http_service: HttpService, capfd: pytest.CaptureFixture[str]
) -> None:
    outages = Outages()
    http_service.answer("POST /token/s3cr3t", status=503)
    sending = alerts(outages, webhook=Webhook(url=f"{http_service.address}/token/s3cr3t"))
    await sending.tell(job(), FELL)
    assert len(http_service.requests) == 3
    assert sending._clock.waits == [1000 * each for each in PAUSES]
    await sending.tell(job(), FELL)
    name = "the alerts' webhook http://127.0.0.1"
    assert capfd.readouterr().err == f"cockpit engine: {name} answers with status 503\n"
    assert outages.sentences == ("The alerts' webhook http://127.0.0.1 answers with status 503.",)
    replies = iter([Reply(429), Reply(200)])
    http_service.replies["POST /token/s3cr3t"] = lambda _: next(replies)
    await sending.tell(job(), FELL)
    assert outages.sentences == ()


@pytest.mark.req("EL-13")
async def test_a_refused_alert_is_not_sent_again(http_service: HttpService) -> None:
    outages = Outages()
    http_service.answer("POST /in", status=403)
    await alerts(outages, webhook=Webhook(url=f"{http_service.address}/in")).tell(job(), FELL)
    assert len(http_service.requests) == 1
    assert "answers with status 403" in outages.sentences[0]


@pytest.mark.req("EL-13", "TR-10")
@pytest.mark.parametrize(
    ("text", "mode", "why"),
    [(SECRET, 0o644, "is open to other users; chmod 600 it"), ("\n", 0o600, "is empty"), (None, 0, "cannot be read")],
)
async def test_a_secret_that_others_can_read_or_that_is_missing_is_not_used(
    http_service: HttpService, tmp_path: Path, text: str | None, mode: int, why: str
) -> None:
    outages, file = Outages(), tmp_path / "secret"
    if text is not None:
        private(file, text, mode)
    await alerts(outages, webhook=Webhook(url=f"{http_service.address}/in", secret_file=str(file))).tell(job(), FELL)
    assert http_service.requests == []
    assert why in outages.sentences[0]
    assert SECRET not in outages.sentences[0]


@pytest.mark.req("EL-13")
async def test_a_slow_receiver_delays_no_one_who_offers_an_alert(http_service: HttpService) -> None:
    sending = alerts(
        webhook=Webhook(url=f"{http_service.address}/in"), limits=AlertLimits(per_job_seconds=0, per_hour=60)
    )
    http_service.answer("POST /in")
    async with asyncio.TaskGroup() as group:
        task = group.create_task(sending.send_forever())
        for _ in range(3):
            await sending.offer(job(), FELL)
        assert http_service.requests == []
        await eventually(lambda: len(http_service.requests) == 3)
        task.cancel()


@pytest.mark.req("EL-13")
def test_alerts_are_bounded_for_each_job_and_for_all(capfd: pytest.CaptureFixture[str]) -> None:
    limits = AlertLimits(per_job_seconds=600, per_hour=3)
    first, second, third = JobId(1), JobId(2), JobId(3)
    assert limits.admits(first, Millis(NOON))
    assert not limits.admits(first, Millis(NOON + 9 * MINUTE))
    assert not limits.admits(first, Millis(NOON + 9 * MINUTE))
    assert limits.admits(first, Millis(NOON + 10 * MINUTE))
    assert limits.admits(second, Millis(NOON + 10 * MINUTE))
    assert not limits.admits(third, Millis(NOON + 11 * MINUTE))
    assert limits.admits(third, Millis(NOON + HOUR))
    assert capfd.readouterr().err.splitlines() == [
        "cockpit engine: alerts are left out: more than one about job 1 in 600 s",
        "cockpit engine: alerts are left out: more than 3 in an hour",
    ]


class Inbox:
    """What an SMTP server has taken."""

    def __init__(self) -> None:
        self.mails: list[tuple[str, list[str], bytes]] = []
        self.refusals: list[str] = []

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802 - aiosmtpd's name
        if self.refusals:
            return self.refusals.pop(0)
        self.mails.append((envelope.mail_from, envelope.rcpt_tos, envelope.content))
        return "250 taken"


def certificate(folder: Path) -> tuple[ssl.SSLContext, str]:
    """A server's TLS by a certificate of its own for localhost, and the certificate's file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(dt.datetime(2020, 1, 1, tzinfo=dt.UTC))
        .not_valid_after(dt.datetime(2099, 1, 1, tzinfo=dt.UTC))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file, keyfile = folder / "cert.pem", folder / "key.pem"
    file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    keyfile.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file, keyfile)
    return context, str(file)


class MailServer:
    """A real SMTP server in the test's loop; with TLS it takes mail only after STARTTLS and the right login."""

    def __init__(self, inbox: Inbox, context: ssl.SSLContext | None) -> None:
        def check(_server: Any, _session: Any, _envelope: Any, _mechanism: str, login: Any) -> AuthResult:
            known = (login.login, login.password) == (b"cockpit", PASSWORD.encode())
            return AuthResult(success=known, handled=False)

        secured = {"tls_context": context, "require_starttls": True, "auth_required": True, "authenticator": check}
        self._inbox = inbox
        self._options: dict[str, Any] = secured if context is not None else {}

    async def start(self, tls: ssl.SSLContext | None = None) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: SMTP(self._inbox, hostname="localhost", loop=loop, **self._options), "127.0.0.1", 0, ssl=tls
        )
        self.port = self._server.sockets[0].getsockname()[1]

    def stop(self) -> None:
        self._server.close()


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


@pytest.fixture
async def secured(inbox: Inbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[MailServer]:
    context, file = certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", file)
    server = MailServer(inbox, context)
    await server.start()
    yield server
    server.stop()


@pytest.fixture
async def plain(inbox: Inbox) -> AsyncIterator[MailServer]:
    server = MailServer(inbox, None)
    await server.start()
    yield server
    server.stop()


def mail(server: MailServer, outages: Outages | None = None, **fields: Any) -> Alerts:
    smtp = Smtp(host="localhost", port=server.port, **fields)
    return alerts(outages, smtp=smtp, sender="cockpit@lab", mail="false")


@pytest.mark.req("EL-13", "TR-10")
async def test_the_mail_goes_over_starttls_with_a_login_and_has_the_jobs_address(
    secured: MailServer, inbox: Inbox, tmp_path: Path
) -> None:
    login = private(tmp_path / "login", f"cockpit\n{PASSWORD}\n")
    await mail(secured, login_file=login).tell(job(), FELL)
    ((sender, recipients, content),) = inbox.mails
    assert (sender, recipients) == ("cockpit@lab", ["ann@example.org"])
    message = message_from_bytes(content, policy=default)
    assert (message["From"], message["To"], message["Auto-Submitted"]) == (
        "cockpit@lab",
        "ann@example.org",
        "auto-generated",
    )
    assert f"lab:{job().shown_id}" in message.get_content()
    assert message["Date"].datetime.timestamp() * 1000 == NOON
    assert PASSWORD.encode() not in content


@pytest.mark.req("EL-13", "TR-10")
@pytest.mark.parametrize(
    ("login", "why"),
    [("cockpit\nwrong-password\n", "refuses the login (code 535)"), ("cockpit\n", "has no second line, the password")],
)
async def test_a_refused_login_is_reported_without_the_password(
    secured: MailServer, inbox: Inbox, tmp_path: Path, capfd: pytest.CaptureFixture[str], login: str, why: str
) -> None:
    outages = Outages()
    sending = mail(secured, outages, login_file=private(tmp_path / "login", login))
    await sending.tell(job(), FELL)
    assert inbox.mails == []
    assert why in outages.sentences[0]
    assert sending._clock.waits == []
    assert "wrong-password" not in capfd.readouterr().err


@pytest.mark.req("EL-13", "TR-10")
async def test_a_server_with_an_unknown_certificate_gets_nothing(
    secured: MailServer, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    outages = Outages()
    await mail(secured, outages).tell(job(), FELL)
    assert inbox.mails == []
    assert "has no valid TLS: CERTIFICATE_VERIFY_FAILED" in outages.sentences[0]


@pytest.mark.req("EL-13", "TR-10")
async def test_the_mail_goes_over_tls_from_the_first_byte_on_where_that_is_wanted(
    inbox: Inbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, file = certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", file)
    server = MailServer(inbox, None)
    await server.start(context)
    await mail(server, tls=SmtpTls.TLS).tell(job(), FELL)
    server.stop()
    assert len(inbox.mails) == 1


@pytest.mark.req("EL-13", "TR-10")
async def test_a_server_without_starttls_gets_nothing_unless_none_is_wanted(plain: MailServer, inbox: Inbox) -> None:
    outages = Outages()
    await mail(plain, outages).tell(job(), FELL)
    assert "offers no STARTTLS" in outages.sentences[0]
    assert inbox.mails == []
    await mail(plain, outages, tls=SmtpTls.NONE).tell(job(), FELL)
    assert len(inbox.mails) == 1
    assert outages.sentences == ()


@pytest.mark.req("EL-13", "TR-10")
async def test_a_password_is_never_sent_to_another_machine_without_tls(tmp_path: Path) -> None:
    outages = Outages()
    smtp = Smtp(host="mail.invalid", port=587, tls=SmtpTls.NONE, login_file=private(tmp_path / "login", "a\nb\n"))
    await alerts(outages, smtp=smtp).tell(job(), FELL)
    assert "without TLS others could read the password" in outages.sentences[0]


@pytest.mark.req("EL-13")
async def test_a_mail_that_is_refused_for_now_is_sent_again(plain: MailServer, inbox: Inbox) -> None:
    inbox.refusals = ["451 later"]
    sending = mail(plain, tls=SmtpTls.NONE)
    await sending.tell(job(), FELL)
    assert len(inbox.mails) == 1
    assert sending._clock.waits == [1000 * PAUSES[0]]


@pytest.mark.req("EL-13")
async def test_a_mail_that_is_refused_for_good_is_not_sent_again(plain: MailServer, inbox: Inbox) -> None:
    outages = Outages()
    inbox.refusals = ["554 never"]
    await mail(plain, outages, tls=SmtpTls.NONE).tell(job(), FELL)
    assert inbox.mails == []
    assert "refuses the mail (code 554)" in outages.sentences[0]


@pytest.mark.req("EL-13", "TR-05")
async def test_an_address_with_a_line_break_adds_no_header(plain: MailServer, inbox: Inbox) -> None:
    outages = Outages()
    fell = replace(FELL, address="ann@example.org\r\nBcc: all@example.org")
    await mail(plain, outages, tls=SmtpTls.NONE).tell(job(), fell)
    assert all(message_from_bytes(content, policy=default)["Bcc"] is None for _, _, content in inbox.mails)
    assert all(len(recipients) == 1 for _, recipients, _ in inbox.mails)


@pytest.mark.req("EL-13")
async def test_no_mail_is_sent_without_the_owners_address(plain: MailServer, inbox: Inbox) -> None:
    await mail(plain, tls=SmtpTls.NONE).tell(job(), replace(FELL, address=""))
    assert inbox.mails == []
