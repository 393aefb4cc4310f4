from __future__ import annotations

import gzip

import pytest

from cockpit.errors import SpecErrors
from cockpit.formats.traces.swf import (
    MOST,
    Skipped,
    history,
    machine,
    multifactor,
    processors_said,
    read_swf,
    swf_lines,
)
from cockpit.model.cluster import PriorityKind

LINE = "{number} {submit} 7 {run} {procs} -1 -1 {asks} {limit} -1 {status} {user} -1 -1 -1 -1 -1 -1"
USUAL = {"number": 1, "submit": 0, "run": 60, "procs": 4, "asks": 4, "limit": 100, "status": 1, "user": 3}


def line(**fields: object) -> str:
    return LINE.format(**(USUAL | fields))


def log(*lines: str) -> bytes:
    return "".join(f"{each}\n" for each in lines).encode()


def errors(data: bytes) -> tuple[str, ...]:
    with pytest.raises(SpecErrors) as wrong:
        read_swf("log.swf", data)
    return wrong.value.errors


@pytest.mark.req("SC-20")
def test_comments_and_empty_lines_are_skipped_and_jobs_sorted_by_submission_and_number() -> None:
    data = log(
        "; MaxProcs: 128", line(number=3, submit=9), "", line(number=2, submit=5), " ;", line(number=1, submit=9)
    )
    assert [job.number for job in read_swf("log", data)] == [2, 1, 3]


def test_a_compressed_log_is_recognized_by_its_first_bytes() -> None:
    (job,) = read_swf("log.swf", gzip.compress(log(line())))
    assert (job.waited, job.ran, job.asked_processors, job.asked_seconds, job.user) == (7, 60, 4, 100, 3)


def test_fractions_of_a_second_are_cut_off_and_other_fields_may_be_anything() -> None:
    (job,) = read_swf("log", log(line(run="60.9").replace("-1 -1 4", "0.3 nan 4")))
    assert job.ran == 60


def test_errors_name_the_line_and_say_what_to_do() -> None:
    data = log(line(), "1 2 3", line(run="soon"), line(number=-1))
    assert errors(data) == (
        "log.swf:2: 3 fields where SWF has 18; correct the line, or put `;` before it.",
        "log.swf:3: field 4 is 'soon' where SWF has a number; -1 means unknown.",
        "log.swf:4: a job needs a number (field 1) and a moment of submission (field 2), neither negative.",
    )


def test_only_the_first_of_many_errors_are_reported() -> None:
    told = errors(log(*["nonsense"] * 30))
    assert len(told) == 21
    assert told[-1] == "log.swf: … and 10 more"
    assert len(errors(log(*["nonsense"] * 20))) == 20


@pytest.mark.parametrize("data", [b"", b"; nothing\n", b"\n\n"])
def test_a_log_without_a_job_is_an_error(data: bytes) -> None:
    assert errors(data) == ("log.swf: no job in it; a log in SWF has 18 numbers a line.",)


@pytest.mark.parametrize("data", [gzip.compress(log(line()), mtime=0)[:-9], b"\x1f\x8bnonsense"])
def test_a_damaged_archive_is_an_error(data: bytes) -> None:
    (told,) = errors(data)
    assert told.startswith("log.swf: cannot be unpacked (")


def test_a_huge_number_is_an_error_not_a_crash() -> None:
    assert "field 4" in errors(log(line(run="1e999")))[0]
    assert errors(log(line(limit=MOST), line(limit=MOST + 1))) == (
        f"log.swf:2: field 9 is '{MOST + 1}', and may be {MOST} at most; -1 means unknown.",
    )


def test_invalid_bytes_are_reported_as_the_fields_they_are() -> None:
    assert "field 1 is" in errors(b"\xff\xfe" + log(line())[1:])[0]


def test_a_log_is_written_as_it_was_with_other_waits_and_run_times() -> None:
    job = read_swf("log", log(line()))
    written = list(swf_lines(job, [(12, 50)], ("MaxProcs: 4",)))
    assert written == ["; MaxProcs: 4\n", "1 0 12 50 4 -1 -1 4 100 -1 1 3 -1 -1 -1 -1 -1 -1\n"]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"status": 2}, Skipped.PART),
        ({"status": 3}, Skipped.PART),
        ({"status": 4}, Skipped.PART),
        ({"status": 5, "run": 0}, Skipped.CANCELLED),
        ({"status": 5, "run": -1}, Skipped.CANCELLED),
        ({"run": -1}, Skipped.UNKNOWN),
        ({"asks": -1, "procs": 0}, Skipped.UNKNOWN),
        ({"asks": 9}, Skipped.TOO_LARGE),
    ],
)
def test_jobs_that_no_scheduler_could_start_are_omitted_and_counted(fields: dict[str, object], why: Skipped) -> None:
    past = history(read_swf("log", log(line(**fields), line(number=2))), 8)
    assert dict(past.skipped) == {why: 1}
    assert [job.number for job in past.jobs] == [2]


