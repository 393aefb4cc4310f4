"""`cockpit accounting`: jobs that have ended with what they held and used, sums of them, and card-hours over days."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from typing import TYPE_CHECKING

from cockpit.errors import RequestRefused
from cockpit.headless.arguments import Verb, count
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.output import add_output_options, chosen_rows, write_rows
from cockpit.headless.services import Call
from cockpit.model.capabilities import Ability
from cockpit.model.ids import Millis
from cockpit.model.quantity import parse_duration
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.present.accounting import GroupBy, days_until, held_by, job_sums
from cockpit.present.moments import parse_moment
from cockpit.present.safe import safe
from cockpit.present.tables.accounting import ACCOUNTING as TABLE
from cockpit.present.tables.accounting import HOURS, SUMS

if TYPE_CHECKING:
    from argparse import Namespace

SINCE = "7d"
DAYS = 7
MOST_DAYS = 366
"""Most days in one table of hours."""
_WHEN = "a moment such as 2026-10-05T09:00 or so long ago, such as 30d"
BY_HELP = "account, user, project or qos"
_CHOSEN = ("account", "state", "project", "qos")
"""Options that are words of the filter."""


class Ago(int):
    """A time span before now, in seconds."""


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--since", type=when, default=when(SINCE), metavar="T", help=f"that ended since: {_WHEN} ({SINCE})"
    )
    parser.add_argument("--until", type=when, metavar="T", help="that ended before")
    parser.add_argument("--user", metavar="U", help="only this user's")
    for name in _CHOSEN:
        parser.add_argument(f"--{name}", metavar=name[0].upper(), help=f"only of this {name}")
    parser.add_argument("--by", choices=[str(by) for by in GroupBy], metavar="WHAT", help=f"sums by {BY_HELP}")
    add_output_options(parser)


async def run(call: Call) -> int:
    args, now = call.args, call.streams.now()
    since, until = resolve(args.since, now), resolve(args.until, now)
    jobs = await call.backend.accounting(since=since, until=until, user=args.user)
    call.tell_of_silent_clusters()
    _tell_how_far_back(call)
    # Options are words of the filter, so that both may be given, and `--filter` can say the same.
    args.filter = " ".join(filter(None, (args.filter, *_words(args)))) or None
    if args.by is None:
        write_rows(TABLE, jobs, args, call.context(), call.streams)
        return ExitCode.OK
    # The filter is for jobs, the order for their sums.
    sort, args.sort = args.sort, None
    chosen = chosen_rows(TABLE, jobs, args, call.context())
    args.filter, args.sort = None, sort
    write_rows(SUMS, job_sums(chosen, GroupBy(args.by)), args, call.context(), call.streams)
    return ExitCode.OK


def _tell_how_far_back(call: Call) -> None:
    """Print why ended jobs are missing, where the cluster does not keep all of them."""
    if why := call.backend.capabilities.why_not(Ability.EVERY_END):
        call.streams.say(why)


def hours_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--days", type=days, default=DAYS, metavar="N", help=f"so many, today among them ({DAYS})")
    parser.add_argument(
        "--by",
        choices=[str(by) for by in GroupBy],
        default=str(GroupBy.ACCOUNT),
        metavar="WHAT",
        help=f"by {BY_HELP} (account)",
    )
    add_output_options(parser)


async def run_hours(call: Call) -> int:
    edges = days_until(call.streams.now(), call.args.days, call.streams.zone)
    spending = await call.backend.spending(edges)
    if spending.missing:
        # Refused rather than shown: without the ended jobs the sums would be wrong and look right.
        raise RequestRefused(Refusal(RefusalKind.UNAVAILABLE, spending.missing))
    _tell_how_far_back(call)
    rows = held_by(spending, GroupBy(call.args.by))
    write_rows(HOURS, rows, call.args, call.context(), call.streams)
    return ExitCode.OK


def when(text: str) -> Millis | Ago:
    """Parse a moment, or a time span before now."""
    seconds = parse_duration(text)
    if isinstance(seconds, int):
        return Ago(seconds)
    at = parse_moment(text)
    if at is None:
        raise ArgumentTypeError(f"{safe(text)} is neither {_WHEN.replace(' or ', ' nor ', 1)}")
    return at


def days(text: str) -> int:
    """Parse a number of days."""
    number = count(text)
    if not 0 < number <= MOST_DAYS:
        raise ArgumentTypeError(f"{number} days are not between 1 and {MOST_DAYS}")
    return number


def resolve(at: Millis | Ago | None, now: Millis) -> Millis | None:
    """Return the moment; that of a time span is before now."""
    return Millis(max(0, now - 1000 * at)) if isinstance(at, Ago) else at


def _words(args: Namespace) -> list[str]:
    chosen = ((name, getattr(args, name)) for name in _CHOSEN)
    return [f'{name}:"{value}"' if " " in value else f"{name}:{value}" for name, value in chosen if value is not None]


ACCOUNTING = Verb(
    arguments,
    run,
    (
        "cockpit accounting",
        "cockpit accounting --since 30d --user alice -o csv",
        "cockpit accounting --since 2026-10-01 --until 2026-11-01 --by account",
        "cockpit accounting --filter 'state:failed card_hours>10' --sort -card_hours",
    ),
)
HOURS_VERB = Verb(
    hours_arguments,
    run_hours,
    ("cockpit accounting hours", "cockpit accounting hours --days 30 --by user", "cockpit accounting hours -o json"),
)
