"""NVIDIA cards and their MIG instances, through nvidia-smi, else what the driver says in /proc.

Formats: `nvidia-smi --help-query-gpu` and `nvidia-smi -L` (docs.nvidia.com, MIG User Guide, "Device names"),
/proc/driver/nvidia (README of the Linux driver, "The /proc interface"; MIG User Guide, "Device nodes and
capabilities").
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import msgspec

from cockpit.model.node import Card, CardVendor
from cockpit.runtime.findings import DetectedCards, Finding, note, silence
from cockpit.runtime.probe_command import Answer, Outcome, Probe, printable
from cockpit.runtime.sysfiles import present_devices, read_text

SUBJECT = "NVIDIA cards"
QUERY = (
    "nvidia-smi",
    # The name last, since it alone may have blanks.
    "--query-gpu=index,uuid,memory.total,pci.bus_id,driver_version,name",
    "--format=csv,noheader,nounits",
)
LIST = ("nvidia-smi", "-L")
SHARED_DEVICES = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")

# 0, GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77, 81920, 00000000:07:00.0, 535.104.05, NVIDIA A100-SXM4-80GB
_QUERY_LINE = re.compile(
    r"^(?P<index>\d{1,4}), (?P<uuid>GPU-[0-9a-fA-F-]+), (?P<memory>\S+), (?P<bus>[0-9A-Fa-f:.]+), "
    r"(?P<driver>\S+), (?P<name>.+)$"
)
# GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-c4e0b2a1-…)
_LIST_CARD = re.compile(r"^GPU (?P<index>\d{1,4}): .*\(UUID: GPU-[0-9a-fA-F-]+\)$")
#   MIG 1g.5gb      Device  0: (UUID: MIG-11110000-…), before driver 470 (UUID: MIG-GPU-…/7/0)
_LIST_MIG = re.compile(r"^\s+MIG (?P<profile>\S+)\s+Device\s+\d+: \(UUID: (?P<uuid>MIG-[0-9a-zA-Z/-]+)\)$")
_INFORMATION_LINE = re.compile(r"^(?P<key>[A-Za-z ]+):\s+(?P<value>.*\S)\s*$", re.MULTILINE)
# NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat …, or: … Open Kernel Module for x86_64  560.35.03 …
_DRIVER_VERSION = re.compile(r"Kernel Module\s+(?:for \S+\s+)?(\d+(?:\.\d+)+)")
# A100-SXM4-80GB, H100 PCIe, V100-SXM2-32GB, L40S: the model is the short name in use; the memory is read separately
_DATACENTRE_MODEL = re.compile(r"^([A-Z]{1,2}\d{1,4}[A-Za-z]?)(?:[ -].*)?$")


class SmiCard(msgspec.Struct, frozen=True):
    """One line of nvidia-smi's query."""

    index: int
    uuid: str
    memory_mib: int
    bus: str
    """PCI address as /proc spells it: `0000:07:00.0`."""
    driver_version: str
    model: str


def model_name(product: str) -> str:
    """Return the model's usual name: `A100` for `NVIDIA A100-SXM4-80GB`, `RTX 4090` for `NVIDIA GeForce RTX 4090`."""
    plain = printable(re.sub(r"^(NVIDIA |Tesla |GeForce )+", "", product.strip()))
    known = _DATACENTRE_MODEL.match(plain)
    return known[1] if known else plain


def parse_query(text: str) -> tuple[SmiCard, ...]:
    """Return the cards that `QUERY` printed; lines that are not of its form (a lost card, an error) are left out."""
    matches = (_QUERY_LINE.match(line.strip()) for line in text.splitlines())
    return tuple(_smi_card(match) for match in matches if match)


def _smi_card(match: re.Match[str]) -> SmiCard:
    memory = match["memory"]  # "[N/A]" where card and CPU share it
    return SmiCard(
        int(match["index"]),
        match["uuid"],
        int(memory) if memory.isascii() and memory.isdigit() else 0,
        # nvidia-smi writes the PCI domain with eight digits, /proc with four.
        match["bus"].lower()[-len("0000:07:00.0") :],
        printable(match["driver"]),
        model_name(match["name"]),
    )


def parse_list(text: str) -> dict[int, tuple[tuple[str, str], ...]]:
    """Return the MIG instances by card index, as (profile, UUID) in slot order, without cards that have none."""
    instances: dict[int, tuple[tuple[str, str], ...]] = {}
    card = None
    for line in text.splitlines():
        if heading := _LIST_CARD.match(line):
            card = int(heading["index"])
        elif card is not None and (instance := _LIST_MIG.match(line)):
            instances[card] = (*instances.get(card, ()), (printable(instance["profile"]), instance["uuid"]))
    return instances


def parse_information(text: str) -> dict[str, str]:
    """Return the values of `Model`, `GPU UUID`, `Device Minor` … of /proc/driver/nvidia/gpus/<bus>/information."""
    return {match["key"]: match["value"] for match in _INFORMATION_LINE.finditer(text)}


