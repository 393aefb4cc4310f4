"""What `accounting_storage_enforce` says, and what each of its parts implies."""

from __future__ import annotations

from collections.abc import Iterable

from cockpit.model.accounts import NORMAL, Accounts, Association
from cockpit.model.cluster import Enforce

_IMPLIES = {
    Enforce.ASSOCIATIONS: (),
    Enforce.LIMITS: (Enforce.ASSOCIATIONS,),
    Enforce.QOS: (Enforce.ASSOCIATIONS,),
    Enforce.SAFE: (Enforce.ASSOCIATIONS, Enforce.LIMITS),
}
"""slurm.conf(5), AccountingStorageEnforce."""


def enforced(written: Iterable[Enforce]) -> frozenset[Enforce]:
    """The parts written, with all that they imply; nothing written enforces nothing."""
    parts = frozenset(written)
    return parts.union(*(_IMPLIES[part] for part in parts))


def allowed_qos(accounts: Accounts, association: Association) -> tuple[str, ...]:
    """The QOS that an association may use: its own list, else that of the nearest account above with one."""
    lines = (association, *accounts.above(association))
    return next((line.qos for line in lines if line.qos), (NORMAL,))
