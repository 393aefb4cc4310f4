"""What is left on the disk after engines have been killed: read without asking any engine."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cockpit.engine.apply.events import apply
from cockpit.engine.invariants import violations
from cockpit.engine.machine import Machine
from cockpit.engine.state import ClusterState
from cockpit.store import codec

if TYPE_CHECKING:
    from cockpit.model.events import EventRecord
    from tests.e2e.cockpit_user import CockpitUser

ENDED = {"succeeded", "error", "expired", "stopped"}


def state_folder(user: CockpitUser) -> Path:
    return user.folder / "state/cockpit-cluster"


def engine_process(user: CockpitUser) -> int | None:
    """The engine that lives now, also when it does not answer."""
    try:
        pid = int((state_folder(user) / "engine.lock").read_text() or 0)
    except FileNotFoundError:
        return None
    return pid if lives(pid) else None


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except OSError:
        return False


def kill(*pids: int | None) -> None:
    """All of them, as nearly at once as can be."""
    for pid in pids:
        if pid is not None and lives(pid):
            os.kill(pid, signal.SIGKILL)


def journal(user: CockpitUser) -> list[EventRecord]:
    with sqlite3.connect(state_folder(user) / "journal.db") as stored:
        rows = stored.execute(f"SELECT {', '.join(codec.COLUMNS)} FROM events ORDER BY seq").fetchall()
    return [codec.from_row(row) for row in rows]


def accounting(user: CockpitUser) -> dict[int, dict[str, Any]]:
    """Ended jobs by id, as the accounting tables have them."""
    with sqlite3.connect(state_folder(user) / "journal.db") as stored:
        return {job: json.loads(text) for job, text in stored.execute("SELECT id, job FROM ended_jobs")}


def check_journal(user: CockpitUser) -> ClusterState:
    """Its events add up: every step is legal, no promise is broken after any, nothing happened twice."""
    records = journal(user)
    machine = Machine(ClusterState())
    for record in records:
        machine.handle(record)
        assert violations(machine) == []
    once = Counter(
        (
            type(record.body).__name__,
            record.body.job,
            getattr(record.body, "attempt", None),
            getattr(record.body, "rank", None),
        )
        for record in records
        if type(record.body).__name__ in {"JobSubmitted", "JobPlaced", "ReplicaStarted", "ReplicaEnded", "JobEnded"}
    )
    assert [what for what, times in once.items() if times > 1] == []
    replayed = ClusterState()
    for record in records:
        apply(replayed, record)
    assert replayed == machine.state
    return machine.state