def probe(root: Path, probe: Probe) -> DetectedCards:
    """Return the cards that nvidia-smi lists, or without it those that the driver lists. `root`: the folder that is
    used as `/`."""
    driver = root / "proc/driver/nvidia"
    answer = probe(QUERY)
    smi_cards = parse_query(answer.text) if answer.ok else ()
    if not smi_cards:
        found = _from_driver(root, driver)
        # Neither the program nor a card of the driver: this machine simply has no such cards.
        if answer.outcome is Outcome.ABSENT and not found.cards:
            return found
        return msgspec.structs.replace(found, findings=(silence(SUBJECT, "nvidia-smi", answer),))
    listed = probe(LIST)
    instances = parse_list(listed.text)
    minors = _minors(driver)
    cards = tuple(
        _card(root, smi, position, minors.get(smi.bus, smi.index), instances.get(smi.index, ()))
        for position, smi in enumerate(smi_cards)
    )
    return DetectedCards(
        cards=cards,
        driver_version=smi_cards[0].driver_version,
        findings=(*_list_findings(listed), *_uneven_findings(instances), *_device_findings(cards)),
    )


def _card(root: Path, smi: SmiCard, index: int, minor: int, instances: tuple[tuple[str, str], ...]) -> Card:
    slices = even_slices(instances)
    return Card(
        index=index,
        model=smi.model,
        vendor=CardVendor.NVIDIA,
        memory_mib=smi.memory_mib,
        uuid=smi.uuid,
        devices=present_devices(root, (f"nvidia{minor}", *SHARED_DEVICES, *_capability_devices(root, minor))),
        slices=len(slices),
        slice_uuids=slices,
    )


def even_slices(instances: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """Return the UUIDs of the commonest profile: a card is divided into equal parts; other instances are not used."""
    if not instances:
        return ()
    commonest = Counter(profile for profile, _ in instances).most_common(1)[0][0]
    return tuple(uuid for profile, uuid in instances if profile == commonest)


def _list_findings(listed: Answer) -> tuple[Finding, ...]:
    """Return the finding that nvidia-smi's list failed: without it MIG instances are unknown, and the cards look
    whole."""
    return () if listed.ok else (silence(SUBJECT, "nvidia-smi -L", listed),)


def _uneven_findings(instances: dict[int, tuple[tuple[str, str], ...]]) -> tuple[Finding, ...]:
    return tuple(
        note(
            SUBJECT,
            f"card {index} has MIG instances of several sizes; only the {len(even_slices(parts))} of one size are used",
            "Make the instances of a card equal (`nvidia-smi mig -cgi`) and start the engine again.",
        )
        for index, parts in instances.items()
        if len(even_slices(parts)) < len(parts)
    )


def _device_findings(cards: tuple[Card, ...]) -> tuple[Finding, ...]:
    without = [str(card.index) for card in cards if not any(re.search(r"nvidia\d", path) for path in card.devices)]
    if not without:
        return ()
    return (
        note(
            SUBJECT,
            f"there is no /dev/nvidiaN for card {', '.join(without)}",
            "Containers cannot use such a card: run `nvidia-modprobe -u -c 0` as root (one -c per card).",
        ),
    )


def _minors(driver: Path) -> dict[str, int]:
    """Return the numbers of /dev/nvidiaN by PCI address: they need not be nvidia-smi's indices."""
    minors = {}
    for folder in driver.glob("gpus/*"):
        minor = parse_information(read_text(folder / "information")).get("Device Minor", "")
        if minor.isascii() and minor.isdigit():
            minors[folder.name.lower()] = int(minor)
    return minors


def _capability_devices(root: Path, minor: int) -> list[str]:
    """Return the /dev/nvidia-caps nodes that open the card's MIG instances."""
    # Both those of GPU instances and those of the compute instances in them (`**`): opening one needs both.
    paths = sorted(root.glob(f"proc/driver/nvidia/capabilities/gpu{minor}/mig/gi*/**/access"))
    matches = (re.search(r"DeviceFileMinor: (\d+)", read_text(path)) for path in paths)
    return [f"nvidia-caps/nvidia-cap{match[1]}" for match in matches if match]


def _from_driver(root: Path, driver: Path) -> DetectedCards:
    """Return the cards with model and UUID as the loaded driver reports them; it does not report the memory."""
    cards = [
        _driver_card(root, parse_information(read_text(folder / "information")), index)
        for index, folder in enumerate(sorted(driver.glob("gpus/*")))
    ]
    version = _DRIVER_VERSION.search(read_text(driver / "version"))
    return DetectedCards(cards=tuple(cards), driver_version=version[1] if version else "")


def _driver_card(root: Path, information: dict[str, str], index: int) -> Card:
    uuid = information.get("GPU UUID", "")
    minor = information.get("Device Minor", str(index))
    return Card(
        index=index,
        model=model_name(information.get("Model", "")) or "NVIDIA",
        vendor=CardVendor.NVIDIA,
        uuid=uuid if re.fullmatch(r"GPU-[0-9a-fA-F-]+", uuid) else "",  # all "?" until the card is first used
        devices=present_devices(root, (f"nvidia{minor}", *SHARED_DEVICES)),
    )
