"""For training scripts: is this worker being taken away, should a checkpoint be saved, who are the others now?

    import cockpit.elastic as elastic        # or, as a drop-in: import kubeai.elastic as kubeai

    elastic.init()
    for batch in batches:
        if not elastic.check_alive():
            save_checkpoint()
            sys.exit(-1)

Every container has it, by both names. Standard library only; imports nothing of cockpit. Outside of an
elastic job nothing is ever taken away, and the world is this process alone.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Dict, List, Optional  # noqa: UP035 - for Python 3.8

_PATH = "/run/cockpit/workers.json"
_PULSE = "COCKPIT_PULSE_FILE"


class _State:
    path = ""


def init(path: Optional[str] = None) -> None:  # noqa: UP045 - for Python 3.8
    """Set the file that lists the job's workers; by default the job's environment names it. Calling this is optional.

    Each call of a function here is a heartbeat. After the first one, the next must come within the job's
    `max_wait_time`.
    """
    _State.path = path or os.environ.get("COCKPIT_WORKERS_FILE", _PATH)


def check_alive() -> bool:
    """Return False once this worker has to end: save what must be kept, and exit. Cheap: call it between two steps."""
    return _own() not in _leaving(_read_workers())


def checkpoint_requested() -> bool:
    """Return whether this worker should save a checkpoint now, because workers have to end.

    If others continue, each worker that ends saves, and so does the first of those that continue. If all have to end
    (the job is suspended), the first one alone saves for all.
    """
    listed = _read_workers()
    leaving = _leaving(listed)
    staying = [each["replica"] for each in listed["workers"]]
    if not leaving:
        return False
    # With no worker staying, the first of the leaving ones is the only one that matches.
    return _own() == (staying or leaving)[0] or (bool(staying) and _own() in leaving)


def world() -> Dict[str, Any]:  # noqa: UP006 - for Python 3.8
    """Return the `size` of the world, this worker's `rank` in it (None once it has to end), the `hosts` by rank, and
    the `version` of all that: another number means a new ring."""
    listed = _read_workers()
    workers = listed["workers"]
    ranks = [each["rank"] for each in workers if each["replica"] == _own()]
    return {
        "version": listed["version"],
        "size": len(workers),
        "rank": ranks[0] if ranks else None,
        "hosts": [each["host"] for each in workers],
    }


def _own() -> int:
    """Return this worker's replica, whose number stays the same while ranks change."""
    return int(os.environ.get("COCKPIT_REPLICA", "0"))


def _beat() -> None:
    """Show that this worker is alive; a worker that does not for the job's max_wait_time is removed."""
    if _PULSE in os.environ:
        # A full or missing file system must not end the training.
        with suppress(OSError):
            Path(os.environ[_PULSE]).touch()


def _read_workers() -> Dict[str, Any]:  # noqa: UP006 - for Python 3.8
    if not _State.path:
        init()
    _beat()
    # Read each time: the engine replaces the file as a whole, by a rename.
    try:
        listed: Dict[str, Any] = json.loads(Path(_State.path).read_bytes())  # noqa: UP006 - for Python 3.8
    # Not in an elastic job: the script runs as the only worker.
    except FileNotFoundError:
        alone = {"rank": 0, "replica": _own(), "host": os.uname().nodename, "node": "", "slots": 1}
        return {"version": 0, "min_workers": 1, "max_workers": 1, "workers": [alone], "leaving": []}
    return listed


def _leaving(listed: Dict[str, Any]) -> List[int]:  # noqa: UP006 - for Python 3.8
    return [each["replica"] for each in listed["leaving"]]
