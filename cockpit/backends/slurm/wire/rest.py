"""slurmrestd in the place of Slurm's commands: what they are asked is asked of it, what they do it is told to do.

A unix socket knows who asks; over HTTP a JSON web token does, as `scontrol token` makes it. What slurmrestd has no word
for is said, with the way that has one.
"""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from cockpit.backends.base import ShellSession
from cockpit.backends.slurm.mapping.rest.acts import NoSuchRequest, Request, request
from cockpit.backends.slurm.mapping.rest.questions import DATABASE, SLURM, NoAnswer, question
from cockpit.backends.slurm.wire import http
from cockpit.backends.slurm.wire.calls import Commands, Garbled, Printed, Unanswered
from cockpit.errors import CockpitError, RequestRefused, Unreachable
from cockpit.model.asking import ShellRequest
from cockpit.model.ids import Millis
from cockpit.model.refusal import Refusal, RefusalKind

OLDEST, NEWEST = 36, 46
"""Versions of the API that are looked for, v0.0.46 first: whatever a daemon has, one of them is among them."""
FILES = ("stat", "sh", "id", "mkdir")
"""Programs that read what jobs wrote, and make room for it: where the socket is, the cluster's files mostly are too."""
NO_SHELL = "slurmrestd opens no terminals: enter the job from a login node, or over ssh://."
NOT_FOUND, REFUSED, TOO_MANY = 404, (401, 403), 429


class RestCommands:
    """Implements `wire.calls.Commands`."""

    on_this_disk = False

    def __init__(
        self, address: str, token: Callable[[], str], now: Callable[[], Millis], files: Commands | None = None
    ) -> None:
        """`token`: read anew for each request, since it runs out; empty: none is sent. `files`: how files are read.
        Raises `SpecErrors` for what is no address."""
        self._place = http.place_of(address)
        self.name = self._place.socket or f"{self._place.host}:{self._place.port}"
        self.user = self._place.user
        self._token, self._now, self._files = token, now, files
        self._version: int | None = None
        self._cluster = ""

    async def run(self, argv: Sequence[str], *, seconds: float, stdin: bytes = b"", reading: bool = True) -> Printed:
        if argv[0] in FILES and self._files is not None:
            return await self._files.run(argv, seconds=seconds, stdin=stdin, reading=reading)
        try:
            async with asyncio.timeout(seconds):
                return await (self._read(argv) if reading else self._act(argv, stdin.decode(errors="replace")))
        except TimeoutError:
            raise Unanswered(f"slurmrestd at {self.name} has not answered within {seconds:g} s.") from None
        except OSError as error:
            reason = error.strerror or str(error) or "the connection broke"
            never_began = isinstance(error, ConnectionRefusedError | FileNotFoundError | PermissionError)
            error_type = Unreachable if never_began else Unanswered
            raise error_type(f"slurmrestd at {self.name} cannot be reached: {reason}.") from None

    async def shown(self, argv: Sequence[str], stdin: str) -> tuple[str, ...]:
        """The act as a command that would do it: curl's, but for the token."""
        if argv[0] in FILES and self._files is not None:
            return await self._files.shown(argv, stdin)
        wanted = self._request(argv, stdin, await self._known_version())
        where = ("--unix-socket", self._place.socket) if self._place.socket else ()
        body = () if wanted.body is None else ("--json", json.dumps(wanted.body, ensure_ascii=False))
        return ("curl", *where, "-X", wanted.method, f"{self._place.url}{self._target(wanted)}", *body)

    async def open_shell(self, argv: Sequence[str], request: ShellRequest) -> ShellSession:
        del argv, request
        raise RequestRefused(Refusal(RefusalKind.UNAVAILABLE, NO_SHELL))

    async def close(self) -> None:
        """Nothing stays open between two requests."""

    async def _read(self, argv: Sequence[str]) -> Printed:
        version = await self._known_version()
        asked = question(argv, version, await self._cluster_name() if argv[-1] == "config" else "")
        if asked is None:
            return Printed("", _no_word(version), 1)
        wanted = Request("GET", asked.area, asked.path, params=asked.params)
        answer, wrong = await self._told(wanted)
        if wrong:
            return Printed("", wrong, 1)
        try:
            return Printed(asked.printed(answer), "", 0, verified=True)
        except NoAnswer as missing:
            raise Garbled("slurmrestd", str(missing)) from None

    async def _act(self, argv: Sequence[str], stdin: str) -> Printed:
        wanted = self._request(argv, stdin, await self._known_version())
        answer, wrong = await self._told(wanted)
        job = answer.get("job_id")
        if isinstance(job, int) and job > 0:  # with a word of warning sometimes
            return Printed(f"{job}\n", "", 0)
        return Printed("", wrong, 1 if wrong else 0)

    def _request(self, argv: Sequence[str], stdin: str, version: int) -> Request:
        try:
            return request(argv, stdin, version)
        except NoSuchRequest as no:
            raise RequestRefused(Refusal(RefusalKind.UNAVAILABLE, str(no))) from None

    async def _known_version(self) -> int:
        """The newest that the daemon has, asked once."""
        if self._version is None:
            for version in range(NEWEST, OLDEST - 1, -1):
                reply = await self._sent(Request("GET", SLURM, "ping"), version)
                if reply.status != NOT_FOUND:
                    _parsed(reply)
                    self._version = version
                    break
            else:
                raise Unreachable(f"{self.name} knows no version of slurmrestd's API from v0.0.{OLDEST} on.")
        return self._version

    async def _cluster_name(self) -> str:
        """Newer versions say it with every answer; of older ones the database is asked, which may have several. The
        address, where nobody says it."""
        if not self._cluster:
            with suppress(CockpitError):
                answer, _ = await self._told(Request("GET", DATABASE, "clusters"))
                names = [each.get("name") for each in answer.get("clusters") or [] if isinstance(each, dict)]
                self._cluster = str(names[0]) if len(names) == 1 else ""
        return self._cluster or self.name

    async def _told(self, wanted: Request) -> tuple[Mapping[str, Any], str]:
        """The answer, and what is wrong by Slurm's own words; empty: nothing."""
        version = await self._known_version()
        reply = await self._sent(wanted, version)
        if reply.status == NOT_FOUND and not reply.body.lstrip().startswith(b"{"):  # of an address; of a job it is JSON
            return {}, _no_word(version)
        answer = _parsed(reply)
        return answer, "; ".join(_errors(answer)) or (f"HTTP status {reply.status}" if reply.status >= 400 else "")

    async def _sent(self, wanted: Request, version: int) -> http.Reply:
        body = b"" if wanted.body is None else msgspec.json.encode(wanted.body)
        headers = {**self._who(), **({"Content-Type": "application/json"} if body else {})}
        reply = await http.ask(self._place, wanted.method, self._target(wanted, version), headers, body)
        if reply.status in REFUSED:
            raise Unreachable(f"slurmrestd at {self.name} lets {self.user or 'you'} not in: {_text(reply)}.{_RENEW}")
        if reply.status == TOO_MANY:
            raise Unreachable(f"slurmrestd at {self.name} is asked too often (HTTP 429); it is asked again later.")
        return reply

    def _target(self, wanted: Request, version: int | None = None) -> str:
        query = f"?{urlencode(wanted.params)}" if wanted.params else ""
        number = self._version if version is None else version
        return f"/{wanted.area}/v0.0.{number}/{quote(wanted.path)}{query}"

    def _who(self) -> dict[str, str]:
        """Nobody is told on a unix socket: the kernel says it. Raises `Unreachable` for a token that has run out."""
        token = self._token()
        if not token:
            return {}
        ends = expiry(token)
        if ends is not None and ends <= self._now():
            raise Unreachable(f"The token for slurmrestd at {self.name} has run out.{_RENEW}")
        return {**({"X-SLURM-USER-NAME": self.user} if self.user else {}), "X-SLURM-USER-TOKEN": token}


