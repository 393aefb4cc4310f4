"""Sentences about the outcome of a request to the engine."""

from __future__ import annotations

from datetime import tzinfo

from cockpit.model.ids import Millis
from cockpit.model.refusal import Refusal
from cockpit.model.requests import RequestOutcome
from cockpit.present.moments import clock
from cockpit.present.reasons import reason_sentence
from cockpit.present.safe import safe, shortened
from cockpit.present.units import counted


def refusal_text(refusal: Refusal, now: Millis, zone: tzinfo | None = None) -> str:
    """Return the refusal in plain sentences, one a line; each reason follows the path of the field that it concerns."""
    lines = [refusal.message] if refusal.message else []
    lines += [f"{path}: {reason_sentence(reason, now, zone)}" for path, reason in refusal.reasons]
    return shortened("\n".join(lines))


def outcome_text(request: str, outcome: RequestOutcome, shown: int, now: Millis, zone: tzinfo | None = None) -> str:
    """Return the sentences beside the list of the request's jobs, of which `shown` are listed; empty where the list
    says everything."""
    # Not known is not refused: the engine may still have the request before it, and only a repeat under the same id is
    # sure not to be carried out twice.
    if not outcome.known:
        return (
            f"No request {safe(request)} of yours has been accepted so far. Requests are remembered for a day. If the "
            f"engine was only slow, it may still come to it: repeating the command with `--request-id {safe(request)}` "
            "is safe, and waits for the answer."
        )
    if outcome.refusal is not None:
        return f"{_answered('refused', request, outcome, now, zone)}: {refusal_text(outcome.refusal, now, zone)}"
    if not outcome.jobs:
        return accepted_text(request, outcome, now, zone)
    unlisted = len(outcome.jobs) - shown
    return f"{counted(unlisted, 'job')} of request {safe(request)} are no longer listed." if unlisted > 0 else ""


def accepted_text(request: str, outcome: RequestOutcome, now: Millis, zone: tzinfo | None = None) -> str:
    """Return the sentence that an accepted request was accepted, and when."""
    return f"{_answered('accepted', request, outcome, now, zone)}."


def _answered(how: str, request: str, outcome: RequestOutcome, now: Millis, zone: tzinfo | None) -> str:
    at = f" at {clock(outcome.at, now, zone)}" if outcome.at is not None else ""
    return f"Request {safe(request)} ({outcome.op.replace('_', ' ') or 'an act'}) was {how}{at}"
