"""Raw requests for every operation that the engine's socket knows, as a client might forge them."""

from __future__ import annotations

from typing import Any

SPEC = {"name": "forged", "command": "true", "output": "/tmp/forged"}

UPKEEP = {
    "name": "upkeep",
    "nodes": ["n1"],
    "start_at": 4_000_000_000_000,
    "end_at": 4_000_003_600_000,
    "maintenance": True,
}
"""A reservation far ahead; `make_reservation` asks for another of the same time, `end_reservation` for this one."""

READING = (
    "status",
    "overview",
    "jobs",
    "subscribe",
    "job",
    "nodes",
    "holds",
    "events",
    "wait",
    "logs",
    "search_log",
    "priorities",
    "rules",
    "accounts",
    "accounting",
    "spending",
    "catalogue",
    "queues",
    "fleet",
    "own_object",
    "snapshot",
    "reservations",
    "staged",
    "explain",
    "starts",
    "predict",
    "request",
)
"""Operations that change nothing; every other one must leave an event."""

_OF_JOB = ("own_object", "job", "explain", "hold", "release", "suspend", "resume", "requeue", "delete", "end_hold")


def arguments_for(operation: str, job: int) -> dict[str, Any]:
    """Arguments that the operation accepts, aimed at `job` where it is about one. KeyError: a new operation."""
    if operation in _OF_JOB:
        return {"job": job}
    return {
        "status": {},
        "accounting": {"since": 1_000, "user": "ann"},
        "spending": {"edges": [0, 1_000, 4_000_000_000_000]},
        "overview": {},
        "jobs": {"ended": True},
        "subscribe": {"first": 10},
        "priorities": {"weights": {"age": 1000, "tres": {"cpu": 2.0}}},
        "nodes": {},
        "starts": {"jobs": [job]},
        "predict": {"specs": [SPEC]},
        "holds": {},
        "events": {"job": job},
        "wait": {"job": job, "timeout_seconds": 0.01},
        "logs": {"job": job},
        "search_log": {"job": job, "text": "x"},
        "submit": {"specs": [SPEC]},
        "edit": {"job": job, "spec": SPEC},
        "cancel": {"job": job, "grace_seconds": 0},
        "extend_hold": {"job": job, "seconds": 60},
        "unblock": {"job": job, "node": "n2"},
        "shell": {"job": job, "command": ["true"]},
        "rules": {},
        "accounts": {},
        "change_accounts": {"change": {"type": "add_account", "name": "forged"}},
        "catalogue": {},
        "change_catalogue": {
            "changes": [
                {
                    "before": None,
                    "after": {"kind": "volume", "name": "forged", "project": "root", "owner": "root", "path": "/tmp"},
                }
            ]
        },
        "set_priority": {"job": job, "priority": "urgent"},
        "set_time_limit": {"job": job, "limit": {"seconds": 60}},
        "set_weights": {"weights": {"age": 1}},
        "queues": {},
        "fleet": {},
        "request": {"request": "9f86d081"},
        "snapshot": {},
        "apply_quota": {"tree": {"name": "forged", "root": {"name": "root", "max": {"jobs": 1000}}}},
        "remove_quota": {},
        "reservations": {},
        "make_reservation": {"reservation": {**UPKEEP, "name": "forged"}},
        "end_reservation": {"name": UPKEEP["name"]},
        "drain_node": {"name": "n1", "reason": "fan"},
        "resume_node": {"name": "n1"},
        "staged": {},
        "unstage": {"name": "4f2a"},
        "stop": {},
    }[operation]


ABOUT_A_JOB = (
    "job",
    "wait",
    "logs",
    "search_log",
    "edit",
    "cancel",
    "set_priority",
    "set_time_limit",
    "extend_hold",
    "unblock",
    "shell",
    "own_object",
    *_OF_JOB[2:],
)
"""With `events` of one job: what must refuse a job that the user may not see."""
