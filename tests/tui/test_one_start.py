"""The start of a job is one figure: in the list, the panel below it, the job's page and the commands."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from cockpit.backends.demo.backend import open_demo
from cockpit.present.columns import Context
from cockpit.present.job.page import job_page
from cockpit.present.outlook import outlook_lines
from cockpit.present.spans import plain
from cockpit.present.tables.forecast import STARTS
from cockpit.present.tables.outlook import EXPLAIN
from tests.tui.driver import Cockpit, at_the_cockpit, under_cursor
from tests.tui.lab import session_of

if TYPE_CHECKING:
    from cockpit.backends.demo.backend import DemoCluster
    from cockpit.model.ids import JobId

FRAMES, ROUNDS = 20, 10
IN_LIST = re.compile(r" ~(\d\S*?)[+-]? ")
IN_PANEL = re.compile(r"starts about (\d\d-\d\d \d\d:\d\d|\d\d:\d\d)")


def starts_on(screen: str) -> tuple[str, str]:
    """What the row under the cursor and the panel say; empty: nothing."""
    row, panel = IN_LIST.search(under_cursor(screen)), IN_PANEL.search(screen)
    return row[1] if row else "", panel[1] if panel else ""


async def queued_only(cockpit: Cockpit) -> Cockpit:
    await cockpit.press("/").type("state:queued").press("Enter").misses("● running")
    return cockpit


@pytest.mark.req("UI-32", "SC-12")
@pytest.mark.parametrize("seed", [1, 7])
async def test_list_and_panel_agree_in_every_frame_while_the_cursor_moves_and_time_goes_on(seed: int) -> None:
    demo, seen = await open_demo("campus", seed, going=False), 0
    async with at_the_cockpit(session_of(demo), (170, 40)) as cockpit:
        await queued_only(cockpit)
        for frame in range(FRAMES):
            screen = await cockpit.lives(6 * (frame % 5)).press("j" if frame // 5 % 2 == 0 else "k")
            row, panel = starts_on(screen)
            if panel:  # the panel has the row's own words until its answer is there
                assert panel.startswith(row), screen
                seen += bool(row)
    assert seen >= FRAMES // 4


@pytest.mark.req("UI-32", "SC-12")
async def test_the_page_shows_what_the_list_shows() -> None:
    demo = await open_demo("campus", 1, going=False)
    async with at_the_cockpit(session_of(demo), (170, 40)) as cockpit:
        await queued_only(cockpit)
        await cockpit.lives(6).sees("starts about")
        demo.pace.pause()  # list and page may still show answers of moments before; the next ones are of this moment
        for _ in range(ROUNDS):
            row, panel = starts_on(await cockpit.press("j").press("k").sees("starts about"))
            page = starts_on(await cockpit.press("Enter").sees("starts about"))[1]
            await cockpit.press("Esc").sees("starts about")
            if row and page.startswith(row) and panel.startswith(row):
                return
    raise AssertionError(f"the list says {row}, the panel {panel}, and the page {page}")


def said_by_commands(demo: DemoCluster, job: JobId, context: Context, found: dict[str, object]) -> set[str]:
    """The start of one job, from every document that commands write at one moment."""
    row, outlook, detail = found["row"], found["outlook"], found["detail"]
    (listed,) = json.loads(
        json.dumps([column.json([row], context)[0] for column in STARTS.columns if column.id == "starts_at"])
    )
    (explained,) = [column.json([outlook], context)[0] for column in EXPLAIN.columns if column.id == "likely_at"]
    assert listed == explained, job
    pages = ["\n".join(job_page(detail, context)), *map(plain, outlook_lines(outlook, context))]  # type: ignore[arg-type] # of these
    return {match[1] for text in pages if (match := re.search(r"[Ss]tarts about (\S+(?: \d\d:\d\d)?) \(", text))}


@pytest.mark.req("UI-32", "SC-12")
async def test_every_command_shows_the_same_start_at_one_time() -> None:
    demo, asked = await open_demo("campus", 3, going=False), 0
    for _ in range(5):
        await demo.elapse(40)
        rows = {row.id: row for row in await demo.backend.jobs() if row.queued}
        told = {each.job: each for each in await demo.backend.starts(list(rows))}
        context = Context(now=demo.now(), forecasts={job: each.forecast for job, each in told.items()})
        for job in list(rows)[:6]:
            outlook, detail = await demo.backend.explain(job), await demo.backend.job(job)
            assert (told[job].at if job in told else None) == outlook.forecast.likely_at
            if job not in told or outlook.forecast.now:
                continue
            whole = told[job].forecast
            ranges = {(each.likely_from, each.likely_to, each.latest_at) for each in (whole, outlook.forecast)}
            assert len(ranges) == 1
            found: dict[str, object] = {"row": rows[job], "outlook": outlook, "detail": detail}
            assert len(said_by_commands(demo, job, context, found)) == 1
            asked += 1
    assert asked > 10
    await demo.close()
