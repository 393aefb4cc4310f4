"""Opens the job form for a new job, a copy, a session, a training or a queued job, and accepts its result.

From the form the user may continue in $EDITOR.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.errors import SpecErrors
from cockpit.headless.editor import clone_spec, in_editor, with_errors, without_errors
from cockpit.model.capabilities import Ability
from cockpit.model.ids import UserName, job_words
from cockpit.model.job import Submitter
from cockpit.model.names import free_name
from cockpit.present.safe import safe
from cockpit.tui.controllers.ways_back import of_edit, of_submission

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from cockpit.formats.foreign.converting import ConvertedJob
    from cockpit.formats.job.file import ReadJobs
    from cockpit.model.ids import JobId
    from cockpit.model.jobdetail import JobDetail
    from cockpit.model.spec import JobSpec
    from cockpit.tui.cockpit import Cockpit

SOURCE = "the job file"
SAVING = "# Save and leave to go back to the form; leave without saving to change nothing. Paths begin in {folder}\n"
"""The head of the file that the editor shows. The user may replace the text below it by any known kind of job file."""


async def write_new(app: Cockpit) -> None:
    """Open the form of a new job, and submit it."""
    from cockpit.formats.job.file import job_values
    from cockpit.formats.job.template import REGULAR, template

    values = job_values(SOURCE, template(REGULAR, str(Path.cwd())))
    # The template has a fixed name, and two jobs of one name are hard to tell apart.
    values = {**values, "name": free_name(str(values["name"]), _names(app))}
    await _fill_in(app, "New job", values, _submitting(app))


async def write_imported(app: Cockpit, path: Path) -> None:
    """Open the form with the job in this file, and submit it."""
    from cockpit.tui.job_files import read_job_file, submission_from_here

    context = app.state.context()
    job = read_job_file(path, app.options.read_jobs, submission_from_here(context.now, context.zone))
    await _fill_in(app, "New job", job.values, _submitting(app), job)


async def write_clone(app: Cockpit, spec: JobSpec) -> None:
    """Open the form with a copy of the job under a free name, and submit it."""
    from cockpit.formats.job.specfile import spec_as_table

    copy = clone_spec(spec, _names(app))
    await _fill_in(app, f"A copy of {safe(spec.name)}", spec_as_table(copy), _submitting(app))


async def write_session(app: Cockpit, spec: JobSpec) -> JobId | None:
    """Open the form of a session like the job; return its id, or None where the user left the form."""
    from cockpit.formats.job.specfile import spec_as_table
    from cockpit.launch.sessions import development

    submitted: list[JobId] = []

    async def submit(session: JobSpec) -> None:
        # The id has to reach the caller, who opens the terminal of the session once it runs.
        submitted.extend(await app.backend.submit([session]))
        app.poller.follow_to(submitted[0])
        app.last_act.done(f"submitted {job_words(submitted[0])}", of_submission(app, submitted))

    values = spec_as_table(_named_freely(app, development(spec)))
    await _fill_in(app, f"A session like {safe(spec.name)}", values, submit)
    return submitted[0] if submitted else None


async def write_training(app: Cockpit, spec: JobSpec) -> None:
    """Open the form of a training with the session's settings, whose command the user has to type."""
    from cockpit.formats.job.specfile import spec_as_table
    from cockpit.launch.sessions import training

    values = spec_as_table(_named_freely(app, training(spec)))
    await _fill_in(app, f"A training where {safe(spec.name)} is", values, _submitting(app))


def _named_freely(app: Cockpit, spec: JobSpec) -> JobSpec:
    return replace(spec, name=free_name(spec.name, _names(app)))


def _names(app: Cockpit) -> set[str]:
    """Return the names of all jobs on the list."""
    return {each.name for each in app.state.job_rows.list.rows()}


async def write_again(app: Cockpit, detail: JobDetail) -> None:
    """Open the form with a queued job's spec and save the changes; the job keeps its id and its place."""
    from cockpit.formats.job.specfile import read_changes, spec_as_table

    job = detail.job

    async def save(spec: JobSpec) -> None:
        await app.backend.edit(job.id, spec)
        app.last_act.done(f"edited {job.shown_id}", of_edit(app, job.id, f"job {job.shown_id}", job.spec))

    await _fill_in(
        app,
        f"Job {job.shown_id} {safe(job.spec.name)}",
        spec_as_table(job.spec),
        save,
        read=read_changes(job.spec, app.options.read_jobs),
    )


def _submitting(app: Cockpit) -> Callable[[JobSpec], Awaitable[None]]:
    async def submit(spec: JobSpec) -> None:
        (job,) = await app.backend.submit([spec])
        app.poller.follow_to(job)
        app.last_act.done(submitted_words(spec, job), of_submission(app, [job]))

    return submit


def submitted_words(spec: JobSpec, job: JobId) -> str:
    """Return the sentence about a submitted job; for a batch script it names the output file too."""
    if spec.script is None:
        return f"submitted {job_words(job)}"
    from cockpit.config.places import user_name
    from cockpit.launch.batchscript import output_of

    return f"submitted {job_words(job)}; output goes to {safe(output_of(spec, int(job), user_name()))}"


async def _fill_in(
    app: Cockpit,
    heading: str,
    values: Mapping[str, object],
    accept: Callable[[JobSpec], Awaitable[None]],
    imported: ConvertedJob | None = None,
    read: ReadJobs | None = None,
) -> None:
    """Open the form and wait until it closes; `read` reads its values, None: as those of a new job."""
    from cockpit.present.form.fields import JobForm
    from cockpit.tui.screens.form import FormScreen

    # Only for the preview of what would run: the cluster takes the submitter from the connection.
    me = Submitter(UserName(app.state.context().user), os.getuid(), os.getgid(), (), str(Path.home()))
    form = JobForm(values, needs_image=not app.backend.capabilities.has(Ability.HOST_IMAGE))
    screen = FormScreen(
        heading, form, accept, lambda now: _in_editor(app, now), me, imported, read or app.options.read_jobs
    )
    await app.push_screen_wait(screen)


def _in_editor(app: Cockpit, values: Mapping[str, object]) -> ConvertedJob | None:
    """Let the user edit the values as YAML; return the result, or None where nothing was changed.

    Errors are written into the text, and the editor opens again.
    """
    from cockpit.formats.foreign.converting import JOB_FILE, ConvertedJob, convert_job
    from cockpit.formats.job.file import job_values
    from cockpit.formats.job.specfile import values_as_yaml
    from cockpit.tui.job_files import submission_from_here

    app.check_terminal()
    head = SAVING.format(folder=Path.cwd())
    text = head + values_as_yaml(values)
    # Until the text can be read or is left unchanged: what the user typed is never lost to an error.
    while True:
        with app.suspend():
            edited = in_editor(text)
        if edited is None:
            return None
        try:
            # The head goes too: another kind of job file begins in its own way, a script with `#!`.
            plain = without_errors(edited).removeprefix(head)
            context = app.state.context()
            # The text may have become any known kind of file; only if it is none of them it is a job file.
            job = convert_job(SOURCE, plain, submission=submission_from_here(context.now, context.zone))
            return job or ConvertedJob(JOB_FILE, job_values(SOURCE, plain))
        except SpecErrors as wrong:
            text = with_errors(edited, str(wrong))
