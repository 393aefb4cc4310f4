"""Pages of plain lines that commands print, and the sentences of dialogs about reservations, copies and accounts."""

from __future__ import annotations

from datetime import UTC

import pytest
from msgspec.structs import replace

from cockpit.launch.plan import LaunchPlan
from cockpit.model import accountchange as change
from cockpit.model.cluster import Reservation
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.reasons import Held
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.requests import RequestOutcome
from cockpit.model.staging import Progress, StagedCopy
from cockpit.present.account_panel import JOBS_PREVENT, question
from cockpit.present.columns import Context
from cockpit.present.requests import accepted_text, outcome_text, refusal_text
from cockpit.present.tables.catalogue import entry_page
from cockpit.present.tables.engine import findings_lines, record_lines
from cockpit.present.tables.jobs import JOBS
from cockpit.present.tables.launch import Launch, launch_lines
from cockpit.present.tables.overview import overview_lines
from cockpit.present.tables.reservations import end_question, reservation_line
from cockpit.present.tables.staged import copy_line, removal_question
from cockpit.runtime.findings import Finding, FindingLevel
from tests.doubles.catalogue import catalogue_shown
from tests.doubles.samples import HOUR, NOW, job_row, node_row, overview
from tests.present.recorded import assert_as_recorded

CONTEXT = Context(now=NOW, zone=UTC)
N1, N2 = NodeName("n01"), NodeName("n02")


@pytest.mark.req("UI-40")
def test_every_page_of_a_catalogue_entry_is_as_it_was() -> None:
    assert_as_recorded("catalogue-page", [line for row in catalogue_shown().rows for line in [*entry_page(row), ""]])


@pytest.mark.req("UI-40")
def test_the_overview_counts_jobs_and_resources_and_offers_the_next_commands() -> None:
    nodes = [node_row(), node_row("n12")]
    assert overview_lines(overview(), nodes) == [
        "lab: 2 nodes, 128 CPUs, 1T, 16 × A100.",
        "◌ 2 queued   ● 2 running   ✗ 1 error   1 held",
        "  CPUs    ━━━        36/128",
        "  memory             24G/1T",
        "  cards   ━          1.5/16",
        "  cockpit jobs              the jobs",
        "  cockpit holds             held containers of failed jobs",
        "  cockpit --help            everything else",
    ]


@pytest.mark.req("UI-40")
def test_the_overview_of_a_new_machine_says_how_to_submit_the_first_job() -> None:
    new = replace(overview(), jobs_by_state={}, held=0, card_milli=0, trouble=("the disk is full",), plain=True)
    first, *lines = overview_lines(new, [node_row(cards=())])
    assert first == "This machine: 128 CPUs, 1T. No jobs yet."
    assert lines[0] == "⚠ the disk is full"
    assert lines[1].startswith("⚠ ")
    assert lines[2:] == [
        "  cockpit submit job.yaml   submit one",
        "  cockpit doctor            see what this machine has and lacks",
        "  cockpit --help            everything else",
    ]
    assert overview_lines(new, [node_row(virtual=True)])[0].startswith("lab: ")


@pytest.mark.req("UI-40")
def test_the_overview_shows_no_bar_of_cards_where_there_are_none() -> None:
    lines = overview_lines(replace(overview(), card_milli=0, held=0), [node_row(cards=())])
    assert not any(each.startswith("  cards") for each in lines)
    assert not any("holds" in each for each in lines)


def reserved(**fields: object) -> Reservation:
    given = {"name": "maint", "nodes": (N1, N2), "start_at": NOW - HOUR, "end_at": NOW + 3 * HOUR, **fields}
    return Reservation(**given)


@pytest.mark.req("JT-44")
@pytest.mark.parametrize(
    ("reservation", "line"),
    [
        (reserved(users=("ann",)), "now, until 15:00 · n01 and n02 · for ann"),
        (reserved(start_at=NOW, maintenance=True), "now, until 15:00 · n01 and n02 · maintenance, no jobs"),
        (reserved(start_at=NOW + HOUR, nodes=(N1,), accounts=("nlp",)), "13:00 to 15:00 · n01 · for account nlp"),
        (
            reserved(nodes=(N1,) * 4, users=("ann", "bob"), accounts=("nlp", "cv")),
            "now, until 15:00 · n01, n01, n01 and n01 · for ann and bob of accounts nlp and cv",
        ),
        (reserved(nodes=(N1,) * 5, users=("ann",)), "now, until 15:00 · 5 nodes · for ann"),
    ],
)
def test_a_reservation_is_described_in_one_line(reservation: Reservation, line: str) -> None:
    assert reservation_line(reservation, NOW, UTC) == line


@pytest.mark.req("JT-44")
def test_ending_a_reservation_asks_with_its_name_and_nodes() -> None:
    assert end_question(reserved()) == (
        "End the reservation maint?",
        "n01 and n02 serve all jobs again; jobs that name the reservation wait.",
    )
    assert end_question(reserved(nodes=(N1,)))[1].startswith("n01 serves all jobs again")


def copied(**fields: object) -> StagedCopy:
    given = {
        "key": "a1b2",
        "what": "dataset",
        "source": "/data/coco",
        "size": 3 << 30,
        "users": (),
        "made_at": Millis(NOW - 5 * HOUR),
        "used_at": Millis(NOW - 2 * HOUR),
        "jobs": (),
        **fields,
    }
    return StagedCopy(**given)


