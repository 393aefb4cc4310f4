"""`cockpit reservations`: nodes reserved for users or for maintenance; `create` and `end` for administrators."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace

from cockpit.headless.arguments import UsageError, Verb, seconds
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.lists import add_list_options, list_rows
from cockpit.headless.services import Call, try_each
from cockpit.model.cluster import Reservation
from cockpit.model.ids import Millis, NodeName
from cockpit.model.quantity import parse_duration
from cockpit.present.moments import clock, parse_moment
from cockpit.present.safe import safe
from cockpit.present.tables.reservations import RESERVATIONS as TABLE

NOW = "now"


def create_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="what jobs name as their reservation")
    parser.add_argument("--nodes", type=names, required=True, metavar="N1,N2", help="the nodes to keep")
    parser.add_argument(
        "--start",
        type=moment,
        default=NOW,
        metavar="WHEN",
        help="such as 2026-10-05T09:00, now or now+2h; now by default",
    )
    parser.add_argument("--end", type=moment, metavar="WHEN", help="when all jobs may use them again")
    parser.add_argument("--duration", type=seconds, metavar="TIME", help="instead of --end: for how long, such as 4h")
    parser.add_argument("--users", type=names, default=(), metavar="U1,U2", help="users whose jobs may run in it")
    parser.add_argument("--accounts", type=names, default=(), metavar="A1,A2", help="accounts whose jobs may run in it")
    parser.add_argument("--maintenance", action="store_true", help="no jobs run in it")


async def run_create(call: Call) -> int:
    now, zone = call.streams.now(), call.streams.zone
    wanted = wanted_reservation(call.args, now)
    await call.backend.make_reservation(wanted)
    span = f"from {clock(Millis(wanted.start_at), now, zone)} to {clock(Millis(wanted.end_at), now, zone)}"
    call.streams.line(f"reserved {safe(wanted.name)} {span}")
    return ExitCode.OK


def wanted_reservation(args: Namespace, now: Millis) -> Reservation:
    """Return the reservation that the options of `create` request. Raises `UsageError`."""
    if (args.end is None) == (args.duration is None):
        raise UsageError("say until when: --end 2026-10-05T12:00, or --duration 4h")
    start = _resolve(args.start, now)
    end = Millis(start + 1000 * args.duration) if args.end is None else _resolve(args.end, now)
    return Reservation(
        name=args.name,
        nodes=tuple(map(NodeName, args.nodes)),
        start_at=start,
        end_at=end,
        users=args.users,
        accounts=args.accounts,
        maintenance=args.maintenance,
    )


def end_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("names", nargs="+", metavar="RESERVATION", help="the reservations")


def names(text: str) -> tuple[str, ...]:
    """Split names that are separated by commas."""
    return tuple(filter(None, (part.strip() for part in text.split(","))))


def moment(text: str) -> Millis | str:
    """Parse a moment, or `now+SECONDS`."""
    # Kept as text: the clock of a demo is known only when the cluster is open.
    if text == NOW:
        return text
    if text.startswith(f"{NOW}+"):
        seconds = parse_duration(text.removeprefix(f"{NOW}+"))
        if isinstance(seconds, int):
            return f"{NOW}+{seconds}"
    elif (at := parse_moment(text)) is not None:
        return at
    raise ArgumentTypeError(f"{safe(text)} is no moment; write 2026-10-05T09:00, now or now+2h")


def _resolve(when: Millis | str, now: Millis) -> Millis:
    if isinstance(when, int):
        return when
    return Millis(now + 1000 * int(when.removeprefix(NOW) or 0))


RESERVATIONS = Verb(
    add_list_options,
    lambda call: list_rows(call, TABLE, call.backend.reservations),
    ("cockpit reservations", "cockpit reservations --filter 'state:active' -o json"),
)
CREATE = Verb(
    create_arguments,
    run_create,
    (
        "cockpit reservations create course --nodes n01,n02 --start 2026-10-05T09:00 --duration 4h --users ann,bob",
        "cockpit reservations create upkeep --nodes n07 --start now+2h --duration 1h --maintenance",
    ),
)
END = Verb(
    end_arguments,
    lambda call: try_each(call, call.args.names, call.backend.end_reservation, "ended", safe),
    ("cockpit reservations end course",),
)
