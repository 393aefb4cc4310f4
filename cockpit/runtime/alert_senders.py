"""Sends alerts over the network: to a webhook with a signature, and as mail to an SMTP server.

No secret is in an error's text: of a webhook's address only scheme and host are named, since its path often is one, and
of an SMTP server's answer only the code.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import smtplib
import ssl
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec

from cockpit.model.outside import SmtpTls
from cockpit.present.safe import safe
from cockpit.runtime.http_client import HttpFailed, call_http

if TYPE_CHECKING:
    from email.message import EmailMessage

TIMESTAMP_HEADER: Final = "X-Cockpit-Timestamp"
SIGNATURE_HEADER: Final = "X-Cockpit-Signature"
MOST_SECRET_BYTES: Final = 4096
_TOO_MANY, _SERVER_ERRORS = 429, 500
_OK: Final = range(200, 300)
_LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class SendFailed(Exception):
    """An alert could not be sent; the text says why, to follow the receiver's name."""

    def __init__(self, why: str, *, passing: bool) -> None:
        super().__init__(why)
        self.passing = passing
        """Whether another try soon may succeed."""


class Webhook(msgspec.Struct, frozen=True, kw_only=True):
    """A web address that gets each alert as a JSON object."""

    url: str
    secret_file: str = ""
    """The file with the secret of the signature; empty: requests are not signed."""
    seconds: float = 10
    """The time limit of one request."""

    @property
    def name(self) -> str:
        """The receiver in words, without the path."""
        parts = urlsplit(self.url)
        return f"the alerts' webhook {parts.scheme}://{safe(parts.hostname or '')}"

    async def send(self, body: bytes, at: int) -> None:
        """Send one alert. `at`: the present time in seconds UTC. Raises `SendFailed`."""
        headers = {"Content-Type": "application/json", TIMESTAMP_HEADER: str(at)}
        if self.secret_file:
            secret = await asyncio.to_thread(read_secret, Path(self.secret_file))
            headers[SIGNATURE_HEADER] = f"sha256={signature(secret, at, body)}"
        try:
            answer = await call_http("POST", self.url, headers, self.seconds, body)
        except HttpFailed as failed:
            raise SendFailed(str(failed), passing=True) from None
        if answer.status not in _OK:
            passing = answer.status >= _SERVER_ERRORS or answer.status == _TOO_MANY
            raise SendFailed(f"answers with status {answer.status}", passing=passing)


def signature(secret: bytes, at: int, body: bytes) -> str:
    """Return the HMAC-SHA256 of `TIMESTAMP.BODY` in hexadecimal. The time is signed too, so that a receiver can refuse
    a copy that is sent again later."""
    return hmac.new(secret, f"{at}.".encode() + body, hashlib.sha256).hexdigest()


def read_secret(file: Path) -> bytes:
    """Return a file's content without the line break at its end. Blocks. Raises `SendFailed` for a file that other
    users can read too."""
    try:
        with file.open("rb") as opened:
            # Of the open file: the name may lead to another one by now.
            mode = stat.S_IMODE(os.fstat(opened.fileno()).st_mode)
            content = opened.read(MOST_SECRET_BYTES).rstrip(b"\r\n")
    except OSError as error:
        raise SendFailed(f"is not used: {safe(str(file))} cannot be read: {error.strerror}", passing=False) from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SendFailed(f"is not used: {safe(str(file))} is open to other users; chmod 600 it", passing=False)
    if not content:
        raise SendFailed(f"is not used: {safe(str(file))} is empty", passing=False)
    return content


class Smtp(msgspec.Struct, frozen=True, kw_only=True):
    """An SMTP server that takes alerts as mail."""

    host: str
    port: int
    tls: SmtpTls = SmtpTls.STARTTLS
    login_file: str = ""
    """The file with the user and, on the second line, the password; empty: no login."""
    seconds: float = 20
    """The time limit of each step."""

    @property
    def name(self) -> str:
        """The receiver in words."""
        return f"the alerts' mail server {safe(self.host)}:{self.port}"

    async def send(self, message: EmailMessage) -> None:
        """Send one mail. Raises `SendFailed`."""
        try:
            async with asyncio.timeout(3 * self.seconds):
                # The thread ends by itself: each of its steps has a time limit.
                await asyncio.to_thread(self._send, message)
        except TimeoutError:
            raise SendFailed(f"did not take the mail within {3 * self.seconds:g} s", passing=True) from None

    def _send(self, message: EmailMessage) -> None:
        login = self._login()
        try:
            # It checks the server's certificate and name.
            context = ssl.create_default_context()
            with self._connected(context) as server:
                if self.tls is SmtpTls.STARTTLS:
                    server.starttls(context=context)
                if login is not None:
                    server.login(*login)
                server.send_message(message)
        except (OSError, ValueError) as error:  # SMTP's errors are OS errors; a wrong address is a wrong value
            raise _failure(error) from None

    def _connected(self, context: ssl.SSLContext) -> smtplib.SMTP:
        # smtplib would else ask the name service for the own name, without a time limit
        own = os.uname().nodename
        if self.tls is SmtpTls.TLS:
            return smtplib.SMTP_SSL(self.host, self.port, own, timeout=self.seconds, context=context)
        return smtplib.SMTP(self.host, self.port, own, timeout=self.seconds)

    def _login(self) -> tuple[str, str] | None:
        if not self.login_file:
            return None
        if self.tls is SmtpTls.NONE and self.host not in _LOCAL:
            raise SendFailed("is not used: without TLS others could read the password", passing=False)
        user, _, password = read_secret(Path(self.login_file)).decode("utf-8", "replace").partition("\n")
        if not password:
            raise SendFailed(f"is not used: {safe(self.login_file)} has no second line, the password", passing=False)
        return user.rstrip("\r"), password


def _failure(error: OSError | ValueError) -> SendFailed:
    """Return the failure in words of cockpit's own: a server's text may repeat what it was sent."""
    why, passing = _words(error) if isinstance(error, smtplib.SMTPException) else ("", True)
    if why:
        return SendFailed(why, passing=passing)
    if isinstance(error, ssl.SSLError):
        return SendFailed(f"has no valid TLS: {error.reason or 'the handshake failed'}", passing=False)
    if isinstance(error, OSError):
        return SendFailed(f"cannot be reached: {error.strerror or 'no answer in time'}", passing=True)
    return SendFailed("was given an address that no mail can have", passing=False)


def _words(error: smtplib.SMTPException) -> tuple[str, bool]:
    """Return why the server did not take the mail, and whether it may soon."""
    match error:
        case smtplib.SMTPAuthenticationError():
            return f"refuses the login (code {error.smtp_code})", False
        case smtplib.SMTPRecipientsRefused():
            return "refuses the recipient", False
        case smtplib.SMTPResponseException():
            return f"refuses the mail (code {error.smtp_code})", error.smtp_code < _SERVER_ERRORS
        case smtplib.SMTPNotSupportedError():
            return "offers no STARTTLS, or none of the logins that are supported", False
        case _:
            return "broke the connection", True
