"""Job files in $EDITOR: written, checked, submitted; what is wrong stands at the top when the editor opens again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cockpit.errors import RequestRefused, SpecErrors
from cockpit.headless.editor import in_editor, with_errors, without_errors
from cockpit.present.refusals import refusal_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cockpit.model.spec import JobSpec
    from cockpit.model.view import JobDetail
    from cockpit.tui.face import Face

SAVING = "# Save and leave to submit; leave without saving to do nothing.\n"


def first_job() -> str:
    """A job file to begin with."""
    from cockpit.formats.template import REGULAR, template

    return SAVING + template(REGULAR, str(Path.cwd()))


async def submit_edited(app: Face, text: str) -> None:
    """Edit `text` and submit what comes of it."""

    async def submit(specs: list[JobSpec]) -> str:
        ids = await app.backend.submit(specs)
        return "submitted " + ", ".join(map(str, ids))

    await _until_accepted(app, text, submit)


async def save_edited(app: Face, detail: JobDetail) -> None:
    """Edit a queued job's spec and put it in the place of the old one."""
    from cockpit.formats.specfile import spec_as_yaml

    async def save(specs: list[JobSpec]) -> str:
        if len(specs) != 1:
            raise SpecErrors(["one job is edited at a time; use submit for more"])
        await app.backend.edit(detail.job.id, specs[0])
        return f"edited {detail.job.id}"

    await _until_accepted(app, spec_as_yaml(detail.job.spec), save)


async def _until_accepted(app: Face, text: str, act: Callable[[list[JobSpec]], Awaitable[str]]) -> None:
    while True:
        edited = _in_editor(app, text)
        if edited is None:
            app.notify("nothing was changed, nothing was done")
            return
        try:
            app.notify(await act(app.read_jobs("the job file", without_errors(edited), str(Path.cwd()))))
        except SpecErrors as wrong:
            text = with_errors(edited, str(wrong))
        except RequestRefused as no:
            text = with_errors(edited, refusal_text(no.refusal, app.now()))
        else:
            return


def _in_editor(app: Face, text: str) -> str | None:
    """What the person made of it; None when it was left as it was."""
    app.check_terminal()
    with app.suspend():
        return in_editor(text)
