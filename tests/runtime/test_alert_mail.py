"""Alerts by mail: to a real SMTP server."""

from __future__ import annotations

import asyncio
import datetime as dt
import ssl
from email import message_from_bytes
from email.policy import default
from typing import TYPE_CHECKING, Any

import pytest
from aiosmtpd.smtp import SMTP, AuthResult
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from cockpit.model.outside import SmtpTls
from cockpit.runtime.alert_senders import Smtp
from cockpit.runtime.alerts import PAUSES, AlertLimit, Alerts, Channels
from cockpit.runtime.troubles import Outages
from tests.builders import NOON
from tests.doubles.samples import job
from tests.runtime.alert_world import FELL, alert_world, alerts_of, private
from tests.runtime.host_world import World

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    Make = Callable[..., Alerts]

PASSWORD = "the-password-of-the-mail"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = await alert_world(tmp_path)
    yield world
    await world.stop()


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


def mail(world: World, server: MailServer, outages: Outages | None = None, **fields: Any) -> Alerts:
    smtp = Smtp(host="localhost", port=server.port, **fields)
    return alerts_of(world, outages, smtp=smtp, sender="cockpit@lab", mail="false")


@pytest.mark.req("EL-13", "TR-10")
async def test_the_mail_goes_over_starttls_with_a_login_and_has_the_jobs_address(
    world: World, secured: MailServer, inbox: Inbox, tmp_path: Path
) -> None:
    login = private(tmp_path / "login", f"cockpit\n{PASSWORD}\n")
    await mail(world, secured, login_file=login).tell(job(), FELL)
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
    world: World,
    secured: MailServer,
    inbox: Inbox,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    login: str,
    why: str,
) -> None:
    outages = Outages()
    sending = mail(world, secured, outages, login_file=private(tmp_path / "login", login))
    await sending.tell(job(), FELL)
    assert inbox.mails == []
    assert why in outages.sentences[0]
    assert world.clock.waits == []
    assert "wrong-password" not in capfd.readouterr().err


@pytest.mark.req("EL-13", "TR-10")
async def test_a_server_with_an_unknown_certificate_gets_nothing(
    world: World, secured: MailServer, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    outages = Outages()
    await mail(world, secured, outages).tell(job(), FELL)
    assert inbox.mails == []
    assert "has no valid TLS: CERTIFICATE_VERIFY_FAILED" in outages.sentences[0]


@pytest.mark.req("EL-13", "TR-10")
async def test_the_mail_goes_over_tls_from_the_first_byte_on_where_that_is_wanted(
    world: World, inbox: Inbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, file = certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", file)
    server = MailServer(inbox, None)
    await server.start(context)
    await mail(world, server, tls=SmtpTls.TLS).tell(job(), FELL)
    server.stop()
    assert len(inbox.mails) == 1


@pytest.mark.req("EL-13", "TR-10")
async def test_a_server_without_starttls_gets_nothing_unless_none_is_wanted(
    world: World, plain: MailServer, inbox: Inbox
) -> None:
    outages = Outages()
    await mail(world, plain, outages).tell(job(), FELL)
    assert "offers no STARTTLS" in outages.sentences[0]
    assert inbox.mails == []
    await mail(world, plain, outages, tls=SmtpTls.NONE).tell(job(), FELL)
    assert len(inbox.mails) == 1
    assert outages.sentences == ()


@pytest.mark.req("EL-13", "TR-10")
async def test_a_password_is_never_sent_to_another_machine_without_tls(world: World, tmp_path: Path) -> None:
    outages = Outages()
    smtp = Smtp(host="mail.invalid", port=587, tls=SmtpTls.NONE, login_file=private(tmp_path / "login", "a\nb\n"))
    await alerts_of(world, outages, smtp=smtp).tell(job(), FELL)
    assert "without TLS others could read the password" in outages.sentences[0]


@pytest.mark.req("EL-13")
async def test_a_mail_that_is_refused_for_now_is_sent_again(world: World, plain: MailServer, inbox: Inbox) -> None:
    inbox.refusals = ["451 later"]
    sending = mail(world, plain, tls=SmtpTls.NONE)
    await sending.tell(job(), FELL)
    assert len(inbox.mails) == 1
    assert world.clock.waits == [1000 * PAUSES[0]]


@pytest.mark.req("EL-13")
async def test_a_mail_that_is_refused_for_good_is_not_sent_again(world: World, plain: MailServer, inbox: Inbox) -> None:
    outages = Outages()
    inbox.refusals = ["554 never"]
    await mail(world, plain, outages, tls=SmtpTls.NONE).tell(job(), FELL)
    assert inbox.mails == []
    assert "refuses the mail (code 554)" in outages.sentences[0]


@pytest.mark.req("EL-13", "TR-05")
@pytest.mark.parametrize("address", ["ann@example.org\r\nBcc: all@example.org", ""])
async def test_an_address_with_a_line_break_adds_no_header_and_without_one_there_is_no_mail(
    tmp_path: Path, plain: MailServer, inbox: Inbox, address: str
) -> None:
    world = await alert_world(tmp_path, address)
    await mail(world, plain, tls=SmtpTls.NONE).tell(job(), FELL)
    await world.stop()
    assert all(message_from_bytes(content, policy=default)["Bcc"] is None for _, _, content in inbox.mails)
    assert all(len(recipients) == 1 for _, recipients, _ in inbox.mails)
    assert not (inbox.mails and not address)


@pytest.mark.req("EL-13", "TR-05")
async def test_the_owner_gets_a_mail_by_a_program_and_no_name_adds_a_header(world: World, tmp_path: Path) -> None:
    file = tmp_path / "mail"
    channels = Channels(mail=f"tee {file}", url="https://lab.example.org/{job}")
    await Alerts("lab\nBcc: all@example.org", channels, world.host, AlertLimit(60), Outages()).tell(job(), FELL)
    message = message_from_bytes(file.read_bytes(), policy=default)
    assert (message["To"], message["Bcc"]) == ("ann@example.org", None)
    words = message.get_content()
    assert "above 0.9 (95 of 100 ms in replica 0)" in words
    assert words.splitlines()[-3:] == [
        f"lab\\nBcc: all@example.org:{job().shown_id}",
        f"cockpit job {job().shown_id}",
        f"https://lab.example.org/{job().shown_id}",
    ]
