"""Machine types of Google Cloud by their names: CPUs, memory, cards, and the bandwidth outward where it is published.

Source: Compute Engine, "Machine families"; Vertex AI, "Reduction Server".
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class MachineType(NamedTuple):
    cpus: int
    memory_mib: int
    cards: int = 0
    card_model: str = ""


_GIB: Final = 1024
_GIB_PER_CPU: Final = {
    "n1-standard": 3.75,
    "n1-highmem": 6.5,
    "n1-highcpu": 0.9,
    "n2-standard": 4,
    "n2-highmem": 8,
    "n2-highcpu": 1,
    "n2d-standard": 4,
    "n2d-highmem": 8,
    "n2d-highcpu": 1,
    "e2-standard": 4,
    "e2-highmem": 8,
    "e2-highcpu": 1,
    "c2-standard": 4,
    "c2d-standard": 4,
    "c3-standard": 4,
}
_WITH_CARDS: Final = {
    "a2-highgpu-1g": MachineType(12, 85 * _GIB, 1, "NVIDIA_TESLA_A100"),
    "a2-highgpu-2g": MachineType(24, 170 * _GIB, 2, "NVIDIA_TESLA_A100"),
    "a2-highgpu-4g": MachineType(48, 340 * _GIB, 4, "NVIDIA_TESLA_A100"),
    "a2-highgpu-8g": MachineType(96, 680 * _GIB, 8, "NVIDIA_TESLA_A100"),
    "a2-megagpu-16g": MachineType(96, 1360 * _GIB, 16, "NVIDIA_TESLA_A100"),
    "a2-ultragpu-1g": MachineType(12, 170 * _GIB, 1, "NVIDIA_A100_80GB"),
    "a2-ultragpu-2g": MachineType(24, 340 * _GIB, 2, "NVIDIA_A100_80GB"),
    "a2-ultragpu-4g": MachineType(48, 680 * _GIB, 4, "NVIDIA_A100_80GB"),
    "a2-ultragpu-8g": MachineType(96, 1360 * _GIB, 8, "NVIDIA_A100_80GB"),
    "a3-highgpu-8g": MachineType(208, 1872 * _GIB, 8, "NVIDIA_H100_80GB"),
    "g2-standard-4": MachineType(4, 16 * _GIB, 1, "NVIDIA_L4"),
    "g2-standard-8": MachineType(8, 32 * _GIB, 1, "NVIDIA_L4"),
    "g2-standard-12": MachineType(12, 48 * _GIB, 1, "NVIDIA_L4"),
    "g2-standard-16": MachineType(16, 64 * _GIB, 1, "NVIDIA_L4"),
    "g2-standard-24": MachineType(24, 96 * _GIB, 2, "NVIDIA_L4"),
    "g2-standard-32": MachineType(32, 128 * _GIB, 1, "NVIDIA_L4"),
    "g2-standard-48": MachineType(48, 192 * _GIB, 4, "NVIDIA_L4"),
    "g2-standard-96": MachineType(96, 384 * _GIB, 8, "NVIDIA_L4"),
}
_SIZED: Final = re.compile(r"(?P<family>[a-z0-9]+-[a-z]+)-(?P<cpus>[1-9][0-9]{0,2})")
# Without a family it is N1's.
_CUSTOM: Final = re.compile(r"(?:n1-|n2-)?custom-(?P<cpus>[1-9][0-9]{0,3})-(?P<mib>[1-9][0-9]{2,7})")
_V100: Final = "NVIDIA_TESLA_V100"


def machine_type(name: str) -> MachineType | None:
    """Return the machine type of this name; None: it is not in the table."""
    if known := _WITH_CARDS.get(name):
        return known
    if match := _CUSTOM.fullmatch(name):
        # The name says it all: `custom-8-32768` has 8 CPUs and 32768 MB.
        return MachineType(int(match["cpus"]), int(match["mib"]))
    match = _SIZED.fullmatch(name)
    if match is None or match["family"] not in _GIB_PER_CPU:
        return None
    cpus = int(match["cpus"])
    # Machine families have a fixed ratio of memory to CPUs, so that each size follows from its name.
    return MachineType(cpus, int(cpus * _GIB_PER_CPU[match["family"]] * _GIB))


def custom_type(cpus: int, memory_mib: int) -> str:
    """Return the name of a custom machine type with exactly these resources."""
    return f"custom-{cpus}-{memory_mib}"


def bandwidth_gbps(name: str, cards: int = 0, card_model: str = "") -> int:
    """Outward, of one machine; 0: it is not known here."""
    # Only the machines that the Reduction Server's page names; for others no figure is published there.
    if name == "a2-megagpu-16g" or (name == "n1-highmem-96" and cards == 8 and card_model.upper() == _V100):
        return 100
    return 32 if name in {"n1-highcpu-16", "n2-highcpu-16"} else 0
