"""Spells card models in jobs as the cluster's nodes do: Slurm scripts write `gpu:a100:2` where a node has an A100."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.model.cardmodels import gres_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cockpit.model.node import Node
    from cockpit.model.spec import JobSpec, NodeSpec


class Spelling:
    """Corrects the spelling of card models in job specs."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        """`nodes`: the cluster's nodes. They are read once, for the first job that names a model."""
        self._nodes = nodes
        self._models: Mapping[str, str] | None = None

    def corrected(self, spec: JobSpec) -> JobSpec:
        """Return the spec with card models spelled as the nodes do. A model that no node has stays as it is."""
        all_specs = (*spec.specs, *(pool.spec for pool in spec.worker_pools))
        if not any(each.card_models for each in all_specs):
            return spec
        specs = tuple([self._node_spec(each) for each in spec.specs])
        pools = tuple([replace(pool, spec=self._node_spec(pool.spec)) for pool in spec.worker_pools])
        if specs == spec.specs and pools == spec.worker_pools:
            return spec
        return replace(spec, specs=specs, worker_pools=pools)

    def _node_spec(self, spec: NodeSpec) -> NodeSpec:
        if not spec.card_models:
            return spec
        models = self._known()
        return replace(
            spec, card_models=tuple([models.get(each, models.get(gres_type(each), each)) for each in spec.card_models])
        )

    def _known(self) -> Mapping[str, str]:
        """Return the nodes' card models by their names and by Slurm's spelling of these."""
        if self._models is None:
            models = sorted({card.model for node in self._nodes for card in node.cards})
            self._models = {gres_type(model): model for model in models} | {model: model for model in models}
        return self._models
