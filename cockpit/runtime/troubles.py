"""The engine's current problems, in sentences for `engine status` and for refused requests.

`FaultLog` has the defects in cockpit that keep queued jobs from being scheduled or predicted, and `Outages` the outside
services that do not answer.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.present.safe import safe
from cockpit.present.units import spoken
from cockpit.runtime.tasks import report_defect
from cockpit.sched.faults import described

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cockpit.errors import StoreError
    from cockpit.model.ids import JobId
    from cockpit.model.job import Job


CLOCK_JUMP_MS = 10_000
"""Difference between the machine's clock and the engine's from which on it is reported."""


def unavailable(error: StoreError) -> Refusal:
    """Return the refusal of a request while the journal cannot be written."""
    return Refusal(RefusalKind.UNAVAILABLE, str(error), store=not error.passing)


def cause_of(error: StoreError) -> str:
    """Return the error's text without its claim that nothing was accepted, where that is not known or not true."""
    return str(error).replace(" Nothing was accepted.", "")


def given_up(error: Exception) -> Refusal:
    """Return the refusal of every change after an invariant of the engine was violated."""
    return Refusal(
        RefusalKind.UNAVAILABLE,
        f"The engine found its own records contradictory ({error}) and decides nothing more, so that nothing gets "
        "worse. Running jobs continue. `cockpit engine restart` reads the journal again; please report this with the "
        "engine's log.",
    )


def clock_trouble(offset_ms: int) -> str:
    """Return the warning about a machine's clock that is ahead of the engine's by this time; empty if it is close."""
    if abs(offset_ms) < CLOCK_JUMP_MS:
        return ""
    apart = spoken(abs(offset_ms) // 1000)
    if offset_ms > 0:
        return (
            f"This machine's clock has been set {apart} ahead of the engine's, which does not follow such jumps. "
            "If the machine is right, `cockpit engine restart` takes its time over."
        )
    return (
        f"This machine's clock has been set back to {apart} behind the engine's, which never goes back: "
        "times shown here are that much too late until the two meet."
    )


class Outages:
    """The sources that fail now. The first failure of each is logged, and the next one only after it has answered."""

    def __init__(self) -> None:
        self._failing: dict[str, str] = {}

    def note(self, source: str, why: str) -> bool:
        """Note that the source failed, or (empty `why`) answered. Return whether it did the other before; one that is
        new has answered."""
        changed = bool(why) is not (source in self._failing)
        if why and changed:
            print(f"cockpit engine: {source} {why}", file=sys.stderr)  # noqa: T201 - the engine's log
        if why:
            self._failing[source] = why
        else:
            self._failing.pop(source, None)
        return changed

    @property
    def sentences(self) -> tuple[str, ...]:
        """A sentence for each source that fails, for `engine status`."""
        return tuple(f"{source[0].upper()}{source[1:]} {why}." for source, why in self._failing.items())


MOST_NAMED = 3
"""Most jobs that `engine status` names; of the rest it gives the number."""


class FaultLog:
    """The defects since the engine process started. A job's defect is logged again only if it or the job changes."""

    def __init__(self) -> None:
        self._defects: dict[JobId, tuple[int, str]] = {}
        """For each queued job: the version of it for which the defect occurred, and the description."""

    def note(self, faults: Mapping[JobId, Exception], queue: Mapping[JobId, Job]) -> list[JobId]:
        """Log new defects. Return the queued jobs whose description has changed."""
        # A defect of an earlier version of a job may be gone; the next pass shows it.
        self._defects = {
            job: known for job, known in self._defects.items() if job in queue and known[0] == queue[job].version
        }
        new = {job: error for job, error in faults.items() if self._words(job) != described(error)}
        for job, error in new.items():
            report_defect(f"judging job {job}", error)
        queued = [job for job in new if job in queue]
        self._defects |= {job: (queue[job].version, described(new[job])) for job in queued}
        return queued

    def of(self, job: Job) -> str:
        """Return the description of the job's defect; empty if there is none."""
        version, words = self._defects.get(job.id, (job.version, ""))
        return words if version == job.version else ""

    def sentences(self, queue: Mapping[JobId, Job]) -> tuple[str, ...]:
        """Return a sentence about the queued jobs with defects, for `engine status`; nothing without such jobs."""
        descriptions = {job: self.of(queue[job]) for job in self._defects if job in queue}
        jobs = [job for job, words in descriptions.items() if words]
        if not jobs:
            return ()
        named = ", ".join(str(job) for job in jobs[:MOST_NAMED])
        more = f" and {len(jobs) - MOST_NAMED} more" if len(jobs) > MOST_NAMED else ""
        which = "job" if len(jobs) == 1 else "jobs"
        sentence = (
            f"A defect in cockpit keeps {which} {named}{more} from being scheduled or predicted "
            f"({safe(descriptions[jobs[0]])}); all other jobs are. Please report this with the engine's log."
        )
        return (sentence,)

    def _words(self, job: JobId) -> str:
        _, words = self._defects.get(job, (0, ""))
        return words
