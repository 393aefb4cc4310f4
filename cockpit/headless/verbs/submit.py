"""`cockpit submit`: the jobs of all files, or none of them."""

from __future__ import annotations

import os
import re
from argparse import ArgumentParser
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from cockpit.config.places import user_name
from cockpit.errors import RequestRefused, SpecErrors
from cockpit.headless.arguments import UsageError, Verb, conditions
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.naming import free_names
from cockpit.headless.services import STDIN, Call
from cockpit.headless.surroundings import missing_paths
from cockpit.launch.batchscript import output_of
from cockpit.launch.checks import warnings
from cockpit.model.capabilities import Ability
from cockpit.model.directives import SubmitScript
from cockpit.model.ids import job_words
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.spec import JobSpec
from cockpit.present.safe import safe
from cockpit.present.task_spreading import FIELD_OF_REQUEST, fetched_remedies
from cockpit.present.units import counted

if TYPE_CHECKING:
    from cockpit.formats.foreign.draft import Submission
    from cockpit.model.ids import JobId

_FOREIGN = re.compile(
    r"\A#!|^#SBATCH|\barena\b|\bgcloud\b|\bapiVersion\b|\b(?:PyTorch|TF|MPI|Train)Job\b|worker_?[pP]ool_?[sS]pecs",
    re.MULTILINE,
)
"""A text that every job of another system contains. This is a cheap test; `formats.foreign.exchange` looks closely."""


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="YAML, JSON, or JSON Lines with one job a line, or a batch script, whose arguments follow --; - is stdin",
    )
    parser.add_argument("--wrap", metavar="COMMAND", help="a batch script of this one command, as for sbatch")
    parser.add_argument(
        "-H", "--hold", action="store_true", help="submit held: queued, but not to start until released"
    )
    parser.add_argument(
        "-d",
        "--dependency",
        type=conditions,
        default=(),
        metavar="CONDITIONS",
        help="as for sbatch, beside those of the files: afterok:123, afterany:123_4, afternotok, aftercorr, singleton",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="on Kubernetes: print the objects that would be created, as YAML, and create none",
    )
    parser.add_argument_group(
        "options of sbatch",
        "A batch script and --wrap also take options of sbatch, before the script,\n"
        "  such as -A ACCOUNT -p PARTITION -n 4 --gres=gpu:2 -t 10. An option of a\n"
        "  site's plugin needs its value behind =. -c 4, with a number, is\n"
        "  --cpus-per-task=4; with a name, -c is the cluster.",
    )


async def run(call: Call) -> int:
    _check_use(call)
    scripts: list[SubmitScript] = []
    # Scripts that the cluster takes as they are go into `scripts`, and are submitted one by one.
    specs, places = read_files(call, scripts)
    scripts = _complete(call, scripts, specs)
    if call.args.hold:
        specs = [msgspec.structs.replace(spec, hold=True) for spec in specs]
    if more := call.args.dependency:
        specs = [msgspec.structs.replace(spec, dependencies=(*spec.dependencies, *more)) for spec in specs]
    # Paths are checked only where the cluster sees this machine's files.
    sees_files = call.backend.capabilities.has(Ability.LOCAL_FILES)
    for spec, place in zip(specs, places, strict=True):
        for warning in (*warnings(spec), *(missing_paths(spec) if sees_files else ())):
            call.streams.say(f"{place}: {safe(warning)}")
    if call.args.dry_run:
        return await _show_objects(call, specs, places)
    call.streams.hint(f"submitting {counted(len(specs) + len(scripts), 'job')} …")
    # All jobs of all files in one request, so that they are accepted all or none.
    specs, ids = await _submit(call, specs, places) if specs else (specs, [])
    for spec, job, place in zip(specs, ids, places, strict=True):
        call.streams.line(f"submitted {safe(spec.name)} as {job_words(job)}")
        if spec.script is not None:
            call.streams.say(f"{place}: output goes to {safe(output_of(spec, int(job), user_name()))}")
    for script in scripts:
        submitted = await call.backend.direct(script)
        call.streams.line(f"submitted {safe(script.wrap or script.file or source_of(STDIN))} as {submitted}")
    return ExitCode.OK


def _check_use(call: Call) -> None:
    """Raise `UsageError` where nothing is named to submit, or the cluster makes no objects that could be shown."""
    if not call.args.files and call.args.wrap is None:
        raise UsageError(
            "give the FILE of a job, - for standard input, or --wrap COMMAND\nHow it goes: cockpit submit --help"
        )
    if call.args.dry_run and (none := call.backend.capabilities.why_not(Ability.MANIFESTS)):
        raise UsageError(none)


