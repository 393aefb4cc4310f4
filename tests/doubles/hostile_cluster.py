"""The real app in this process's terminal over a cluster every text of which attacks: `python -m
tests.doubles.hostile_cluster`. No engine would let such names in; a cockpit must bear those of any cluster.
"""

from __future__ import annotations

import asyncio
import os
import sys
from enum import Enum
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from cockpit.backends.base import JobsDelta
from cockpit.config.filters import SavedFilters
from cockpit.errors import RequestRefused, Unreachable
from cockpit.model.fleetrow import FleetJobRow, FleetPodRow, FleetShown, MemberObject
from cockpit.model.ids import JobId, NodeName
from cockpit.model.reasons import Held, NoEligibleNode
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.view import ClusterRow, ClusterState, QueueKind, QueueRow, QueuesShown
from cockpit.tui.opening import Session, run_cockpit
from tests.doubles.account_tree import account_tree
from tests.doubles.catalogue import catalogue_shown
from tests.doubles.memory_backend import MemoryBackend
from tests.doubles.samples import (
    NOW,
    detail,
    ended_jobs,
    failed_row,
    hold_row,
    job_row,
    node_row,
    outlook,
    overview,
    priorities,
    queued_row,
    spending,
    waiting_detail,
)
from tests.hostile import HOSTILE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from cockpit.model.jobdetail import JobDetail
    from cockpit.model.jobrow import JobRow
    from cockpit.model.view import Overview

TEXTS = tuple(HOSTILE.values())
LONG_LINE = "\x1b[31m" * 18_000
"""90 000 characters."""


def with_attacks(value: Any, texts: Iterator[str]) -> Any:
    """The same, each of its texts the next of these; words of a fixed set and figures stay."""
    if isinstance(value, msgspec.Struct):
        fields = {name: with_attacks(getattr(value, name), texts) for name in value.__struct_fields__}
        return replace(value, **fields)
    if isinstance(value, (tuple, list, frozenset)):
        return type(value)(with_attacks(each, texts) for each in value)
    if isinstance(value, dict):
        return {with_attacks(key, texts): with_attacks(each, texts) for key, each in value.items()}
    free = isinstance(value, str) and not isinstance(value, Enum) and not value.isdigit()
    return next(texts) if free else value


A_QUEUE = QueueRow(
    kind=QueueKind.QUOTA,
    path="root/a",
    name="a",
    level=1,
    since=NOW,
    waiting=1,
    running=1,
    used={"cpu": 1},
    min={},
    max={"gres/gpu": 9},
    projects=("p",),
)


def _from(number: int, texts: Sequence[str] = TEXTS) -> Iterator[str]:
    """All texts for ever, from this one on."""
    return islice(cycle(texts), number % len(texts), None)


def queues() -> QueuesShown:
    """A tree of two, and a partition."""
    held = {"gres/gpu": 6000, "cpu": 8000}
    usual = {"since": NOW, "waiting": 1, "running": 2, "used": held, "min": {"gres/gpu": 2000}, "max": {"cpu": 9000}}
    return QueuesShown(
        (
            QueueRow(kind=QueueKind.QUOTA, path="root", name="root-x", level=0, **usual),
            QueueRow(kind=QueueKind.QUOTA, path="root/a", name="root-a-x", level=1, projects=("p", "q"), **usual),
            QueueRow(kind=QueueKind.PARTITION, path="gpu", name="gpu", level=0, **usual),
        ),
        "tree",
    )


