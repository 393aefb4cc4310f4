"""`cockpit priority`: the queue in the order in which jobs are considered, and what makes it so."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cockpit.errors import SpecErrors
from cockpit.formats.typed_values import NAMES, RESOURCE, read_weights
from cockpit.headless.arguments import UsageError, Verb, reference
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.lists import add_list_options, list_rows
from cockpit.headless.output import Form, write_rows
from cockpit.headless.services import Call
from cockpit.headless.verbs.jobs import current_user
from cockpit.model.capabilities import Ability
from cockpit.model.cluster import PriorityKind
from cockpit.present.priority import IN_ORDER, weights_line, weights_set

if TYPE_CHECKING:
    from cockpit.model.ids import JobRef
    from cockpit.model.priority import WeightChanges
    from cockpit.model.view import PriorityRow


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("jobs", type=reference, nargs="*", metavar="ID", help="only these jobs")
    parser.add_argument(
        "--weights",
        type=weights,
        metavar="NAME=N,…",
        help=f"the order by other weights: {', '.join(NAMES)}, {RESOURCE}cpu, {RESOURCE}gres/gpu, …",
    )
    parser.add_argument("--apply", action="store_true", help="put these weights in force (administrators)")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    add_list_options(parser)


async def run(call: Call) -> int:
    from cockpit.present.tables.priority import PRIORITY as TABLE
    from cockpit.present.tables.priority import SPRIO, table_of

    args = call.args
    if args.apply and args.weights is None:
        raise UsageError("--apply wants the weights too, such as --weights age=1000,fairshare=2000")
    if args.apply and args.watch:
        raise UsageError("--watch only looks; --apply changes the weights, without it")
    user = await current_user(call)
    if args.watch:
        return await list_rows(call, TABLE, lambda: _chosen(call), user=user)
    priorities = await call.backend.priorities(args.weights)
    rows, missing = chosen(priorities.rows, args.jobs)
    # The queue is in order of submission, and has no priorities to show to people.
    in_order = priorities.kind is PriorityKind.BASIC
    for_people = args.output in {Form.TABLE, Form.WIDE}
    if in_order and for_people:
        call.streams.line(IN_ORDER)
    else:
        sprio = args.output == Form.WIDE and not args.columns
        table = SPRIO if sprio else table_of(priorities, tried=args.weights is not None)
        write_rows(table, rows, args, call.context(user=user), call.streams)
        unknown = "" if args.weights is not None else call.backend.capabilities.why_not(Ability.WEIGHTS)
        call.streams.hint(IN_ORDER if in_order else unknown or weights_line(priorities.weights))
    for job in missing:
        call.streams.say(f"cockpit: job {job} is not queued; `cockpit job {job}` says what became of it")
    # The order is shown first, and then confirmed.
    if args.apply and (code := await _apply(call)) is not ExitCode.OK:
        return code
    # Behind the rows: those that there are have been shown.
    return ExitCode.NOT_FOUND if missing else ExitCode.OK


async def _apply(call: Call) -> ExitCode:
    """Put the weights in force, after the rows that show the new order beside the old one."""
    if call.declines("Put these weights in force?"):
        return ExitCode.DECLINED
    call.streams.say(weights_set(await call.backend.set_weights(call.args.weights)))
    return ExitCode.OK


async def _chosen(call: Call) -> list[PriorityRow]:
    return chosen((await call.backend.priorities(call.args.weights)).rows, call.args.jobs)[0]


def chosen(rows: Sequence[PriorityRow], wanted: Sequence[JobRef]) -> tuple[list[PriorityRow], list[int]]:
    """Return the rows of these jobs, arrays and tasks (all rows if none is named), and the ids that no row has."""
    if not wanted:
        return list(rows), []
    chosen_rows = [row for row in rows if any(_is(row, ref) for ref in wanted)]
    return chosen_rows, [ref.job for ref in wanted if not any(_is(row, ref) for row in chosen_rows)]


def _is(row: PriorityRow, ref: JobRef) -> bool:
    if ref.task is None and row.job == ref.job:
        return True
    return row.task is not None and row.task.array == ref.job and ref.task in {None, row.task.index}


def weights(text: str) -> WeightChanges:
    """Parse weights such as `age=1000,tres/cpu=5`."""
    try:
        return read_weights(text)
    except SpecErrors as wrong:
        raise ArgumentTypeError(str(wrong)) from None


PRIORITY = Verb(
    arguments,
    run,
    (
        "cockpit priority",
        "cockpit priority 4711 -o json | jq '.rows[].factors'",
        "cockpit priority --filter 'user:me' -o wide",
        "cockpit priority --watch --columns position,id,priority",
        "cockpit priority --weights age=1000,fairshare=5000,tres/gres/gpu=200",
        "cockpit priority --weights fairshare=5000 --apply",
    ),
    mixed=True,
)
