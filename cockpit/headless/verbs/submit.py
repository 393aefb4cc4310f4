"""`cockpit submit`: the jobs of all files, or none of them."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

import msgspec

from cockpit.errors import RequestRefused, SpecErrors
from cockpit.headless.absent import absent
from cockpit.headless.arguments import UsageError, Verb, conditions
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.services import Call
from cockpit.launch.checks import warnings
from cockpit.model.directives import SubmitScript
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.spec import JobSpec
from cockpit.present.safe import safe
from cockpit.present.units import counted

STDIN = "-"
FIELD_OF_REQUEST = re.compile(r"(?:jobs\[(?P<job>\d+)\]\.)?(?P<field>[a-z_]+(?:\[[\d*]+\])?(?:\.[a-z_]+)*)(?:: |$)")
"""The path that leads an error; it names the job where the request holds several."""
_FOREIGN = re.compile(r"^#SBATCH|\barena\s+submit\b|\bgcloud\b|\bPyTorchJob\b|worker_?[pP]ool_?[sS]pecs", re.MULTILINE)
"""A cheap look; `formats.foreign.exchange` looks closely."""


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="YAML, JSON, or JSON Lines with one job a line, or a batch script, whose arguments stand after --; - is "
        "stdin",
    )
    parser.add_argument(
        "--wrap", metavar="COMMAND", help="on a Slurm cluster: submit one shell command, as sbatch does"
    )
    parser.add_argument("--hold", action="store_true", help="submit held: queued, but not to start until released")
    parser.add_argument(
        "--dependency",
        type=conditions,
        default=(),
        metavar="CONDITIONS",
        help="as for sbatch, beside those of the files: afterok:123, afterany:123_4, afternotok, aftercorr, singleton",
    )


async def run(call: Call) -> int:
    scripts: list[SubmitScript] = []
    specs, places = read_files(call, scripts)
    scripts = _complete(call, scripts, specs)
    if call.args.hold:
        specs = [msgspec.structs.replace(spec, hold=True) for spec in specs]
    if more := call.args.dependency:
        specs = [msgspec.structs.replace(spec, dependencies=(*spec.dependencies, *more)) for spec in specs]
    for spec, place in zip(specs, places, strict=True):
        for warning in (*warnings(spec), *(absent(spec) if call.backend.reads_this_disk else ())):
            call.streams.say(f"{place}: {safe(warning)}")
    call.streams.hint(f"submitting {counted(len(specs) + len(scripts), 'job')} …")
    try:
        ids = await call.backend.submit(specs) if specs else []
    except RequestRefused as no:
        raise RequestRefused(placed(no.refusal, places)) from no
    for spec, job in zip(specs, ids, strict=True):
        call.streams.line(f"submitted {safe(spec.name)} as {job}")
    for script in scripts:
        submitted = await call.backend.direct(script)
        call.streams.line(f"submitted {safe(script.wrap or script.file or source_of(STDIN))} as {submitted}")
    return ExitCode.OK


def _complete(call: Call, scripts: Sequence[SubmitScript], specs: Sequence[JobSpec]) -> list[SubmitScript]:
    """The scripts and the command of --wrap with what the command line adds to them. Raises `UsageError`."""
    words, wrap = call.args.command_words, call.args.wrap
    if wrap is not None and not call.backend.takes_scripts:
        raise UsageError("--wrap hands a command to sbatch, and this is no Slurm cluster; write a job file")
    if wrap is None and not scripts and not specs:
        raise UsageError("there is nothing to submit: give a FILE, or --wrap COMMAND")
    if words and (len(scripts) != 1 or specs or wrap is not None):
        raise UsageError("what stands after -- are the arguments of one batch script, on a Slurm cluster")
    options = _script_options(call)
    wrapped = [SubmitScript("", options, wrap=wrap)] if wrap is not None else []
    return [*(msgspec.structs.replace(each, options=options, arguments=words) for each in scripts), *wrapped]


def _script_options(call: Call) -> tuple[str, ...]:
    """What the command line adds to those in the script."""
    hold = ("--hold",) if call.args.hold else ()
    conditions = ",".join(f"{each.kind}:{each.target}".rstrip(":") for each in call.args.dependency)
    return (*hold, *((f"--dependency={conditions}",) if conditions else ()))


def read_files(call: Call, scripts: list[SubmitScript] | None = None) -> tuple[list[JobSpec], list[str]]:
    """Every job of every file, and for each the place to name it by. Batch scripts that the cluster takes as they are
    go into `scripts` instead. Raises `SpecErrors` with all files' errors."""
    specs: list[JobSpec] = []
    places: list[str] = []
    errors: list[str] = []
    for file in call.args.files:
        try:
            source, text, folder = read_text(file, call)
            if scripts is not None and _is_taken_as_it_is(text, call):
                scripts.append(SubmitScript(text, file="" if file == STDIN else file))
                continue
            found = call.services.read_jobs(*_as_job_file(source, text, folder, call))
        except SpecErrors as wrong:
            errors += wrong.errors
        else:
            specs += found
            places += [source] if len(found) == 1 else [f"{source}: job {n + 1}" for n in range(len(found))]
    if errors:
        raise SpecErrors(errors)
    return specs, places


