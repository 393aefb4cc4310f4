"""Amounts of resources, and what a pod requests."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import msgspec
import pytest

from cockpit.backends.kubernetes.mapping.quantities import offered, quantity, requested
from cockpit.backends.kubernetes.objects.pod import PodSpec


@pytest.mark.req("KU-06")
@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("500m", Fraction(1, 2)),
        ("64Gi", 64 * 1024**3),
        ("1.5G", 1_500_000_000),
        ("100k", 100_000),
        ("1e3", 1000),
        ("12E", 12 * 10**18),
        ("250u", Fraction(250, 10**6)),
        (8, 8),
        ("8", 8),
        ("-1", -1),
        ("", 0),
        ("many", 0),
        ("1Gib", 0),
        ("9" * 50, 0),
    ],
)
def test_a_quantity_is_read_as_kubernetes_writes_it(text: str | int, amount: Fraction | int) -> None:
    assert quantity(text) == amount


def spec(containers: list[dict[str, Any]], **more: Any) -> PodSpec:
    return msgspec.convert({"containers": containers, **more}, PodSpec, strict=False)


def container(restart: str = "", **amounts: str | int) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": amounts}, **({"restartPolicy": restart} if restart else {})}


@pytest.mark.req("KU-06")
def test_a_pod_requests_the_sum_of_its_containers_and_a_limit_alone_is_a_request() -> None:
    limited = {"name": "c", "resources": {"limits": {"cpu": "1500m", "nvidia.com/gpu": "2"}}}
    wants = requested(spec([container(cpu="500m", memory="1Gi"), limited]))
    assert (wants.milli_cpus, wants.cpus, wants.memory_mib, wants.others) == (2000, 2, 1024, (("nvidia.com/gpu", 2),))


@pytest.mark.req("KU-06")
def test_of_init_containers_the_largest_counts_and_a_sidecar_runs_beside_all_others() -> None:
    init = [container(cpu="6"), container("Always", cpu="1"), container(cpu="2")]
    # The third runs beside the sidecar (3), the first alone (6); the main container and the sidecar need 5.
    assert requested(spec([container(cpu="4")], initContainers=init)).milli_cpus == 6000
    assert requested(spec([container(cpu="7")], initContainers=init)).milli_cpus == 8000


@pytest.mark.req("KU-06")
def test_overhead_is_added_and_storage_is_left_out() -> None:
    wants = requested(spec([container(cpu="1", **{"ephemeral-storage": "1Gi"})], overhead={"cpu": "250m"}))
    assert (wants.milli_cpus, wants.others) == (1250, ())


@pytest.mark.req("KU-06")
def test_a_node_offers_whole_mib_rounded_down() -> None:
    assert offered({"cpu": "7910m", "memory": str(1024**2 * 10 + 5)})[:2] == (7910, 10)
    assert offered(None)[:2] == (0, 0)
