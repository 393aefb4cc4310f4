"""Answers that are cut exactly between two records, or have none: ended jobs, steps, reservations, files of one job."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cockpit.backends.slurm.mapping import accounting, cross_checks, listing, reservations
from cockpit.backends.slurm.mapping.jobs import Listed
from cockpit.backends.slurm.wire.calls import Garbled, Printed
from cockpit.errors import CockpitError
from cockpit.model.asking import LogRequest
from cockpit.model.ids import JobId
from tests.backends.slurm.paper_cluster import Fault, PaperCluster
from tests.backends.slurm.test_values import a_record
from tests.backends.slurm.test_whole import a_cockpit

Lines = Callable[[list[str]], list[str]]


def lines(keep: Lines) -> Fault:
    return lambda printed: printed._replace(stdout="".join(keep(printed.stdout.splitlines(keepends=True))))


CUTS = {
    "the heading alone": lines(lambda each: each[:1]),
    "the first lines": lines(lambda each: each[:4]),
    "all but the last line": lines(lambda each: each[:-1]),
    "the first bytes": lambda printed: printed._replace(stdout=printed.stdout[: printed.stdout.find("\n", 900) + 1]),
}


@pytest.mark.req("TR-04", "SL-10")
@pytest.mark.parametrize("name", CUTS)
async def test_a_list_of_ended_jobs_that_is_cut_between_two_of_them_is_an_error(name: str) -> None:
    paper = PaperCluster()
    paper.faults = {"sacct": CUTS[name], "sacct ids": CUTS[name]}
    with pytest.raises(Garbled, match=r"The answer of sacct is not whole: .*leaves out"):
        await a_cockpit(paper)[0].jobs(ended=True)


@pytest.mark.req("TR-04", "SL-10")
async def test_an_open_cockpit_keeps_the_ended_jobs_that_a_cut_list_lacks() -> None:
    paper = PaperCluster()
    cockpit, clock = a_cockpit(paper)
    truth = await cockpit.jobs(ended=True)
    paper.faults = {"sacct": CUTS["the first lines"], "sacct ids": CUTS["the first lines"]}
    clock.advance(60_000)
    assert await cockpit.jobs(ended=True) == truth
    (trouble,) = (await cockpit.status()).trouble
    assert "leaves out" in trouble
    assert trouble.endswith("Its last answer is shown.")
    paper.faults = {}
    clock.advance(60_000)
    assert await cockpit.jobs(ended=True) == truth
    assert (await cockpit.status()).trouble == ()


@pytest.mark.req("SL-03")
async def test_an_open_cockpit_asks_for_the_ids_of_ended_jobs_once() -> None:
    paper = PaperCluster()
    cockpit, clock = a_cockpit(paper)
    await cockpit.jobs(ended=True)
    paper.asked.clear()
    for _ in range(3):
        clock.advance(60_000)
        await cockpit.jobs(ended=True)
    assert (paper.asked.count("sacct"), paper.asked.count("sacct ids")) == (3, 0)


@pytest.mark.req("TR-04", "SL-10")
@pytest.mark.parametrize("name", ["the heading alone", "the first lines"])
async def test_an_ended_job_whose_record_is_cut_off_is_not_unknown(name: str) -> None:
    paper = PaperCluster()
    cockpit, _ = a_cockpit(paper)
    listed = {row.id for row in await cockpit.jobs()}
    ended = next(row.id for row in await cockpit.jobs(ended=True) if row.id not in listed)
    whole = await cockpit.job(ended)
    paper.faults = {"sacct": CUTS[name]}
    try:
        assert await a_cockpit(paper)[0].job(ended) == whole
    except CockpitError as error:
        assert "leaves out" in str(error)  # noqa: PT017 - either is right


@pytest.mark.req("TR-04", "SL-11")
def test_reservations_are_those_that_sinfo_names_too() -> None:
    table = (
        "maint      INACTIVE  2026-11-28T06:57:30  2026-11-28T07:57:30     01:00:00  cn16\n"
        "a_very_long_name    ACTIVE  2026-11-28T09:57:30  2026-11-28T10:57:30     01:00:00  cn15\n"
    )
    assert list(reservations.names(table)) == ["maint", "a_very_long_name"]
    assert list(reservations.names("No reservations in the system\n")) == []
    check = cross_checks.of_reservations([], reservations.names(table))
    assert check.lacks("ReservationName=maint StartTime=2026-11-28T06:57:30\n") == {"a_very_long_name"}


@pytest.mark.req("TR-04", "SL-14")
def test_details_are_those_of_the_live_jobs_that_were_there_before() -> None:
    at = 1_795_867_200_000
    early, late = "2026-11-28T11:59:00", "2026-11-28T12:00:00"
    jobs = [
        Listed(a_record(JobID="1", State="PENDING", SubmitTime=early)),
        Listed(a_record(JobID="2", State="RUNNING", SubmitTime=early)),
        Listed(a_record(JobID="3", State="PENDING", SubmitTime=late)),
        Listed(a_record(JobID="4", State="COMPLETED", SubmitTime=early)),
    ]
    check = cross_checks.of_details(jobs, at)
    assert check.lacks("JobId=1 JobName=x\n   Comment=JobId=2\n\n") == {"2"}
    assert check.alone("2")[-2:] == ("job", "2")
    # scontrol leaves out the jobs of hidden partitions without this option.
    assert "--all" in check.alone("2")
    assert "--all" in listing.command()


@pytest.mark.req("TR-04", "SL-10")
async def test_an_empty_answer_about_a_listed_job_is_an_error() -> None:
    paper = PaperCluster()
    cockpit, _ = a_cockpit(paper)
    job = next(row.id for row in await cockpit.jobs())

    def headed(printed: Printed) -> Printed:
        return printed._replace(stdout=printed.stdout.splitlines(keepends=True)[0])

    paper.faults = {"squeue": lambda printed: headed(printed) if printed.stdout.startswith("STDOUT") else printed}
    with pytest.raises(Garbled, match="The answer of squeue is not whole: it leaves out job"):
        await cockpit.job(job)


@pytest.mark.req("SL-03")
def test_a_window_that_moves_is_compared_from_its_first_minute_on() -> None:
    noon = 1_795_867_200_000
    assert accounting.compared_since("now-8hours", noon) == "2026-11-28T04:01:00"
    assert accounting.compared_since("now-1days", noon) == "2026-11-27T12:01:00"
    assert accounting.compared_since("2026-11-01T00:00:00", noon) == "2026-11-01T00:00:00"


class WithFiles(PaperCluster):
    """Also answers what reads the files of jobs."""

    def __init__(self, size: str, piece: str) -> None:
        super().__init__()
        self.size, self.piece = size, piece

    async def run(self, argv, *, seconds, stdin=b"", reading=True) -> Printed:
        if argv[0] in {"stat", "sh"}:
            return Printed(self.size if argv[0] == "stat" else self.piece, "", 0)
        return await super().run(argv, seconds=seconds, stdin=stdin, reading=reading)


@pytest.mark.req("TR-04", "SL-10")
@pytest.mark.parametrize(("size", "piece"), [("", "aGVsbG8="), ("5", "\x00\ufffd"), ("5", ""), ("5", "a"), ("x\n", "")])
async def test_a_log_that_comes_garbled_is_an_error(size: str, piece: str) -> None:
    cockpit, _ = a_cockpit(WithFiles("5\n", "aGVsbG8="))
    job = next(row.id for row in await cockpit.jobs() if row.started_at is not None)
    assert (await cockpit.logs(LogRequest(job=JobId(job)))).data == b"hello"
    broken, _ = a_cockpit(WithFiles(size, piece))
    with pytest.raises(Garbled, match="is not whole"):
        await broken.logs(LogRequest(job=JobId(job)))
