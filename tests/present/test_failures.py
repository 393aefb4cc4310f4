"""Where a defect keeps a job from being judged, every place that tells of the job says so, in harmless words."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.engine.views.rows import job_row
from cockpit.model.forecast import Forecast, Outlook
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.reasons import Explanation, NoEligibleNode, NotEvaluated, QosRefused
from cockpit.present.columns import Context
from cockpit.present.job_values import why
from cockpit.present.outlook import outlook_lines
from cockpit.present.reasons import reason_sentence
from cockpit.present.spans import plain
from cockpit.present.tables.forecast import STARTS
from tests.sched.world import World, node

BAD = "IndexError: \x1b[31mred"
NOW = Context(now=Millis(0))
pytestmark = pytest.mark.req("SC-12", "SC-13")


def a_row(**fields):
    world = World(node("n1"))
    return replace(job_row(world.jobs[world.submit()], None), **fields)


def test_a_reason_that_failed_names_the_error_and_no_escape_sequence() -> None:
    said = reason_sentence(NotEvaluated(BAD), Millis(0), None)
    assert said.startswith("could not be judged because of a defect in cockpit")
    assert "IndexError" in said
    assert "\x1b" not in said
    assert reason_sentence(NotEvaluated(), Millis(0), None) == "waits for the scheduler to look at it"


def test_a_row_names_its_failure_once() -> None:
    said = why(a_row(reason=NotEvaluated(BAD), failure=BAD), NOW) or ""
    assert said.count("IndexError") == 1
    said = why(a_row(reason=QosRefused("high", ()), failure=BAD), NOW) or ""
    assert "may not use QOS high" in said
    assert said.count("its start is not known because of a defect in cockpit") == 1
    assert "\x1b" not in said


def test_the_starts_and_the_answer_name_it() -> None:
    row = a_row(reason=QosRefused("high", ()))
    (column,) = (each for each in STARTS.columns if each.id == "failure")
    assert column.fact(row, replace(NOW, failures={row.id: "KeyError"})) == "KeyError"
    assert column.fact(row, NOW) == ""
    answer = Outlook(job=row.id, name="job", position=1, explanation=None, forecast=Forecast(), failure=BAD)
    assert sum("IndexError" in plain(each) for each in outlook_lines(answer, NOW)) == 1
    assert not any("defect" in plain(each) for each in outlook_lines(replace(answer, failure=""), NOW))


def test_a_drained_node_is_named_once() -> None:
    n3, n4 = NodeName("n3"), NodeName("n4")
    reason = NoEligibleNode(pins=(n3,), out_of_service=(n3,), why_out=("drained: fan broken",))
    explanation = Explanation(JobId(1), reason, 1, ())
    unavailable = ((n3, "drained: fan broken"), (n4, "down"))
    answer = Outlook(
        job=JobId(1), name="job", position=1, explanation=explanation, forecast=Forecast(), unavailable=unavailable
    )
    said = [plain(each) for each in outlook_lines(answer, NOW)]
    assert sum("n3 is drained: fan broken" in each for each in said) == 1
    assert any("n4 is down" in each for each in said)
