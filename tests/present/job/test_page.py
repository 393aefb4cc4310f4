"""The tabs of a job's page that reckon: priority, replicas, usage, terminal, and the strip of reasons."""

from __future__ import annotations

from datetime import UTC

import pytest
from msgspec.structs import replace

from cockpit.model.attempt import ExitStatus, Replica
from cockpit.model.events import EventRecord, JobPlaced, ReplicaEnded, ShellOpened
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import JobState
from cockpit.model.jobdetail import JobDetail, ReplicaUse
from cockpit.model.node import Allocation, Card, CardSlice, Node
from cockpit.model.reasons import Held, LimitReached, Waited
from cockpit.present.columns import Context
from cockpit.present.job.answer import PanelContext
from cockpit.present.job.reason_strip import strip_lines
from cockpit.present.job.tabs import TABS, tab_lines
from cockpit.present.spans import Line, plain
from cockpit.runtime.containers.shim.plain import LACKS
from tests.doubles.samples import HOUR, MINUTE, NOW, WAITS, breakdown, detail, waiting_detail

N03 = Node(name=NodeName("n03"), cpus=8, memory_mib=65_536, cards=(Card(index=0, model="A100", slices=4),))
AROUND = PanelContext(
    Context(now=NOW, zone=UTC),
    100,
    30,
    {"shell": "s", "extend_hold": "+"},
    lambda _: None,
    node={"n03": N03}.get,
    letters=True,
)
KEPT = detail()


def shown(tab: str, of: JobDetail, around: PanelContext = AROUND) -> list[str]:
    return [plain(each) for each in tab_lines(tab, of, around)]


def running(*replicas: Replica, **fields: object) -> JobDetail:
    """Since two hours, on n03."""
    places = tuple(replace(KEPT.job.attempt.placement[0], rank=each.rank) for each in replicas)
    attempt = replace(KEPT.job.attempt, placement=places, replicas=replicas)
    spec = replace(KEPT.job.spec, nodes=len(replicas), command="python eval.py --rank $((COCKPIT_REPLICA + 1))")
    job = replace(KEPT.job, spec=spec, state=JobState.RUNNING, ended_at=None, held_until=None, attempt=attempt)
    row = replace(KEPT.row, state=JobState.RUNNING, ended_at=None, held_until=None)
    return replace(KEPT, row=row, job=job, **fields)


RUNS = Replica(rank=0, started_at=Millis(NOW - 2 * HOUR), limits="cgroup v2")


def test_the_tabs_are_in_order_of_use() -> None:
    assert TABS == ("why", "priority", "spec", "replicas", "logs", "events", "usage", "terminal", "record")


@pytest.mark.req("UI-03")
def test_a_priority_is_raw_times_weight_and_a_bar_of_factors() -> None:
    lines = shown("priority", waiting_detail())
    assert lines[0] == "  place 3 in the queue"
    assert lines[1].startswith("  ahead of it: 4722 (-), 4718 (-)")
    assert "  priority 17 450 in gpu" in lines
    (bar,) = (each for each in lines if "FFFF" in each)
    assert bar.strip().rstrip("-") == "a" * 17 + "F" * 64 + "s" + "p" * 8 + "q" * 5
    assert "  F fair share  0.5900 × 20 000 = 11 800  ━━━━━━━━━━━━━━━━━━━━" in lines
    assert "  s size        0.0650 ×  2 000 =    130  ╸···················" in lines
    assert [each.split()[-1] for each in lines[-2:]] == ["−100", "450"]


@pytest.mark.req("UI-03")
def test_a_priority_that_is_set_held_or_of_no_account_is_explained() -> None:
    waits = waiting_detail()
    direct = replace(waits, priority=(breakdown(4720, total=9000, parts=(), nice=0, direct=True),))
    assert "An administrator set it" in "".join(shown("priority", direct))
    assert "in order of submission" in "".join(shown("priority", replace(waits, priority=())))
    held = replace(waits, priority=(), job=replace(waits.job, held_by="ann"))
    assert "until it is released" in "".join(shown("priority", held))
    assert shown("priority", KEPT) == ["  It waits no longer: a priority counts only among jobs that wait."]


