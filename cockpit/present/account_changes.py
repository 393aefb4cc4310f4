"""Questions to confirm before something is removed from the accounts."""

from __future__ import annotations

from cockpit.model import accountchange as change
from cockpit.present.safe import safe

KEPT = "What still has jobs is not removed; usage and accounting stay."


def question(wanted: change.AccountChange) -> tuple[str, str]:
    """Return the question, and the consequences of a yes, both harmless."""
    match wanted:
        case change.RemoveAccount():
            sentence = f"Remove account {safe(wanted.name)}?"
            return sentence, f"With every account and user below it. {KEPT}"
        case change.RemoveUser():
            account = f"account {safe(wanted.account)}" if wanted.account else "every account"
            where = f", partition {safe(wanted.partition)}" if wanted.partition else ""
            return f"Remove user {safe(wanted.user)} from {account}{where}?", KEPT
        case change.RemoveQos():
            return (
                f"Remove QOS {safe(wanted.name)}?",
                "Jobs can no longer request it; a QOS that is in use is not removed.",
            )
        case change.RemoveCoordinators():
            users = ", ".join(map(safe, wanted.users))
            return (
                f"Take account {safe(wanted.account)} away from {users}?",
                "They administer nothing below it any more.",
            )
    return "Change the accounts?", ""