def _is_taken_as_it_is(text: str, call: Call) -> bool:
    return text.startswith("#!") and call.backend.takes_scripts


def _as_job_file(source: str, text: str, folder: str, call: Call) -> tuple[str, str, str]:
    """What another system wrote, taken over; whatever of it means nothing here is told."""
    if not _FOREIGN.search(text):
        return source, text, folder
    from cockpit.formats.foreign.exchange import taken_over

    found = taken_over(source, text, lambda name: Path(folder, name).read_text())
    if found is None:
        return source, text, folder
    for note in found.notes:
        call.streams.say(f"{source}: {note}")
    return f"{source} as a job", found.text, folder


def placed(refusal: Refusal, places: Sequence[str]) -> Refusal:
    """What is wrong with a job led by its place, as what is found wrong while reading it."""
    if refusal.kind is not RefusalKind.INVALID:
        return refusal

    def led(line: str) -> str:
        found = FIELD_OF_REQUEST.match(line)
        return line if found is None else f"{places[int(found['job'] or 0)]}: {line[found.start('field') :]}"

    lines = [led(line) for line in refusal.message.splitlines()]
    return Refusal(refusal.kind, "\n".join(lines), tuple((led(path), reason) for path, reason in refusal.reasons))


def source_of(file: str) -> str:
    """What errors name it by."""
    return "stdin" if file == STDIN else file


def read_text(file: str, call: Call) -> tuple[str, str, str]:
    """Its source, its text, and the folder where its paths begin. Raises `SpecErrors`."""
    source = source_of(file)
    folder = Path.cwd() if file == STDIN else Path(file).absolute().parent
    try:
        data = call.streams.stdin.read() if file == STDIN else Path(file).read_bytes()
        return source, data.decode(), str(folder)
    except OSError as failed:
        raise SpecErrors([f"{source}: cannot be read: {failed.strerror}"]) from failed
    except UnicodeDecodeError as failed:
        raise SpecErrors([f"{source}: byte {failed.start} is not UTF-8; save it as UTF-8"]) from failed


SUBMIT = Verb(
    arguments,
    run,
    (
        "cockpit submit job.yaml",
        "cockpit submit --hold sweep.jsonl",
        "cockpit submit train.sbatch -- --epochs 3",
        "cockpit submit --wrap 'make test'",
        "cockpit submit --dependency afterok:4711_3 next.yaml",
        "generate-jobs | cockpit submit -",
        "cockpit submit --request-id nightly-2026-11-24 nightly.yaml",
    ),
)
