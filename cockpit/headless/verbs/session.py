"""`cockpit session`: start a session and enter it. `cockpit train`: submit a job that runs a command as the session
would."""

from __future__ import annotations

import json
import shlex
from argparse import ArgumentParser
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.errors import CockpitError, RequestRefused, SpecErrors
from cockpit.headless.arguments import UsageError, Verb, reference
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.naming import free_names
from cockpit.headless.services import Call
from cockpit.headless.verbs.shell import enter
from cockpit.headless.verbs.submit import read_text
from cockpit.headless.verbs.wait import exit_code
from cockpit.model.job import JobState
from cockpit.model.refusal import RefusalKind
from cockpit.model.spec import JobKind, JobSpec
from cockpit.present.safe import safe

if TYPE_CHECKING:
    from cockpit.model.ids import JobId
    from cockpit.model.jobrow import JobRow

SOURCE = "the session"
USUAL_NAME = "session"
ADDRESS_LOOKS, LOOK_SECONDS = 150, 0.2
"""The number and interval of attempts: a notebook takes a while to load."""


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "file", nargs="?", metavar="FILE", help="a job file; with --from just the fields that differ; - is stdin"
    )
    parser.add_argument(
        "--from", dest="job", type=reference, metavar="ID", help="like this job: its folders, environment and room"
    )
    parser.add_argument("--name", metavar="NAME", help=f"by default {USUAL_NAME}, or the job's with -dev, if free")
    for option in ("cpus", "memory", "cards"):
        parser.add_argument(
            f"--{option}", metavar="N" if option != "memory" else "SIZE", help="as in a job file's spec"
        )
    parser.add_argument("--time-limit", metavar="TIME", help="it is over after so long, such as 4h")
    parser.add_argument("--keep", action="store_true", help="leaving the shell does not end it")
    parser.add_argument("--detach", action="store_true", help="only submit it; implies --keep")
    parser.usage = "cockpit session [FILE] [--from ID] [--keep | --detach] [OPTION …] [-- CMD …]"


def train_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("job", type=reference, metavar="ID", help="the session")
    parser.add_argument("--name", metavar="NAME", help="by default the session's without -dev, if it is free")
    parser.usage = "cockpit train ID [--name NAME] -- CMD …"


async def run(call: Call) -> int:
    """Submit a session and enter it. The exit code is the shell's, or the session's own if it never ran."""
    spec = await _session_spec(call)
    (job,) = await call.backend.submit([spec])
    call.streams.line(f"submitted {safe(spec.name)} as {job}")
    if call.args.detach:
        return ExitCode.OK
    call.streams.hint(f"waiting until it runs; Ctrl-C leaves it in the queue, `cockpit cancel {job}` takes it back")
    row = await _until_it_runs(call, job)
    if row.ended_at is not None:
        call.streams.say(f"Session {job} ended before its shell could be opened; `cockpit job {job}` says how.")
        # As `wait` has it, so that a script sees why there was no shell.
        return exit_code((await call.backend.job(job)).job)
    # A session with a program of its own, such as a notebook, is used by its address.
    if spec.command and not call.args.command_words:
        return await _notebook(call, job, spec)
    return await _inside(call, job, spec)


async def run_train(call: Call) -> int:
    """Submit the job. The words of its command are taken as they are: variables in them are not replaced."""
    from cockpit.launch.sessions import training

    if not call.args.command_words:
        raise UsageError(
            "give the command behind --, such as: cockpit train 12 -- python3 /workspace/algorithm/train.py"
        )
    spec = (await call.backend.job(call.args.job.job, task=call.args.job.task)).job.spec
    spec = training(spec, shlex.join(call.args.command_words))
    spec = replace(spec, name=call.args.name or (await free_names(call, [spec.name]))[0])
    (job,) = await call.backend.submit([spec])
    call.streams.line(f"submitted {safe(spec.name)} as {job}")
    return ExitCode.OK


async def _session_spec(call: Call) -> JobSpec:
    """Return the spec: the options override the file, the file overrides the job of `--from`."""
    from cockpit.formats.job.file import job_values

    # Without a file, paths are those of the working folder, as for an empty file in it.
    source, text, folder = read_text(call.args.file, call) if call.args.file else (SOURCE, "{}", str(Path.cwd()))
    fields = job_values(source, text)
    if (kind := fields.get("kind", JobKind.INTERACTIVE)) != JobKind.INTERACTIVE:
        raise SpecErrors([f"{source}: kind: is {kind}; a session is interactive: remove it, or submit the file"])
    values = {**await _like(call), **fields}
    # Only a name that the user did not choose may be changed.
    if call.args.name is None and "name" not in fields:
        values["name"] = (await free_names(call, [str(values["name"])]))[0]
    whole = _with_options({**values, "kind": str(JobKind.INTERACTIVE)}, vars(call.args))
    return call.services.read_jobs(source, json.dumps(whole), folder)[0]


