"""`cockpit convert`: write a job in another form, and print what that form cannot express."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import TYPE_CHECKING

from cockpit.headless.arguments import UsageError, Verb
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.services import Call
from cockpit.headless.verbs.submit import read_files
from cockpit.present.safe import safe

if TYPE_CHECKING:
    from cockpit.model.spec import JobSpec

FORMS = (
    *("yaml", "json", "sbatch", "arena", "gcloud", "pytorchjob", "tfjob", "mpijob", "trainjob", "job", "volcanojob"),
    "customjob",
)


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("files", nargs=1, metavar="FILE", help="as for submit; - is stdin")
    parser.add_argument("--to", choices=FORMS, default="yaml", metavar="FORM", help=", ".join(FORMS))


async def run(call: Call) -> int:
    from cockpit.formats.foreign.exchange import Form, written

    specs, _ = read_files(call, exports=False)
    if len(specs) != 1:
        raise UsageError(f"{call.args.files[0]} holds {len(specs)} jobs; convert takes one")

    def read(source: str, text: str) -> list[JobSpec]:
        return call.services.read_jobs(f"{source}.json", text, "/")

    result = written(specs[0], Form(call.args.to), read)
    if result.lost:
        call.streams.say(f"{call.args.to} cannot say all of: {', '.join(map(safe, result.lost))}")
    call.streams.write(result.text.encode())
    return ExitCode.OK


CONVERT = Verb(
    arguments,
    run,
    ("cockpit convert train.sbatch", "cockpit convert job.yaml --to pytorchjob | kubectl apply -f -"),
)
