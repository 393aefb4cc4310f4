"""Builds licences, as places where jobs queue, from the records of `scontrol show licenses`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from cockpit.backends.slurm.mapping import values
from cockpit.backends.slurm.mapping.jobs import Listed
from cockpit.backends.slurm.mapping.records import Record
from cockpit.model.ids import JobId
from cockpit.model.job import OCCUPYING
from cockpit.model.view import QueueKind, QueueRow
from cockpit.sched.rules.tres import LICENCES, ONE

COMMAND = ("scontrol", "-o", "show", "licenses")
KEY = "LicenseName"


class Licence(NamedTuple):
    """A licence of slurm.conf, or a remote one of slurmdbd (`fluent@server`)."""

    name: str
    total: int
    used: int
    withheld: int = 0
    """Neither used nor free: reserved, or in use outside of the cluster."""

    @property
    def free(self) -> int:
        return self.total - self.used - self.withheld


def licences(records: Iterable[Record]) -> Iterator[Licence]:
    for record in records:
        if name := record.get(KEY, ""):
            total, used, free = (values.number(record.get(key, "")) for key in ("Total", "Used", "Free"))
            rest = (total or 0) - (used or 0)
            yield Licence(name, total or 0, used or 0, 0 if free is None else max(0, rest - free))


def requested(fields: dict[str, str]) -> dict[str, int]:
    """Return how many of each licence the job has or wants, from `matlab:3,fluent@site:1|…`, with all alternatives."""
    return {name: count for each in alternatives(fields.get("Licenses", "")) for name, count in each.items()}


def alternatives(text: str) -> tuple[dict[str, int], ...]:
    """Return the licences that a request names, by name; several entries: any one of them will do (`a:1|b:2`)."""
    wanted = []
    # `,` means and, as `;` in some versions.
    for one in values.text(text).split("|"):
        parts = (part.partition(":") for part in one.replace(";", ",").split(","))
        if counts := {name.strip(): values.number(count) or 1 for name, _, count in parts if name.strip()}:
            wanted.append(counts)
    return tuple(wanted)


class LicenceQueue:
    """The pending jobs that want licences, in the order of their priorities."""

    def __init__(self, known: Iterable[Licence], jobs: Iterable[Listed]) -> None:
        """Give what is free to one job after the other. A job that is held, or waits for a moment or another job, comes
        behind those that may start."""
        self._free = {each.name: each.free for each in known}
        self.enough: dict[JobId, int] = {}
        """How many jobs of each record may have their licences now: of an array's record, so many of its tasks."""
        waiting = [(each, alternatives(each.fields.get("Licenses", ""))) for each in jobs if each.waits]
        wanting = [(each, wanted) for each, wanted in waiting if wanted]
        for each, wanted in sorted(wanting, key=lambda pair: _turn(pair[0])):
            tasks = len(each.tasks) or 1
            self.enough[each.id] = next((n for n in range(tasks) if not self._take(wanted)), tasks)

    def has_left(self, wanted: tuple[dict[str, int], ...]) -> bool:
        """Return whether a job that comes behind all others may have these licences."""
        return not wanted or any(self._has(counts) for counts in wanted)

    def _take(self, wanted: tuple[dict[str, int], ...]) -> bool:
        counts = next((each for each in wanted if self._has(each)), None)
        for name, count in (counts or {}).items():
            self._free[name] -= count
        return counts is not None

    def _has(self, counts: Mapping[str, int]) -> bool:
        return all(self._free.get(name, 0) >= count for name, count in counts.items())


def _turn(job: Listed) -> tuple[bool, int, int]:
    later = bool(job.held_by) or job.code in {"Dependency", "DependencyNeverSatisfied", "BeginTime"}
    return later, -(job.priority or 0), job.id


def queue_rows(known: Iterable[Licence], jobs: Iterable[Listed]) -> Iterator[QueueRow]:
    """Return a queue row per licence, with the jobs that wait for it and those that hold it."""
    wanting = [(each, requested(each.fields)) for each in jobs if values.text(each.fields.get("Licenses", ""))]
    for licence in known:
        of_it = [each for each, names in wanting if licence.name in names]
        yield QueueRow(
            kind=QueueKind.LICENCE,
            path=licence.name,
            name=licence.name,
            level=0,
            since=None,
            waiting=sum(len(each.tasks) or 1 for each in of_it if each.waits),
            running=sum(each.kind in OCCUPYING for each in of_it),
            used={LICENCES: ONE * licence.used},
            min={},
            max={LICENCES: ONE * licence.total},
        )


def usage_text(known: Iterable[Licence], wanted: Mapping[str, int]) -> str:
    """Return `matlab: 3 of 4 in use, 2 asked` for those that the job cannot have now, else for all that it wants."""
    of_it = [each for each in known if each.name in wanted]
    short = [each for each in of_it if wanted[each.name] > each.free]
    return "; ".join(
        f"{each.name}: {each.used} of {each.total} in use, {wanted[each.name]} asked" for each in short or of_it
    )


def holders(jobs: Iterable[Listed], wanted: Mapping[str, int]) -> tuple[JobId, ...]:
    """Return the jobs that hold some of these licences, the largest holder first."""
    having = [
        (sum(count for name, count in requested(each.fields).items() if name in wanted), each.id)
        for each in jobs
        if each.kind in OCCUPYING
    ]
    return tuple(job for count, job in sorted(having, key=lambda pair: (-pair[0], pair[1])) if count)
