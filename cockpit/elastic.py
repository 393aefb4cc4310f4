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
    """Where the job's workers are told of; by default as the job's environment says. May be left out. From the first
    question on, by any function here, this worker is expected to ask again within the job's `max_wait_time`."""
    _State.path = path or os.environ.get("COCKPIT_WORKERS_FILE", _PATH)


def check_alive() -> bool:
    """False once this worker has been told to end: save what has to be kept, and exit. Cheap: ask between two steps."""
    return _own() not in _leaving(_read_workers())


def checkpoint_requested() -> bool:
    """Whether what was computed should be saved now: by a worker that has to end while others continue, and by the
    first one whenever any does. Where all have to end, the job is suspended, and the first one alone saves for all."""
    told = _read_workers()
    leaving = _leaving(told)
    staying = [each["replica"] for each in told["workers"]]
    if not leaving:
        return False
    return _own() == (staying or leaving)[0] or (bool(staying) and _own() in leaving)


def world() -> Dict[str, Any]:  # noqa: UP006 - for Python 3.8
    """`size` of the world, this worker's `rank` in it (None once it has to end), the `hosts` by rank, and the `version`
    of all that: another number means a new ring."""
    told = _read_workers()
    workers = told["workers"]
    ranks = [each["rank"] for each in workers if each["replica"] == _own()]
    return {
        "version": told["version"],
        "size": len(workers),
        "rank": ranks[0] if ranks else None,
        "hosts": [each["host"] for each in workers],
    }


def _own() -> int:
    return int(os.environ.get("COCKPIT_REPLICA", "0"))


def _beat() -> None:
    """Show that this worker is alive; a worker that does not for the job's max_wait_time is removed."""
    if _PULSE in os.environ:
        with suppress(OSError):
            Path(os.environ[_PULSE]).touch()


def _read_workers() -> Dict[str, Any]:  # noqa: UP006 - for Python 3.8
    if not _State.path:
        init()
    _beat()
    try:
        found: Dict[str, Any] = json.loads(Path(_State.path).read_bytes())  # noqa: UP006 - for Python 3.8
    except FileNotFoundError:
        alone = {"rank": 0, "replica": _own(), "host": os.uname().nodename, "node": "", "slots": 1}
        return {"version": 0, "min_workers": 1, "max_workers": 1, "workers": [alone], "leaving": []}
    return found


def _leaving(told: Dict[str, Any]) -> List[int]:  # noqa: UP006 - for Python 3.8
    return [each["replica"] for each in told["leaving"]]
