"""Which queued jobs a defect keeps from being judged or foretold: written to the engine's log, and told at each job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.present.safe import safe
from cockpit.runtime.tasks import report_defect
from cockpit.sched.faults import described

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cockpit.model.ids import JobId
    from cockpit.model.job import Job

MOST_TOLD = 3
"""So many jobs are named in `engine status`, and how many more there are."""


class FaultLog:
    """Since the engine began. A job's defect is logged once, until another one is met or the job has changed."""

    def __init__(self) -> None:
        self._of: dict[JobId, tuple[int, str]] = {}
        """By queued job: the version of it that was judged, and what went wrong."""

    def note(self, faults: Mapping[JobId, Exception], queue: Mapping[JobId, Job]) -> list[JobId]:
        """Log what is new. Return the queued jobs of which something else is told from now on."""
        self._of = {job: known for job, known in self._of.items() if job in queue and known[0] == queue[job].version}
        new = {job: error for job, error in faults.items() if self._words(job) != described(error)}
        for job, error in new.items():
            report_defect(f"judging job {job}", error)
        queued = [job for job in new if job in queue]
        self._of |= {job: (queue[job].version, described(new[job])) for job in queued}
        return queued

    def of(self, job: Job) -> str:
        """Return what went wrong when the job was last judged; empty where nothing did."""
        version, words = self._of.get(job.id, (job.version, ""))
        return words if version == job.version else ""

    def sentences(self, queue: Mapping[JobId, Job]) -> tuple[str, ...]:
        """Return a sentence about the jobs that are still queued, for `engine status`; nothing where there are none."""
        told = {job: self.of(queue[job]) for job in self._of if job in queue}
        jobs = [job for job, words in told.items() if words]
        if not jobs:
            return ()
        named = ", ".join(str(job) for job in jobs[:MOST_TOLD])
        more = f" and {len(jobs) - MOST_TOLD} more" if len(jobs) > MOST_TOLD else ""
        which = "job" if len(jobs) == 1 else "jobs"
        sentence = (
            f"A defect in cockpit keeps {which} {named}{more} from being judged ({safe(told[jobs[0]])}); all other "
            "jobs are scheduled and foretold. Please report this with the engine's log."
        )
        return (sentence,)

    def _words(self, job: JobId) -> str:
        _, words = self._of.get(job, (0, ""))
        return words
