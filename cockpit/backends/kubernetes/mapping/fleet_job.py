"""What a fleet's host keeps of one job: the policy that selects it, its binding, and the members."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from cockpit.backends.kubernetes.objects.fleet import ACK_GROUP, MemberCluster, PropagationPolicy, ResourceBinding
from cockpit.backends.kubernetes.resources import Resource


class HeldPolicy(NamedTuple):
    """A policy with its kind."""

    resource: Resource
    policy: PropagationPolicy

    @property
    def is_ack(self) -> bool:
        """Whether it is of ACK One's dialect."""
        return self.resource.group == ACK_GROUP


class FleetJob(NamedTuple):
    """What a fleet's host keeps of one job."""

    kind: str
    """The kind of its object."""
    held: HeldPolicy | None
    """Its policy; None: no policy selects it."""
    binding: ResourceBinding | None
    """None: the fleet has not made one."""
    members: Mapping[str, MemberCluster]
    """All members of the fleet by name."""
    hidden: str = ""
    """Why its binding or its policy is not known, in the server's words; empty: what is not known does not exist."""
