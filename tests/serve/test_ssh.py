"""What a person and a script have of `cockpit serve`, through real clients."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
from pathlib import Path

import asyncssh
import pytest

from cockpit.headless.exitcodes import ExitCode
from cockpit.model.access_level import AccessLevel
from cockpit.serve.accounts import own_account, session_environment
from tests.doubles.terminal import Terminal
from tests.e2e.cockpit_user import eventually
from tests.serve.served import ME, SECONDS, ServedCockpit

pytestmark = [pytest.mark.real, pytest.mark.req("TR-08")]


def test_a_command_runs_with_its_output_errors_and_exit_code(served: ServedCockpit, own: Path) -> None:
    done = served.ssh(own, "jobs", "-o", "json")
    assert (done.returncode, done.stderr) == (0, b"")
    assert [row["name"] for row in json.loads(done.stdout)["rows"]] == ["waiting"]
    assert served.ssh(own, "cockpit", "jobs").returncode == 0, "scripts that also run locally name the program"
    missing = served.ssh(own, "job", "77")
    assert (missing.returncode, missing.stdout) == (ExitCode.NOT_FOUND, b"")
    assert b"no job 77" in missing.stderr


def test_a_job_file_comes_through_standard_input(served: ServedCockpit, own: Path) -> None:
    spec = {"name": "piped", "hold": True, "command": "true", "output": str(served.folder / "out")}
    done = served.ssh(own, "submit", "-", stdin=json.dumps(spec).encode())
    assert done.returncode == 0, done.stderr
    job = done.stdout.split()[-1].decode()
    assert served.user.row("job", job)["name"] == "piped"
    assert served.ssh(own, "cancel", job).returncode == 0


def test_a_terminal_opens_the_cockpit_follows_its_size_and_ends_with_it(served: ServedCockpit, own: Path) -> None:
    with Terminal(served.words(own, "-tt"), {"PATH": "/usr/bin:/bin", "HOME": str(served.folder)}) as terminal:
        terminal.until(lambda text: "waiting" in text)
        terminal.resize(70, 20)
        terminal.until(lambda text: "waiting" in text and max(map(len, text.splitlines())) == 70)
        terminal.press("q")
        assert terminal.process.wait(SECONDS) == 0


@pytest.mark.parametrize("words", [(), ("overview",)])
def test_without_a_terminal_the_figures_are_printed(served: ServedCockpit, own: Path, words: tuple[str, ...]) -> None:
    done = served.ssh(own, *words, options=("-T",))
    assert done.returncode == 0
    assert b"\x1b" not in done.stdout
    assert done.stdout == served.user.ok("overview").encode()


async def test_signals_reach_the_program_and_its_end_the_client(served: ServedCockpit, own: Path) -> None:
    async with served.connect(own) as connection:
        process = await connection.create_process("jobs --watch", encoding=None)
        assert await asyncio.wait_for(process.stdout.readline(), SECONDS)
        process.send_signal("KILL")
        await asyncio.wait_for(process.wait(), SECONDS)
        assert process.exit_signal[0] == "KILL"
        process = await connection.create_process("jobs --watch", encoding=None)
        assert await asyncio.wait_for(process.stdout.readline(), SECONDS)
        process.send_signal("INT")
        await asyncio.wait_for(process.wait(), SECONDS)
        assert process.exit_status == ExitCode.INTERRUPTED


async def test_a_client_that_disappears_leaves_no_program(served: ServedCockpit, own: Path) -> None:
    connection = await served.connect(own)
    process = await connection.create_process("jobs --watch", encoding=None, term_type="xterm")
    assert await asyncio.wait_for(process.stdout.readline(), SECONDS)
    (pid,) = programs_of(served)
    connection.abort()
    await asyncio.to_thread(eventually, lambda: pid not in programs_of(served))


def programs_of(served: ServedCockpit) -> list[int]:
    """The processes of the server's sessions."""
    children = Path(f"/proc/{served.process.pid}/task/{served.process.pid}/children").read_text()
    return [pid for pid in map(int, children.split()) if pid != served.forks_from]


async def test_only_three_variables_of_the_client_are_passed_on(served: ServedCockpit, own: Path) -> None:
    env = {
        "LANG": "en_GB.UTF-8",
        "COLORTERM": "truecolor",
        "COCKPIT_ACCESS": "admin",
        "LD_PRELOAD": "/x",
        "EDITOR": "sh",
    }
    async with served.connect(own) as connection:
        process = await connection.create_process("jobs --watch", encoding=None, env=env, term_type="screen-256color")
        assert await asyncio.wait_for(process.stdout.readline(), SECONDS)
        passed = environment_of(*programs_of(served))
    assert (passed["LANG"], passed["COLORTERM"], passed["TERM"]) == ("en_GB.UTF-8", "truecolor", "screen-256color")
    assert passed["COCKPIT_ACCESS"] == "own"
    assert {"LD_PRELOAD", "EDITOR", "SSH_AUTH_SOCK", "SSH_CONNECTION"} & passed.keys() == set()


