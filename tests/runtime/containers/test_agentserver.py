"""The way by which a replica's launcher reaches the others."""

from __future__ import annotations

import os
import socket
import struct
import threading

import pytest

from cockpit.runtime.containers.shim import agentserver


@pytest.mark.req("LA-10")
def test_a_client_that_finds_the_socket_is_never_refused(tmp_path, monkeypatch):
    """MPICH's launcher waits for ever for a process whose agent gave up."""
    shown = tmp_path / agentserver.SHOWN
    shown.mkdir()
    monkeypatch.chdir(tmp_path)
    done, refused = threading.Event(), []

    def knock():
        while not done.is_set():
            try:
                with socket.socket(socket.AF_UNIX) as asker:
                    asker.setblocking(False)  # nobody accepts
                    asker.connect(str(shown / "job-1.sock"))
            except (FileNotFoundError, BlockingIOError):
                continue
            except ConnectionRefusedError as error:
                refused.append(error)

    knocks = threading.Thread(target=knock)
    knocks.start()
    listeners = []
    for _ in range(400):
        listeners.append(agentserver._listen({"network": str(tmp_path), "hostname": "job-1"}))
        (shown / "job-1.sock").unlink()
    done.set()
    knocks.join()
    for listener in listeners:
        listener.close()
    assert refused == []
    assert os.listdir(shown) == []


def asked(head: bytes, fds: list[int], text: bytes = b"") -> tuple[str, tuple[int, ...]]:
    """The request that the server reads of these bytes with these descriptors attached."""
    asker, server = socket.socketpair()
    with asker, server:
        socket.send_fds(asker, [head], fds)
        asker.sendall(text)
        asker.shutdown(socket.SHUT_WR)
        return agentserver._request(server)


@pytest.mark.req("LA-10")
def test_a_request_is_its_text_and_three_streams():
    text, streams = asked(struct.pack("!I", 4), [0, 1, 2], b"true; and more")
    for fd in streams:
        os.close(fd)
    assert (text, len(streams)) == ("true", 3)


@pytest.mark.req("LA-10")
@pytest.mark.parametrize(("head", "streams"), [(b"\0\0\0", 3), (b"\0\0\0\4", 0), (b"\0\0\0\4", 2), (b"\0", 0)])
def test_an_invalid_request_is_refused(head: bytes, streams: int):
    with pytest.raises(ValueError, match="no request"):
        asked(head, list(range(streams)))
