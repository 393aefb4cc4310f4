"""`cockpit edit` and `clone`: change fields of a job's own file, by a file, a pipe, or the user's editor."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from cockpit.errors import CockpitError, RequestRefused, SpecErrors
from cockpit.headless.arguments import UsageError, Verb, reference
from cockpit.headless.editor import chosen_editor, in_editor, with_errors, without_errors
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.naming import free_names
from cockpit.headless.services import Call
from cockpit.headless.verbs.submit import read_text, source_of
from cockpit.model.ids import job_words
from cockpit.model.names import next_name
from cockpit.model.spec import JobSpec
from cockpit.present.requests import refusal_text
from cockpit.present.safe import safe

if TYPE_CHECKING:
    from cockpit.formats.job.file import ReadJobs

UNCHANGED = "nothing was changed, nothing was done"
EDITED_NAME = "the job file"


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("job", type=reference, metavar="ID", help="the job")
    parser.add_argument(
        "file", nargs="?", metavar="FILE", help="a job file with just the fields that differ; - is stdin"
    )


def edit_arguments(parser: ArgumentParser) -> None:
    arguments(parser)
    parser.set_defaults(changes_its_job=True)


def clone_arguments(parser: ArgumentParser) -> None:
    arguments(parser)
    parser.add_argument("--name", metavar="NAME", help="of the copy; by default the next free one: bert-2, bert-3 …")
    parser.add_argument("--edit", action="store_true", help="open the copy in $EDITOR first")


async def run_edit(call: Call) -> int:
    """Edit a job, without a file as a whole in `$EDITOR`. The job keeps its id and its position."""
    job = await call.job_id(call.args.job)
    spec = (await call.backend.job(job)).job.spec
    from cockpit.formats.job.specfile import read_changes

    async def save(new: JobSpec) -> None:
        await call.backend.edit(job, new)
        call.streams.line(f"edited {job}")

    if call.args.file is not None:
        await save(_with_changes(call, spec, read_changes(spec, call.services.read_jobs)))
        return ExitCode.OK
    return await _edit_until_accepted(call, spec, save, read_changes(spec, call.services.read_jobs))


async def run_clone(call: Call) -> int:
    spec = (await call.backend.job(call.args.job.job, task=call.args.job.task)).named_by(call.args.job)
    (name,) = await free_names(call, [spec.name], next_name)
    # Its copy starts, even if the job itself was submitted held.
    copy = msgspec.structs.replace(spec, name=name, hold=False)
    if call.args.file is not None:
        copy = _with_changes(call, copy, call.services.read_jobs)
    if call.args.name is not None:
        copy = msgspec.structs.replace(copy, name=call.args.name)

    async def submit(new: JobSpec) -> None:
        (job,) = await call.backend.submit([new])
        call.streams.line(f"submitted {safe(new.name)} as {job_words(job)}")

    if call.args.edit:
        return await _edit_until_accepted(call, copy, submit, call.services.read_jobs)
    await submit(copy)
    return ExitCode.OK


def _with_changes(call: Call, spec: JobSpec, read: ReadJobs) -> JobSpec:
    """Return the spec with the fields of the file in the place of its own. Raises `SpecErrors`."""
    import json

    from cockpit.formats.job.file import job_values
    from cockpit.formats.job.specfile import spec_as_table

    source, text, folder = read_text(call.args.file, call)
    fields = job_values(source, text)
    # Whole fields replace the job's: a list is not merged with the list that was there.
    whole = {**spec_as_table(spec), **fields}
    if "elastic" in fields and "nodes" not in fields:
        # Each worker is a node, so that the number of nodes follows.
        whole.pop("nodes", None)
    (changed,) = read(source_of(call.args.file), json.dumps(whole), folder)
    return changed


async def _edit_until_accepted(
    call: Call, spec: JobSpec, act: Callable[[JobSpec], Awaitable[None]], read: ReadJobs
) -> int:
    """Open the editor again while there are errors and a user at the terminal, until the spec is accepted or
    unchanged."""
    from cockpit.formats.job.specfile import spec_as_yaml

    if not chosen_editor() and not call.streams.answers:
        raise UsageError("there is no terminal for an editor; give a FILE with the fields that differ, or set EDITOR")
    text = spec_as_yaml(spec)
    while True:
        # The editor takes the terminal, and earlier output must be above it.
        call.streams.flush()
        edited = in_editor(text)
        if edited is None:
            # Counts as a No: a script behind it must not go on as if a job had been changed.
            call.streams.say(UNCHANGED)
            return ExitCode.DECLINED
        # The edited text is part of the command, by which a repetition is recognised.
        call.note_input(EDITED_NAME, edited.encode())
        try:
            await act(_the_one(read, without_errors(edited)))
        except (SpecErrors, RequestRefused) as wrong:
            # Without a user at the terminal it would open for ever.
            if not call.streams.answers:
                raise
            text = with_errors(edited, _error_text(call, wrong))
        else:
            return ExitCode.OK


def _the_one(read: ReadJobs, text: str) -> JobSpec:
    specs = read(EDITED_NAME, text, str(Path.cwd()))
    if len(specs) != 1:
        raise SpecErrors([f"{EDITED_NAME}: holds {len(specs)} jobs; one is edited at a time"])
    return specs[0]


def _error_text(call: Call, wrong: CockpitError) -> str:
    if isinstance(wrong, RequestRefused):
        return refusal_text(wrong.refusal, call.streams.now(), call.streams.zone)
    return str(wrong)


EDIT = Verb(edit_arguments, run_edit, ("cockpit edit 4720", "echo 'time_limit: 2h' | cockpit edit 4720 -"), mixed=True)
CLONE = Verb(
    clone_arguments,
    run_clone,
    ("cockpit clone 4711", "cockpit clone 4711 --name bert-b --edit", "echo 'time_limit: 2h' | cockpit clone 4711 -"),
    mixed=True,
)
