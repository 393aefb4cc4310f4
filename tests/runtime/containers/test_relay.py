"""The forwarded ports of a container's localhost."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

import pytest

from cockpit.runtime.containers.shim import relay

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.req("LA-10")


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(20)
        yield listener


@pytest.fixture
def carried(server: socket.socket) -> Iterator[tuple[socket.socket, socket.socket]]:
    """The client's end and the server's end of a forwarded connection, and the forwarding between them."""
    client, here = socket.socketpair()
    forwarding = threading.Thread(target=carry, args=(here, server.getsockname()))
    forwarding.start()
    there, _ = server.accept()
    for end in (client, there):
        end.settimeout(20)
    yield client, there
    client.close()
    there.close()
    forwarding.join(20)
    assert not forwarding.is_alive()


def carry(here: socket.socket, address: tuple[str, int]) -> None:
    with here:
        relay._carry(here, address)


def received(end: socket.socket) -> bytes:
    return b"".join(iter(lambda: end.recv(1 << 16), b""))


def test_both_directions_are_forwarded(carried):
    client, there = carried
    client.sendall(b"ask")
    assert there.recv(9) == b"ask"
    there.sendall(b"answer")
    assert client.recv(9) == b"answer"


def test_an_answer_arrives_after_the_end_of_the_request(carried):
    client, there = carried
    client.sendall(b"ask")
    client.shutdown(socket.SHUT_WR)
    assert received(there) == b"ask"
    answer = bytes(range(256)) * 1000
    sending = threading.Thread(target=lambda: (there.sendall(answer), there.shutdown(socket.SHUT_WR)))
    sending.start()
    assert received(client) == answer
    sending.join()


def test_a_program_that_has_not_started_yet_is_awaited_for_a_time(server, monkeypatch):
    address = server.getsockname()
    server.close()
    now = iter([0, 1, 299, 301])
    waits: list[float] = []
    monkeypatch.setattr(relay.time, "monotonic", lambda: next(now))
    monkeypatch.setattr(relay.time, "sleep", waits.append)
    with pytest.raises(ConnectionRefusedError):
        relay._connect(address)
    assert len(waits) == 2
