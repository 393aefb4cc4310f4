"""Builds reservations from the records of `scontrol show reservation`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import tzinfo

from cockpit.backends.slurm.mapping import values
from cockpit.backends.slurm.mapping.records import Record
from cockpit.backends.slurm.mapping.values import hosts
from cockpit.model.cluster import Reservation

COMMAND = ("scontrol", "-o", "show", "reservation")
NAMES = ("sinfo", "--reservation", "--noheader")
"""The command that lists the names of reservations, too: a list that is cut lacks some of them."""
KEY = "ReservationName"


def reservations(records: Iterable[Record], zone: tzinfo | None) -> Iterator[Reservation]:
    """Yield the reservations of whole nodes."""
    for record in records:
        start, end = (values.moment(record.get(name, ""), zone) for name in ("StartTime", "EndTime"))
        # A record without its times cannot be planned around; `completeness` refuses answers in which they were cut.
        if start is not None and end is not None:
            yield Reservation(
                name=record[KEY],
                nodes=hosts(values.text(record.get("Nodes", ""))),
                start_at=start,
                end_at=end,
                users=values.names(record.get("Users", "")),
                accounts=values.names(record.get("Accounts", "")),
                maintenance="MAINT" in record.get("Flags", "").split(","),
            )


def names(printed: str) -> Iterator[str]:
    """Yield the names in the output of `NAMES`; nothing where the cluster has no reservation."""
    for line in printed.splitlines():
        name, *rest = line.split()[:2] or [""]
        # Other lines are sentences, such as `No reservations in the system`.
        if rest in (["ACTIVE"], ["INACTIVE"]):
            yield name
