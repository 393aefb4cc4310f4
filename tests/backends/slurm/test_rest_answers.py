"""What slurmrestd's answers to single requests mean."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from cockpit.backends.slurm.mapping.rest.questions import question
from cockpit.backends.slurm.wire.calls import Printed
from cockpit.backends.slurm.wire.rest import RestCommands, _errors, expiry
from cockpit.errors import RequestRefused, Unreachable
from cockpit.model.ids import Millis
from cockpit.model.refusal import RefusalKind

pytestmark = pytest.mark.req("SL-01", "TR-04")
SBATCH = ("sbatch", "--parsable", "--job-name=x")


class Daemon:
    """A slurmrestd of API version 0.0.38, with the answers that a test gives it."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, object]] = {}
        """Status and JSON, or text, by the last word of the path."""
        self.requests: list[tuple[str, str]] = []
        """First line and body."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next((int(line[16:]) for line in head.split("\r\n") if line.startswith("Content-Length: ")), 0)
        self.requests.append((head.split("\r\n")[0], (await reader.readexactly(length)).decode()))
        path = head.split(" ")[1].partition("?")[0]
        known = self.answers.get(path.rpartition("/")[2]) if "/v0.0.38/" in path else None
        status, answer = known or (404, "Unable find requested URL.")
        body = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
        writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        writer.close()


@pytest.fixture
async def daemon(tmp_path: Path) -> AsyncIterator[Daemon]:
    made = Daemon()
    made.answers["ping"] = 200, {}
    async with await asyncio.start_unix_server(made.serve, tmp_path / "rest.sock"):
        yield made


@pytest.fixture
def commands(daemon: Daemon, tmp_path: Path) -> RestCommands:
    return RestCommands(f"slurmrestd+unix://{tmp_path}/rest.sock", str, lambda: Millis(0))


WARNING = {"error_number": 1, "error": "a warning"}


@pytest.mark.parametrize(
    ("status", "answer", "printed"),
    [
        (200, {"job_id": 7, "errors": [WARNING]}, Printed("7\n", "", 0)),
        (200, {"job_id": 1}, Printed("1\n", "", 0)),
        (200, {"job_id": 0, "errors": [WARNING]}, Printed("", "a warning", 1)),
        (200, {"job_id": 0, "errors": []}, Printed("", "", 0)),
        (200, {"job_id": "7"}, Printed("", "", 0)),
        (500, {"errors": []}, Printed("", "HTTP status 500", 1)),
        (400, {}, Printed("", "HTTP status 400", 1)),
        (404, {"errors": [WARNING]}, Printed("", "a warning", 1)),
        (404, "no such page", Printed("", "slurmrestd v0.0.38 does not report it", 1)),
    ],
)
async def test_a_submission_has_an_id_or_slurms_errors(
    daemon: Daemon, commands: RestCommands, status: int, answer: object, printed: Printed
) -> None:
    daemon.answers["submit"] = status, answer
    assert await commands.run(SBATCH, seconds=5, stdin=b"#!/bin/sh\n", reading=False) == printed
    assert "#!/bin/sh" in daemon.requests[-1][1]


async def test_a_change_that_slurmrestd_lacks_is_refused_before_it_is_sent(
    daemon: Daemon, commands: RestCommands
) -> None:
    with pytest.raises(RequestRefused) as caught:
        await commands.run(("scontrol", "top", "7"), seconds=5, reading=False)
    assert caught.value.refusal.kind is RefusalKind.UNAVAILABLE
    assert all("/ping " in line for line, _ in daemon.requests)


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        ((200, {"clusters": [{"name": "lab"}]}), "lab"),
        ((200, {"clusters": [{"name": "lab"}, {"name": "other"}]}), ""),
        ((200, {"clusters": [7, {"name": "lab"}]}), "lab"),
        ((200, {"clusters": None}), ""),
        ((200, "nonsense"), ""),
        (None, ""),
    ],
)
async def test_the_name_of_a_cluster_is_that_of_the_only_one_in_its_database(
    daemon: Daemon, commands: RestCommands, answer: tuple[int, object] | None, name: str
) -> None:
    if answer is not None:
        daemon.answers["clusters"] = answer
    assert await commands._cluster_name() == (name or commands.name)
    asked = len(daemon.requests)
    assert await commands._cluster_name() == (name or commands.name)
    assert len(daemon.requests) == asked, "a name that is known, or was just not found, is not asked for again"


async def test_a_daemon_that_answers_nonsense_at_first_is_asked_again(daemon: Daemon, commands: RestCommands) -> None:
    daemon.answers["ping"] = 200, "still starting"
    with pytest.raises(Unreachable, match="does not answer with JSON"):
        await commands.run(("scontrol", "ping"), seconds=5)
    daemon.answers["ping"] = 200, {}
    assert await commands._known_version() == 38
    assert commands.absent


async def test_a_daemon_without_any_known_version_is_named(daemon: Daemon, commands: RestCommands) -> None:
    daemon.answers.clear()
    with pytest.raises(Unreachable, match=r"rest\.sock knows no version of slurmrestd's API from v0\.0\.36 on"):
        await commands.run(("scontrol", "ping"), seconds=5)


def token(claims: object) -> str:
    return f"head.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.signature.more"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (token({"exp": 7}), 7000),
        (token({"exp": "7"}), 7000),
        (token({"exp": 7, "padded": "x"}), 7000),
        (token({}), None),
        (token([7]), None),
        ("no token", None),
        ("a.%%%.c", None),
    ],
)
def test_when_a_token_expires_is_read_from_its_claims(text: str, expected: int | None) -> None:
    assert expiry(text) == expected


async def test_the_user_of_a_token_is_sent_with_it(daemon: Daemon, tmp_path: Path) -> None:
    commands = RestCommands("slurmrestd+http://ann@host:1", lambda: token({"exp": 2}), lambda: Millis(1_999))
    assert commands._credentials() == {"X-SLURM-USER-NAME": "ann", "X-SLURM-USER-TOKEN": token({"exp": 2})}
    late = RestCommands("slurmrestd+http://ann@host:1", lambda: token({"exp": 2}), lambda: Millis(2_000))
    with pytest.raises(Unreachable, match="has expired"):
        late._credentials()
    of_token = RestCommands("slurmrestd+http://host:1", lambda: "opaque", lambda: Millis(0))
    assert of_token._credentials() == {"X-SLURM-USER-TOKEN": "opaque"}
    assert (commands.name, commands.user) == ("host:1", "ann")


def test_only_entries_that_say_something_are_errors() -> None:
    entries = [{}, {"error_number": 0}, {"error_code": 3, "description": "d"}, {"error": "e", "description": "e"}, 7]
    assert _errors({"errors": entries}) == ["d", "e"]
    assert _errors({"errors": [{"error": "e", "description": "d"}]}) == ["e: d"]
    assert _errors({}) == []


class Files:
    """Programs of this machine."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def run(self, argv: Sequence[str], **_: object) -> Printed:
        self.asked.append(argv[0])
        return Printed("here", "", 0)

    async def shown(self, argv: Sequence[str], stdin: str) -> tuple[str, ...]:
        return ("here", *argv)


async def test_files_of_jobs_are_read_on_this_machine_where_there_is_a_socket(daemon: Daemon, tmp_path: Path) -> None:
    files = Files()
    address = f"slurmrestd+unix://{tmp_path}/rest.sock"
    commands = RestCommands(address, str, lambda: Millis(0), files)
    assert (await commands.run(("stat", "/x"), seconds=5)).stdout == "here"
    assert await commands.shown(("mkdir", "/x"), "") == ("here", "mkdir", "/x")
    await commands.run(("scontrol", "ping"), seconds=5)
    assert files.asked == ["stat"]
    with pytest.raises(RequestRefused):
        await RestCommands(address, str, lambda: Millis(0)).shown(("mkdir", "/x"), "")


@pytest.mark.req("SL-01")
@pytest.mark.parametrize(("version", "path"), [(39, "associations"), (40, "shares")])
def test_shares_are_asked_for_where_the_api_has_them(version: int, path: str) -> None:
    asked = question(["sshare"], version)
    assert asked is not None
    assert asked.path == path