@pytest.mark.req("UI-03")
def test_each_rank_has_its_files_environment_and_final_command() -> None:
    lines = shown("replicas", running(RUNS, replace(RUNS, rank=1)))
    assert "  /workspace/volume/scratch  /scratch    read and write" in lines
    common, first, second = (lines.index(each) for each in lines if each.startswith(("  Env", "  Rank")))
    assert lines[common] == "  Environment of every rank"
    assert "    COCKPIT_JOB_NAME           bert-eval" in lines[common:first]
    assert lines[first : first + 4] == [
        "  Rank 0 on n03",
        "    of    python eval.py --rank $((COCKPIT_REPLICA + 1))",
        "    runs  python eval.py --rank 1",
        "    in    /workspace/algorithm on host bert-eval-0",
    ]
    assert [each.split() for each in lines[first + 4 : second - 1]] == [["COCKPIT_REPLICA", "0"]]
    assert lines[second + 2] == "    runs  python eval.py --rank 2"


@pytest.mark.req("UI-03")
def test_unknown_details_of_a_rank_are_reported() -> None:
    unknown = shown("replicas", running(RUNS), AROUND._replace(node=lambda _: None))
    assert "    n03 is not known here, so neither is what it gives to the container." in unknown
    unplaced = shown("replicas", waiting_detail())
    assert "not been placed" in unplaced[0]
    assert "  runs  python eval.py" in unplaced


@pytest.mark.req("UI-03")
def test_usage_counts_the_allocation_of_every_attempt() -> None:
    again = running(RUNS)
    attempt = replace(again.job.attempt, number=2)
    place = (Allocation(0, NodeName("n01"), 4, 16_384, (CardSlice(0, None),)),)
    records = (
        EventRecord(seq=1, at=Millis(NOW - 5 * HOUR), actor="e", origin="e", body=JobPlaced(JobId(1), 1, 0, place)),
        EventRecord(
            seq=2,
            at=Millis(NOW - 4 * HOUR),
            actor="e",
            origin="e",
            body=ReplicaEnded(JobId(1), 1, 0, ExitStatus(code=1)),
        ),
    )
    lines = shown("usage", replace(again, job=replace(again.job, attempt=attempt), events=records))
    assert "  holds       n03: 4 CPUs, 16G, 0.5 of a card" in lines
    assert lines[2].startswith("  time        2:00:00 ━━━━━━━╸····")
    assert lines[2].endswith("of 8:00:00, 25 %")
    assert [each.split() for each in lines if each.startswith(("  1 ", "  2 "))] == [
        ["1", "07:00", "1:00:00", "4.00", "1.00"],
        ["2", "10:00", "2:00:00", "8.00", "1.00"],
    ]


@pytest.mark.req("UI-03")
def test_measured_usage_is_shown_beside_the_allocation_and_the_rest_as_unknown() -> None:
    measured = running(RUNS, use=(ReplicaUse(0, cpu_ms=4 * HOUR, memory_mib=2048),))
    cpus, memory, cards = shown("usage", measured)[-3:]
    assert cpus.split() == ["CPUs", "2.0", "of", "4", "━━━━━·····", "4:00:00", "CPU", "time"]
    assert memory.split()[:4] == ["memory", "2G", "of", "16G"]
    assert cards.endswith("not measured: a part of a card has no figures of its own")
    soft = running(replace(RUNS, limits="soft: no cgroup is writable"))
    assert shown("usage", soft)[-1].endswith("no cgroup counts it (limits: soft: no cgroup is writable).")
    assert "it was not measured" in shown("usage", KEPT)[-1]
    assert "No resources are allocated yet" in shown("usage", waiting_detail())[-1]


@pytest.mark.req("UI-03", "UI-12", "JT-40")
def test_the_terminal_tab_shows_how_to_open_a_shell_and_past_shells() -> None:
    opened = EventRecord(
        seq=9, at=NOW, actor="root", origin="socket", body=ShellOpened(JobId(4715), 0, ("nvidia-smi", "\x1b[2J"))
    )
    lines = shown("terminal", replace(KEPT, events=(*KEPT.events, opened)))
    assert lines[0] == "  s  opens a shell in its container"
    assert "  replica 0 on n03 · ended 11:59 with exit 3 · held until 15:59" in lines
    assert "  Its files are as the job left them; its processes are gone and its cards are free." in lines
    assert "  held for 3:59 more   + extend hold" in lines
    assert "  12:00  root  0     nvidia-smi \\x1b[2J" in lines
    assert "No shell has been opened." in shown("terminal", KEPT)[-1]


