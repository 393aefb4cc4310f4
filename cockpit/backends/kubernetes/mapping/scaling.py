"""Which change of its number of workers a TrainingJob is shown with, out of its ScaleIns and ScaleOuts."""

from __future__ import annotations

from collections.abc import Iterable

from cockpit.backends.kubernetes.objects.meta import condition
from cockpit.backends.kubernetes.objects.scaler import Scaler
from cockpit.model.resilience import ScalePhase, Scaling

_SUCCEEDED, _FAILED = "ScaleSucceeded", "ScaleFailed"
_LONGEST = 400


def scaling_of(scalers: Iterable[Scaler]) -> Scaling | None:
    """Return the change that is not done, or that was tried last and failed; None: the last one has succeeded.

    Of several that are not done it is the one that the operator works at, or else the latest, with which it begins.
    """
    latest_last = sorted(scalers, key=lambda each: (each.metadata.created_at, each.metadata.name))
    undone = [each for each in latest_last if _end(each) == ""]
    if undone:
        begun = [each for each in undone if _has_begun(each)]
        shown = (begun or undone)[-1]
        return _shown(shown, ScalePhase.RUNNING if begun else ScalePhase.WAITING)
    if latest_last and _end(latest_last[-1]) == _FAILED:
        return _shown(latest_last[-1], ScalePhase.FAILED)
    return None


def _end(scaler: Scaler) -> str:
    """Return how it has ended; empty: it has not."""
    conditions = scaler.status.conditions if scaler.status is not None else None
    # The operator goes by the conditions, too: the phase may be that of a moment before.
    ends = [each.type for each in conditions or () if each.type in {_SUCCEEDED, _FAILED} and each.is_true]
    return ends[-1] if ends else ""


def _has_begun(scaler: Scaler) -> bool:
    return scaler.status is not None and condition(scaler.status.conditions, "Scaling") is not None


def _shown(scaler: Scaler, phase: ScalePhase) -> Scaling:
    conditions = scaler.status.conditions if scaler.status is not None else None
    failed = condition(conditions, _FAILED)
    return Scaling(
        name=f"{scaler.kind} {scaler.metadata.name}",
        change=scaler.change,
        phase=phase,
        message=failed.message[:_LONGEST] if failed is not None and phase is ScalePhase.FAILED else "",
    )
