"""What each member cluster of a fleet has for a waiting job."""

from __future__ import annotations

import msgspec

from cockpit.model.fleet import BindingMode
from cockpit.model.ids import Millis
from cockpit.model.reasons import Resource


class MemberOutlook(msgspec.Struct, frozen=True, kw_only=True):
    """One member, and the job if it were bound to this member alone."""

    cluster: str
    mode: BindingMode
    replicas: int
    """The replicas that the job asks for."""
    fitting: int
    """Those of them for which the member has enough free: by totals or, with reservation, by real nodes."""
    cpus: int
    """The CPUs that the job asks for, over all replicas."""
    free_cpus: int
    memory_mib: int
    free_memory_mib: int
    card_milli: int
    free_card_milli: int
    short: Resource | None = None
    """The first resource of which too little is free; None: none is, by the sums."""
    out: str = ""
    """Why no nodes of it take jobs, as a sentence; empty: some do."""
    in_vain_at: Millis | None = None
    """When a placement of the job there was last given up, if nothing was released there since; None: it was not."""
    starts_now: bool = False
    """Whether the job would start now, if it were bound to this member alone."""
    likely_at: Millis | None = None
    """When it would likely start then; None: unknown, or beyond what is simulated."""
