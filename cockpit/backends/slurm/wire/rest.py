"""Answers Slurm's commands by requests to slurmrestd, so that the rest of the backend needs no commands.

Through a unix socket slurmrestd knows the user from the kernel; over HTTP from a JSON web token (`scontrol token`).
A command that slurmrestd cannot answer or do is refused, with the way by which it can be done.

A read command goes through these steps; a changing command through the same with `mapping.rest.acts`:

1. Find the newest version of the API that the daemon has, once (`_known_version`).
2. Translate the argument vector to a GET request (`mapping.rest.questions`). No translation: exit code 1.
3. Send it. Errors in the JSON answer become the text on stderr, with exit code 1.
4. Convert the JSON to the records that the command would print.
"""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from cockpit.backends.base import ShellSession, refuse_absent
from cockpit.backends.slurm.mapping.rest.acts import (
    NO_FILES,
    NO_SHELL,
    NoSuchRequest,
    RestRequest,
    absent_in,
    request,
)
from cockpit.backends.slurm.mapping.rest.questions import DATABASE, OLDEST_SHARES, SLURM, NoAnswer, question
from cockpit.backends.slurm.wire import http
from cockpit.backends.slurm.wire.calls import DATABASE_PROGRAMS, AnswerLost, Commands, Garbled, Printed
from cockpit.backends.slurm.wire.database import AWAY_MS
from cockpit.errors import CockpitError, RequestRefused, Unreachable
from cockpit.model.asking import ShellRequest
from cockpit.model.ids import Millis
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.runtime.http_client import HttpAnswer

OLDEST, NEWEST = 36, 46
"""Oldest and newest version of the API that are tried, the newest first. Each daemon has several; one is among them."""
FILES = ("stat", "sh", "id", "mkdir")
"""Programs that read and prepare jobs' files. They run here: a machine with the socket mostly has the files as well."""
NAME_SECONDS = 3.0
"""Time limit of the question for the cluster's name."""
NOT_FOUND, REFUSED, TOO_MANY = 404, (401, 403), 429
NOTHING_FOUND = 9003
"""Slurm's number of an error (ESLURM_REST_EMPTY_RESULT) that v0.0.38 has beside each empty list of the database."""