_RENEW = " A new token comes from `scontrol token` on a login node; put it into SLURM_JWT, or the cluster's token_file."


def token_in(file: str, env: Mapping[str, str]) -> Callable[[], str]:
    """Out of the file, which may have `scontrol token`'s whole line, else out of SLURM_JWT. Raises `Unreachable` where
    the file cannot be read."""

    def read() -> str:
        if not file:
            return env.get("SLURM_JWT", "")
        try:
            return Path(file).read_text(encoding="ascii").strip().removeprefix("SLURM_JWT=")
        except (OSError, UnicodeDecodeError) as error:
            raise Unreachable(f"{file}: the token cannot be read: {getattr(error, 'strerror', error)}.") from None

    return read


def expiry(token: str) -> Millis | None:
    """When it runs out, as it says itself; None where it does not say, or is none."""
    import base64

    claims = token.split(".")[1:2]
    try:
        told = msgspec.json.decode(base64.urlsafe_b64decode(claims[0] + "=" * (-len(claims[0]) % 4)))
        return Millis(int(told["exp"]) * 1000)
    except (LookupError, ValueError, TypeError, msgspec.DecodeError):
        return None


def _no_word(version: int) -> str:
    return f"slurmrestd v0.0.{version} tells nothing of it"


def _parsed(reply: http.Reply) -> Mapping[str, Any]:
    try:
        found = msgspec.json.decode(reply.body)
    except (msgspec.DecodeError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Unreachable(f"slurmrestd answers with no JSON (HTTP status {reply.status}): {_text(reply)}")
    return found


def _errors(answer: Mapping[str, Any]) -> list[str]:
    """An entry without a number and a text is none: v0.0.38 says so of every change of an array."""
    found = []
    for each in answer.get("errors") or []:
        if isinstance(each, dict) and (each.get("error_number") or each.get("error_code") or each.get("error")):
            parts = (each.get("error"), each.get("description"))
            found.append(": ".join(dict.fromkeys(str(part) for part in parts if part)))
    return found


def _text(reply: http.Reply) -> str:
    return shlex.quote(" ".join(reply.body[:120].decode(errors="replace").split()))
