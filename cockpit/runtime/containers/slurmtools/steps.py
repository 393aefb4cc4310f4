"""The steps of a job: their numbers, and the CPUs and cards that each of them holds while it runs.

All of it is in one file of the job's own /tmp, which its `srun` processes lock in turn.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from contextlib import contextmanager
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_PAUSE = 0.05
"""Seconds between two tries to get the CPUs and cards of a step."""


class Steps:
    """The steps of the job whose variables `env` contains."""

    def __init__(self, env: dict[str, str]) -> None:
        # Plain processes share the machine's /tmp with all users.
        plain = env.get("TMPDIR", "") if "COCKPIT_PLAIN" in env else ""
        folder = plain or "/tmp"  # noqa: S108 - the container's own, where a script may set another TMPDIR for each step
        self._path = Path(folder) / f".slurm-steps-{env.get('SLURM_JOB_ID', '0')}-{os.getuid()}"

    def begin(self, take: Callable[[dict[str, Any]], dict[str, Any] | None], waits: Callable[[], None]) -> int:
        """Return the number of a new step, once the job has enough for it.

        `take` returns what the step will hold, given what other steps hold (by process id); None: it has to wait.
        `waits` is called once before it waits.
        """
        said_so = False
        while True:
            # Decided and written under one lock, so that two steps never take the same cards.
            with self._locked_state() as (state, save):
                held = take(state["held"])
                if held is not None:
                    state["held"][str(os.getpid())] = held
                    state["next"] += 1
                    save(state)
                    return int(state["next"]) - 1
            if not said_so:
                waits()
                said_so = True
            time.sleep(_PAUSE)

    def end(self) -> None:
        """Give back what this process holds."""
        with self._locked_state() as (state, save):
            if state["held"].pop(str(os.getpid()), None) is not None:
                save(state)

    @contextmanager
    def _locked_state(self) -> Iterator[tuple[dict[str, Any], Callable[[dict[str, Any]], None]]]:
        """Open the record, and yield its steps without those whose process is gone, and a function that writes it."""
        # O_NOFOLLOW: in a shared folder another user could have put a link at this name.
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(fd, "r+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            state = json.loads(file.read() or '{"next": 0, "held": {}}')
            # A killed srun does not give back what it holds.
            state["held"] = {pid: held for pid, held in state["held"].items() if Path(f"/proc/{pid}").exists()}

            def save(new: dict[str, Any]) -> None:
                file.seek(0)
                file.truncate()
                file.write(json.dumps(new))
                file.flush()

            yield state, save
