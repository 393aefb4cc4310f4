"""Jobs whose command has failed and whose wrapper keeps their allocation: the comment that it left says so."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from cockpit.model.ids import Millis
from cockpit.model.job import EndCause, ExitStatus, Job, JobState
from cockpit.model.spec import DebugHold, HoldCards
from cockpit.model.view import HoldRow

_HELD = re.compile(r"cockpit:held rc=(\d{1,3}) until=(\d{1,12})")


def held(job: Job, comment: str) -> Job:
    """The job as kept, where its comment says that it is: ended with that code, its cards still its own."""
    found = _HELD.fullmatch(comment)
    if found is None or job.state is not JobState.RUNNING or job.attempt is None:
        return job
    return replace(
        job,
        state=JobState.ERROR,
        exit=ExitStatus(code=int(found[1])),
        end_cause=EndCause.EXIT,
        ended_at=job.attempt.placed_at,
        held_until=Millis(1000 * int(found[2])),
        spec=replace(job.spec, terminal=True, debug_hold=DebugHold(cards=HoldCards.KEEP)),
    )


def holds(jobs: Iterable[Job]) -> Iterator[HoldRow]:
    """Those that are kept, the first to end first."""
    kept = [job for job in jobs if job.kept]
    for job in sorted(kept, key=lambda job: job.held_until or 0):
        attempt, until = job.attempt, job.held_until
        assert attempt is not None
        assert until is not None
        yield HoldRow(
            job=job.id,
            name=job.spec.name,
            user=job.submitter.name,
            state=job.state,
            exit_code=job.exit.shell_code if job.exit is not None else None,
            nodes=tuple(each.node for each in attempt.placement),
            ended_at=job.ended_at or attempt.placed_at,
            held_until=until,
            keeps_card_milli=job.spec.specs[0].card_milli * job.spec.nodes,
        )