class RestCommands:
    """Translates Slurm's commands to requests of slurmrestd; implements `wire.calls.Commands`."""

    on_this_disk = False

    @property
    def absent(self) -> Mapping[str, str]:
        """What slurmrestd lacks; for what depends on the version of its API, once this is known."""
        lacking = absent_in(self._version)
        return lacking if self._files is not None else {**lacking, "logs": NO_FILES, "search_log": NO_FILES}

    @property
    def database_programs(self) -> Collection[str]:
        """Programs for which slurmrestd asks the database: sshare too, until its API has shares."""
        has_shares = self._version is not None and self._version >= OLDEST_SHARES
        return DATABASE_PROGRAMS if has_shares else DATABASE_PROGRAMS | {"sshare"}

    def __init__(
        self, address: str, token: Callable[[], str], now: Callable[[], Millis], files: Commands | None = None
    ) -> None:
        """`token`: called for each request, since tokens expire; an empty token is not sent. `files`: runs the programs
        of `FILES`; None: they cannot be run. Raises `SpecErrors` for a wrong address."""
        self._place = http.place_of(address)
        self.name = self._place.socket or f"{self._place.host}:{self._place.port}"
        self.user = self._place.user
        self._token, self._now, self._files = token, now, files
        self._version: int | None = None
        self._cluster = ""
        self._nameless_until = Millis(0)

    async def run(self, argv: Sequence[str], *, seconds: float, stdin: bytes = b"", reading: bool = True) -> Printed:
        if argv[0] in FILES and self._files is not None:
            return await self._files.run(argv, seconds=seconds, stdin=stdin, reading=reading)
        try:
            async with asyncio.timeout(seconds):
                # One time limit for all requests of a command: the search for the version, the cluster's name and the
                # question itself.
                return await (self._read(argv) if reading else self._act(argv, stdin.decode(errors="replace")))
        except TimeoutError:
            raise AnswerLost(f"slurmrestd at {self.name} has not answered within {seconds:g} s.") from None
        except OSError as error:
            reason = error.strerror or str(error) or "the connection broke"
            # After any other error the request may have arrived, so a change may have taken effect.
            never_began = isinstance(error, ConnectionRefusedError | FileNotFoundError | PermissionError)
            error_type = Unreachable if never_began else AnswerLost
            raise error_type(f"slurmrestd at {self.name} cannot be reached: {reason}.") from None

    async def shown(self, argv: Sequence[str], stdin: str) -> tuple[str, ...]:
        """Return the curl command that would send the same request, without the token."""
        if argv[0] in FILES and self._files is not None:
            return await self._files.shown(argv, stdin)
        wanted = self._request(argv, stdin, await self._known_version())
        where = ("--unix-socket", self._place.socket) if self._place.socket else ()
        body = () if wanted.body is None else ("--json", json.dumps(wanted.body, ensure_ascii=False))
        return ("curl", *where, "-X", wanted.method, f"{self._place.url}{self._target(wanted)}", *body)

    async def open_shell(self, argv: Sequence[str], request: ShellRequest) -> ShellSession:
        del argv, request
        refuse_absent(NO_SHELL)

    async def close(self) -> None:
        """Do nothing: no connection is open between two requests."""

    async def _read(self, argv: Sequence[str]) -> Printed:
        """Answer a reading command; the steps are those of the module's docstring."""
        version = await self._known_version()  # step 1
        query = question(argv, version, await self._cluster_name() if argv[-1] == "config" else "")  # step 2
        if query is None:
            return Printed("", _not_reported(version), 1)
        answer, errors = await self._answer(RestRequest("GET", query.area, query.path, params=query.params))  # step 3
        if errors:
            return Printed("", errors, 1)
        try:
            return Printed("", "", 0, verified=True, records=query.read(answer))  # step 4
        except NoAnswer as missing:
            raise Garbled("slurmrestd", str(missing)) from None

    async def _act(self, argv: Sequence[str], stdin: str) -> Printed:
        wanted = self._request(argv, stdin, await self._known_version())
        answer, errors = await self._answer(wanted)
        job = answer.get("job_id")
        if isinstance(job, int) and job > 0:  # the job was submitted, even if there are warnings among the errors
            return Printed(f"{job}\n", "", 0)
        return Printed("", errors, 1 if errors else 0)

    def _request(self, argv: Sequence[str], stdin: str, version: int) -> RestRequest:
        try:
            return request(argv, stdin, version)
        except NoSuchRequest as no:
            raise RequestRefused(Refusal(RefusalKind.UNAVAILABLE, str(no))) from None

    async def _known_version(self) -> int:
        """Return the newest version of the API that the daemon has, found once by pinging."""
        if self._version is None:
            # Newest first: later versions have more fields, such as shares (v0.0.40).
            # At most eleven pings, and only once: a running daemon does not change its versions.
            for version in range(NEWEST, OLDEST - 1, -1):
                reply = await self._send(RestRequest("GET", SLURM, "ping"), version)
                # slurmrestd answers 404 for a version of its API that it lacks; a proxy's page is no JSON and raises
                if reply.status != NOT_FOUND:
                    _decode_object(reply)
                    self._version = version
                    break
            else:
                raise Unreachable(f"{self.name} knows no version of slurmrestd's API from v0.0.{OLDEST} on.")
        return self._version

    async def _cluster_name(self) -> str:
        """Return the cluster's name out of the accounting database, for versions whose answers do not have it.

        The address, when the database does not answer within `NAME_SECONDS` or has several clusters. The answer to the
        question must not wait for a database that it does not need; for `AWAY_MS` the name is not asked for again.
        """
        if not self._cluster and self._now() >= self._nameless_until:
            self._nameless_until = Millis(self._now() + AWAY_MS)
            with suppress(CockpitError, TimeoutError):
                async with asyncio.timeout(NAME_SECONDS):
                    answer, _ = await self._answer(RestRequest("GET", DATABASE, "clusters"))
                names = [each.get("name") for each in answer.get("clusters") or [] if isinstance(each, dict)]
                self._cluster = str(names[0]) if len(names) == 1 else ""
        return self._cluster or self.name

    async def _answer(self, wanted: RestRequest) -> tuple[Mapping[str, Any], str]:
        """Send a request; return the decoded answer and Slurm's error messages, empty when there are none."""
        version = await self._known_version()
        reply = await self._send(wanted, version)
        # 404 for an unknown path has a plain text; 404 for an unknown job has JSON with Slurm's own message.
        if reply.status == NOT_FOUND and not reply.body.lstrip().startswith(b"{"):
            return {}, _not_reported(version)
        answer = _decode_object(reply)
        return answer, "; ".join(_errors(answer)) or (f"HTTP status {reply.status}" if reply.status >= 400 else "")

    async def _send(self, wanted: RestRequest, version: int) -> HttpAnswer:
        """Send a request. Raises `Unreachable` when slurmrestd refuses the user or has too many requests."""
        body = b"" if wanted.body is None else msgspec.json.encode(wanted.body)
        headers = {**self._credentials(), **({"Content-Type": "application/json"} if body else {})}
        reply = await http.ask(self._place, wanted.method, self._target(wanted, version), headers, body)
        # Not a refusal of the one request: a wrong token makes every request fail, and a new one mends them all without
        # a restart.
        if reply.status in REFUSED:
            raise Unreachable(f"slurmrestd at {self.name} refuses {self.user or 'you'}: {_text(reply)}.{_RENEW}")
        if reply.status == TOO_MANY:
            raise Unreachable(
                f"slurmrestd at {self.name} receives too many requests (HTTP 429); cockpit tries again later."
            )
        return reply

    def _target(self, wanted: RestRequest, version: int | None = None) -> str:
        query = f"?{urlencode(wanted.params)}" if wanted.params else ""
        number = self._version if version is None else version
        return f"/{wanted.area}/v0.0.{number}/{quote(wanted.path)}{query}"

    def _credentials(self) -> dict[str, str]:
        """Return the headers with user and token; none for a unix socket, where the kernel identifies the user.

        Raises `Unreachable` for an expired token.
        """
        token = self._token()
        if not token:
            return {}
        ends = expiry(token)
        if ends is not None and ends <= self._now():
            raise Unreachable(f"The token for slurmrestd at {self.name} has expired.{_RENEW}")
        return {**({"X-SLURM-USER-NAME": self.user} if self.user else {}), "X-SLURM-USER-TOKEN": token}


