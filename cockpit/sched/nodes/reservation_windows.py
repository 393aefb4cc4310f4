"""Applies advance reservations at one moment: which jobs their nodes are kept from, and which jobs may use them.

A job that names no reservation starts on reserved nodes only if its time limit ends before the reservation begins. A
job that names one runs only inside it: on its nodes, between its start and its end. No job runs in maintenance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cockpit.model.cluster import Reservation
from cockpit.model.ids import Millis, NodeName
from cockpit.model.job import Job
from cockpit.model.node import Node
from cockpit.model.reasons import InReservation


class ReservationWindows:
    """The reservations that have not ended at `now`."""

    def __init__(self, reservations: Mapping[str, Reservation], now: Millis) -> None:
        self._now = now
        lasting = [each for each in reservations.values() if each.end_at > now] if reservations else []
        if lasting:
            # by start: `least_seconds` relies on a longer job meeting the same reservations and then further ones
            lasting.sort(key=lambda each: (each.start_at, each.name))
        self.lasting = tuple(lasting)
        self._all = reservations
        self._against: dict[tuple[int, str], tuple[str, ...]] = {}

    def against(self, limit_seconds: int, named: str = "") -> tuple[str, ...]:
        """Return the names of the reservations that a job of this length would run into if it started now, soonest
        first."""
        if not self.lasting:
            return ()
        # jobs of one time limit run into the same reservations, so the names are found once for each limit
        key = (limit_seconds, named)
        if key not in self._against:
            end = self._now + 1000 * limit_seconds
            names = (each.name for each in self.lasting if each.start_at < end and each.name != named)
            self._against[key] = tuple(names)
        return self._against[key]

    def against_job(self, job: Job) -> tuple[str, ...]:
        """Return the names of the reservations that the job would run into if it started now."""
        return self.against(job.spec.time_limit_seconds, job.spec.reservation) if self.lasting else ()

    def least_seconds(self, barred: tuple[str, ...]) -> int:
        """Return the shortest time limit, in seconds, with which a job runs into all of these reservations.

        A longer job runs into the same reservations and perhaps further ones, since they are sorted by their start. So
        what fails for this time limit fails for every longer one.
        """
        if not barred:
            return 0
        # the last one barred begins latest: a job has to last just beyond its start to run into all
        return max(0, (self._all[barred[-1]].start_at - self._now) // 1000 + 1)

    def refusal(self, job: Job) -> InReservation | None:
        """Return why the job cannot start now in the reservation that it names; None: it can, or names none."""
        name = job.spec.reservation
        if not name:
            return None
        reservation = self._all.get(name)
        # without a moment: no waiting opens a reservation that is over, for maintenance, or not for this user
        if reservation is None or not is_open_to(reservation, job.submitter.name, job.account, self._now):
            return InReservation(name)
        begins_at = Millis(reservation.start_at) if reservation.start_at > self._now else None
        if max(reservation.start_at, self._now) + 1000 * job.spec.time_limit_seconds > reservation.end_at:
            return InReservation(name, begins_at, Millis(reservation.end_at))
        return InReservation(name, begins_at) if begins_at is not None else None

    def bars_at(self, job: Job) -> Millis | None:
        """Return the first moment from which on the job, if it started then, would run into one more reservation."""
        length = 1000 * job.spec.time_limit_seconds
        moments = (each.start_at - length + 1 for each in self.lasting if each.name != job.spec.reservation)
        return min((Millis(moment) for moment in moments if moment > self._now), default=None)

    def next_at(self) -> Millis | None:
        """Return the next start or end of a reservation."""
        moments = (moment for each in self.lasting for moment in (each.start_at, each.end_at))
        return min((Millis(moment) for moment in moments if moment > self._now), default=None)


NO_WINDOWS = ReservationWindows({}, Millis(0))
"""The windows of a cluster without reservations."""


def closed(reservations: Mapping[str, Reservation], named: str, start: int, end: int) -> frozenset[str]:
    """Return the names of the reservations that a job would run into from `start` to `end`, except the one that it
    names."""
    return frozenset(
        name for name, each in reservations.items() if each.start_at < end and each.end_at > start and name != named
    )


def reserving(reservations: Mapping[str, Reservation], nodes: Iterable[Node]) -> list[tuple[str, ...]]:
    """Return the names of the reservations that each node is in."""
    named = [(each.name, frozenset(each.nodes)) for each in reservations.values()]
    return [tuple(name for name, nodes_of_it in named if node.name in nodes_of_it) for node in nodes]


def reservations_in_force(reservations: Mapping[str, Reservation], now: Millis) -> dict[NodeName, list[str]]:
    """Return the names of the reservations that are in force on each reserved node at this moment."""
    names_by_node: dict[NodeName, list[str]] = {}
    for name, each in reservations.items():
        if each.start_at <= now < each.end_at:
            for node in each.nodes:
                names_by_node.setdefault(node, []).append(name)
    return names_by_node


def is_open_to(reservation: Reservation, user: str, account: str, now: Millis) -> bool:
    """Return whether a job may use the reservation, now or once it begins. Where users and accounts are both set, the
    job must match both, as in Slurm (reservations.html); where neither is set, no job does."""
    if reservation.end_at <= now or reservation.maintenance or not (reservation.users or reservation.accounts):
        return False
    return (not reservation.users or user in reservation.users) and (
        not reservation.accounts or account in reservation.accounts
    )
