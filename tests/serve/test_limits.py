"""What a client can cost the server and other clients: little."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
from pathlib import Path

import asyncssh
import pytest

from cockpit.model.access_level import AccessLevel
from cockpit.model.ids import Millis
from cockpit.serve.keys import KeyFile
from cockpit.serve.limits import MOST_SOURCES, Bounds, ConnectionRate, Sessions
from cockpit.serve.ssh_server import SshServer
from tests.doubles.terminal import Terminal
from tests.e2e.cockpit_user import eventually
from tests.serve.served import ME, SECONDS, ServedCockpit
from tests.serve.test_ssh import programs_of

real = pytest.mark.real
pytestmark = pytest.mark.req("TR-08")
SEED = 20261128


def test_an_address_connects_in_bursts_and_then_at_the_rate() -> None:
    clock = [0.0]
    rate = ConnectionRate(Bounds(burst=3, per_second=0.5), lambda: clock[0])
    assert [rate.admits("a") for _ in range(5)] == [True, True, True, False, False]
    assert rate.admits("b"), "another address has its own"
    clock[0] = 2.0
    assert [rate.admits("a") for _ in range(2)] == [True, False]
    clock[0] = 1000.0
    assert [rate.admits("a") for _ in range(4)] == [True, True, True, False]


def test_addresses_that_come_once_cost_no_memory() -> None:
    rate = ConnectionRate(Bounds(), lambda: 0.0)
    for number in range(MOST_SOURCES * 2):
        rate.admits(str(number))
    assert len(rate._buckets) == MOST_SOURCES


async def test_sessions_are_counted_by_user() -> None:
    sessions = Sessions(Bounds(sessions=3, sessions_per_user=2))
    assert [sessions.open("ann") == "" for _ in range(3)] == [True, True, False]
    assert [sessions.open("bob") == "" for _ in range(2)] == [True, False]
    assert not sessions.empty.is_set()
    for user in ("ann", "ann", "bob"):
        sessions.close(user)
    assert (len(sessions), sessions.empty.is_set(), sessions.open("bob")) == (0, True, "")


@real
async def test_a_user_has_only_so_many_sessions(fresh: ServedCockpit) -> None:
    key = fresh.key("own", f'user="{ME}"')
    fresh.start("--sessions", "2")
    async with fresh.connect(key) as connection:
        open_ones = [await connection.create_process("jobs --watch", encoding=None) for _ in range(2)]
        await asyncio.to_thread(fresh.logged, "(?s)runs jobs.*runs jobs")
        refused = await asyncio.wait_for(connection.run("jobs"), SECONDS)
        assert (refused.exit_status, "in use" in refused.stderr) == (75, True)
        open_ones[0].close()
        await asyncio.wait_for(open_ones[0].wait_closed(), SECONDS)
        await asyncio.to_thread(eventually, lambda: fresh.ssh(key, "jobs").returncode == 0)


@real
async def test_a_client_that_reads_nothing_holds_up_only_its_own_program(served: ServedCockpit, own: Path) -> None:
    """`schema` writes more than the window and the pipe take; a client with a tiny window takes none of it."""
    async with served.connect(own) as slow:
        process = await slow.create_process("schema", encoding=None, window=1024)
        process.stdout.channel.pause_reading()
        before = memory_of(served)
        for _ in range(3):
            done = await asyncio.to_thread(served.ssh, own, "jobs")
            assert done.returncode == 0
        assert memory_of(served) - before < 8 << 20
        process.stdout.channel.resume_reading()
        whole = await asyncio.wait_for(process.stdout.read(), SECONDS)
        assert whole == served.user.ok("schema").encode()


@real
async def test_a_client_that_types_without_end_is_stopped_and_costs_no_memory(served: ServedCockpit, own: Path) -> None:
    async with served.connect(own) as flood:
        # It reads no input, so that all of it waits.
        process = await flood.create_process("jobs --watch", encoding=None)
        assert await asyncio.wait_for(process.stdout.readline(), SECONDS)
        before = memory_of(served)
        process.stdin.write(b"x" * (32 << 20))
        assert (await asyncio.to_thread(served.ssh, own, "jobs")).returncode == 0
        assert memory_of(served) - before < 8 << 20


def memory_of(served: ServedCockpit) -> int:
    return int(Path(f"/proc/{served.process.pid}/statm").read_text().split()[1]) * 4096


@real
async def test_variables_without_end_cost_no_memory(served: ServedCockpit, own: Path) -> None:
    env = {f"V{number}": "x" * 10_000 for number in range(500)}
    before = await asyncio.to_thread(memory_of, served)
    async with served.connect(own) as connection:
        done = await asyncio.wait_for(connection.run("jobs", env=env), SECONDS)
        assert done.exit_status == 0
        assert await asyncio.to_thread(memory_of, served) - before < 4 << 20


@real
async def test_a_terminal_at_which_nobody_types_is_closed(fresh: ServedCockpit) -> None:
    """This client answers none of the program's questions, as a terminal would, so that not a byte is ever typed."""
    key = fresh.key("own", f'user="{ME}"')
    await asyncio.to_thread(fresh.start, "--idle", "1s")
    async with fresh.connect(key) as connection:
        process = await connection.create_process(encoding=None, term_type="xterm-256color")
        shown = await asyncio.wait_for(process.stdout.read(), SECONDS)
        told = await asyncio.wait_for(process.stderr.read(), SECONDS)
    assert b"closed after 1 second without a key" in shown + told