async def _show_objects(call: Call, specs: list[JobSpec], places: Sequence[str]) -> int:
    """Print what `submit` would create, in that order, as `kubectl apply -f -` reads it."""
    from cockpit.formats.job.specfile import values_as_yaml

    try:
        objects = await call.backend.manifests(specs)
    except RequestRefused as no:
        raise RequestRefused(placed(no.refusal, places)) from no
    documents = "---\n".join(map(values_as_yaml, objects))
    call.streams.lines(safe(each) for each in documents.splitlines())
    return ExitCode.OK


async def _submit(call: Call, specs: list[JobSpec], places: Sequence[str]) -> tuple[list[JobSpec], list[JobId]]:
    """Submit the jobs, and return them as accepted with their ids. As under sbatch, a script may be submitted again
    while its job lives: if only the name is taken, it gets a free one."""
    try:
        return specs, await call.backend.submit(specs)
    except RequestRefused as no:
        # Only an invalid request can be about a taken name.
        again = await _with_free_names(call, specs) if no.refusal.kind is RefusalKind.INVALID else specs
        # No name was changed, so another try would fail the same way.
        if again == specs:
            await _say_remedies(call, no.refusal, specs, places)
            raise RequestRefused(placed(no.refusal, places)) from no
    try:
        ids = await call.backend.submit(again)
    except RequestRefused as no:
        await _say_remedies(call, no.refusal, again, places)
        raise RequestRefused(placed(no.refusal, places)) from no
    for before, after, place in zip(specs, again, places, strict=True):
        if before.name != after.name:
            call.streams.say(
                f"{place}: a job called {safe(before.name)} is there already; this one is {safe(after.name)}"
            )
    return again, ids


async def _say_remedies(call: Call, refusal: Refusal, specs: Sequence[JobSpec], places: Sequence[str]) -> None:
    """Print what to add to the batch scripts among the refused jobs."""
    for remedy in await fetched_remedies(refusal, specs, call.backend.nodes):
        # Each remedy belongs to one script, which the user knows by its file.
        call.streams.say(f"{places[remedy.job]}: {remedy.text}")


async def _with_free_names(call: Call, specs: Sequence[JobSpec]) -> list[JobSpec]:
    """Return the jobs, with other names for batch scripts whose names are taken."""
    if all(spec.script is None for spec in specs):
        return list(specs)
    names = await free_names(call, [spec.name for spec in specs])
    return [
        msgspec.structs.replace(spec, name=name) if spec.script is not None else spec
        for spec, name in zip(specs, names, strict=True)
    ]


def _complete(call: Call, scripts: Sequence[SubmitScript], specs: Sequence[JobSpec]) -> list[SubmitScript]:
    """Return scripts that the cluster takes as they are, with what the command line adds. Raises `UsageError`."""
    words, options = call.args.command_words, _script_options(call)
    if words and scripts and (len(scripts) != 1 or specs or scripts[0].wrap):
        raise UsageError("the words after -- are the arguments of one batch script")
    options = (*call.args.passed_on, *options)
    return [msgspec.structs.replace(each, options=options, arguments=words) for each in scripts]


def _script_options(call: Call) -> tuple[str, ...]:
    """Return the options that the command line adds to the script's own."""
    hold = ("--hold",) if call.args.hold else ()
    # A singleton has no target, and so no colon.
    conditions = ",".join(f"{each.kind}:{each.target}".rstrip(":") for each in call.args.dependency)
    return (*hold, *((f"--dependency={conditions}",) if conditions else ()))


def read_files(
    call: Call, scripts: list[SubmitScript] | None = None, *, exports: bool = True
) -> tuple[list[JobSpec], list[str]]:
    """Read every job of every file, each with the place to name it by. Batch scripts that the cluster takes as they are
    go into `scripts` instead. `exports`: batch scripts get this shell's variables. Raises `SpecErrors` with all errors.
    """
    specs: list[JobSpec] = []
    places: list[str] = []
    errors: list[str] = []
    wrapped = [] if getattr(call.args, "wrap", None) is None else [_wrap_script(call.args.wrap)]
    # A wrapped command counts as one more file.
    for file in (*call.args.files, *wrapped):
        try:
            source, text, folder = file[:3] if isinstance(file, WrapScript) else read_text(file, call)
            if scripts is not None and _is_taken_as_it_is(text, call):
                scripts.append(_as_it_is(file, text))
                continue
            as_job_file = _as_job_file(source, text, folder, call, exports=exports)
            found = _with_arguments(call.services.read_jobs(*as_job_file), call)
        # All files are read, so that all errors are shown at once.
        except SpecErrors as wrong:
            errors += wrong.errors
        else:
            specs += found
            places += [source] if len(found) == 1 else [f"{source}: job {n + 1}" for n in range(len(found))]
    if errors:
        raise SpecErrors(errors)
    return specs, places


class WrapScript(NamedTuple):
    """A batch script without a file."""

    source: str
    text: str
    folder: str
    command: str


