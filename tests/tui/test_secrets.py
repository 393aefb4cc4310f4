"""Secrets in every text of a cluster: no view, page, dialog or picture of the screen shows one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cockpit.cli import read_jobs
from cockpit.config.filters import SavedFilters
from cockpit.tui.app import defect_text
from cockpit.tui.opening import Session
from cockpit.tui.picture import screen_svg, screen_text
from cockpit.tui.views.all import VIEWS
from tests.doubles.samples import NOW
from tests.secrets_planted import PLANTED, SecretsBackend
from tests.tui.driver import at_the_cockpit

if TYPE_CHECKING:
    from cockpit.tui.app import CockpitApp

pytestmark = pytest.mark.req("TR-10")
ON_A_VIEW = ("G", "g", "j", "/", "Escape", "Enter", "G", "Escape", "Escape")
"""Up and down, into what is under the cursor, and back."""
ON_A_JOB = ("Enter", *("]", "Ctrl-d") * 9, "Escape", "l", "g", "w", "G", "o", "Escape", "x", "Escape")
ELSEWHERE = ("?", "Escape", "F", "Escape")


async def test_no_view_shows_a_secret() -> None:
    async def close() -> None:
        pass

    session = Session(
        backend=SecretsBackend(),
        now=lambda: NOW,
        user="ann",
        read_jobs=read_jobs,
        close=close,
        filters=SavedFilters(),
        clusters={"lab": "HF_TOKEN=planted-1"},
    )
    async with at_the_cockpit(session, (220, 60)) as cockpit:
        await cockpit.sees("***")
        for view in VIEWS:
            await cockpit.press(":").type(view).press("Enter")
            assert PLANTED not in screen_svg(cockpit.app).lower(), view
            for key in ON_A_VIEW:
                check(cockpit.app, f"{view}, then {key}")
                await cockpit.press(key)
        for key in ("1", "g", *ON_A_JOB, *ELSEWHERE):
            await cockpit.press(key)
            check(cockpit.app, key)


def check(app: CockpitApp, where: str) -> None:
    shown = screen_text(app).lower()
    assert PLANTED not in shown, f"{where}: {next(line for line in shown.splitlines() if PLANTED in line)}"


def test_a_traceback_is_masked() -> None:
    try:
        int("HF_TOKEN=planted-1 at https://me:planted-2@host/")
    except ValueError as error:
        shown = defect_text(error)
    assert PLANTED not in shown
    assert "HF_TOKEN=***" in shown
