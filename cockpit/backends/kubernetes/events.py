"""The events of jobs: what Kubernetes reports of a job's objects, and what was seen of its rows.

Kubernetes forgets its events after an hour. Those that were read once stay here while this cockpit is connected.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from cockpit.backends.kubernetes.objects.event import KubeEvent
from cockpit.backends.kubernetes.resources import EVENTS
from cockpit.backends.kubernetes.wire.answers import ApiError
from cockpit.backends.kubernetes.wire.lists import Page, read_list
from cockpit.formats.bindingevent import REASON
from cockpit.model.events import RECORDED, ClusterReported, EventRecord

if TYPE_CHECKING:
    from cockpit.backends.job_history import History
    from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
    from cockpit.backends.kubernetes.wire.api import Api
    from cockpit.model.ids import JobId
    from cockpit.model.job import Job

MOST_OBJECTS = 8
"""Most objects of one job whose events are asked for one by one; of more, all events of the namespace are listed."""
REST_SECONDS = 10.0
"""Least time between two questions about one job by a panel: an API server looks through all events of a namespace."""
MOST_RECORDS = 10_000
"""Most events that are kept; the one that came first is dropped first."""
_PAGE = msgspec.json.Decoder(Page[KubeEvent])
_LONGEST = 1000


class JobEvents:
    """The events of a cluster's jobs. Their sequence numbers follow the order in which this cockpit learned of them."""

    def __init__(self, api: Api, history: History) -> None:
        self._api, self._history = api, history
        self._records: dict[object, EventRecord] = {}
        self._read_last: tuple[JobId, float] | None = None
        """The job that was last asked about, and when, as the event loop counts time."""
        self._last = 0

    async def of_job(
        self, number: JobId, record: Job, job: KubeJob | None, *, recent: bool = False
    ) -> list[EventRecord]:
        """Return a job's events, oldest first. `job`: None for one that is gone, of which nothing new is reported.
        `recent`: whether the answer to a question of the last seconds suffices."""
        now = asyncio.get_running_loop().time()
        rests = self._read_last is not None and self._read_last[0] == number and now < self._read_last[1] + REST_SECONDS
        if job is not None and not (recent and rests):
            self._read_last = number, now
            uids = dict.fromkeys(_uids(job), number)
            await self._read(job.meta.namespace, uids, one_by_one=len(uids) <= MOST_OBJECTS)
        self._take(self._history.of(record))
        return sorted((each for each in self._records.values() if _job_of(each) == number), key=_in_time)

    async def of_all(self, jobs: Mapping[JobId, KubeJob], namespaces: Iterable[str]) -> list[EventRecord]:
        """Return the events of all jobs, oldest first."""
        uids = {uid: number for number, job in jobs.items() for uid in _uids(job)}
        for namespace in namespaces:
            await self._read(namespace, uids, one_by_one=False)
        self._take(self._history.events(after=-1, limit=MOST_RECORDS))
        return sorted(self._records.values(), key=_in_time)

    async def _read(self, namespace: str, uids: Mapping[str, JobId], *, one_by_one: bool) -> None:
        selectors = [f"involvedObject.uid={uid}" for uid in uids] if one_by_one else [""]
        try:
            lists = await asyncio.gather(
                *(read_list(self._api, EVENTS, _PAGE, namespace, fields=each) for each in selectors)
            )
        except ApiError as error:
            # A user who may not read events still sees what cockpit itself has seen.
            if error.is_forbidden:
                return
            raise
        found = {each.metadata.uid: each for listed in lists for each in listed.items}
        for each in sorted(found.values(), key=lambda event: event.at):
            if (number := uids.get(each.involved_object.uid)) is not None:
                self._put(each.metadata.uid, _record(each, number))

    def _take(self, seen: Iterable[EventRecord]) -> None:
        for each in seen:
            self._put(("seen", each.seq), each)

    def _put(self, key: object, new: EventRecord) -> None:
        old = self._records.get(key)
        if old is not None and replace(old, seq=0) == replace(new, seq=0):
            return
        # An event that was reported once more comes after what was known before.
        self._records.pop(key, None)
        self._last += 1
        self._records[key] = replace(new, seq=self._last)
        if len(self._records) > MOST_RECORDS:
            del self._records[next(iter(self._records))]


def chosen(records: list[EventRecord], after: int, limit: int) -> list[EventRecord]:
    """Return the first `limit` events after a sequence number; the last `limit` where `after` is below 0."""
    new = [each for each in records if each.seq > after]
    return new[:limit] if after >= 0 else new[-limit:]


def binding_event(records: Iterable[EventRecord]) -> str:
    """Return the last message in which a fleet's scheduler reported a binding; empty: there is none."""
    said = [each.body for each in records if isinstance(each.body, ClusterReported)]
    return next((each.message for each in reversed(said) if each.reason == REASON), "")


def _uids(job: KubeJob) -> Iterator[str]:
    yield job.meta.uid
    if job.queued is not None:
        yield job.queued.metadata.uid
    if job.fleet is not None and job.fleet.binding is not None:
        yield job.fleet.binding.metadata.uid
    for pod in job.pods:
        yield pod.metadata.uid


def _record(each: KubeEvent, number: JobId) -> EventRecord:
    about = f"{each.involved_object.kind} {each.involved_object.name}".strip()
    body = ClusterReported(
        job=number,
        about=about,
        reason=each.reason,
        message=each.message.strip()[:_LONGEST],
        by=each.by,
        count=each.times,
    )
    return EventRecord(seq=0, at=each.at, actor=each.by or "Kubernetes", origin=RECORDED, body=body)


def _job_of(record: EventRecord) -> JobId | None:
    return getattr(record.body, "job", None)


def _in_time(record: EventRecord) -> tuple[int, int]:
    return record.at, record.seq
