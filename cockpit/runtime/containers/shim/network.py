"""The network of a job with several replicas.

Each container has a network namespace with an `eth0`. The other end of that veth pair is a port of a bridge, in
another network namespace: the hub. A shim joins the network in these steps:

1. Take the network's lock, so that only one sibling (replica of the same attempt) makes the hub.
2. Open the hub, through the holder of a living sibling. Without one, make the hub: bridge, gateway address, and the
   connection to the machine's network (`nat`).
3. Make a network namespace for the container, and a veth pair from its `eth0` to the hub's bridge.
4. Keep the hub open in the holder, and release the lock once siblings can find the holder.

The hub exists as long as any holder has it open. When the last one dies, for whatever reason, the kernel removes the
bridge and the veth pairs.

    NETWORK/lock          locked while a shim makes or joins the network
    NETWORK/outward.json  how the hub is connected to the machine's network, or why it is not, see `nat`
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
    from cockpit.runtime.containers.shim.usernet import HostSideProcess

HUB_FD = 101
"""The descriptor at which a holder keeps the hub's network namespace open."""
_BRIDGE = "br0"
_OWN = "eth0"
_NAMESPACE = "/proc/self/ns/net"
_OUTWARD = "outward.json"


class Membership:
    """A shim's joining of its job's network; it lasts until sibling shims can find the holder."""

    def __init__(self, attempt: Attempt, plan: PlanDict) -> None:
        self._attempt, self._plan = attempt, plan
        self._lock = -1
        self._host_side: HostSideProcess | None = None

    @property
    def needed(self) -> bool:
        """Whether the job has a network of its own, because it has several replicas."""
        return bool(self._plan.get("network"))

    def begin(self) -> None:
        """Take the network's lock, after waiting for siblings that are joining."""
        if not self.needed:
            return
        lock = os.path.join(self._plan["network"], "lock")
        self._lock = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        # Only the maker of the hub needs it, and the decision holds, because the lock is held until the hub exists.
        if self._plan["rootless"] and next(_siblings(self._attempt), None) is None:
            self._fork_host_side(lock)

    def _fork_host_side(self, lock: str) -> None:
        from cockpit.runtime.containers.shim.usernet import HostSideProcess

        def in_use() -> bool:
            return next(_siblings(self._attempt), None) is not None

        self._host_side = HostSideProcess(nat.HUB_END, lock, in_use)

    def end(self) -> None:
        """Release the lock. Closing the descriptor would not release it, since the forked holder has a copy."""
        if self._lock >= 0:
            fcntl.flock(self._lock, fcntl.LOCK_UN)
            os.close(self._lock)
            self._lock = -1

    def join_user_namespace(self) -> bool:
        """Join the user namespace of a sibling, which must be the same for all containers of a rootless job.

        Returns False if there is no living sibling; then the caller makes the namespace.
        """
        sibling = next(_siblings(self._attempt), None) if self.needed else None
        if sibling is None:
            return False
        holder = sibling.open_holder()
        # It has died since it was listed, and so may have its namespaces.
        if holder is None:
            return False
        linux.setns(holder, linux.CLONE_NEWUSER)
        os.close(holder)
        return True

    def join(self) -> None:
        """Leave the machine's network namespace, and join the job's network. Raises OSError."""
        if not self.needed:
            return
        # Opened before this process leaves it: the hub's way outward is made from both namespaces.
        machine = os.open(_NAMESPACE, os.O_RDONLY | os.O_CLOEXEC)
        hub = self._open_hub()
        if hub < 0:
            hub = self._make_hub(machine)
        os.close(machine)
        # The container's own namespace; `_make_hub` may have entered the hub.
        linux.unshare(linux.CLONE_NEWNET)
        self._connect_to_hub(hub)
        # At a number that siblings know, and not inherited by programs of the job.
        os.dup2(hub, HUB_FD, inheritable=False)
        os.close(hub)

    def _open_hub(self) -> int:
        """Open the hub through a sibling's holder; return -1 if there is none."""
        for sibling in _siblings(self._attempt):
            # It may have died since it was listed.
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
        # Still under the lock, so that every sibling reads a complete record.
        with open(os.path.join(self._plan["network"], _OUTWARD), "w", encoding="utf-8") as stream:
            json.dump(self._way_outward(machine, hub), stream)
        return hub

    def _way_outward(self, machine: int, hub: int) -> dict[str, str]:
        try:
            by = nat.connect_as_user(self._host_side) if self._host_side else nat.connect(machine, hub)
        except OSError as error:
            return {"by": "", "why_not": error.strerror or str(error)}
        return {"by": by, "why_not": ""}

    def _connect_to_hub(self, hub: int) -> None:
        """Connect the new network namespace, in which this process is, to the hub."""
        own = os.open(_NAMESPACE, os.O_RDONLY | os.O_CLOEXEC)
        # Named after the rank, since the ports of all replicas are in one namespace, the hub.
        port = f"rank{self._attempt.name.rpartition('.')[2]}"
        netlink.bring_up("lo")
        netlink.make_pair(_OWN, port, hub)
        netlink.give(_OWN, self._plan["address"], self._plan["prefix"])
        netlink.bring_up(_OWN)
        # After the address: the kernel refuses a gateway that no interface reaches. Without a way out, no route is
        # better than one that swallows packets.
        if not _outward(self._plan)["why_not"]:
            netlink.send_all_by(self._plan["gateway"])
        # The other end of the pair was made in the hub, and can be brought up only from inside of it.
        linux.setns(hub, linux.CLONE_NEWNET)
        netlink.bring_up(port, bridge=_BRIDGE)
        linux.setns(own, linux.CLONE_NEWNET)
        os.close(own)


def describe(plan: PlanDict) -> str:
    """Describe the container's own network for users; empty if it has none."""
    if not plan.get("network") or not os.path.exists(os.path.join(plan["network"], _OUTWARD)):
        return ""
    connection = _outward(plan)
    if connection["why_not"]:
        return f"own network, no way out: {connection['why_not']}"
    return f"own network, outward by {connection.get('by', 'NAT')}"


def _outward(plan: PlanDict) -> dict[str, str]:
    """Return the record that was written when the hub was made."""
    with open(os.path.join(plan["network"], _OUTWARD), encoding="utf-8") as stream:
        record: dict[str, str] = json.load(stream)
    return record


def _siblings(attempt: Attempt) -> Iterator[Attempt]:
    """Return the other replicas of the same attempt whose holders live."""
    gang, _, _ = attempt.name.rpartition(".")
    folder = os.path.dirname(attempt.path)
    for name in sorted(os.listdir(folder)):
        sibling = Attempt(os.path.join(folder, name))
        if name != attempt.name and name.rpartition(".")[0] == gang and sibling.holder_pid():
            yield sibling
