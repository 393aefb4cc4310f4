"""Changes what can be changed of a job that has started: its time limit, and the workers of an elastic job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.formats.typed_values import limit_text
from cockpit.present.form.running import read_changes_of, running_fields
from cockpit.present.units import counted
from cockpit.tui.controllers import ways_back
from cockpit.tui.controllers.chosen import named, task_of

if TYPE_CHECKING:
    from cockpit.model.jobrow import JobRow
    from cockpit.present.form.running import Changes
    from cockpit.tui.cockpit import Cockpit
    from cockpit.tui.undo import WayBack


async def change_running(app: Cockpit, row: JobRow) -> None:
    """Open the dialog with the job's fields, and carry out what the user changes."""
    from cockpit.tui.screens.running import RunningScreen

    detail = await app.backend.job(row.id, task=task_of(row))
    fields = running_fields(detail, app.backend.capabilities_for([row.id]))
    by_path = {each.path: each for each in fields}

    async def save(changes: Changes) -> None:
        done: list[str] = []
        way: WayBack | str = ""
        # The workers first: with a changed time limit the job would no longer be the one that the dialog shows.
        if changes.spec is not None and (elastic := changes.spec.elastic) is not None:
            await app.backend.edit(row.id, changes.spec)
            bounds = f"{elastic.min_workers} to {elastic.max_workers}"
            done.append(f"{counted(elastic.workers, 'worker')} ({bounds}) for {named([row])}")
            way = ways_back.of_edit(app, row.id, named([row]), detail.job.spec)
        try:
            if changes.limit is not None:
                way = way or ways_back.of_limit(app, [row])
                await app.backend.set_time_limit(row.id, changes.limit, task=task_of(row))
                done.append(f"time limit {limit_text(changes.limit)} for {named([row])}")
        finally:
            if done:
                app.last_act.done(", ".join(done), way)

    screen = RunningScreen(
        f"{named([row])}: what can be changed while it is {row.state}",
        fields,
        lambda texts: read_changes_of(detail, by_path, texts),
        save,
    )
    await app.push_screen_wait(screen)