def test_files_of_plain_processes_are_not_described_as_unchanged() -> None:
    attempt = KEPT.job.attempt
    assert attempt is not None
    alone = replace(attempt, replicas=(replace(attempt.replicas[0], limits=f"soft: no cgroup; {LACKS}"),))
    lines = shown("terminal", replace(KEPT, job=replace(KEPT.job, attempt=alone)))
    assert any("others may have changed its files since; its processes are gone" in each for each in lines)


@pytest.mark.req("UI-12")
def test_a_job_without_a_container_shows_the_reason() -> None:
    assert "once it runs" in shown("terminal", waiting_detail())[0]
    gone = replace(KEPT, row=replace(KEPT.row, held_until=None), job=replace(KEPT.job, held_until=None))
    assert "`terminal: true`" in shown("terminal", gone)[0]
    two = shown("terminal", running(RUNS, replace(RUNS, rank=1)))
    assert two[0] == "  s  opens a shell in one of its containers; you choose which"


def strip(of: JobDetail, around: PanelContext = AROUND) -> list[Line]:
    return list(strip_lines(of, around))


WAITED = (
    Waited(Millis(NOW - 150 * MINUTE), LimitReached("account nlp", "GrpTRES", "gres/gpu", 64, 60, 8)),
    Waited(Millis(NOW - 60 * MINUTE), WAITS),
    Waited(Millis(NOW - 30 * MINUTE), Held("ann", NOW)),
    Waited(Millis(NOW - 15 * MINUTE), WAITS),
)


@pytest.mark.req("UI-03")
def test_the_strip_shows_each_reason_in_proportion_to_its_duration() -> None:
    lines = [plain(each) for each in strip(replace(waiting_detail(), waited=WAITED), AROUND._replace(columns=64))]
    assert lines[0] == "  has waited for 3 h"
    assert lines[1] == "  " + "·" * 10 + "a" * 30 + "b" * 10 + "c" * 5 + "b" * 5
    assert lines[2:7] == [
        "  · 09:00  30 min      not seen by this engine",
        "  a 09:30  1 h 30 min  account nlp has 60 of 64 cards in use",
        "  b 11:00  30 min      needs 4 A100 on one node",
        "  c 11:30  15 min      held by ann",
        "  b 11:45  15 min      needs 4 A100 on one node",
    ]


@pytest.mark.req("UI-03")
def test_the_strip_ends_when_the_job_was_placed_and_is_omitted_without_observations() -> None:
    lines = [plain(each) for each in strip(replace(KEPT, waited=WAITED), AROUND._replace(columns=64))]
    assert lines[0] == "  waited for 1 h"
    assert lines[1] == "  " + "·" * 30 + "a" * 30
    assert strip(waiting_detail()) == []


def test_a_short_reason_is_visible_among_long_ones() -> None:
    brief = (WAITED[0], Waited(Millis(NOW - 61_000), WAITED[2].reason), Waited(Millis(NOW - 60_000), WAITS))
    line = plain(strip(replace(waiting_detail(), waited=brief), AROUND._replace(columns=64))[1])
    assert {"a", "b", "c"} <= set(line)
    assert len(line) == 62


@pytest.mark.req("UI-03")
def test_usage_of_a_job_that_ended_counts_from_the_first_container_to_the_last_end() -> None:
    first, last = replace(RUNS, rank=0, ended_at=Millis(NOW - HOUR)), replace(RUNS, rank=1, started_at=None)
    again = running(first, replace(last, ended_at=Millis(NOW - HOUR // 2)))
    placed = replace(again.job.attempt, placed_at=Millis(NOW - 3 * HOUR))
    over = replace(again.row, state=JobState.ERROR)
    ended = replace(again, row=over, job=replace(again.job, attempt=placed, ended_at=Millis(NOW - HOUR // 4)))
    assert _attempt(ended)[:3] == ["1", "10:00", "1:30:00"]
    unknown = tuple(replace(each, started_at=None, ended_at=None) for each in placed.replicas)
    without_times = replace(ended, job=replace(ended.job, attempt=replace(placed, replicas=unknown)))
    assert _attempt(without_times)[:3] == ["1", "09:00", "2:45:00"]
    never_ended = replace(without_times, job=replace(without_times.job, ended_at=None))
    assert _attempt(never_ended)[:3] == ["1", "09:00", "0:00"]


def _attempt(of: JobDetail) -> list[str]:
    """The words of the first attempt's line in the table of the usage tab."""
    return next(line.split() for line in shown("usage", of) if line.startswith("  1 "))
