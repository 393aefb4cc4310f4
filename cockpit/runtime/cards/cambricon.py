"""Cambricon MLU cards through `cnmon`.

Format: the installation pages of PaddlePaddle's MLU backend show it for versions 4.20 and 5.10
(PaddleCustomDevice/backends/mlu/README); Cambricon's "CNMon User Guide". Two lines per card: number and name, then
memory.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from cockpit.model.node import Card, CardVendor
from cockpit.runtime.findings import DetectedCards, silence
from cockpit.runtime.probe_command import Outcome, Probe, printable
from cockpit.runtime.sysfiles import present_devices

SUBJECT = "Cambricon cards"
COMMAND = ("cnmon",)

# | 0     /   MLU370-X4    v1.1.6 | On          v4.20.11 | 0%          N/A       |
_NAME_LINE = re.compile(r"^\|\s*(?P<number>\d{1,4})\s+\S+\s+(?P<model>MLU[\w-]*)\s")
# |  0%   32C         30 W/ 150 W |     0 MiB/ 23308 MiB | 10240 MiB/1048576 MiB |
_MEMORY = re.compile(r"\d+ MiB/\s*(\d+) MiB")
_DRIVER = re.compile(r"(?:Driver |\| On\s+)v(\d[\w.]*)")


class CnmonCard(msgspec.Struct, frozen=True):
    """One card of cnmon's table."""

    number: int
    """N of /dev/cambricon_devN."""
    model: str
    memory_mib: int


def parse_table(text: str) -> tuple[tuple[CnmonCard, ...], str]:
    """Return the cards in order, and the driver's version."""
    cards: list[CnmonCard] = []
    name: re.Match[str] | None = None
    # Only the table of cards: that of processes below it has lines of the same form.
    for line in text.split("Processes:", 1)[0].splitlines():
        if match := _NAME_LINE.match(line.strip()):
            name = match
        elif name and (memory := _MEMORY.search(line)):
            cards.append(CnmonCard(int(name["number"]), printable(name["model"]), int(memory[1])))
            name = None
    driver = _DRIVER.search(text)
    return tuple(cards), driver[1] if driver else ""


def probe(root: Path, probe: Probe) -> DetectedCards:
    answer = probe(COMMAND)
    if answer.outcome is Outcome.ABSENT:
        return DetectedCards()
    if not answer.ok:
        return DetectedCards(findings=(silence(SUBJECT, "cnmon", answer),))
    cards, version = parse_table(answer.text)
    return DetectedCards(
        cards=tuple(_card(root, card, index) for index, card in enumerate(cards)),
        driver_version=version,
    )


def _card(root: Path, card: CnmonCard, index: int) -> Card:
    own = (f"cambricon_dev{card.number}", f"cambricon_ipcm{card.number}")
    return Card(
        index=index,
        model=card.model,
        vendor=CardVendor.MLU,
        memory_mib=card.memory_mib,
        devices=present_devices(root, (*own, "cambricon_ctl", "cambricon_gdr")),
    )
