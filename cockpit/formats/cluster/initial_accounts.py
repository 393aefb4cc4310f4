"""The accounts that cluster.toml begins with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from cockpit.formats.cluster.fields import ClusterFile
from cockpit.model.accounts import ROOT, Accounts, Association
from cockpit.model.accounttree import account_troubles


def initial_accounts(file: ClusterFile) -> Accounts:
    """The tree of the file beside what always exists; an account without a parent is below root."""
    begin = Accounts()
    return Accounts(
        associations=begin.associations | {each.key: each for _, each in _associations(file)},
        qos=begin.qos | {each.name: each for each in file.qos},
    )


def account_errors(file: ClusterFile) -> Iterator[str]:
    """What is wrong with them beside each other."""
    rows = list(_associations(file))
    places: dict[str, str] = {each.name: f"qos[{at}]" for at, each in enumerate(file.qos)}
    places |= {each.key: at for at, each in rows}
    yield from _repeated("qos", [(f"qos[{at}]", each.name) for at, each in enumerate(file.qos)])
    yield from _repeated("account", [(at, each.key) for at, each in rows if not each.user])
    yield from _repeated("user here", [(at, each.key) for at, each in rows if each.user])
    for trouble in account_troubles(initial_accounts(file)):
        yield f"{places.get(trouble.key, trouble.key)}.{trouble.field}: {trouble.sentence}"


def _associations(file: ClusterFile) -> Iterator[tuple[str, Association]]:
    for at, each in enumerate(file.accounts):
        below_root = not each.parent and each.account != ROOT
        yield f"accounts[{at}]", replace(each, parent=ROOT) if below_root else each
    for at, each in enumerate(file.users):
        yield f"users[{at}]", each


def _repeated(what: str, rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    seen: set[str] = set()
    for at, key in rows:
        if key in seen:
            yield f"{at}.name: is the name of an earlier {what}"
        seen.add(key)
