"""A copy of the objects that tell of cards beside nodes and pods, and the cards of each node that follow from all."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cockpit.backends.kubernetes.mapping.cards.all import NodeCards, cards_of
from cockpit.backends.kubernetes.mapping.cards.scheme import NodeSource
from cockpit.backends.kubernetes.mapping.cards.view import ClusterCards, claims_of
from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
from cockpit.backends.kubernetes.mapping.quantities import offered
from cockpit.backends.kubernetes.objects.koordinator import Device
from cockpit.backends.kubernetes.objects.node import KubeNode
from cockpit.backends.kubernetes.objects.pod import Pod
from cockpit.backends.kubernetes.objects.resource_claims import ResourceClaim, ResourceClaimTemplate, ResourceSlice
from cockpit.backends.kubernetes.resources import CLAIM_TEMPLATES, KOORDINATOR_DEVICES, RESOURCE_SLICES, Resource


class Devices:
    """Koordinator's devices, and the slices and claims of dynamic resource allocation."""

    def __init__(self, claim_changed: Callable[[str], None]) -> None:
        """`claim_changed` is called with the uid of each pod that uses a claim, after the claim has changed."""
        self._claim_changed = claim_changed
        self._devices: dict[str, Device] = {}
        self._slices: dict[str, dict[str, ResourceSlice]] = {}
        """The slices of each node by their uid."""
        self._claims: dict[tuple[str, str], ResourceClaim] = {}
        self._templates: dict[tuple[str, str], ResourceClaimTemplate] = {}
        self._users: dict[tuple[str, str], set[str]] = {}
        """The uids of the pods that use each claim, by the claim's namespace and name."""
        self.version = 0
        """Grows with each change."""
        self._sources: dict[str, tuple[KubeNode, Device | None, tuple[ResourceSlice, ...], NodeCards]] = {}
        self._built: tuple[int, int] | None = None
        self._cards = ClusterCards({})
        self._unreadable: dict[str, tuple[str, str]] = {}
        """By uid the name of each job of whose pods something could not be read, with the reason."""

    def reflected(self, resource: Resource) -> tuple[type, Callable[..., None]]:
        """Return the struct of the kind's objects, and what takes over their changes."""
        if resource == KOORDINATOR_DEVICES:
            return Device, self._device_changed
        if resource.kind == RESOURCE_SLICES.kind:
            return ResourceSlice, self._slice_changed
        if resource.kind == CLAIM_TEMPLATES.kind:
            return ResourceClaimTemplate, self._template_changed
        return ResourceClaim, self._claim_seen

    def claims(self, pod: Pod) -> tuple[ResourceClaim, ...]:
        """Return the pod's resource claims that the user may see."""
        return claims_of(pod, self._claims)

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Take over which claims a pod uses."""
        if old is not None:
            for key in _claim_keys(old):
                users = self._users[key]
                users.discard(old.metadata.uid)
                if not users:
                    del self._users[key]
        if new is not None:
            for key in _claim_keys(new):
                self._users.setdefault(key, set()).add(new.metadata.uid)

    def cards(self, nodes: Mapping[str, KubeNode], version: int) -> ClusterCards:
        """Return the cluster's cards, the same object until something of them has changed. `version`: of the nodes."""
        if self._built != (version, self.version):
            self._built = version, self.version
            found = {name: self._of_node(name, node) for name, node in nodes.items()}
            self._sources = {name: self._sources[name] for name in found}
            self._cards = ClusterCards(found, dict(self._claims), dict(self._templates))
        return self._cards

    def note(self, job: KubeJob) -> None:
        """Remember what of the cards of a job's pods cannot be read."""
        trouble = next(filter(None, map(self._trouble_of, job.placed)), "")
        if trouble:
            self._unreadable[job.meta.uid] = f"{job.meta.namespace}/{job.meta.name}", trouble
        else:
            self._unreadable.pop(job.meta.uid, None)

    def forget(self, uid: str) -> None:
        """Forget a job that is gone."""
        self._unreadable.pop(uid, None)

    @property
    def trouble(self) -> tuple[str, ...]:
        """Sentences about what tells of cards and could not be read."""
        of_nodes = [(name, why) for name, each in self._cards.nodes.items() for why in each.trouble]
        return (
            *_sentence("The cards of node", of_nodes),
            *_sentence("The card numbers of job", list(self._unreadable.values())),
        )

    def _of_node(self, name: str, node: KubeNode) -> NodeCards:
        device = self._devices.get(name)
        slices = tuple(self._slices.get(name, {}).values())
        known = self._sources.get(name)
        if known is not None and known[0] is node and known[1] is device and known[2] == slices:
            return known[3]
        own = cards_of(NodeSource(node.metadata, offered(node.status.allocatable), device, slices))
        self._sources[name] = node, device, slices, own
        return own

    def _trouble_of(self, pod: Pod) -> str:
        if pod.claim_names and not self.claims(pod):
            return "you may not read its resource claims"
        return self._cards.places(pod)[1]

    def _device_changed(self, old: Device | None, new: Device | None) -> None:
        self.version += 1
        if old is not None:
            self._devices.pop(old.metadata.name, None)
        if new is not None:
            self._devices[new.metadata.name] = new

    def _slice_changed(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        self.version += 1
        if old is not None:
            self._slices.get(old.spec.node_name, {}).pop(old.metadata.uid, None)
        if new is not None and new.spec.node_name:
            self._slices.setdefault(new.spec.node_name, {})[new.metadata.uid] = new

    def _template_changed(self, old: ResourceClaimTemplate | None, new: ResourceClaimTemplate | None) -> None:
        self.version += 1
        if old is not None:
            self._templates.pop((old.metadata.namespace, old.metadata.name), None)
        if new is not None:
            self._templates[new.metadata.namespace, new.metadata.name] = new

    def _claim_seen(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        self.version += 1
        if old is not None:
            self._claims.pop((old.metadata.namespace, old.metadata.name), None)
        if new is not None:
            self._claims[new.metadata.namespace, new.metadata.name] = new
        each = new if new is not None else old
        assert each is not None
        for uid in self._users.get((each.metadata.namespace, each.metadata.name), ()):
            self._claim_changed(uid)


def _claim_keys(pod: Pod) -> list[tuple[str, str]]:
    return [(pod.metadata.namespace, name) for name in pod.claim_names]


def _sentence(what: str, found: list[tuple[str, str]]) -> list[str]:
    """Return one sentence about all objects of a kind that could not be read: thousands of nodes have one plugin."""
    if not found:
        return []
    name, why = found[0]
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return [f"{what} {name}{more} cannot be read: {why}."]
