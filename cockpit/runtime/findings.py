"""The findings of a check of this machine, in sentences for users."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from cockpit.model.node import Card
from cockpit.runtime.probe_command import Answer, Outcome


class FindingLevel(StrEnum):
    OK = "ok"
    NOTE = "note"
    """Something works, but the user should know about it."""
    MISSING = "missing"
    """A feature of cockpit does not work on this machine."""


class Finding(msgspec.Struct, frozen=True):
    level: FindingLevel
    subject: str
    """What was checked, in a word or two."""
    found: str
    """The result of the check."""
    advice: str = ""
    """The missing function, and the command that fixes it; empty if all is well."""


def ok(subject: str, found: str) -> Finding:
    return Finding(FindingLevel.OK, subject, found)


def note(subject: str, found: str, advice: str = "") -> Finding:
    return Finding(FindingLevel.NOTE, subject, found, advice)


def missing(subject: str, found: str, advice: str) -> Finding:
    return Finding(FindingLevel.MISSING, subject, found, advice)


def silence(subject: str, program: str, answer: Answer) -> Finding:
    """Return the finding that `program` gave no usable answer: why, and what to try."""
    reasons = {
        Outcome.ABSENT: f"{program} could not be started",
        Outcome.HUNG: f"{program} did not answer in time and was killed",
        Outcome.ENDLESS: f"{program} printed without end and was killed",
        Outcome.ANSWERED: f"{program} failed with exit code {answer.code}: {answer.first_line}",
    }
    return missing(
        subject, reasons[answer.outcome], f"Run `{program}` by hand; reload the driver or reboot if it hangs."
    )


class DetectedCards(msgspec.Struct, frozen=True, kw_only=True):
    """One vendor's cards, numbered from 0 in the vendor's order."""

    cards: tuple[Card, ...] = ()
    driver_version: str = ""
    findings: tuple[Finding, ...] = ()
    """Problems only."""
