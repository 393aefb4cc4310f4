"""`cockpit submit`: the jobs of all files, or none of them."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

import msgspec

from cockpit.errors import RequestRefused, SpecErrors
from cockpit.headless.absent import absent
from cockpit.headless.arguments import Verb, conditions
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
_FOREIGN = re.compile(
    r"^#SBATCH|\barena\b|\bgcloud\b|\bapiVersion\b|\b(?:PyTorch|TF|MPI|Train)Job\b|worker_?[pP]ool_?[sS]pecs",
    re.MULTILINE,
)
"""What a text has at least that another system wrote."""
"""A cheap look; `formats.foreign.exchange` looks closely."""


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="YAML, JSON, or JSON Lines with one job a line; - is stdin"
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
    scripts: list[tuple[str, str]] = []
    specs, places = read_files(call, scripts)
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
    for source, text in scripts:
        submitted = await call.backend.direct(SubmitScript(text, _script_options(call)))
        call.streams.line(f"submitted {safe(source)} as {submitted}")
    return ExitCode.OK


def _script_options(call: Call) -> tuple[str, ...]:
    """What the command line adds to those in the script."""
    hold = ("--hold",) if call.args.hold else ()
    conditions = ",".join(f"{each.kind}:{each.target}".rstrip(":") for each in call.args.dependency)
    return (*hold, *((f"--dependency={conditions}",) if conditions else ()))


def read_files(call: Call, scripts: list[tuple[str, str]] | None = None) -> tuple[list[JobSpec], list[str]]:
    """Every job of every file, and for each the place to name it by. Batch scripts that the cluster takes as they are
    go into `scripts` instead, with their source. Raises `SpecErrors` with all files' errors."""
    specs: list[JobSpec] = []
    places: list[str] = []
    errors: list[str] = []
    for file in call.args.files:
        try:
            source, text, folder = read_text(file, call)
            if scripts is not None and _is_taken_as_it_is(text, call):
                scripts.append((source, text))
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
    if "#SBATCH" not in text:
        return False
    from cockpit.formats.foreign.sbatch import is_sbatch

    return is_sbatch(text) and call.backend.takes_scripts


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
        "cockpit submit --dependency afterok:4711_3 next.yaml",
        "generate-jobs | cockpit submit -",
    ),
)
