"""What a user sees of the members through the host: the fleet's table, and a member's own object, logs and shells."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from cockpit.backends.kubernetes.editing import job_name
from cockpit.backends.kubernetes.fleet.table import ListedJob, ObjectKey, fleet_shown
from cockpit.backends.kubernetes.mapping.fleet_placement import clusters_of
from cockpit.backends.kubernetes.mapping.fleet_status import bound_to
from cockpit.errors import RequestRefused, Unreachable
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.present.reasons import reason_sentence

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cockpit.backends.kubernetes.fleet.members import MemberBackend, Members
    from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
    from cockpit.model.events import EventBody, EventRecord
    from cockpit.model.fleetrow import FleetShown
    from cockpit.model.ids import JobId, Millis


class MemberPart(NamedTuple):
    """A replica of a job where it runs."""

    backend: MemberBackend
    """The member's."""
    job: JobId
    """The member's own number of the job."""
    rank: int
    """The replica's rank there."""
    why: str
    """Why the member does not run the job, as a sentence; empty: it does."""
    first: int = 0
    """The rank on the fleet of the member's first replica."""

    async def events(self, number: JobId, after: int, limit: int) -> list[EventRecord]:
        """Return what the member reports of its part, under the host's number of the job and the fleet's ranks."""
        records = await self.backend.events(job=self.job, after=after, limit=limit)
        return [replace(each, body=self._on_host(each.body, number)) for each in records]

    def _on_host(self, body: EventBody, number: JobId) -> EventBody:
        changes: dict[str, object] = {"job": number} if hasattr(body, "job") else {}
        if isinstance(rank := getattr(body, "rank", None), int):
            changes["rank"] = self.first + rank
        return replace(body, **changes)


class FleetView:
    """Answers questions about the members' own objects."""

    def __init__(self, members: Members) -> None:
        self._members = members

    async def shown(
        self, jobs: Iterable[ListedJob], every: Iterable[str], now: Millis, *, pods: bool, alone: bool
    ) -> FleetShown:
        """Return the table's rows of these jobs. `every`: all members; `alone`: leave out other jobs of members."""
        listed = tuple(jobs)
        bound = {target.name for each in listed if each.job.fleet is not None for target in bound_to(each.job.fleet)}
        members = await self._members.each(sorted(bound if alone else {*bound, *every}), _jobs_of)
        return fleet_shown(listed, members, now, pods=pods, alone=alone)

    async def part(self, number: JobId, job: KubeJob, now: Millis, rank: int, cluster: str) -> MemberPart | None:
        """Return where a replica runs; None: the job is bound to no member.

        `cluster`: the member that is meant; empty: that of the replica. Refused where the member has no such job.
        """
        clusters = clusters_of(job, job.fleet) if job.fleet is not None else ()
        if not clusters:
            return None
        name = cluster or clusters[min(rank, len(clusters) - 1)]
        if name not in clusters:
            where = ", ".join(dict.fromkeys(clusters))
            message = f"Job {job_name(number, job)} is not bound to {name}; it is on {where}."
            raise RequestRefused(Refusal(RefusalKind.NOT_FOUND, message))
        (jobs, silence) = (await self._members.each([name], _jobs_of))[name]
        if jobs is None:
            raise Unreachable(f"{name} does not answer: {silence}")
        key = ObjectKey(job.kind, job.meta.namespace, job.meta.name)
        if key not in jobs:
            message = f"{name} has no {job.kind} {job.meta.namespace}/{job.meta.name} yet, or not any more."
            raise RequestRefused(Refusal(RefusalKind.NOT_FOUND, message))
        # The fleet counts replicas of a divided job through; a member counts its own.
        first = clusters.index(name)
        there, why = jobs[key].row, jobs[key].row.reason
        said = reason_sentence(why, now, None) if why is not None else ""
        return MemberPart(self._members.member(name), there.id, max(0, rank - first), said, first)

    async def close(self) -> None:
        await self._members.close()


async def _jobs_of(member: MemberBackend) -> dict[ObjectKey, ListedJob]:
    return {each.key: each for each in await member.listed_jobs()}
