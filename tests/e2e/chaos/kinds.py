"""The kinds of jobs in a chaos run: what their scripts are like, and what the engine is asked to do when they fail."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

ONE_CPU = [{"cpus": 1, "memory": "128M"}]
ENOUGH = 1000
"""Retries that no run uses up."""
BOTH = {"worker_restart_policy": "OnFailure", "job_restart_policy": "OnFailure", "backoff_limit": ENOUGH}


class Kind(NamedTuple):
    """A kind of job. `elastic` and `fields` go into its job file."""

    name: str
    habits: str = ""
    elastic: dict[str, Any] | None = None
    fields: Mapping[str, Any] = MappingProxyType({})

    @property
    def may_fail(self) -> bool:
        """Whether a killed worker may end the job, by its own policies."""
        return self.name in {"never", "always"}


def sized(least: int, wanted: int, most: int, **policies: Any) -> dict[str, Any]:
    return {"min_workers": least, "workers": wanted, "max_workers": most, "grace_period": "3s", **policies}


KINDS = (
    Kind("replaces", "listens", sized(1, 2, 3, **BOTH)),
    Kind("sigterm", "sigterm", sized(2, 2, 3, reclaim_signal="SIGTERM", **BOTH)),
    Kind("hangs", "hangs", sized(1, 2, 2, max_wait_time=12, **BOTH)),
    Kind("resumes", "sigterm", None, {"resume": {"max_resumes": ENOUGH, "grace_period": "3s"}, "pool": "training"}),
    Kind("stays", "stays", sized(1, 2, 2, **BOTH)),
    Kind("exitcode", "fails:139", sized(1, 2, 3, **{**BOTH, "worker_restart_policy": "ExitCode"})),
    Kind("slow", "saves-slowly,listens", sized(2, 3, 3, **BOTH)),
    Kind("restarts", "fails:3", sized(1, 2, 2, job_restart_policy="OnFailure", backoff_limit=ENOUGH)),
    Kind("never", "", sized(1, 2, 3)),
    Kind("always", "listens", sized(1, 1, 2, worker_restart_policy="Always")),
    Kind("spot", "", sized(1, 2, 3, spot=True, max_price=0.4, shrink_above_price=True, **BOTH)),
    Kind(
        "unlike",
        "sigterm,listens",
        sized(1, 2, 4, reclaim_signal="SIGTERM", **BOTH),
        {"specs": [{"cpus": 3, "memory": "128M"}, {"cpus": 1, "memory": "64M"}]},
    ),
    Kind("effortless", "listens", sized(1, 2, 2, best_effort=True, supervised=True, **BOTH)),
    Kind(
        "shrinks",
        "sigterm",
        None,
        {
            "nodes": 2,
            "mode": "pytorch",
            "pool": "training",
            "resume": {
                "max_resumes": ENOUGH,
                "grace_period": "3s",
                "elastic": {"min_nodes": 1, "allow_scaling": True},
            },
        },
    ),
)


def job_file(kind: Kind, name: str, algorithm: str, variables: dict[str, str]) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "name": name,
        "algorithm": {"path": algorithm},
        "output": f"./{name}/out",
        "command": "/usr/bin/python3 /workspace/algorithm/trainer.py",
        "specs": ONE_CPU,
        "time_limit": "1d",
        "grace_period": "3s",
        "qos": "low",
        "terminal": False,  # no container of a failed job is held
        "env": {"HABITS": kind.habits, **variables},
        **kind.fields,
    }
    return spec if kind.elastic is None else {**spec, "elastic": kind.elastic}
