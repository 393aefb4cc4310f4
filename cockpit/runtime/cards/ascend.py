"""Huawei Ascend cards through `npu-smi info`.

Format: support.huawei.com, "npu-smi Command Reference", `npu-smi info`; outputs of versions 23.0 to 25 in issues of
vllm-project/vllm-ascend. Two lines per chip: name and health, then chip, device number and memory.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from cockpit.model.node import Card, CardVendor
from cockpit.runtime.findings import DetectedCards, Finding, note, silence
from cockpit.runtime.probe_command import Outcome, Probe, printable
from cockpit.runtime.sysfiles import present_devices

SUBJECT = "Ascend cards"
COMMAND = ("npu-smi", "info")
SHARED_DEVICES = ("davinci_manager", "devmm_svm", "hisi_hdc")

# | 0     910B3               | OK            | 102.8       55                0    / 0             |
_NAME_LINE = re.compile(r"^\|\s*(?P<npu>\d{1,4})\s+(?P<name>[A-Za-z0-9][\w-]*)\s*\|\s*(?P<health>\w+)\s*\|")
# | 0                         | 0000:C1:00.0  | 0           0    / 0          3338 / 65536         |   one chip a card
# | 0       0                 | 0000:04:00.0  | 0            1832 / 21527                          |   chip and device
_CHIP_LINE = re.compile(
    r"^\|\s*(?P<chip>\d{1,4})(?:\s+(?P<device>\d{1,4}))?\s*\|\s*(?:[0-9A-Fa-f:.]+|NA)\s*\|(?P<rest>.*)\|"
)
_USED_OF_TOTAL = re.compile(r"\d+\s*/\s*(\d+)")
_VERSION = re.compile(r"Version:\s*(\S+)")


class NpuChip(msgspec.Struct, frozen=True):
    """One chip of npu-smi's table: what a job is given."""

    number: int
    """N of /dev/davinciN."""
    model: str
    memory_mib: int


def parse_info(text: str) -> tuple[tuple[NpuChip, ...], str, tuple[Finding, ...]]:
    """Return the chips in order, the driver's version, and a finding for each card that is not in good health."""
    chips: list[NpuChip] = []
    findings: list[Finding] = []
    name: re.Match[str] | None = None
    # Only the table of cards: that of processes below it has lines of the same form.
    for line in text.split("Process id", 1)[0].splitlines():
        # The line of a chip belongs to the name line before it.
        if chip := _CHIP_LINE.match(line.strip()):
            if name:
                chips.append(_chip(name, chip))
            name = None
        elif name := _NAME_LINE.match(line.strip()):
            findings += _health_findings(name)
    version = _VERSION.search(text)
    return tuple(chips), printable(version[1]) if version else "", tuple(findings)


def _chip(name: re.Match[str], chip: re.Match[str]) -> NpuChip:
    model = name["name"]
    totals = [int(total) for total in _USED_OF_TOTAL.findall(chip["rest"])]
    return NpuChip(
        # Where a card has several chips, each has a device number of its own; else the card's number is the device's.
        int(chip["device"] or name["npu"]),
        printable(f"Ascend{model}" if model[0].isdigit() else model),
        next((total for total in reversed(totals) if total), 0),  # the last pair is the fast memory
    )


def _health_findings(name: re.Match[str]) -> tuple[Finding, ...]:
    if name["health"] == "OK":
        return ()
    return (
        note(
            SUBJECT,
            f"NPU {name['npu']} says its health is {printable(name['health'])}",
            f"See `npu-smi info -t health -i {name['npu']}`.",
        ),
    )


def probe(root: Path, probe: Probe) -> DetectedCards:
    answer = probe(COMMAND)
    if answer.outcome is Outcome.ABSENT:
        return DetectedCards()
    if not answer.ok:
        return DetectedCards(findings=(silence(SUBJECT, "npu-smi", answer),))
    chips, version, findings = parse_info(answer.text)
    cards = tuple(_card(root, chip, index) for index, chip in enumerate(chips))
    return DetectedCards(cards=cards, driver_version=version, findings=findings)


def _card(root: Path, chip: NpuChip, index: int) -> Card:
    return Card(
        index=index,
        model=chip.model,
        vendor=CardVendor.ASCEND,
        memory_mib=chip.memory_mib,
        devices=present_devices(root, (f"davinci{chip.number}", *SHARED_DEVICES)),
    )
