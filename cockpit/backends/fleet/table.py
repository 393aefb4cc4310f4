"""The rows of a merged view in the fleet's table: jobs that each belong to one cluster, and to no fleet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.model.fleetrow import FleetJobRow
from cockpit.model.ids import job_words, member_of
from cockpit.model.job import JobState
from cockpit.model.view import ClusterState

if TYPE_CHECKING:
    from cockpit.model.jobrow import JobRow
    from cockpit.model.view import ClusterRow

_RUNS = frozenset({JobState.RUNNING})


def fleet_job_row(row: JobRow, member: ClusterRow) -> FleetJobRow:
    """Return the row of a job. `row`: with the merged view's ids and times; `member`: the state of its cluster."""
    return FleetJobRow(
        job=row.id,
        name=row.name,
        user=row.user,
        cluster=row.clusters[0] if row.clusters else member.name,
        fleet_state="",
        state=str(row.state),
        created_at=row.submitted_at,
        adopted=False,
        own=job_words(member_of(row.id)[1]),
        replicas=row.nodes,
        ready=row.nodes if row.state in _RUNS else 0,
        heard_at=member.heard_at,
        silence=member.reason if member.state is ClusterState.SILENT else "",
    )
