"""Users who may list the pods of some namespaces, and neither all pods nor the namespaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cockpit.backends.kubernetes.opening import open_context
from tests.real.kubernetes.cluster import ADMIN, ALICE
from tests.real.kubernetes.pods import create_pod, fake_pod

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.kubernetes.cluster import RealKubernetes

pytestmark = [pytest.mark.real, pytest.mark.real_kubernetes, pytest.mark.req("KU-01")]


async def shown(cluster: RealKubernetes, file: Path, *namespaces: str) -> tuple[set[str], tuple[str, ...]]:
    """Return the names of the jobs, and what is wrong with the list."""
    backend = open_context("real", {"KUBECONFIG": str(file)}, namespaces=namespaces)
    try:
        return {row.name for row in await backend.jobs()}, (await backend.status()).trouble
    finally:
        await backend.close()


async def test_namespaces_that_a_user_names_are_shown_and_others_are_not_without_a_word(
    cluster: RealKubernetes, namespace: str, tmp_path: Path
) -> None:
    with cluster.namespace() as other:
        for each in (namespace, other):
            create_pod(cluster.admin, each, fake_pod(f"in-{each}", cards=1))
        file = tmp_path / "config"
        cluster.write_kubeconfig(file, ALICE, {"token": f"{ALICE}-token"}, namespace)
        names, trouble = await shown(cluster, file)
        assert names == {f"in-{namespace}"}
        (about,) = [each for each in trouble if each.startswith("Only")]
        assert about.startswith(f"Only the namespace {namespace} is shown: you may not list namespaces (namespaces is")
        assert "-c 'kube:real?namespaces=A,B'" in about
        names, trouble = await shown(cluster, file, namespace, other)
        assert names == {f"in-{namespace}", f"in-{other}"}
        assert not [each for each in trouble if each.startswith("Only")]
        names, trouble = await shown(cluster, file, namespace, "kube-system")
        assert names == {f"in-{namespace}"}
        assert any("pods cannot be read" in each and '"kube-system"' in each for each in trouble)
        # Who may list everything can name some, too: the whole of a large cluster is much to read.
        names, _ = await shown(cluster, cluster.kubeconfig(ADMIN), other)
        assert names == {f"in-{other}"}
