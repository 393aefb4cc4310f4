"""A small tree of accounts, as faces get it."""

from __future__ import annotations

from cockpit.model.accounts import Association, Qos, ResourceLimits
from cockpit.model.view import AccountRow, AccountsShown


def account_tree() -> AccountsShown:
    def row(association: Association, depth: int) -> AccountRow:
        return AccountRow(association, depth, used=12.7, queued=1, running=2)

    return AccountsShown(
        (
            row(Association(account="root"), 0),
            row(Association(account="vision", parent="root", shares=60, limits=ResourceLimits(max_jobs=4)), 1),
            row(Association(account="vision", user="alice", shares=None, qos=("normal", "high")), 2),
        ),
        (Qos(name="normal"), Qos(name="high", priority=100, limits=ResourceLimits(grp_jobs=3))),
    )
