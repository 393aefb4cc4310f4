"""Changes of accounts, users and QOS as sacctmgr's commands."""

from __future__ import annotations

from collections.abc import Iterator

from cockpit.formats.slurm.sacctmgr import change_words
from cockpit.model import accountchange as change

_HEAD = ("sacctmgr", "--immediate", "--quiet")


def command(wanted: change.AccountChange) -> tuple[str, ...]:
    """Return the sacctmgr command for a change; it asks for no confirmation."""
    return (*_HEAD, *_words(wanted))


def _words(wanted: change.AccountChange) -> Iterator[str]:
    match wanted:
        case change.AddUser() | change.ModifyUser() | change.RemoveUser():
            yield from _of_user(wanted)
        case change.AddCoordinators() | change.RemoveCoordinators():
            verb = "add" if isinstance(wanted, change.AddCoordinators) else "delete"
            yield from (verb, "coordinator", f"Accounts={wanted.account}", f"Names={','.join(wanted.users)}")
        case change.AddAccount() | change.AddQos():
            yield from ("add", _KIND[type(wanted)], wanted.name, *change_words(wanted.change))
        case change.ModifyAccount() | change.ModifyQos():
            place = ("where", f"name={wanted.name}", "set")
            yield from ("modify", _KIND[type(wanted)], *place, *change_words(wanted.change))
        case change.RemoveAccount() | change.RemoveQos():
            yield from ("delete", _KIND[type(wanted)], "where", f"name={wanted.name}")


_KIND: dict[type, str] = {
    **dict.fromkeys((change.AddAccount, change.ModifyAccount, change.RemoveAccount), "account"),
    **dict.fromkeys((change.AddQos, change.ModifyQos, change.RemoveQos), "qos"),
}


def _of_user(wanted: change.AddUser | change.ModifyUser | change.RemoveUser) -> Iterator[str]:
    if isinstance(wanted, change.AddUser):
        yield from ("add", "user", wanted.user, f"Accounts={wanted.account}", *_in(wanted.partition))
        yield from change_words(wanted.change)
        return
    where = ("where", f"name={wanted.user}", *_of(wanted.account), *_in(wanted.partition))
    if isinstance(wanted, change.RemoveUser):
        yield from ("delete", "user", *where)
        return
    default = (f"DefaultAccount={wanted.account}",) if wanted.change.default and wanted.account else ()
    yield from ("modify", "user", *where, "set", *change_words(wanted.change), *default)


def _of(account: str) -> tuple[str, ...]:
    return (f"account={account}",) if account else ()


def _in(partition: str) -> tuple[str, ...]:
    return (f"Partition={partition}",) if partition else ()
