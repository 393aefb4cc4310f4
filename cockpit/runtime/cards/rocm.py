"""AMD cards through the kernel's compute driver: no program is asked, so nothing can hang.

Format: kernel source drivers/gpu/drm/amd/amdkfd/kfd_topology.c (/sys/class/kfd/kfd/topology/nodes/N/properties and
mem_banks) and Documentation/gpu/amdgpu/driver-misc.rst (product_name).
"""

from __future__ import annotations

from pathlib import Path

from cockpit.model.node import Card, CardVendor
from cockpit.runtime.findings import DetectedCards
from cockpit.runtime.probe_command import Probe, printable
from cockpit.runtime.sysfiles import present_devices, read_text

TOPOLOGY = "sys/class/kfd/kfd/topology/nodes"
VRAM_HEAPS = (1, 2)
"""HSA_HEAPTYPE_FRAME_BUFFER_PUBLIC and _PRIVATE."""
BYTES_PER_MIB = 1 << 20


def parse_properties(text: str) -> dict[str, int]:
    """Return the numbers by name, from a text with `name number` on each line."""
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isascii() and pair[1].isdigit()}


def gfx_name(target_version: int) -> str:
    """Return `gfx90a` for 90010: decimal major, two decimal digits each of minor and stepping, which are spelt in
    hex."""
    major, minor, stepping = target_version // 10000, target_version // 100 % 100, target_version % 100
    return f"gfx{major}{minor:x}{stepping:x}"


def is_card(properties: dict[str, int]) -> bool:
    """Return whether the node computes, has a render device, and is not a processor with graphics built in."""
    return (
        properties.get("simd_count", 0) > 0
        and properties.get("drm_render_minor", 0) > 0
        and properties.get("cpu_cores_count", 0) == 0
    )


def probe(root: Path, _ask: Probe) -> DetectedCards:
    # By number, so that node 2 comes before node 10.
    folders = sorted((root / TOPOLOGY).glob("[0-9]*"), key=lambda folder: (len(folder.name), folder.name))
    nodes = [(folder, parse_properties(read_text(folder / "properties"))) for folder in folders]
    gpus = [(folder, properties) for folder, properties in nodes if is_card(properties)]
    return DetectedCards(
        cards=tuple(_card(root, folder, properties, index) for index, (folder, properties) in enumerate(gpus)),
        driver_version=printable(read_text(root / "sys/module/amdgpu/version")) if gpus else "",
    )


def _card(root: Path, folder: Path, properties: dict[str, int], index: int) -> Card:
    minor, unique = properties["drm_render_minor"], properties.get("unique_id", 0)
    product = printable(read_text(root / f"sys/class/drm/renderD{minor}/device/product_name"))
    return Card(
        index=index,
        # Only some server cards have a product name (driver-misc.rst).
        model=product.removeprefix("AMD ").removeprefix("Instinct ")
        or gfx_name(properties.get("gfx_target_version", 0)),
        vendor=CardVendor.ROCM,
        memory_mib=_memory_mib(folder),
        uuid=f"GPU-{unique:016x}" if unique else "",  # the spelling that ROCR_VISIBLE_DEVICES takes
        devices=present_devices(root, ("kfd", f"dri/renderD{minor}")),
    )


def _memory_mib(folder: Path) -> int:
    banks = (parse_properties(read_text(bank)) for bank in folder.glob("mem_banks/*/properties"))
    return sum(bank.get("size_in_bytes", 0) for bank in banks if bank.get("heap_type") in VRAM_HEAPS) // BYTES_PER_MIB
