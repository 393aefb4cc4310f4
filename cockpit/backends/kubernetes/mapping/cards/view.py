"""A cluster's cards at one moment, as jobs and nodes are made of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from cockpit.backends.kubernetes.mapping.cards.all import NodeCards, Place, cards_of, places_of
from cockpit.backends.kubernetes.mapping.cards.claims import claimed_milli, requested_milli
from cockpit.backends.kubernetes.mapping.cards.requests import Units, card_milli, has_cards, joined
from cockpit.backends.kubernetes.mapping.cards.scheme import NodeSource, PodSource
from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
from cockpit.backends.kubernetes.mapping.quantities import PodAmounts, offered, requested
from cockpit.backends.kubernetes.objects.node import KubeNode
from cockpit.backends.kubernetes.objects.pod import Pod, PodSpec
from cockpit.backends.kubernetes.objects.resource_claims import ResourceClaim, ResourceClaimTemplate

NO_CARDS = NodeCards()
NO_CLAIMS: Mapping[tuple[str, str], ResourceClaim] = {}
NO_TEMPLATES: Mapping[tuple[str, str], ResourceClaimTemplate] = {}


def claims_of(pod: Pod, claims: Mapping[tuple[str, str], ResourceClaim]) -> tuple[ResourceClaim, ...]:
    """Return those of the claims that the pod uses."""
    if not claims or not pod.claim_names:
        return ()
    found = (claims.get((pod.metadata.namespace, name)) for name in pod.claim_names)
    return tuple(each for each in found if each is not None)


class ClusterCards:
    """The cards of all nodes, and the claims of pods."""

    def __init__(
        self,
        nodes: Mapping[str, NodeCards],
        claims: Mapping[tuple[str, str], ResourceClaim] = NO_CLAIMS,
        templates: Mapping[tuple[str, str], ResourceClaimTemplate] = NO_TEMPLATES,
    ) -> None:
        """`claims`, `templates`: the resource claims and their templates that the user may see, by namespace and name.
        None of the mappings changes later."""
        self.nodes, self._claims, self._templates = nodes, claims, templates

    @cached_property
    def units(self) -> Units:
        """For resources that count parts of cards: the amounts that make one card of some node."""
        return joined(each.units for each in self.nodes.values())

    def claims(self, pod: Pod) -> tuple[ResourceClaim, ...]:
        """Return the pod's resource claims that the user may see."""
        return claims_of(pod, self._claims)

    def places(self, pod: Pod) -> tuple[tuple[Place, ...], str]:
        """Return what the pod holds of its node's cards, and what of the pod could not be read; empty: nothing."""
        return places_of(PodSource(pod, self.claims(pod)), self.nodes.get(pod.spec.node_name, NO_CARDS))

    def job_milli(self, job: KubeJob) -> int:
        """Return the cards of all pods of a job together, in thousandths: what they have where that is told, else what
        they request."""
        units = self._units_for(job)
        total = sum(count * card_milli(each, units) for count, each in job.sizes)
        if not job.pods and self._templates:
            total += sum(each.count * self._templated(job.meta.namespace, each.template.spec) for each in job.groups)
        for pod in job.pods:
            told = self._told(pod)
            total += told - card_milli(requested(pod.spec), units) if told else self._claimed(pod)
        return max(0, total)

    def _templated(self, namespace: str, spec: PodSpec) -> int:
        """Return the cards that a pod which is not created yet will request by claims, in thousandths."""
        names = [(namespace, each.resource_claim_template_name or "") for each in spec.resource_claims or ()]
        return sum(requested_milli(self._templates[name].spec.spec) for name in names if name in self._templates)

    def _told(self, pod: Pod) -> int:
        """Return the cards that a placed pod has, in thousandths; 0: they are not told."""
        if not pod.is_placed or not self.nodes.get(pod.spec.node_name, NO_CARDS).tells:
            return 0
        return sum(each.milli for each in self.places(pod)[0] if each.card is not None)

    def pod_milli(self, job: KubeJob, wanted: PodAmounts) -> int:
        """Return the cards that a pod of a job requests, in thousandths. `wanted`: its other requests."""
        claimed = self._claimed(job.pods[0]) if job.pods else 0
        return card_milli(wanted, self._units_for(job)) + claimed

    def models(self, job: KubeJob) -> tuple[str, ...]:
        """Return the models of the cards that a job's placed pods hold; empty: of no card that is known."""
        found: dict[str, None] = {}
        for pod in job.placed:
            cards = self.nodes.get(pod.spec.node_name, NO_CARDS).cards
            for place in self.places(pod)[0]:
                card = place.card if place.card is not None else next(iter(place.among), None)
                if card is not None:
                    found[cards[card].model] = None
        return tuple(found)

    def _claimed(self, pod: Pod) -> int:
        """Return the cards that a pod requests by claims, in thousandths; of a shared claim its part."""
        if not self._claims:
            return 0
        extended = pod.now.extended_resource_claim_status
        # Cards that are requested as a resource are counted by it already, although a claim serves it.
        counted = extended.resource_claim_name if extended and has_cards(requested(pod.spec)) else None
        return sum(claimed_milli(each) // each.users for each in self.claims(pod) if each.metadata.name != counted)

    def _units_for(self, job: KubeJob) -> Units:
        """Return the units of the nodes on which the job's pods are; of all while it waits."""
        found = {self.nodes[pod.spec.node_name].units for pod in job.placed if pod.spec.node_name in self.nodes}
        if len(found) == 1:
            return found.pop()
        return joined(found) if found else self.units


NO_CLUSTER_CARDS = ClusterCards({})
"""Of a cluster whose nodes the user may not see."""


def cards_of_nodes(nodes: Mapping[str, KubeNode]) -> ClusterCards:
    """Return the cards of which the nodes themselves tell."""
    sources = ((name, NodeSource(node.metadata, offered(node.status.allocatable))) for name, node in nodes.items())
    return ClusterCards({name: cards_of(source) for name, source in sources})
