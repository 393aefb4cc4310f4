"""The machine types of Google Cloud: within a family all sizes are multiples of one."""

from __future__ import annotations

import pytest

from cockpit.model.machinetypes import MachineType, machine_type

GIB = 1024


@pytest.mark.req("LA-70")
@pytest.mark.parametrize(
    ("family", "counts", "cpus", "gib", "model"),
    [
        ("a2-highgpu-{}g", (1, 2, 4, 8), 12, 85, "NVIDIA_TESLA_A100"),
        ("a2-ultragpu-{}g", (1, 2, 4, 8), 12, 170, "NVIDIA_A100_80GB"),
        ("a2-megagpu-{}g", (16,), 6, 85, "NVIDIA_TESLA_A100"),
        ("a3-highgpu-{}g", (8,), 26, 234, "NVIDIA_H100_80GB"),
    ],
)
def test_machines_with_cards_have_so_many_cpus_and_so_much_memory_for_each_card(
    family: str, counts: tuple[int, ...], cpus: int, gib: int, model: str
) -> None:
    for cards in counts:
        assert machine_type(family.format(cards)) == MachineType(cards * cpus, cards * gib * GIB, cards, model)


@pytest.mark.req("LA-70")
def test_machines_with_l4_cards_have_four_gibibytes_for_each_cpu() -> None:
    cards = {4: 1, 8: 1, 12: 1, 16: 1, 24: 2, 32: 1, 48: 4, 96: 8}
    for cpus, count in cards.items():
        assert machine_type(f"g2-standard-{cpus}") == MachineType(cpus, 4 * cpus * GIB, count, "NVIDIA_L4")


@pytest.mark.req("LA-70")
def test_machines_without_cards_have_their_familys_memory_for_each_cpu() -> None:
    gib = {"standard": 4, "highmem": 8, "highcpu": 1}
    families = [f"{family}-{kind}" for family in ("n2", "n2d", "e2") for kind in gib] + ["c2-standard", "c2d-standard"]
    for family in (*families, "c3-standard"):
        assert machine_type(f"{family}-8") == MachineType(8, 8 * gib[family.split("-")[1]] * GIB)
    assert [machine_type(f"n1-{kind}-8").memory_mib for kind in gib] == [30 * GIB, 52 * GIB, int(7.2 * GIB)]
    assert machine_type("custom-6-20480") == MachineType(6, 20_480)
    assert machine_type("a2-highgpu-3g") is None