def _wrap_script(command: str) -> WrapScript:
    """Return the script that sbatch would make of `--wrap`."""
    text = f"#!/bin/sh\n# This script was created by wrapping a command.\n\n{command}\n"
    return WrapScript("wrap", text, str(Path.cwd()), command)


def _as_it_is(file: str | WrapScript, text: str) -> SubmitScript:
    if isinstance(file, WrapScript):
        return SubmitScript("", wrap=file.command)
    return SubmitScript(text, file="" if file == STDIN else file)


def _is_taken_as_it_is(text: str, call: Call) -> bool:
    return text.startswith("#!") and call.backend.capabilities.has(Ability.SCRIPTS)


def _as_job_file(source: str, text: str, folder: str, call: Call, *, exports: bool) -> tuple[str, str, str]:
    """Convert a job of another system, and print what means nothing here."""
    options = call.args.passed_on
    if options and not text.startswith("#!"):
        raise SpecErrors([f"{source}: is no batch script, so write what {safe(options[0])} says into the job file"])
    # Most texts are job files, for which the other formats' parsers are not loaded.
    if not options and not _FOREIGN.search(text):
        return source, text, folder
    from cockpit.formats.foreign.exchange import Form, taken_over

    def read_script(name: str) -> str:
        script = Path(folder, name)
        text = script.read_text()
        # A script that a job file names is part of the command: another content is another request.
        call.note_input(str(script), text.encode())
        return text

    converted = taken_over(source, text, read_script, _submission(call, exports=exports))
    if converted is None:
        return source, text, folder
    for note in converted.notes:
        call.streams.say(f"{source}: {note}")
    begins = str(Path.cwd()) if converted.form is Form.SBATCH else folder  # as under sbatch, wherever the script lies
    return f"{source} as a job", converted.text, begins


def _submission(call: Call, *, exports: bool) -> Submission:
    from cockpit.formats.foreign.draft import Submission
    from cockpit.headless.surroundings import local_zone

    now = datetime.fromtimestamp(call.streams.now() / 1000, call.streams.zone or local_zone())
    return Submission(now=now, variables=dict(os.environ) if exports else None, options=call.args.passed_on)


def _with_arguments(specs: list[JobSpec], call: Call) -> list[JobSpec]:
    """Return the specs with the words behind `--`, which are arguments of batch scripts. Raises `UsageError` if there
    is no script."""
    words = call.args.command_words
    if not words:
        return specs
    if any(spec.script is None for spec in specs):
        raise UsageError(
            "only a batch script takes words behind --; write the arguments of a job file into its command"
        )
    replace = msgspec.structs.replace
    return [replace(each, script=replace(each.script, arguments=words)) for each in specs if each.script is not None]


def placed(refusal: Refusal, places: Sequence[str]) -> Refusal:
    """Return the errors of a refusal, each behind its job's place, in the form of reading errors."""
    if refusal.kind is not RefusalKind.INVALID:
        return refusal

    def led(line: str) -> str:
        match = FIELD_OF_REQUEST.match(line)
        return line if match is None else f"{places[int(match['job'] or 0)]}: {line[match.start('field') :]}"

    lines = [led(line) for line in refusal.message.splitlines()]
    return Refusal(refusal.kind, "\n".join(lines), tuple((led(path), reason) for path, reason in refusal.reasons))


def source_of(file: str) -> str:
    """Return the name of the file in errors."""
    return "stdin" if file == STDIN else file


def read_text(file: str, call: Call) -> tuple[str, str, str]:
    """Return a file's name for errors, its text, and the folder where its paths begin. Raises `SpecErrors`."""
    source = source_of(file)
    folder = Path.cwd() if file == STDIN else Path(file).absolute().parent
    try:
        return source, call.read_file(file).decode(), str(folder)
    except OSError as failed:
        raise SpecErrors([f"{source}: cannot be read: {failed.strerror}"]) from failed
    except UnicodeDecodeError as failed:
        raise SpecErrors([f"{source}: byte {failed.start} is not UTF-8; save it as UTF-8"]) from failed


def _split(words: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    from cockpit.headless.sbatch_words import split_sbatch_options

    return split_sbatch_options(words)


SUBMIT = Verb(
    arguments,
    run,
    (
        "cockpit submit job.yaml",
        "cockpit submit --hold sweep.jsonl",
        "cockpit -c kube:prod submit --dry-run job.yaml | kubectl diff -f -",
        "cockpit submit --dependency afterok:4711_3 next.yaml",
        "generate-jobs | cockpit submit -",
        "cockpit submit train.sbatch -- --lr 0.1",
        "cockpit submit --wrap 'nvidia-smi; hostname'",
        "cockpit submit -A nlp -p gpu --gres=gpu:2 -t 10 --wrap nvidia-smi",
        "cockpit submit --request-id nightly-2026-11-24 nightly.yaml",
    ),
    split=_split,
)