async def _like(call: Call) -> dict[str, object]:
    from cockpit.formats.job.specfile import spec_as_table
    from cockpit.launch.sessions import development

    if call.args.job is None:
        return {"name": USUAL_NAME, "output": str(Path.cwd())}
    detail = await call.backend.job(call.args.job.job, task=call.args.job.task)
    return spec_as_table(development(detail.job.spec))


def _with_options(values: dict[str, object], options: dict[str, object]) -> dict[str, object]:
    """Return the values of a job file with the options."""
    from cockpit.formats.job.texts import texts_of, values_of

    # As texts, as the form of the cockpit has them, so that sizes and times are read alike.
    texts = {path: str(options[path]) for path in ("name", "time_limit") if options[path] is not None}
    amounts = {
        f"specs[0].{name}": str(options[name]) for name in ("cpus", "memory", "cards") if options[name] is not None
    }
    if amounts and len(values.get("specs") or [{}]) > 1:  # type: ignore[arg-type]  # a list, or refused when it is read
        raise UsageError("--cpus, --memory and --cards are for one spec, and there are several; give a FILE with specs")
    return values_of({**texts_of(values), **texts, **amounts}) if texts or amounts else values


async def _until_it_runs(call: Call, job: JobId) -> JobRow:
    """Wait until the session runs; print each new reason meanwhile."""
    from cockpit.present.job_values import why

    # A reason is printed when it changes, not with every change of the row.
    last_reason = None
    async for delta in call.backend.watch_jobs():
        row = next((each for each in delta.changed if each.id == job), None)
        if row is None:
            continue
        if row.state is JobState.RUNNING or row.ended_at is not None:
            return row
        reason = why(row, call.context())
        if reason and reason != last_reason:
            call.streams.say(f"{job} is {row.state}: {reason}")
            last_reason = reason
    raise CockpitError(f"The cluster was lost before session {job} ran; `cockpit shell {job}` enters it.")


async def _inside(call: Call, job: JobId, spec: JobSpec) -> int:
    from cockpit.present.job.sessions import lasting_words, leaving_words

    streams, keeps = call.streams, call.args.keep
    if not call.args.command_words:
        streams.hint(f"{lasting_words(job, spec)}\n{leaving_words(job, keeps=keeps)}")
    try:
        return await enter(call, job)
    # Also after an error or Ctrl-C: an interactive session without its user only holds resources.
    finally:
        if not keeps:
            await _end(call, job)


async def _end(call: Call, job: JobId) -> None:
    """End the session, which may have ended by itself meanwhile."""
    try:
        await call.backend.cancel(job)
    except RequestRefused as no:
        # It has ended by itself meanwhile, which is what was wanted.
        if no.refusal.kind is not RefusalKind.CONFLICT:
            raise
    call.streams.hint(f"session {job} is ended")


async def _notebook(call: Call, job: JobId, spec: JobSpec) -> int:
    """Return the address of a notebook once it has printed one."""
    from cockpit.present.job.sessions import address_words, lasting_words

    address = ""
    for _ in range(ADDRESS_LOOKS):
        detail = await call.backend.job(job)
        address = detail.address
        if address or detail.row.ended_at is not None:
            break
        sleep(LOOK_SECONDS)  # noqa: ASYNC251 - a one-shot command has no loop that it could keep waiting
    call.streams.line(address_words(job, address))
    call.streams.hint(lasting_words(job, spec))
    return ExitCode.OK


SESSION = Verb(
    arguments,
    run,
    (
        "cockpit session",
        "cockpit session --cpus 8 --memory 32G --cards 1 --time-limit 4h",
        "cockpit session --from 4711",
        "echo 'command: jupyter lab --no-browser' | cockpit session --from 4711 -",
        "cockpit session --cards 1 -- nvidia-smi",
    ),
    mixed=True,
)
TRAIN = Verb(train_arguments, run_train, ("cockpit train 12 -- python3 /workspace/algorithm/train.py --epochs 90",))