def environment_of(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(line.split("=", 1) for line in lines if line)


@pytest.mark.parametrize("value", ["../../x", "a b", "x" * 65, "\x1b[31m", ""])
def test_a_variable_with_another_value_is_left_out(value: str) -> None:
    env = session_environment(own_account(), AccessLevel.OWN, {"LANG": value, "TERM": value}, {})
    assert (env["LANG"], "TERM" in env) == ("C.UTF-8", False)


async def copied(connection: asyncssh.SSHClientConnection, folder: str) -> None:
    """Copy a file of the server. Raises `OSError` also if the client takes the refusal for a copy of no file."""
    await asyncssh.scp((connection, "/etc/hostname"), folder)
    if not any(each.name == "hostname" for each in os.scandir(folder)):
        raise FileNotFoundError("no file was copied")


FORBIDDEN = {
    "sftp": lambda connection, _: connection.start_sftp_client(),
    "scp": copied,
    "x11": lambda connection, _: connection.create_process("jobs", x11_forwarding=True, x11_display="127.0.0.1:0"),
    "local port": lambda connection, _: connection.open_connection("127.0.0.1", 22),
    "remote port": lambda connection, _: connection.start_server(lambda *_: None, "127.0.0.1", 0),
    "local socket": lambda connection, _: connection.open_unix_connection("/run/x"),
    "remote socket": lambda connection, folder: connection.start_unix_server(lambda *_: None, f"{folder}/socket"),
    "tunnel": lambda connection, _: connection.create_tun(asyncssh.SSHTunTapSession),
    "subsystem": lambda connection, _: connection.create_process(subsystem="netconf"),
}


@pytest.mark.parametrize("what", FORBIDDEN)
async def test_nothing_but_sessions_is_served(served: ServedCockpit, own: Path, what: str) -> None:
    async with served.connect(own) as connection:
        with pytest.raises((asyncssh.Error, asyncssh.ChannelListenError, OSError)):
            await asyncio.wait_for(FORBIDDEN[what](connection, str(served.folder)), SECONDS)


def test_the_host_key_is_made_once_for_its_owner_alone(fresh: ServedCockpit) -> None:
    key = fresh.key("own", f'user="{ME}"')
    fresh.start()
    made = (fresh.folder / "host/key").read_bytes()
    assert stat.S_IMODE((fresh.folder / "host/key").stat().st_mode) == 0o600
    assert fresh.ssh(key, "jobs").returncode == 0
    fresh.stop()
    fresh.start()
    assert (fresh.folder / "host/key").read_bytes() == made
    assert fresh.ssh(key, "jobs").returncode == 0
    fresh.stop()
    (fresh.folder / "host/key").chmod(0o644)
    refused = fresh.user.run("serve", "--listen", "127.0.0.1:0", "--host-key", str(fresh.folder / "host/key"))
    assert refused.returncode != 0
    assert b"chmod 600" in refused.stderr


def test_a_log_without_a_reader_stops_no_session(fresh: ServedCockpit) -> None:
    key = fresh.key("own", f'user="{ME}"')
    fresh.start()
    assert fresh.process.stderr is not None
    fresh.process.stderr.close()
    fresh.process.stderr = None
    for _ in range(2):
        assert fresh.ssh(key, "jobs").returncode == 0


def test_a_stop_ends_sessions_with_a_sentence(fresh: ServedCockpit) -> None:
    key = fresh.key("own", f'user="{ME}"')
    fresh.start()
    with Terminal(fresh.words(key, "-tt"), {"PATH": "/usr/bin:/bin", "HOME": str(fresh.folder)}) as terminal:
        terminal.until(lambda text: "Jobs" in text)
        assert fresh.stop() == 0
        terminal.to_the_end()
        assert b"The server stops. Jobs continue." in terminal.written_since(0)
    assert "the server has stopped" in fresh.log


async def test_a_stop_waits_for_sessions_where_it_is_told_to(fresh: ServedCockpit) -> None:
    key = fresh.key("own", f'user="{ME}"')
    fresh.start("--drain", "1h")
    async with fresh.connect(key) as connection:
        process = await connection.create_process("submit -", encoding=None)
        await asyncio.to_thread(fresh.logged, "runs submit")
        fresh.process.terminate()
        await asyncio.to_thread(eventually, lambda: not listens(fresh.port))
        spec = {"name": "late", "hold": True, "command": "true", "output": str(fresh.folder / "out")}
        process.stdin.write(json.dumps(spec).encode())
        process.stdin.write_eof()
        await asyncio.wait_for(process.wait(), SECONDS)
        assert process.exit_status == 0
    assert await asyncio.to_thread(fresh.process.wait, SECONDS) == 0


def listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0
