"""A refusal as a person reads it: its own words, then one line per scheduling reason."""

from __future__ import annotations

from datetime import tzinfo

from cockpit.model.ids import Millis
from cockpit.model.refusal import Refusal
from cockpit.present.reasons import reason_sentence


def refusal_text(refusal: Refusal, now: Millis, zone: tzinfo | None = None) -> str:
    """Lines of plain sentences; each reason behind the path of the field it is about."""
    said = [refusal.message] if refusal.message else []
    return "\n".join([*said, *(f"{path}: {reason_sentence(reason, now, zone)}" for path, reason in refusal.reasons)])
