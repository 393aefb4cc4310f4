"""The way by which a replica's launcher reaches the others."""

from __future__ import annotations

import os
import socket
import threading

import pytest

from cockpit.runtime.containers.shim import agentserver


@pytest.mark.req("LA-10")
def test_who_finds_it_is_never_refused(tmp_path, monkeypatch):
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
