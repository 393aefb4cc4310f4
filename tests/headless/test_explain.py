from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.model.forecast import Awaited, Change, Forecast, Holding, Outlook, WhatIf
from cockpit.model.ids import JobId, Millis
from cockpit.model.reasons import Explanation, NotEnoughFree, Resource
from cockpit.model.refusal import Refusal, RefusalKind
from tests.builders import HOUR, NOON, a_spec
from tests.headless.conftest import Desk

WAITS = NotEnoughFree(Resource.CARDS, 4, ("A100",), 1, 0, ())
OUTLOOK = Outlook(
    job=JobId(4720),
    name="vit-sweep",
    position=3,
    explanation=Explanation(JobId(4720), WAITS, 3, (JobId(4718),)),
    forecast=Forecast(
        likely_at=Millis(NOON + HOUR),
        latest_at=Millis(NOON + 2 * HOUR),
        after=(Awaited(JobId(0), NOON), Awaited(JobId(4711), Millis(NOON + HOUR))),
    ),
    what_ifs=(
        WhatIf(Change.CARDS, "4", "2", a_spec("vit-sweep"), Forecast(now=True, likely_at=NOON)),
        WhatIf(Change.LIMIT, "28800", "7200", a_spec("vit-sweep"), Forecast(likely_at=Millis(NOON + 600_000))),
    ),
    named=(
        Holding(JobId(4718), "first", "carol", running=False, nodes=4, cpus=32, memory_mib=1, card_milli=32_000),
        Holding(JobId(4711), "runs", "ann\x1b[31m", running=True, nodes=1, cpus=8, memory_mib=1, card_milli=0),
    ),
)


@pytest.fixture
def asked(desk: Desk) -> Desk:
    desk.backend.outlooks[4720] = OUTLOOK
    return desk


@pytest.mark.req("SC-12", "SC-13")
def test_an_explanation_says_rule_start_those_awaited_those_ahead_and_what_would_help(asked: Desk) -> None:
    head, why, after, ahead, *what_ifs = asked("explain", "4720").lines
    assert head.startswith("4720 vit-sweep  queued behind 2, starts about ")
    assert ", no later than " in head
    assert why == "  Waits for 4 A100 on one node."
    assert after.startswith("  after another user's job ends about ")
    assert " and 4711 (ann" in after
    assert "\x1b" not in after
    assert ahead == "  ahead 4718 (carol, 32 cards) and 1 more"
    assert what_ifs[0] == "  with 2 cards instead of 4: now"
    assert what_ifs[1].startswith("  with a limit of 2 h instead of 8 h: in ")


@pytest.mark.req("SC-13")
def test_programs_get_the_reason_the_moments_and_each_what_if(asked: Desk) -> None:
    (row,) = json.loads(asked("explain", "4720", "-o", "json").out)["rows"]
    assert (row["id"], row["position"], row["starts_now"]) == (4720, 3, "no")
    assert row["reason"]["type"] == "not_enough_free"
    assert row["likely_at"] < row["latest_at"]
    assert [each["job"] for each in row["after"]] == [None, 4711]
    assert row["ahead"][0]["card_milli"] == 32_000
    assert [(each["change"], each["after"], each["starts_now"]) for each in row["what_ifs"]] == [
        ("cards", "2", True),
        ("limit", "7200", False),
    ]


@pytest.mark.req("JT-32")
def test_a_file_is_predicted_and_not_submitted(asked: Desk, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("{name: vit, command: 'true', output: /tmp/out}")
    now = Forecast(now=True, likely_at=NOON, latest_at=NOON)
    asked.backend.outlooks[4720] = replace(OUTLOOK, job=JobId(0), position=1, explanation=None, forecast=now)
    done = asked("predict", str(file))
    assert (done.code, done.lines[0]) == (0, "vit-sweep  starts now.")
    assert [call[0] for call in asked.backend.asked] == ["predict"]
    assert json.loads(asked("predict", str(file), "-o", "json").out)["rows"][0]["id"] is None


@pytest.mark.req("JT-32")
def test_what_would_be_refused_is_refused_with_its_place(asked: Desk, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("{name: vit, command: 'true', output: /tmp/out}")
    asked.backend.refusal = Refusal(RefusalKind.INVALID, "nodes: too many")
    done = asked("predict", str(file))
    assert done.code != 0
    assert str(file) in done.err
    assert "nodes: too many" in done.err


@pytest.mark.req("SC-12")
def test_what_nobody_can_say_is_said_so(asked: Desk) -> None:
    asked.backend.outlooks[4720] = replace(OUTLOOK, forecast=Forecast(), what_ifs=())
    assert "nobody can say when it starts." in asked("explain", "4720").lines[0]