_RENEW = " A new token comes from `scontrol token` on a login node; put it into SLURM_JWT, or the cluster's token_file."


def token_in(file: str, env: Mapping[str, str]) -> Callable[[], str]:
    """Return a function that reads the token from the file, or from SLURM_JWT when no file is given.

    The file has the token alone or the whole line of `scontrol token`. The function raises `Unreachable` when it cannot
    be read.
    """

    def read() -> str:
        if not file:
            return env.get("SLURM_JWT", "")
        try:
            return Path(file).read_text(encoding="ascii").strip().removeprefix("SLURM_JWT=")
        except (OSError, UnicodeDecodeError) as error:
            raise Unreachable(f"{file}: the token cannot be read: {getattr(error, 'strerror', error)}.") from None

    return read


def expiry(token: str) -> Millis | None:
    """Return when the JSON web token expires (claim `exp`); None when it has no such claim or is not such a token."""
    import base64

    claims = token.split(".")[1:2]
    try:
        # The encoding of JWT leaves out the padding, which the decoder requires.
        payload = msgspec.json.decode(base64.urlsafe_b64decode(claims[0] + "=" * (-len(claims[0]) % 4)))
        return Millis(int(payload["exp"]) * 1000)
    except (LookupError, ValueError, TypeError, msgspec.DecodeError):
        return None


def _not_reported(version: int) -> str:
    return f"slurmrestd v0.0.{version} does not report it"


def _decode_object(reply: HttpAnswer) -> Mapping[str, Any]:
    """Decode a JSON object. Raises `Unreachable` for anything else."""
    try:
        answer = msgspec.json.decode(reply.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise Unreachable(f"slurmrestd does not answer with JSON (HTTP status {reply.status}): {_text(reply)}")
    return answer


def _errors(answer: Mapping[str, Any]) -> list[str]:
    """Return the messages of the answer's errors.

    An entry without a number and a text is no error: v0.0.38 adds one to its answer to every change of an array.
    An empty list is none either.
    """
    messages = []
    for each in answer.get("errors") or []:
        if not isinstance(each, dict) or each.get("error_number") == NOTHING_FOUND:
            continue
        if each.get("error_number") or each.get("error_code") or each.get("error"):
            parts = (each.get("error"), each.get("description"))
            messages.append(": ".join(dict.fromkeys(str(part) for part in parts if part)))
    return messages


def _text(reply: HttpAnswer) -> str:
    """Return the beginning of the reply, quoted for an error message."""
    return shlex.quote(" ".join(reply.body[:120].decode(errors="replace").split()))
