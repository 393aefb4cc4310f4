"""`cockpit scale` changes how many workers an elastic job has."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError

from cockpit.errors import RequestRefused
from cockpit.formats.typed_values import WORKERS_EXPECTED, read_workers
from cockpit.headless.arguments import Verb, reference
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.services import Call
from cockpit.model.asking import WantedWorkers
from cockpit.model.ids import job_words
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.present.references import job_text
from cockpit.present.safe import safe
from cockpit.present.units import counted


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("job", type=reference, metavar="ID", help="the job")
    parser.add_argument("workers", type=_workers, metavar="WORKERS", help=WORKERS_EXPECTED)
    parser.set_defaults(changes_its_job=True)


def _workers(text: str) -> WantedWorkers:
    if (wanted := read_workers(text.strip())) is None:
        raise ArgumentTypeError(f"{safe(text)} is no number of workers; write {WORKERS_EXPECTED}")
    return wanted


async def run_scale(call: Call) -> int:
    """Change the number of workers of a job, between its bounds."""
    job = await call.job_id(call.args.job)
    spec = (await call.backend.job(job)).job.spec
    if spec.elastic is None:
        message = f"Job {job_words(job)} is not elastic, so that its number of workers is fixed."
        raise RequestRefused(Refusal(RefusalKind.INVALID, message))
    wanted: WantedWorkers = call.args.workers
    await call.backend.edit(job, wanted.of(spec))
    call.streams.line(f"{counted(wanted.count_of(spec.elastic), 'worker')} for {job_text(call.args.job)}")
    return ExitCode.OK


SCALE = Verb(arguments, run_scale, ("cockpit scale 4711 6", "cockpit scale 4711 +2", "cockpit scale 4711 -1"))
