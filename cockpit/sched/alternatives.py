"""Combines the reasons that stop the alternatives (node specs) of a job."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from cockpit.model.reasons import NoAlternative, NotEnoughFree, OfOne, Reason


def none_of(each: Sequence[OfOne]) -> OfOne | NoAlternative:
    """Return one reason for all alternatives: the common one, or one that lists them. At least one is given."""
    return each[0] if all(reason == each[0] for reason in each) else NoAlternative(tuple(each))


def is_short_of_resources(reason: Reason) -> bool:
    """Return whether the job lacks free resources, so that others could be evicted for it."""
    reasons = reason.specs if isinstance(reason, NoAlternative) else (reason,)
    return any(isinstance(one, NotEnoughFree) for one in reasons)


def with_shortage_changed(reason: Reason, changed: Callable[[NotEnoughFree], NotEnoughFree]) -> Reason:
    """Return the reason with its part about missing resources changed."""
    if isinstance(reason, NotEnoughFree):
        return changed(reason)
    if not isinstance(reason, NoAlternative):
        return reason
    return replace(
        reason, specs=tuple([changed(one) if isinstance(one, NotEnoughFree) else one for one in reason.specs])
    )
