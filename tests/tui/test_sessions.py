"""Sessions in the cockpit: made from a job, entered, and made a job of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cockpit.model.ids import JobId
from cockpit.model.spec import Access, JobKind
from cockpit.tui.controllers import shells
from tests.tui.lab import a_lab, a_members_lab, job

if TYPE_CHECKING:
    from cockpit.model.jobdetail import JobDetail
    from cockpit.tui.cockpit import Cockpit

READY = "Give a name"
SESSION = job("shells", command="", kind=JobKind.INTERACTIVE)
BOOK = job("book", command="jupyter lab", kind=JobKind.INTERACTIVE)


@pytest.mark.req("JT-39")
async def test_a_session_is_prefilled_from_a_job_and_its_shell_opens_once_it_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entered: list[tuple[int, str]] = []

    async def enter(_app: Cockpit, detail: JobDetail) -> None:
        entered.append((detail.row.id, detail.row.state))

    monkeypatch.setattr(shells, "enter", enter)
    monkeypatch.setattr(shells, "LOOKS", 100_000)
    monkeypatch.setattr(shells, "LOOK_SECONDS", 0.01)
    async with a_lab(job("train", cards=2, nodes=2, env={"LR": "1"})) as lab:
        cockpit = lab.cockpit
        await cockpit.sees("train").press("d").sees("A session like train", READY, "train-dev", "Starts now.")
        await cockpit.press("Ctrl-s").sees("submitted 2").misses("A session like")
        spec = (await lab.backend.job(JobId(2))).job.spec
        assert (spec.kind, spec.command, spec.nodes, spec.env) == (JobKind.INTERACTIVE, "", 1, {"LR": "1"})
        assert spec.specs[0].card_milli == 2000
        await cockpit.lives(30).finds(lambda _: entered == [(2, "running")], "is entered")


@pytest.mark.req("JT-39")
async def test_a_key_opens_the_shell_of_a_session_that_had_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shells, "LOOKS", 0)
    async with a_lab(job("train")) as lab:
        cockpit = lab.cockpit
        await cockpit.sees("train").press("d").sees("train-dev", "Starts now.").press("Ctrl-s")
        await cockpit.sees("session 2 is", "a enters it once it runs")


@pytest.mark.req("JT-39")
async def test_a_training_is_filled_from_a_session_without_its_command() -> None:
    async with a_lab(SESSION) as lab:
        cockpit = lab.cockpit
        await cockpit.sees("shells").press("d").sees("A training where shells is", "command", "is missing")
        await cockpit.press("Down").type("sleep 60").sees("Starts now.").press("Ctrl-s").sees("submitted 2")
        spec = (await lab.backend.job(JobId(2))).job.spec
        assert (spec.kind, spec.command, spec.name) == (JobKind.REGULAR, "sleep 60", "shells-2")


@pytest.mark.req("JT-03", "UI-03")
async def test_a_sessions_page_shows_its_end_and_its_notebook_address() -> None:
    async with a_lab(BOOK, job("plain")) as lab:
        cockpit = lab.cockpit
        await cockpit.sees("book", "running").press("Enter")
        await cockpit.sees("a session, which lasts until", "address", "http://0.0.0.0:8888/lab")
        await cockpit.press("Esc", "j", "a").sees("A job's command reads from no terminal")


@pytest.mark.req("JT-39", "JT-60")
async def test_a_user_with_read_access_may_develop_from_a_job_but_not_open_its_shell() -> None:
    session = job("seen", command="", kind=JobKind.INTERACTIVE, access=Access.RO, project="vision")
    async with a_members_lab(session) as cockpit:
        await cockpit.sees("seen").press("a").sees("its project may only look at it")
        await cockpit.press("d").sees("A training where seen is")
