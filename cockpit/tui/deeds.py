"""What the actions do. Each talks to the cluster through the app's backend; a "no" becomes a notice, never a crash."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cockpit.model.asking import ShellRequest
from cockpit.present.units import counted
from cockpit.tui.screens.confirm import Confirm

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from cockpit.model.view import JobRow
    from cockpit.tui.face import Face

EXTEND_SECONDS = 2 * 3600


async def show_help(app: Face) -> None:
    """Every key of this view."""
    from cockpit.tui.screens.help import Help

    app.push_screen(Help(app.help_entries(), app.view_name, app.role_theme))


async def new_job(app: Face) -> None:
    """A template in $EDITOR, then submitted."""
    from cockpit.tui.editing import submit_edited, template

    await submit_edited(app, template())


async def clone_job(app: Face) -> None:
    """The job's own spec in $EDITOR, under a free name."""
    from cockpit.formats.specfile import spec_as_yaml
    from cockpit.tui.editing import cloned, submit_edited

    (row, *_) = app.chosen_rows()
    spec = (await app.backend.job(row.id)).job.spec
    await submit_edited(app, spec_as_yaml(cloned(spec, {each.name for each in app.job_rows.list.rows()})))


async def edit_job(app: Face) -> None:
    """A queued job's spec in $EDITOR; it keeps its id and its place."""
    from cockpit.tui.editing import save_edited

    (row, *_) = app.chosen_rows()
    await save_edited(app, await app.backend.job(row.id))


async def cancel(app: Face) -> None:
    """Ask, then stop."""
    rows = app.chosen_rows()
    await _confirmed(
        app, rows, "Stop", "They are asked to end, and killed after their grace period.", app.backend.cancel
    )


async def delete(app: Face) -> None:
    """Ask, then take off the lists."""
    rows = app.chosen_rows()
    await _confirmed(app, rows, "Delete", "What is kept of them goes; accounting remembers them.", app.backend.delete)


async def end_hold(app: Face) -> None:
    """Ask, then remove kept containers."""
    rows = app.chosen_rows()
    await _confirmed(
        app, rows, "End the hold of", "Their containers are removed; output and logs stay.", app.backend.end_hold
    )


async def extend_hold(app: Face) -> None:
    """Two hours more."""
    for row in app.chosen_rows():
        await app.backend.extend_hold(row.id, seconds=EXTEND_SECONDS)
    app.notify("kept two hours longer")


async def hold_or_release(app: Face) -> None:
    """Each of the chosen jobs the other way round."""
    for row in app.chosen_rows():
        held = row.reason is not None and row.reason.__struct_config__.tag == "held"
        await (app.backend.release(row.id) if held else app.backend.hold(row.id))


async def shell(app: Face) -> None:
    """The whole terminal is the container's until the shell ends."""
    from cockpit.headless.terminal import relay_terminal

    app.check_terminal()
    (row, *_) = app.chosen_rows()
    size = app.size
    request = ShellRequest(
        job=row.id, terminal=True, rows=size.height, columns=size.width, term=os.environ.get("TERM", "xterm-256color")
    )
    session = await app.backend.open_shell(request)
    with app.suspend():
        print(f"{row.id} {row.name}: {session.notice}\nexit or Ctrl-D returns to the cockpit.")  # noqa: T201 - the screen is the shell's now
        relay_terminal(session, 0, 1)
    app.refresh()


async def show_logs(app: Face) -> None:
    """The job's page at its logs."""
    app.open_page("logs")


async def open_job(app: Face) -> None:
    """The job's page."""
    app.open_page("why")


async def ask_filter(app: Face) -> None:
    """The filter line; it filters as one types."""
    app.main_view.ask_filter()


async def ask_command(app: Face) -> None:
    """The command line."""
    app.main_view.ask_command()


async def toggle_mine(app: Face) -> None:
    """Only one's own jobs, or everybody's."""
    app.main_view.toggle_mine()


async def sort_next(app: Face) -> None:
    """By the column to the right."""
    app.main_view.sort_by_neighbour(1)


async def sort_previous(app: Face) -> None:
    """By the column to the left."""
    app.main_view.sort_by_neighbour(-1)


async def sort_reverse(app: Face) -> None:
    """The other way round."""
    app.main_view.reverse_sort()


async def copy(app: Face) -> None:
    """The ids of the chosen jobs, through the terminal (OSC 52)."""
    ids = " ".join(str(row.id) for row in app.chosen_rows())
    app.copy_to_clipboard(ids)
    app.notify(f"copied {ids}")


async def show_jobs(app: Face) -> None:
    """The list of jobs."""
    app.main_view.show_view("jobs")


async def show_nodes(app: Face) -> None:
    """The nodes."""
    app.main_view.show_view("nodes")


async def pause(app: Face) -> None:
    """The demo's time stands still, or goes on."""
    if app.pace is not None:
        (app.pace.resume if app.pace.paused else app.pace.pause)()


async def faster(app: Face) -> None:
    """The demo's time passes faster."""
    if app.pace is not None:
        app.pace.faster()


async def slower(app: Face) -> None:
    """The demo's time passes slower."""
    if app.pace is not None:
        app.pace.slower()


async def next_theme(app: Face) -> None:
    """The next theme in order of name."""
    names = sorted(app.themes)
    app.use_theme(names[(names.index(app.role_theme().name) + 1) % len(names)])


async def back(app: Face) -> None:
    """Out of a page, a filter or marks; never out of the cockpit."""
    if len(app.screen_stack) > 1:
        app.pop_screen()
    else:
        app.main_view.step_back()


async def leave(app: Face) -> None:
    """Jobs go on."""
    app.exit(0)


async def _confirmed(
    app: Face, rows: Sequence[JobRow], verb: str, consequence: str, act: Callable[..., Awaitable[None]]
) -> None:
    what = f"job {rows[0].id} {rows[0].name}" if len(rows) == 1 else counted(len(rows), "job")
    if await app.push_screen_wait(Confirm(f"{verb} {what}?", consequence)):
        for row in rows:
            await act(row.id)
