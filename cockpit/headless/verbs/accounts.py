"""`cockpit accounts`: who may use how much. The settings and their names are sacctmgr's."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from cockpit.errors import RequestRefused
from cockpit.headless.arguments import UsageError, Verb
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.lists import add_list_options, list_rows
from cockpit.headless.services import Call
from cockpit.model import accountchange as change
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.present.safe import safe
from cockpit.present.tables.accounts import ACCOUNTS
from cockpit.present.tables.qos import QOS

if TYPE_CHECKING:
    from cockpit.model.accounts import Qos
    from cockpit.model.view import AccountRow, AccountsShown

_OPTIONS = {
    "parent": ("Parent", "A", "the account above it"),
    "shares": ("Fairshare", "N", "its shares beside its siblings', or parent"),
    "priority": ("Priority", "N", "its own priority"),
    "qos": ("QOS", "A,B", "QOS that may be used; +a adds, -a takes away"),
    "default_qos": ("DefaultQOS", "Q", "the QOS of a job that names none"),
}
"""The settings in sacctmgr's terms, by option."""
_SETTINGS_HELP = "limits by sacctmgr's names, such as MaxJobs=4 GrpTRES=cpu=16,mem=64G; -1 removes one"


async def _rows(call: Call) -> Sequence[AccountRow]:
    return (await _fetch(call, lambda shown: shown.rows)).rows


async def _fetch(call: Call, wanted: Callable[[AccountsShown], Sequence[object]]) -> AccountsShown:
    """Return the accounts, and print what else is missing. Raises `RequestRefused` if what is `wanted` is missing."""
    shown = await call.backend.accounts()
    if shown.missing and not wanted(shown):
        raise RequestRefused(Refusal(RefusalKind.UNAVAILABLE, shown.missing))
    if shown.missing:
        # On stderr: what there is goes to stdout as usual.
        call.streams.say(safe(shown.missing))
    return shown


async def _qos_rows(call: Call) -> Sequence[Qos]:
    return (await _fetch(call, lambda shown: shown.qos)).qos


def _name_and_settings(
    what: str, options: tuple[str, ...] = (), *, settings: bool = True
) -> Callable[[ArgumentParser], None]:
    def arguments(parser: ArgumentParser) -> None:
        parser.add_argument("name", metavar=what.upper(), help=f"the {what}")
        if settings:
            parser.add_argument("settings", nargs="*", default=[], metavar="SETTING=VALUE", help=_SETTINGS_HELP)
        for name in options:
            _, value, about = _OPTIONS[name]
            parser.add_argument(f"--{name.replace('_', '-')}", metavar=value, help=about)

    return arguments


_ACCOUNT_OPTIONS = ("parent", "shares", "priority", "qos", "default_qos")
_USER_OPTIONS = ("shares", "priority", "qos", "default_qos")


def _user_arguments(*, settings: bool = True, required: bool = False) -> Callable[[ArgumentParser], None]:
    def arguments(parser: ArgumentParser) -> None:
        # A removal has no settings; what it removes is named by user, account and partition.
        _name_and_settings("user", _USER_OPTIONS if settings else (), settings=settings)(parser)
        everywhere = "" if required else "; without it, wherever the user is"
        parser.add_argument("--account", required=required, metavar="A", help=f"in this account{everywhere}")
        parser.add_argument("--partition", default="", metavar="P", help="only there")
        if settings:
            parser.add_argument("--default", action="store_true", help="make it the user's default account")

    return arguments


def _coordinator_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="ACCOUNT", help="the account")
    parser.add_argument("users", nargs="+", metavar="USER", help="who administers what is below it")


def _settings(args: Namespace) -> list[str]:
    """Return the settings as sacctmgr writes them; options are other words for the most common ones."""
    given = [(setting, getattr(args, name, None)) for name, (setting, _, _) in _OPTIONS.items()]
    words = [*args.settings, *(f"{setting}={value}" for setting, value in given if value is not None)]
    return [*words, "Default=yes"] if getattr(args, "default", False) else words