@pytest.mark.req("LA-20")
def test_a_staged_copy_shows_its_size_its_jobs_or_its_last_use() -> None:
    assert copy_line(copied(), CONTEXT) == "dataset · 3G · last used 10:00"
    used = copied(jobs=(JobId(7), JobId(8)), users=("ann", "bob"))
    assert copy_line(used, CONTEXT) == "dataset · 3G · used by 7, 8 · ann, bob"
    assert copy_line(copied(progress=Progress(1 << 30, 4 << 30, 0)), CONTEXT) == "dataset · 25% of 3G"
    assert removal_question(copied()) == (
        "Remove the copy of /data/coco?",
        "3G come free; the next job that wants it copies it again.",
    )


@pytest.mark.req("UI-40")
def test_findings_are_marked_aligned_and_wrapped_with_their_advice_below() -> None:
    findings = [
        Finding(FindingLevel.OK, "bubblewrap", "0.8.0"),
        Finding(FindingLevel.MISSING, "podman", "is not installed", "apt install podman installs it\x07"),
        Finding(FindingLevel.NOTE, "cards", "none"),
    ]
    assert findings_lines(findings, None) == [
        "✓ bubblewrap  0.8.0",
        "✗ podman      is not installed",
        "              → apt install podman installs it\\x07",
        "· cards       none",
    ]
    assert findings_lines(findings[1:2], 30) == [
        "✗ podman  is not installed",
        "          → apt install podman",
        "            installs it\\x07",
    ]
    assert findings_lines(findings[1:2], 5)[1:] == ["          → apt install podman", "            installs it\\x07"]
    assert findings_lines([Finding(FindingLevel.OK, "a", "")], 40) == ["✓ a  "]


@pytest.mark.req("UI-40")
def test_a_record_shows_only_the_columns_with_a_text() -> None:
    columns = [column for name in ("id", "held_until", "name") if (column := JOBS.find(name)) is not None]
    assert record_lines(columns, job_row(7), CONTEXT) == ["id          7", "name        job-7"]


def launched(rank: int, **fields: object) -> Launch:
    env = {"RANK": str(rank), "WORLD_SIZE": "2"}
    plan = LaunchPlan(
        **{
            "argv": ("bash", "-c", "python t.py"),
            "env": env,
            "kept_env": {},
            "devices": (),
            "command": "python t.py\n  --fast",
            "files": {"/job/hosts": "a\nb"},
            "hostname": f"train-{rank}",
            "workdir": "/workspace",
            **fields,
        }
    )
    return Launch("train", rank, "n01", "python t.py", plan)


@pytest.mark.req("LA-60", "UI-40")
def test_the_environment_that_all_replicas_share_is_shown_once() -> None:
    assert list(launch_lines([launched(0), launched(1, hints=("no cards",), files={})])) == [
        "train: environment of every rank",
        "  WORLD_SIZE=2",
        "",
        "train: rank 0, host train-0",
        "  RANK=0",
        "  /job/hosts",
        "    a",
        "    b",
        "  given    python t.py",
        "  command  python t.py",
        "             --fast",
        "  runs     bash -c 'python t.py'",
        "",
        "train: rank 1, host train-1",
        "  RANK=1",
        "  given    python t.py",
        "  command  python t.py",
        "             --fast",
        "  runs     bash -c 'python t.py'",
        "  hint     no cards",
        "",
    ]
    alone = list(launch_lines([launched(0)]))
    assert alone[:3] == ["train: rank 0, host train-0", "  RANK=0", "  WORLD_SIZE=2"]


@pytest.mark.req("UI-09")
@pytest.mark.parametrize(
    ("wanted", "asked"),
    [
        (change.RemoveAccount("nlp"), "Remove account nlp?"),
        (change.RemoveUser("ann"), "Remove user ann from every account?"),
        (change.RemoveUser("ann", "nlp", "gpu"), "Remove user ann from account nlp, partition gpu?"),
        (change.RemoveQos("high"), "Remove QOS high?"),
        (change.RemoveCoordinators("nlp", ("ann", "bob")), "Take account nlp away from ann, bob?"),
        (change.AddAccount("nlp"), "Change the accounts?"),
    ],
)
def test_a_removal_from_the_accounts_is_confirmed_by_name(wanted: change.AccountChange, asked: str) -> None:
    assert question(wanted)[0] == asked
    if isinstance(wanted, change.RemoveUser):
        assert question(wanted)[1] == JOBS_PREVENT


@pytest.mark.req("TR-04")
def test_the_outcome_of_a_request_says_what_the_list_of_its_jobs_does_not() -> None:
    refusal = Refusal(RefusalKind.INVALID, "wrong", (("jobs[0]", Held("ann", NOW)),))
    known = RequestOutcome(known=True, op="submit_jobs", at=Millis(NOW - HOUR), jobs=(1, 2, 3))
    assert outcome_text("r1", known, 3, NOW, UTC) == ""
    assert outcome_text("r1", known, 1, NOW, UTC) == "2 jobs of request r1 are no longer listed."
    accepted = "Request r1 (submit jobs) was accepted at 11:00."
    assert outcome_text("r1", replace(known, jobs=()), 0, NOW, UTC) == accepted
    assert accepted_text("r1", known, NOW, UTC) == accepted
    assert accepted_text("r1", RequestOutcome(known=True), NOW, UTC) == "Request r1 (an act) was accepted."
    refused = outcome_text("r1", replace(known, jobs=(), refusal=refusal), 0, NOW, UTC)
    assert refused == f"Request r1 (submit jobs) was refused at 11:00: {refusal_text(refusal, NOW, UTC)}"
    assert refusal_text(refusal, NOW, UTC).splitlines()[0] == "wrong"
    assert refusal_text(refusal, NOW, UTC).splitlines()[1].startswith("jobs[0]: ")
    unknown = outcome_text("r1", RequestOutcome(known=False), 0, NOW, UTC)
    assert unknown.startswith("No request r1 of yours has been accepted so far.")
    assert "`--request-id r1`" in unknown
