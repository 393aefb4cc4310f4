"""Decides on advance reservations of nodes, which administrators make and end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cockpit.model import events
from cockpit.model.job import OCCUPYING
from cockpit.model.names import name_error
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.rules.bounds import MOMENT
from cockpit.model.text import visible

if TYPE_CHECKING:
    from cockpit.engine.machine import Machine
    from cockpit.model.cluster import Reservation
    from cockpit.model.events import EventBody
    from cockpit.model.ids import Millis

_MOST_NAMED = 10
MOST = 1_000
"""The most reservations at once: each is looked at in every scheduling pass."""


def make_reservation(machine: Machine, wanted: Reservation, now: Millis) -> list[EventBody] | Refusal:
    """Reserve nodes for users or for maintenance. Jobs that run there continue."""
    if wanted.name in machine.state.reservations:
        return Refusal(
            RefusalKind.CONFLICT,
            f"Reservation {wanted.name} is there already; `cockpit reservations end {wanted.name}` ends it first.",
        )
    if len(machine.state.reservations) >= MOST:
        return Refusal(RefusalKind.CONFLICT, f"There are {MOST} reservations, which is the most; end one first.")
    errors = [f"{path}: {error}" for path, error in _errors(machine, wanted, now)]
    if errors:
        return Refusal(RefusalKind.INVALID, "\n".join(errors))
    return [events.ReservationMade(wanted)]


def end_reservation(machine: Machine, name: str) -> list[EventBody] | Refusal:
    """End a reservation before its time. Refused, as in Slurm, while a job runs in it."""
    if name not in machine.state.reservations:
        return Refusal(
            RefusalKind.NOT_FOUND, f'There is no reservation "{visible(name)}"; `cockpit reservations` lists them.'
        )
    using = [job.id for job in machine.state.jobs.values() if job.spec.reservation == name and job.state in OCCUPYING]
    if using:
        named = ", ".join(map(str, using[:_MOST_NAMED]))
        return Refusal(RefusalKind.CONFLICT, f"Jobs run in reservation {name}: {named}. Cancel them, or let them end.")
    return [events.ReservationEnded(name)]


def _errors(machine: Machine, wanted: Reservation, now: Millis) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a new reservation, each error behind the name of its field."""
    if error := name_error(wanted.name):
        yield "name", error
    for path, moment in (("start", wanted.start_at), ("end", wanted.end_at)):
        if error := MOMENT.error(moment):
            yield path, error
    if wanted.end_at <= max(wanted.start_at, now):
        yield "end", "is not after its start and after now; make it later"
    yield from _node_errors(machine, wanted)
    if not (wanted.maintenance or wanted.users or wanted.accounts):
        yield "users", "are missing, and so are accounts; name some, or say that it is for maintenance"
    if wanted.maintenance and (wanted.users or wanted.accounts):
        yield "maintenance", "runs no jobs; leave users and accounts out"
    # Users need not be known: nothing registers those of the system before their first job.
    for account in wanted.accounts:
        if not any(each.account == account for each in machine.state.accounts.associations.values()):
            yield "accounts", f"there is no account {visible(account)}"


def _node_errors(machine: Machine, wanted: Reservation) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the nodes of a new reservation."""
    if not wanted.nodes:
        yield "nodes", "are none; name at least one"
    for node in wanted.nodes:
        if node not in machine.state.nodes:
            yield "nodes", f"there is no node {visible(node)}"
    # As in Slurm without its flag OVERLAP, no node is in two reservations at the same time.
    for other in machine.state.reservations.values():
        shared = sorted(set(other.nodes) & set(wanted.nodes))
        if shared and other.start_at < wanted.end_at and wanted.start_at < other.end_at:
            named = ", ".join(shared[:_MOST_NAMED])
            yield "nodes", f"reservation {other.name} keeps {named} at that time; choose other nodes or another time"
