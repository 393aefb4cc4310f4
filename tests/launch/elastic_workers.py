"""The file of an elastic job's workers, as the engine writes it."""

from __future__ import annotations

import json
from pathlib import Path


def listed(*replicas: int, leaving: tuple[int, ...] = (), version: int = 1) -> bytes:
    workers = [
        {"rank": rank, "replica": replica, "host": f"train-worker-{replica}", "node": "n1", "slots": 1}
        for rank, replica in enumerate(replicas)
    ]
    out = [{"replica": replica, "kill_at": 5} for replica in leaving]
    return json.dumps({"version": version, "workers": workers, "leaving": out}).encode()


class Workers:
    """The folder of the workers' file."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "workers.json"
        self.socket = folder / "workers.sock"

    def show(self, content: bytes) -> None:
        draft = self.file.with_name(".new")
        draft.write_bytes(content)
        draft.rename(self.file)