@pytest.mark.parametrize(
    ("fields", "cpus", "limit", "runs"),
    [
        ({"status": 5}, 4, 100, 60),
        ({"status": 0, "run": 0}, 4, 100, 0),
        ({"asks": -1, "procs": 3}, 3, 100, 60),
        ({"limit": -1}, 4, 60, 60),
        ({"limit": 0}, 4, 60, 60),
        ({"asks": 0, "procs": 3}, 3, 100, 60),
        ({"asks": 8}, 8, 100, 60),
        ({"procs": 8, "asks": 1}, 1, 100, 60),
        ({"run": 150}, 4, 100, 100),
    ],
)
def test_the_request_and_the_run_time_of_a_job(fields: dict[str, object], cpus: int, limit: int, runs: int) -> None:
    (arrival,) = history(read_swf("log", log(line(**fields))), 8).arrivals
    spec = arrival.submitted.spec
    assert (spec.specs[0].cpus, spec.time_limit_seconds, arrival.runs_ms) == (cpus, limit, runs * 1000)


@pytest.mark.req("SC-21")
def test_with_perfect_times_each_job_requests_its_actual_run_time() -> None:
    (arrival,) = history(read_swf("log", log(line(run=150))), 8, perfect=True).arrivals
    assert (arrival.submitted.spec.time_limit_seconds, arrival.runs_ms) == (150, 150_000)


def test_each_user_is_one_submitter() -> None:
    arrivals = history(read_swf("log", log(line(), line(number=2), line(number=3, user=4))), 8).arrivals
    assert [each.submitted.submitter.name for each in arrivals] == ["user3", "user3", "user4"]


@pytest.mark.req("SC-20")
def test_a_job_arrives_at_its_moment_in_milliseconds_under_an_id_that_counts_the_replayed_jobs() -> None:
    first, second = history(
        read_swf("log", log(line(number=7, submit=5), line(number=9, submit=6, user=-1))), 8
    ).arrivals
    assert [(each.submitted.job, each.at) for each in (first, second)] == [(1, 5000), (2, 6000)]
    assert [each.submitted.submitter.uid for each in (first, second)] == [3, 0]
    assert (first.submitted.project, first.submitted.account) == ("user3", "users")


@pytest.mark.req("SC-20")
@pytest.mark.parametrize(
    ("header", "processors"),
    [
        ("; MaxProcs: 128\n; MaxNodes: 16\n", 128),
        (";MaxNodes:  16 \n", 16),
        ("; MaxProcs: -1\n", None),
        ("; MaxProcs: 0\n", None),
        ("; MaxProcs: 128 or more\n", None),
        ("", None),
    ],
)
def test_the_number_of_processors_is_that_of_the_header(header: str, processors: int | None) -> None:
    data = header.encode() + log(line())
    assert processors_said("log", data) == processors_said("log", gzip.compress(data)) == processors


@pytest.mark.req("SC-01")
def test_by_slurms_priority_the_users_of_a_log_have_equal_shares_of_one_account() -> None:
    rules, accounts = multifactor(history(read_swf("log", log(line(), line(number=2), line(number=3, user=4))), 8))
    priority = rules.cluster.priority
    assert priority.kind is PriorityKind.MULTIFACTOR
    assert (priority.weights.age, priority.weights.fairshare, priority.weights.job_size) == (1000, 10_000, 1000)
    assert priority.max_age_seconds == priority.decay_half_life_seconds == 14 * 86_400
    account, *members = accounts.associations
    assert (account.account, account.user, account.parent) == ("users", "", "root")
    assert [(each.user, each.default, each.shares) for each in members] == [("user3", True, 1), ("user4", True, 1)]


def test_the_machine_of_a_log_has_no_memory_to_run_out_of() -> None:
    assert (machine(8).name, machine(8).cpus, machine(8).memory_mib) == ("machine", 8, 0)
