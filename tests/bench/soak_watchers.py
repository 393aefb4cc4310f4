"""Many who watch a long queue: what they cost the engine, what a command waits for beside them, and what stays.

`python -m tests.bench.soak_watchers [--jobs 100000] [--watchers 50]` prints one line of JSON. It starts an engine of
its own; jobs are held, so that nothing runs.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import msgspec

from cockpit.backends.drive import drive
from cockpit.backends.local.backend import LocalBackend
from cockpit.backends.local.control import LocalEngineControl
from cockpit.backends.local.start import EngineDialer
from cockpit.config.places import paths
from cockpit.model.ids import JobId
from cockpit.model.spec import Array, PriorityWord
from tests.builders import a_spec

TASKS = 1000
LOAD_SECONDS = 6.0


class Watcher:
    """Follows all rows, and reads as fast as they come."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)
        self.bytes = 0
        self.loaded = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        asked = {"id": 1, "op": "subscribe", "args": {"first": 200, "brief": True}}
        body = msgspec.msgpack.encode(asked)
        self._socket.sendall(struct.pack(">I", len(body)) + body)

    def _read(self) -> None:
        seen = b""
        while True:
            try:
                data = self._socket.recv(1 << 20)
            except OSError:
                return
            if not data:
                return
            self.bytes += len(data)
            seen = seen[-16:] + data
            if b"loaded" in seen:
                self.loaded.set()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()


def rss_mib(pid: int) -> float:
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def timed(*words: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "cockpit.cli", *words], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--watchers", type=int, default=50)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cockpit-", dir="/var/tmp") as folder:
        for variable, name in (
            ("HOME", "h"),
            ("XDG_RUNTIME_DIR", "r"),
            ("XDG_STATE_HOME", "s"),
            ("XDG_CONFIG_HOME", "c"),
        ):
            Path(folder, name).mkdir(mode=0o700)
            os.environ[variable] = f"{folder}/{name}"
        os.environ["COCKPIT_CLUSTER"] = "local"
        places = paths(os.geteuid(), os.environ)
        control = LocalEngineControl(places, system=False)
        try:
            sys.stdout.write(json.dumps(measured(places.address, places, args)) + "\n")
        finally:
            pid = control.status().pid
            if pid is not None:
                os.kill(pid, 9)


def measured(address: object, places: object, args: argparse.Namespace) -> dict[str, float]:
    backend = LocalBackend(EngineDialer(places).reach, patience=lambda: 600.0)  # type: ignore[arg-type] # EnginePaths
    for number in range(args.jobs // TASKS):
        spec = a_spec(f"many-{number}", hold=True, array=Array(tuple(range(TASKS))))
        drive(backend.submit([spec]))
    pid = backend.open().hello.pid
    figures: dict[str, float] = {"jobs": args.jobs, "watchers": args.watchers}
    drive(backend.jobs())
    figures["rss_before_mib"] = round(rss_mib(pid))
    figures["filter_alone_s"] = round(timed("jobs", "--filter", "id:5"), 2)
    figures["explain_alone_s"] = round(timed("explain", "5"), 2)
    began = time.perf_counter()
    watchers = [Watcher(str(address)) for _ in range(args.watchers)]
    for each in watchers:
        assert each.loaded.wait(300)
    figures["all_loaded_s"] = round(time.perf_counter() - began, 1)
    stop = threading.Event()
    turns = 0

    def churn() -> None:
        nonlocal turns
        own = LocalBackend(EngineDialer(places).reach, patience=lambda: 600.0)  # type: ignore[arg-type] # EnginePaths
        while not stop.is_set():
            array = JobId(1 + TASKS * (turns % (args.jobs // TASKS)))
            word = PriorityWord.URGENT if turns % 2 else PriorityWord.NORMAL
            drive(own.set_priority(array, word))
            turns += 1
            stop.wait(0.05)

    thread = threading.Thread(target=churn)
    thread.start()
    time.sleep(LOAD_SECONDS)
    figures["rss_watched_mib"] = round(rss_mib(pid))
    figures["filter_watched_s"] = round(timed("jobs", "--filter", "id:5"), 2)
    figures["explain_watched_s"] = round(timed("explain", "5"), 2)
    stop.set()
    thread.join()
    figures["acts"] = turns
    for each in watchers:
        each.close()
    drive(backend.status())
    time.sleep(2.0)
    figures["rss_after_mib"] = round(rss_mib(pid))
    return figures


if __name__ == "__main__":
    main()