def _association(args: Namespace, *, needed: bool = False) -> change.AssociationChange:
    from cockpit.formats.slurm.sacctmgr import association_change

    return association_change(_some(_settings(args), needed=needed))


def _qos(args: Namespace, *, needed: bool = False) -> change.QosChange:
    from cockpit.formats.slurm.sacctmgr import qos_change

    return qos_change(_some(_settings(args), needed=needed))


def _some(words: list[str], *, needed: bool) -> list[str]:
    if needed and not words:
        raise UsageError("say what is to change, such as MaxJobs=4")
    return words


def _verb(
    arguments: Callable[[ArgumentParser], None],
    make: Callable[[Namespace], change.AccountChange],
    done: str,
    example: str,
) -> Verb:
    async def run(call: Call) -> int:
        await call.backend.change_accounts(make(call.args))
        call.streams.line(f"{done} {safe(call.args.name)}")
        return ExitCode.OK

    def with_change(parser: ArgumentParser) -> None:
        arguments(parser)
        # The cockpit reads these two, to make the same change from a typed line (`typed_line.account_request`).
        parser.set_defaults(change=make, done=done)

    return Verb(with_change, run, (f"cockpit accounts {example}",), mixed=True)


LIST = Verb(
    add_list_options,
    lambda call: list_rows(call, ACCOUNTS, lambda: _rows(call)),
    ("cockpit accounts", "cockpit accounts --filter user:alice -o json"),
)
QOS_LIST = Verb(add_list_options, lambda call: list_rows(call, QOS, lambda: _qos_rows(call)), ("cockpit accounts qos",))
ADD = _verb(
    _name_and_settings("account", _ACCOUNT_OPTIONS),
    lambda args: change.AddAccount(args.name, _association(args)),
    "added account",
    "add vision --parent research --shares 60 GrpTRES=gres/gpu=16",
)
MODIFY = _verb(
    _name_and_settings("account", _ACCOUNT_OPTIONS),
    lambda args: change.ModifyAccount(args.name, _association(args, needed=True)),
    "changed account",
    "modify vision MaxJobs=20 MaxWall=1-00:00:00",
)
REMOVE = _verb(
    _name_and_settings("account", settings=False),
    lambda args: change.RemoveAccount(args.name),
    "removed account",
    "remove vision",
)
ADD_USER = _verb(
    _user_arguments(required=True),
    lambda args: change.AddUser(args.name, args.account, args.partition, _association(args)),
    "added user",
    "add-user alice --account vision --partition a4",
)
MODIFY_USER = _verb(
    _user_arguments(),
    lambda args: change.ModifyUser(args.name, _association(args, needed=True), args.account or "", args.partition),
    "changed user",
    "modify-user alice --account vision --qos +high MaxJobs=-1",
)
REMOVE_USER = _verb(
    _user_arguments(settings=False),
    lambda args: change.RemoveUser(args.name, args.account or "", args.partition),
    "removed user",
    "remove-user alice --account vision",
)
ADD_QOS = _verb(
    _name_and_settings("qos", ("priority",)),
    lambda args: change.AddQos(args.name, _qos(args)),
    "added QOS",
    "add-qos high --priority 100 MaxTRESPerUser=gres/gpu=8",
)
MODIFY_QOS = _verb(
    _name_and_settings("qos", ("priority",)),
    lambda args: change.ModifyQos(args.name, _qos(args, needed=True)),
    "changed QOS",
    "modify-qos high UsageFactor=2",
)
REMOVE_QOS = _verb(
    _name_and_settings("qos", settings=False),
    lambda args: change.RemoveQos(args.name),
    "removed QOS",
    "remove-qos high",
)
ADD_COORDINATOR = _verb(
    _coordinator_arguments,
    lambda args: change.AddCoordinators(args.name, tuple(args.users)),
    "added coordinators of",
    "add-coordinator vision carol",
)
REMOVE_COORDINATOR = _verb(
    _coordinator_arguments,
    lambda args: change.RemoveCoordinators(args.name, tuple(args.users)),
    "removed coordinators of",
    "remove-coordinator vision carol",
)
