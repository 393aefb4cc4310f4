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
    """A licence: its name and its total."""

    name: str
    total: int
    used: int


def licences(records: Iterable[Record]) -> Iterator[Licence]:
    for record in records:
        if name := record.get(KEY, ""):
            total, used = (values.number(record.get(key, "")) or 0 for key in ("Total", "Used"))
            yield Licence(name, total, used)


def requested(fields: dict[str, str]) -> dict[str, int]:
    """Return how many of each licence the job has or wants, from `matlab:3,fluent@site:1|…`."""
    counts = {}
    # `,` means and; some versions also take `;`, or `|` for alternatives, which are all listed.
    for part in values.text(fields.get("Licenses", "")).replace("|", ",").replace(";", ",").split(","):
        name, _, count = part.partition(":")
        if name:
            counts[name] = values.number(count) or 1
    return counts


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
    short = [each for each in of_it if each.used + wanted[each.name] > each.total]
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
