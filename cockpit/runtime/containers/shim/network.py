"""The network of a job with several replicas: a bridge in a network namespace of its own, the hub, and for each
container a network namespace whose `eth0` is plugged into that bridge.

Every holder keeps the hub open, so whichever replica comes first makes it and it is gone with the last: the kernel
takes down bridge and cables then, whoever was killed. Among siblings a lock sees that only one makes it.

    NETWORK/lock          held while a shim makes or joins the network
    NETWORK/outward.json  by what the hub's way leads outward, or why it has none, see `outward`
"""

from __future__ import annotations

import fcntl
import json
import os

from cockpit.runtime.containers.shim import linux, nat, netlink
from cockpit.runtime.containers.shim.attempt import Attempt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cockpit.runtime.containers.shim.attempt import PlanDict
    from cockpit.runtime.containers.shim.usernet import Outpost

HUB_FD = 101
"""Where a holder keeps the hub open."""
_BRIDGE = "br0"
_OWN = "eth0"
_NAMESPACE = "/proc/self/ns/net"
_OUTWARD = "outward.json"


class Membership:
    """A shim's place in the network of its job, from before it leaves the machine until it can be found by others."""

    def __init__(self, attempt: Attempt, plan: PlanDict) -> None:
        self._attempt, self._plan = attempt, plan
        self._lock = -1
        self._outpost: Outpost | None = None

    @property
    def needed(self) -> bool:
        """Whether there are others to reach."""
        return bool(self._plan.get("network"))

    def begin(self) -> None:
        """Wait for the siblings that are just joining."""
        if not self.needed:
            return
        lock = os.path.join(self._plan["network"], "lock")
        self._lock = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        if self._plan["rootless"] and next(_siblings(self._attempt), None) is None:
            self._leave_outpost(lock)

    def _leave_outpost(self, lock: str) -> None:
        from cockpit.runtime.containers.shim.usernet import Outpost

        def in_use() -> bool:
            return next(_siblings(self._attempt), None) is not None

        self._outpost = Outpost(nat.HUB_END, lock, in_use)

    def end(self) -> None:
        """Let them join; the lock is shared with the holder, so closing it would not do."""
        if self._lock >= 0:
            fcntl.flock(self._lock, fcntl.LOCK_UN)
            os.close(self._lock)
            self._lock = -1

    def join_user_namespace(self) -> bool:
        """An ordinary user's containers are all in the one of their job's hub; False: the caller makes it."""
        sibling = next(_siblings(self._attempt), None) if self.needed else None
        if sibling is None:
            return False
        holder = sibling.open_holder()
        if holder is None:
            return False
        linux.setns(holder, linux.CLONE_NEWUSER)
        os.close(holder)
        return True

    def join(self) -> None:
        """Leave the machine's network for the job's. Raises OSError."""
        if not self.needed:
            return
        machine = os.open(_NAMESPACE, os.O_RDONLY | os.O_CLOEXEC)
        hub = self._open_hub()
        if hub < 0:
            hub = self._make_hub(machine)
        os.close(machine)
        linux.unshare(linux.CLONE_NEWNET)
        self._plug_in(hub)
        os.dup2(hub, HUB_FD, inheritable=False)
        os.close(hub)

    def _open_hub(self) -> int:
        """As a sibling's holder keeps it; -1 where there is none."""
        for sibling in _siblings(self._attempt):
            try:
                return os.open(f"/proc/{sibling.holder_pid()}/fd/{HUB_FD}", os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                continue
        return -1

    def _make_hub(self, machine: int) -> int:
        linux.unshare(linux.CLONE_NEWNET)
        hub = os.open(_NAMESPACE, os.O_RDONLY | os.O_CLOEXEC)
        netlink.make_bridge(_BRIDGE)
        netlink.give(_BRIDGE, self._plan["gateway"], self._plan["prefix"])
        with open(os.path.join(self._plan["network"], _OUTWARD), "w", encoding="utf-8") as stream:
            json.dump(self._way_outward(machine, hub), stream)
        return hub

    def _way_outward(self, machine: int, hub: int) -> dict[str, str]:
        try:
            by = nat.connect_as_user(self._outpost) if self._outpost else nat.connect(machine, hub)
        except OSError as error:
            return {"by": "", "why_not": error.strerror or str(error)}
        return {"by": by, "why_not": ""}

    def _plug_in(self, hub: int) -> None:
        """From within the new network namespace."""
        own = os.open(_NAMESPACE, os.O_RDONLY | os.O_CLOEXEC)
        port = f"rank{self._attempt.name.rpartition('.')[2]}"
        netlink.bring_up("lo")
        netlink.make_pair(_OWN, port, hub)
        netlink.give(_OWN, self._plan["address"], self._plan["prefix"])
        netlink.bring_up(_OWN)
        if not _outward(self._plan)["why_not"]:
            netlink.send_all_by(self._plan["gateway"])
        linux.setns(hub, linux.CLONE_NEWNET)
        netlink.bring_up(port, bridge=_BRIDGE)
        linux.setns(own, linux.CLONE_NEWNET)
        os.close(own)


def said(plan: PlanDict) -> str:
    """Of a container with a network of its own, for people; empty for any other."""
    if not plan.get("network") or not os.path.exists(os.path.join(plan["network"], _OUTWARD)):
        return ""
    found = _outward(plan)
    if found["why_not"]:
        return f"own network, no way out: {found['why_not']}"
    return f"own network, outward by {found.get('by', 'NAT')}"


def _outward(plan: PlanDict) -> dict[str, str]:
    """As it was written down when the hub was made."""
    with open(os.path.join(plan["network"], _OUTWARD), encoding="utf-8") as stream:
        found: dict[str, str] = json.load(stream)
    return found


def _siblings(attempt: Attempt) -> Iterator[Attempt]:
    """Those replicas of the same attempt whose holders live."""
    gang, _, _ = attempt.name.rpartition(".")
    folder = os.path.dirname(attempt.path)
    for name in sorted(os.listdir(folder)):
        sibling = Attempt(os.path.join(folder, name))
        if name != attempt.name and name.rpartition(".")[0] == gang and sibling.holder_pid():
            yield sibling
