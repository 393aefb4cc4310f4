"""`cockpit engine` controls the process of the embedded engine; `doctor` checks this machine and the store."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence

from cockpit.headless.arguments import Verb, no_options
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.lists import add_page_options, list_rows
from cockpit.headless.output import add_output_options, chosen_rows, is_page, write_rows
from cockpit.headless.services import Call
from cockpit.model.view import EngineStatus, HoldRow
from cockpit.present.moments import clock
from cockpit.present.safe import safe
from cockpit.present.tables.engine import ENGINE, FINDINGS, findings_lines, record_lines
from cockpit.present.units import counted


async def run_status(call: Call) -> int:
    """Show the engine's state. The exit code is `UNREACHABLE` if it does not run, for scripts that only ask."""
    status = call.services.engine().status()
    # Without an engine there is nothing to wait for: watching must not start one.
    if call.args.watch and status.running:
        return await list_rows(call, ENGINE, lambda: _status(call))
    if is_page(call.args):
        call.streams.lines(record_lines(ENGINE.columns, status, call.context()))
    else:
        write_rows(ENGINE, [status], call.args, call.context(), call.streams)
    if not status.running:
        call.streams.hint("Any command that needs it starts it: cockpit jobs")
    return ExitCode.OK if status.running else ExitCode.UNREACHABLE


async def _status(call: Call) -> list[EngineStatus]:
    return [call.services.engine().status()]


def start_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--system", action="store_true", help="one engine for the whole machine, as root")


async def run_start(call: Call) -> int:
    return _print_status(call, call.services.engine().start(system=call.args.system))


def stop_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--jobs", action="store_true", help="end the running jobs too")
    parser.add_argument("--holds", action="store_true", help="end the held containers of failed jobs too")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")


async def run_stop(call: Call) -> int:
    """Stop the engine, and print which held containers stay: they use disk and memory until their holds end."""
    engine, jobs, holds = call.services.engine(), call.args.jobs, call.args.holds
    if jobs or holds:
        # Containers of an engine that is stopped can be ended only by an engine.
        engine.take_over()
    held = engine.holds()
    if (jobs or holds) and call.declines(_stop_question(jobs=jobs, holds=holds, held=held)):
        return ExitCode.DECLINED
    if jobs:
        call.streams.hint("ending the jobs; each has its grace period …")
    engine.stop(jobs=jobs, holds=holds)
    call.streams.line("the engine is stopped" + ("" if jobs else "; running jobs continue"))
    if held and not holds:
        call.streams.say(_staying(held, call))
    return ExitCode.OK


def _stop_question(*, jobs: bool, holds: bool, held: Sequence[HoldRow]) -> str:
    ended = [*(["every running job"] if jobs else []), *([counted(len(held), "held container")] if holds else [])]
    staying = "" if holds or not held else f" {counted(len(held), 'held container')} will stay; --holds ends them too."
    return f"End {' and '.join(ended)} and stop the engine?{staying}"


def _staying(held: Sequence[HoldRow], call: Call) -> str:
    now, zone = call.streams.now(), call.streams.zone
    each = ", ".join(f"{row.job} ({safe(row.name)}) until {clock(row.held_until, now, zone)}" for row in held)
    ids = " ".join(str(row.job) for row in held)
    stay = "stays until its window ends" if len(held) == 1 else "stay until their windows end"
    return (
        f"{counted(len(held), 'held container')} {stay}: {each}. "
        f"`cockpit holds end {ids}` ends them now (it starts the engine); next time `cockpit engine stop --holds` does."
    )


async def run_restart(call: Call) -> int:
    return _print_status(call, call.services.engine().restart())


def unit_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--install", action="store_true", help="write it where systemd looks for it, as root")


async def run_unit(call: Call) -> int:
    engine = call.services.engine()
    if not call.args.install:
        call.streams.line(engine.unit().rstrip("\n"))
        return ExitCode.OK
    path = engine.install_unit()
    call.streams.line(str(path))
    call.streams.hint(f"Start it now and at every boot: systemctl daemon-reload && systemctl enable --now {path.stem}")
    return ExitCode.OK


def _print_status(call: Call, status: EngineStatus) -> int:
    call.streams.line(f"the engine runs as process {status.pid}")
    for trouble in status.trouble:
        call.streams.say(trouble)
    return ExitCode.OK


STATUS = Verb(
    add_page_options,
    run_status,
    ("cockpit engine status", "cockpit engine status -o json", "cockpit engine status --watch"),
)
START = Verb(start_arguments, run_start, ("cockpit engine start", "cockpit engine start --system"))
STOP = Verb(stop_arguments, run_stop, ("cockpit engine stop", "cockpit engine stop --jobs --holds --yes"))
UNIT = Verb(unit_arguments, run_unit, ("cockpit engine unit", "cockpit engine unit --install"))
RESTART = Verb(no_options, run_restart, ("cockpit engine restart",))


MISSING = "missing"
"""The level of a finding that keeps something from working."""


def doctor_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--journal",
        action="store_true",
        help="verify the engine's whole store: every event, archive file, snapshot and record",
    )
    add_output_options(parser)


async def run_doctor(call: Call) -> int:
    """Run the checks. The exit code is `MISSING` if something does not work, `STORE` if the journal is damaged."""
    findings = call.services.journal(call.args.cluster) if call.args.journal else call.services.findings()
    if is_page(call.args):
        shown = chosen_rows(FINDINGS, findings, call.args, call.context())
        width = call.streams.columns if call.streams.stdout.isatty() else None
        call.streams.lines(findings_lines(shown, width))
    else:
        write_rows(FINDINGS, findings, call.args, call.context(), call.streams)
    if not any(finding.level == MISSING for finding in findings):
        return ExitCode.OK
    return ExitCode.STORE if call.args.journal else ExitCode.MISSING


DOCTOR = Verb(
    doctor_arguments,
    run_doctor,
    ("cockpit doctor", "cockpit doctor -o json --filter '!level:ok'", "cockpit doctor --journal"),
)