@real
@pytest.mark.parametrize("seed", range(SEED, SEED + 12))
def test_random_bytes_before_the_key_exchange_harm_nobody(fuzzed: ServedCockpit, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(4):
        with socket.create_connection(("127.0.0.1", fuzzed.port), timeout=SECONDS) as client:
            beginning = chance.choice(BEGINNINGS)
            client.sendall(beginning + chance.randbytes(chance.randrange(4000)))
            client.shutdown(socket.SHUT_WR)
            while client_data(client):
                pass
    assert fuzzed.process.poll() is None
    assert "Traceback" not in fuzzed.log


BEGINNINGS = [b"", b"SSH-2.0-x\r\n", b"SSH-1.5-x\r\n", b"GET / HTTP/1.1\r\n\r\n", b"SSH-2.0-" + b"x" * 9000]


def client_data(client: socket.socket) -> bytes:
    try:
        return client.recv(65536)
    except ConnectionError:
        return b""


@real
@pytest.mark.parametrize("seed", range(SEED, SEED + 12))
async def test_random_packets_after_the_login_harm_nobody(served: ServedCockpit, own: Path, seed: int) -> None:
    chance = random.Random(seed)
    connection = await served.connect(own)
    process = await connection.create_process("jobs --watch", encoding=None)
    assert await asyncio.wait_for(process.stdout.readline(), SECONDS)
    for _ in range(20):
        # Messages of channels and of the connection, with any content.
        kind = chance.choice([*range(80, 101), chance.randrange(1, 256)])
        connection.send_packet(kind, chance.randbytes(chance.randrange(60)))
    connection.abort()
    async with served.connect(own) as other:
        assert (await asyncio.wait_for(other.run("jobs"), SECONDS)).exit_status == 0
    assert served.process.poll() is None


async def test_who_does_not_log_in_is_disconnected(tmp_path: Path) -> None:
    keys = KeyFile(tmp_path / "authorized_keys")
    key = asyncssh.generate_private_key("ssh-ed25519")
    bounds = Bounds(login_seconds=0.2)
    server = SshServer(keys, key, AccessLevel.OWN, bounds, now=lambda: Millis(0), report=print)
    port = await server.listen("127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"SSH-2.0-silent\r\n")
    assert await asyncio.wait_for(reader.read(), SECONDS), "it says who it is, and then hangs up"
    writer.close()
    await server.drain()
    await server.close()


@real
async def test_many_keys_in_vain_end_the_connection(served: ServedCockpit) -> None:
    keys = [asyncssh.generate_private_key("ssh-ed25519") for _ in range(30)]
    with pytest.raises((asyncssh.Error, OSError), match=r"Too many keys|lost|Permission"):
        await asyncio.wait_for(served.connect(served.folder / "own", client_keys=keys), SECONDS)


@real
def test_a_program_that_crashes_ends_its_own_session_alone(served: ServedCockpit, own: Path) -> None:
    home = {"PATH": "/usr/bin:/bin", "HOME": str(served.folder)}
    with Terminal(served.words(own, "-tt"), home) as one:
        one.until(lambda text: "waiting" in text)
        (first,) = programs_of(served)
        with Terminal(served.words(own, "-tt"), home) as other:
            other.until(lambda text: "waiting" in text)
            os.kill(first, signal.SIGKILL)
            one.to_the_end()
            other.press("?")
            other.until(lambda text: "Show what every key does" in text)
    eventually(lambda: not programs_of(served))
