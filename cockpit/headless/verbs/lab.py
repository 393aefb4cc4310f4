"""`cockpit lab`: what other rules or nodes would have made of the recorded past."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from typing import TYPE_CHECKING

from cockpit.errors import RequestRefused
from cockpit.headless.arguments import UsageError, Verb, count
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.output import Form, add_output_options, write_rows
from cockpit.headless.services import Call
from cockpit.headless.streams import Progress
from cockpit.headless.verbs.accounting import resolve, when
from cockpit.headless.verbs.priority import weights
from cockpit.model.cluster import BackfillKind
from cockpit.model.ids import Millis, NodeName
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.present.safe import safe

if TYPE_CHECKING:
    from cockpit.headless.lab_run import Prepared

SINCE = "7d"


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="a log in SWF instead of the cluster's own past, plain or .gz; - is stdin",
    )
    parser.add_argument(
        "--procs", type=count, metavar="N", help="of a log: processors of the machine, if not those of its header"
    )
    parser.add_argument("--since", type=when, default=when(SINCE), metavar="T", help=f"jobs that ended since ({SINCE})")
    parser.add_argument("--weights", type=weights, metavar="NAME=N,…", help="other weights, as for cockpit priority")
    parser.add_argument(
        "--backfill", choices=[str(kind) for kind in BackfillKind], metavar="KIND", help="off, easy or conservative"
    )
    parser.add_argument("--depth", type=count, metavar="N", help="waiting jobs that one pass considers; 0: all")
    parser.add_argument(
        "--accounts",
        action="append",
        metavar="WORDS",
        help="a change of limits, shares or QOS, as after cockpit accounts: 'modify nlp MaxJobs=20'",
    )
    parser.add_argument("--remove-nodes", metavar="A,B", help="without these nodes")
    parser.add_argument(
        "--add-nodes", type=added, action="append", metavar="N:NODE", help="with so many more nodes like this one"
    )
    parser.add_argument("--apply", action="store_true", help="put the changes in force (administrators)")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    add_output_options(parser)


def added(text: str) -> tuple[int, NodeName]:
    """Parse `4:a01`."""
    number, _, name = text.partition(":")
    if not name or not number.isascii() or not number.isdigit() or not 1 <= int(number) <= 10_000:
        raise ArgumentTypeError(f"{safe(text)}: write a number and a node, such as 4:a01")
    return int(number), NodeName(name)


async def run(call: Call) -> int:
    from cockpit.headless.lab_run import run_lab
    from cockpit.present.lab import lab_lines
    from cockpit.present.spans import plain
    from cockpit.present.tables.lab import LAB as TABLE

    args = call.args
    if args.apply:
        _refuse_what_cannot_be_applied(call)
    prepared = await _prepared(call)
    with Progress(call.streams, 2 * len(prepared.past), "jobs in two replays") as progress:
        report = run_lab(prepared, progress.at)
    if args.output == Form.TABLE and not (args.columns or args.filter or args.sort):
        call.streams.lines(map(plain, lab_lines(report, call.streams.columns)))
    else:
        write_rows(TABLE, report.rows, args, call.context(), call.streams)
    return await _apply(call) if args.apply else ExitCode.OK


async def _prepared(call: Call) -> Prepared:
    from cockpit.headless.lab_run import from_cluster, from_log

    if call.args.file is None:
        now = call.streams.now()
        return await from_cluster(call.args, call.backend, now, resolve(call.args.since, now) or Millis(0))
    try:
        data = call.read_file(call.args.file)
    except OSError as failed:
        message = f"{safe(call.args.file)}: cannot be read: {failed.strerror}; give the path of a log in SWF."
        raise RequestRefused(Refusal(RefusalKind.NOT_FOUND, message)) from failed
    return from_log(call.args, safe(call.args.file), data)


def _refuse_what_cannot_be_applied(call: Call) -> None:
    args = call.args
    if args.file is not None:
        raise UsageError("--apply is for the cluster's own past; a log is of another machine")
    if args.backfill is not None or args.depth is not None:
        raise UsageError("--apply changes weights, limits and QOS; for backfill edit cluster.toml, which is read again")
    if args.remove_nodes or args.add_nodes:
        raise UsageError("--apply changes weights, limits and QOS; drain nodes with `cockpit nodes drain`")
    if args.weights is None and not args.accounts:
        raise UsageError("--apply wants changes, such as --weights age=1000 or --accounts 'modify nlp MaxJobs=20'")


async def _apply(call: Call) -> ExitCode:
    """Put weights, limits and QOS in force, after the result was shown."""
    from cockpit.headless.typed_line import account_request
    from cockpit.present.priority import weights_set

    if call.declines("Put these changes in force?"):
        return ExitCode.DECLINED
    if call.args.weights is not None:
        call.streams.say(weights_set(await call.backend.set_weights(call.args.weights)))
    for text in call.args.accounts or ():
        request = account_request(text)
        await call.backend.change_accounts(request.change)
        call.streams.say(safe(request.done))
    return ExitCode.OK


LAB = Verb(
    arguments,
    run,
    (
        "cockpit lab --weights age=1000,fairshare=5000",
        "cockpit lab --since 30d --accounts 'modify nlp MaxJobs=20' --apply",
        "cockpit lab --backfill conservative --add-nodes 4:a01 -o json",
        "cockpit lab KTH-SP2.swf.gz --procs 100 --backfill off",
    ),
)
