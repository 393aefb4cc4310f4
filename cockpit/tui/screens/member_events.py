"""The events of a fleet's job on its page: the fleet's own, or those of the member cluster that has a part of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

if TYPE_CHECKING:
    from cockpit.backends.base import Backend
    from cockpit.model.ids import JobId
    from cockpit.model.jobdetail import JobDetail

MOST_EVENTS = 200
"""Most events of a member that the page shows."""


class MemberEvents:
    """Which cluster's events the page shows."""

    def __init__(self, job: JobId) -> None:
        self._job = job
        self.cluster = ""
        """The member; empty: the fleet itself."""

    def turn(self, detail: JobDetail) -> bool:
        """Choose the next member of the job, after the last one the fleet; return whether the job has any."""
        clusters = ["", *dict.fromkeys(_clusters(detail))]
        at = clusters.index(self.cluster) if self.cluster in clusters else 0
        self.cluster = clusters[(at + 1) % len(clusters)]
        return len(clusters) > 1

    async def added(self, detail: JobDetail, backend: Backend) -> JobDetail:
        """Return the job with the events of the chosen cluster. Raises `CockpitError` where that does not answer."""
        clusters = _clusters(detail)
        if self.cluster not in clusters:
            self.cluster = ""  # the job is no longer there
            return detail
        rank = clusters.index(self.cluster)
        return replace(detail, events=tuple(await backend.events(job=self._job, limit=MOST_EVENTS, rank=rank)))


def _clusters(detail: JobDetail) -> tuple[str, ...]:
    """Return the member of each replica; none of a job that is on no fleet."""
    attempt = detail.job.attempt
    return attempt.members if attempt is not None and attempt.members else detail.row.clusters
