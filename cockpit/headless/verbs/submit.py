"""`cockpit submit`: the jobs of all files, or none of them."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

import msgspec

from cockpit.errors import SpecErrors
from cockpit.headless.arguments import Verb
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.services import Call
from cockpit.model.spec import JobSpec
from cockpit.present.safe import safe
from cockpit.present.units import counted

STDIN = "-"


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="YAML, JSON, or JSON Lines with one job a line; - is stdin"
    )
    parser.add_argument("--hold", action="store_true", help="submit held: queued, but not to start until released")


async def run(call: Call) -> int:
    specs = read_files(call)
    if call.args.hold:
        specs = [msgspec.structs.replace(spec, hold=True) for spec in specs]
    call.streams.hint(f"submitting {counted(len(specs), 'job')} …")
    ids = await call.backend.submit(specs)
    for spec, job in zip(specs, ids, strict=True):
        call.streams.line(f"submitted {safe(spec.name)} as {job}")
    return ExitCode.OK


def read_files(call: Call) -> list[JobSpec]:
    """Every job of every file. Raises `SpecErrors` with the errors of all files at once."""
    specs: list[JobSpec] = []
    errors: list[str] = []
    for file in call.args.files:
        try:
            specs += _read_file(file, call)
        except SpecErrors as wrong:
            errors += wrong.errors
    if errors:
        raise SpecErrors(errors)
    return specs


def _read_file(file: str, call: Call) -> list[JobSpec]:
    source = "stdin" if file == STDIN else file
    folder = Path.cwd() if file == STDIN else Path(file).absolute().parent
    try:
        data = call.streams.stdin.read() if file == STDIN else Path(file).read_bytes()
        return call.services.read_jobs(source, data.decode(), str(folder))
    except OSError as failed:
        raise SpecErrors([f"{source}: cannot be read: {failed.strerror}"]) from failed
    except UnicodeDecodeError as failed:
        raise SpecErrors([f"{source}: byte {failed.start} is not UTF-8; save it as UTF-8"]) from failed


SUBMIT = Verb(
    arguments,
    run,
    ("cockpit submit job.yaml", "cockpit submit --hold sweep.jsonl", "generate-jobs | cockpit submit -"),
)
