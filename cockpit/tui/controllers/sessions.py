"""Controllers that make an interactive session of a job, open its terminal, and make a training of a session."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cockpit.model.job import JobState
from cockpit.model.spec import JobKind
from cockpit.present.job.sessions import waiting_words
from cockpit.tui.controllers.jobs import enter, task_of

if TYPE_CHECKING:
    from cockpit.model.ids import JobId
    from cockpit.model.jobdetail import JobDetail
    from cockpit.tui.cockpit import Cockpit

LOOKS, LOOK_SECONDS = 25, 0.2
"""The number of checks of a new session, and the seconds between two; one that starts later is opened with a key
instead."""


async def develop(app: Cockpit) -> None:
    """Open the form of a session like the job, and its terminal once it runs; for a session, the form of a training."""
    from cockpit.tui.editing import write_session, write_training

    (row, *_) = app.selection.chosen_rows()
    spec = (await app.backend.job(row.id, task=task_of(row))).job.spec
    if spec.kind is JobKind.INTERACTIVE:
        await write_training(app, spec)
    elif (job := await write_session(app, spec)) is not None:
        await _enter_once_it_runs(app, job)


async def _enter_once_it_runs(app: Cockpit, job: JobId) -> None:
    detail = await _begun(app, job)
    if detail.row.state is JobState.RUNNING and not detail.job.spec.command:
        await enter(app, detail)
    else:
        app.notify(waiting_words(detail, app.state.context(), app.state.around(0).keys.get("attach", "")))


async def _begun(app: Cockpit, job: JobId) -> JobDetail:
    """Return the job once it runs or has ended, else after the last check."""
    detail = await app.backend.job(job)
    for _ in range(LOOKS):
        if detail.row.state is JobState.RUNNING or detail.row.ended_at is not None:
            break
        await asyncio.sleep(LOOK_SECONDS)
        detail = await app.backend.job(job)
    return detail
