from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from cockpit.model.attempt import Attempt, EndCause, ExitStatus
from cockpit.model.ids import JobId, Millis, NodeName, UserName
from cockpit.model.job import Job, JobState, Submitter
from cockpit.model.node import Allocation
from cockpit.model.spec import DebugHold, HoldAllocation, HoldCards, NodeSpec
from cockpit.present.job.hold_words import cost_words, uncovered_words
from tests.builders import a_spec

NOW = Millis(1_000_000_000)
KEPT = DebugHold(cards=HoldCards.KEEP, allocation=HoldAllocation.KEEP)


def kept(hold: DebugHold = KEPT, cards: float = 2, nodes: int = 2) -> Job:
    spec = replace(
        a_spec("job"),
        nodes=nodes,
        specs=(NodeSpec(cpus=4, card_milli=int(cards * 1000)),),
        terminal=True,
        debug_hold=hold,
    )
    placement = tuple(Allocation(rank, NodeName(f"n{rank}"), 4, 100) for rank in range(nodes))
    return Job(
        id=JobId(7),
        spec=spec,
        submitter=Submitter(UserName("ann"), 1, 1, (1,), "/home/ann"),
        project="ann",
        submitted_at=NOW,
        state=JobState.ERROR,
        state_since=NOW,
        held_until=Millis(NOW + 30 * 60_000),
        attempt=Attempt(number=1, spec_index=0, placement=placement, placed_at=NOW, replicas=()),
    )


@pytest.mark.req("SL-23")
@pytest.mark.parametrize(
    ("job", "said"),
    [
        (kept(), "4 cards and 8 CPUs stay its own and are billed: 2.0 card-hours until then"),
        (kept(cards=0), "8 CPUs stay its own and are billed: 4.0 CPU-hours until then"),
        (kept(DebugHold(cards=HoldCards.KEEP), 1, 1), "1 card stays its own and is billed: 0.5 card-hours until then"),
        (kept(cards=0.25, nodes=1), "0.25 card and 4 CPUs stay its own and are billed: 0.1 card-hours until then"),
        (
            kept(DebugHold(cards=HoldCards.KEEP), 0.5, 3),
            "1.5 cards stay its own and are billed: 0.8 card-hours until then",
        ),
        (
            kept(DebugHold(cards=HoldCards.KEEP), 0.5, 1),
            "0.5 card stays its own and is billed: 0.2 card-hours until then",
        ),
        (kept(DebugHold()), ""),
    ],
)
def test_held_resources_are_shown_with_their_cost(job: Job, said: str) -> None:
    assert cost_words(job, NOW) == said


@pytest.mark.req("SL-23")
@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"end_cause": EndCause.TIME_LIMIT, "state": JobState.EXPIRED}, "its time limit"),
        ({"end_cause": EndCause.LOST}, "the failure of a node"),
        ({"end_cause": EndCause.EXIT, "exit": ExitStatus(signal=9, oom=True)}, "running out of memory"),
    ],
)
def test_an_end_that_prevents_a_held_container_is_explained(fields: dict[str, Any], cause: str) -> None:
    job = replace(kept(), held_until=None, **fields)
    said = f"No container is held: {cause} ended the script that would have held it."
    assert uncovered_words(job) == said
    assert uncovered_words(replace(job, spec=replace(job.spec, debug_hold=DebugHold()))) == ""


def test_a_failed_command_without_a_held_container_is_explained() -> None:
    assert uncovered_words(replace(kept(), held_until=None, end_cause=EndCause.EXIT, exit=ExitStatus(code=3))) == ""
