"""The tree of a fleet's jobs: a job over several clusters unfolds to its parts, a part to its pods."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec.structs import asdict

from cockpit.model.fleetrow import FleetJobRow

if TYPE_CHECKING:
    from cockpit.model.fleetrow import FleetPodRow
    from cockpit.model.ids import JobId

Key = tuple[int, str, str, str]
"""Job, cluster, the cluster's own name of the job, and the pod's name; an empty text: the line is of all of them."""


class FleetLine(FleetJobRow, frozen=True, kw_only=True):
    """A line of the tree: a job, its part on one cluster, or a pod."""

    level: int
    """The depth in the tree; 0: a job."""
    is_unfolded: bool | None
    """Whether the lines below it are shown; None: it has none."""
    pod: str = ""
    """The pod's name; empty: the line is no pod."""
    restarts: int | None = None
    """How often the pod was started anew; None: the line is no pod."""


def key_of(line: FleetLine) -> Key:
    """Return the key of a line, which stays the same while its figures change."""
    return line.job, line.cluster if line.level or line.own else "", line.own, line.pod


def fleet_lines(
    rows: Sequence[FleetJobRow], pods: Iterable[FleetPodRow], unfolded: Collection[Key]
) -> Iterator[FleetLine]:
    """Yield the lines of the tree in the order of the rows. `pods`: those that are known, of unfolded parts."""
    of_part: dict[tuple[int, str, str], list[FleetPodRow]] = {}
    for pod in pods:
        of_part.setdefault((pod.job, pod.cluster, pod.own), []).append(pod)
    for parts in _jobs(rows).values():
        if len(parts) == 1:
            yield from _part_lines(parts[0], 0, of_part, unfolded)
            continue
        whole = _whole(parts)
        is_unfolded = key_of(whole) in unfolded
        yield FleetLine(**{**asdict(whole), "is_unfolded": is_unfolded})
        for part in parts if is_unfolded else ():
            yield from _part_lines(part, 1, of_part, unfolded)


def unfolded_jobs(unfolded: Collection[Key]) -> set[JobId | Literal[0]]:
    """Return the jobs of which a part is unfolded, so that their pods are shown."""
    return {job for job, cluster, own, _ in unfolded if cluster or own}  # type: ignore[misc] # a Key has plain numbers


def _jobs(rows: Iterable[FleetJobRow]) -> Mapping[object, list[FleetJobRow]]:
    """Return the rows of each job. Jobs that only their cluster knows have no id, and one row each."""
    jobs: dict[object, list[FleetJobRow]] = {}
    for row in rows:
        jobs.setdefault(row.job or (row.cluster, row.own), []).append(row)
    return jobs


def _whole(parts: Sequence[FleetJobRow]) -> FleetLine:
    """Return the line of a job over several clusters: its states where all parts have the same."""
    first = parts[0]
    states = {part.state for part in parts}
    return FleetLine(
        job=first.job,
        name=first.name,
        user=first.user,
        cluster=f"{len(parts)} clusters",
        fleet_state=first.fleet_state,
        state=first.state if len(states) == 1 else "mixed",
        created_at=min((part.created_at for part in parts if part.created_at is not None), default=None),
        adopted=all(part.adopted for part in parts),
        replicas=sum(part.replicas for part in parts),
        ready=sum(part.ready for part in parts),
        reason=next((part.reason for part in parts if part.reason), ""),
        heard_at=min((part.heard_at for part in parts if part.heard_at is not None), default=None),
        silence=next((f"{part.cluster}: {part.silence}" for part in parts if part.silence), ""),
        level=0,
        is_unfolded=False,
    )


def _part_lines(
    part: FleetJobRow,
    level: int,
    pods: Mapping[tuple[int, str, str], Sequence[FleetPodRow]],
    unfolded: Collection[Key],
) -> Iterator[FleetLine]:
    line = FleetLine(**asdict(part), level=level, is_unfolded=False if part.cluster and part.own else None)
    if line.is_unfolded is None or key_of(line) not in unfolded:
        yield line
        return
    yield FleetLine(**{**asdict(line), "is_unfolded": True})
    for pod in pods.get((part.job, part.cluster, part.own), ()):
        yield FleetLine(
            job=pod.job,
            name=pod.name,
            user=part.user,
            cluster=pod.cluster,
            fleet_state="",
            state=pod.status,
            created_at=pod.created_at,
            adopted=part.adopted,
            own=pod.own,
            replicas=pod.containers,
            ready=pod.ready,
            heard_at=part.heard_at,
            silence=part.silence,
            level=level + 1,
            is_unfolded=None,
            pod=pod.name,
            restarts=pod.restarts,
        )