class HostileBackend(MemoryBackend):
    """Refuses what it is asked to do in words that attack too; once a job was held, it cannot be reached any more."""

    def __init__(self, texts: Sequence[str] = TEXTS) -> None:
        super().__init__()
        self.texts = texts
        self.job_rows = list(_job_rows(texts))
        self.node_rows = [
            with_attacks(node_row(state_reason="x"), _from(start, self.texts)) for start in range(len(self.texts))
        ]
        self.hold_rows = [
            with_attacks(hold_row(number), _from(number, self.texts)) for number in range(len(self.texts))
        ]
        self.tree = with_attacks(account_tree(), _from(2, self.texts))
        self.ended_jobs = [with_attacks(ended_jobs()[0], _from(start, self.texts)) for start in range(len(self.texts))]
        self.spent = lambda edges: with_attacks(spending(tuple(edges)), _from(5, self.texts))
        self.queued = QueuesShown(
            tuple(with_attacks(A_QUEUE, _from(start, self.texts)) for start in range(len(self.texts))), self.texts[0]
        )
        self.order = with_attacks(priorities(), _from(3, self.texts))
        self.queued = with_attacks(queues(), _from(4, self.texts))
        self.catalogued = with_attacks(catalogue_shown(), _from(6, self.texts))
        self.outlooks = {
            number: with_attacks(outlook(), _from(number, self.texts)) for number in range(1, len(self.texts))
        }
        self.log = "\n".join(self.texts).encode("utf-8", "surrogatepass") + b"\xff\xfe\n" + LONG_LINE.encode()
        self.lost = False

    async def overview(self) -> Overview:
        if self.lost:
            raise Unreachable("\x1b[31m\u202e cannot be reached")
        return replace(overview(), cluster="lab\x1b[31m\u202e")

    async def clusters(self) -> list[ClusterRow]:
        away = ClusterRow(name="x", way="x", state=ClusterState.SILENT, reason="x", overview=overview())
        return [with_attacks(away, _from(start, self.texts)) for start in range(len(self.texts))]

    async def fleet(self, *, job: JobId | None = None, pods: bool = False, jobs: object = ()) -> FleetShown:
        del job
        row = FleetJobRow(
            job=JobId(4),
            name="x",
            user="x",
            cluster="x",
            fleet_state="x",
            state="x",
            created_at=NOW,
            adopted=True,
            reason="x",
            silence="x",
        )
        pod = FleetPodRow(
            job=JobId(4), name="x", cluster="x", ready=0, containers=1, status="x", restarts=0, created_at=NOW, node="x"
        )
        every = [_from(start, self.texts) for start in range(len(self.texts))]
        if pods:
            return FleetShown(pods=tuple(with_attacks(pod, texts) for texts in every))
        return FleetShown(jobs=tuple(with_attacks(row, texts) for texts in every))

    async def own_object(self, job: JobId, *, cluster: str = "") -> MemberObject:
        del job, cluster
        return with_attacks(MemberObject(cluster="x", own="x", form="text", text="x"), _from(0, self.texts))

    async def job(self, job: JobId, *, task: int | None = None) -> JobDetail:
        row = next(row for row in self.job_rows if row.id == job)
        texts = _from(job, self.texts)
        shown = with_attacks(waiting_detail() if row.reason is not None else detail(), texts)
        return replace(shown, row=row, log_tail="\n".join(islice(texts, 6)))

    async def watch_jobs(self, *, anything: bool = False) -> AsyncIterator[JobsDelta]:
        yield JobsDelta(tuple(self.job_rows), (), 0)
        await asyncio.Event().wait()

    def _act(self, *asked: object) -> None:
        self.lost = asked[0] == "hold"
        raise RequestRefused(
            Refusal(RefusalKind.CONFLICT, "no \x1b]52;c;cm0=\x07\u202e[bold]" + "\n".join(self.texts[:4]))
        )


def _job_rows(texts: Sequence[str]) -> Iterator[JobRow]:
    """Each text once in the sight of each column, whatever is cut off."""
    for number, text in enumerate(texts, 1):
        other = texts[number % len(texts)]
        names = {"name": text, "user": other, "command": text, "project": other, "output": text, "algorithm": other}
        reason = NoEligibleNode(pins=(NodeName(text),), pool=other) if number % 2 else Held(text, NOW)
        yield job_row(3 * number, **names, placed_on=(NodeName(text), NodeName(other)))
        yield queued_row(3 * number + 1, **names, reason=reason, card_models=(text,))
        yield failed_row(3 * number + 2, **names, end_cause="lost", lost=text, placed_on=(NodeName(other),))


def main() -> int:
    filters = SavedFilters()
    for number, text in enumerate(TEXTS):
        filters.save("jobs", f"saved-{number}", text)

    async def close() -> None:
        pass

    async def session() -> Session:
        return Session(
            backend=HostileBackend(),
            now=lambda: NOW,
            user="ann\x1b[31m\u202e",
            read_jobs=lambda *_: [],
            close=close,
            filters=filters,
            clusters={"local": "\x1b[31m\u202e", "[red]\x1b": "[/]"},
        )

    return run_cockpit(session, os.environ)


if __name__ == "__main__":
    sys.exit(main())
