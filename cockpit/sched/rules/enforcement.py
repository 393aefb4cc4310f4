"""Expands `accounting_storage_enforce`: what each of its words implies."""

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
"""What each word implies. Source: slurm.conf(5), AccountingStorageEnforce."""


def enforced(written: Iterable[Enforce]) -> frozenset[Enforce]:
    """Return the configured words with all that they imply; no word enforces nothing."""
    parts = frozenset(written)
    return parts.union(*(_IMPLIES[part] for part in parts))


def allowed_qos(accounts: Accounts, association: Association) -> tuple[str, ...]:
    """Return the QOS that an association may use: its own list, else that of the nearest account above with one."""
    lines = (association, *accounts.above(association))
    return next((line.qos for line in lines if line.qos), (NORMAL,))
