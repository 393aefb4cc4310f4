"""Measure the utilisation and memory use of real cards: through NVML if its Python binding (`nvidia-ml-py`) is
installed, else through nvidia-smi.

Sources: NVML API reference, nvmlUtilization_t and nvmlMemory_t; `nvidia-smi --help-query-gpu`. Both say "not supported"
for a card that is divided by MIG.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cockpit.runtime.probe_command import Probe

QUERY: Final = (
    "nvidia-smi",
    "--query-gpu=uuid,utilization.gpu,memory.used",
    "--format=csv,noheader,nounits",
)
BINDING: Final = "pynvml"
# GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77, 97, 61440; figures may be [N/A]
_LINE = re.compile(r"^(?P<uuid>GPU-[0-9a-fA-F-]+), (?P<percent>\S+), (?P<memory>\S+)$")
_BYTES_PER_MIB = 1 << 20


class CardReading(NamedTuple):
    """The current figures of a card; None: its driver does not report them."""

    percent: int | None
    """Share of the last fraction of a second in which any kernel ran."""
    memory_mib: int | None


class CardMeter(Protocol):
    """Reads the figures of all cards. It blocks, and is called from threads."""

    def read(self) -> Mapping[str, CardReading]:
        """Return the figures by UUID, without lost or unreported cards. Never raises."""
        ...


class Smi:
    """Reads through nvidia-smi, which takes a fraction of a second."""

    def __init__(self, probe: Probe) -> None:
        self._ask = probe

    def read(self) -> Mapping[str, CardReading]:
        answer = self._ask(QUERY)
        return dict(_lines(answer.text)) if answer.ok else {}


class Nvml:
    """Reads through the NVML library, which takes microseconds. `nvml`: the initialised module."""

    def __init__(self, nvml: Any) -> None:  # noqa: ANN401 - a module that need not be there
        self._nvml = nvml

    def read(self) -> Mapping[str, CardReading]:
        try:
            count = self._nvml.nvmlDeviceGetCount()
        except self._nvml.NVMLError:
            return {}
        return dict(reading for index in range(count) for reading in self._card(index))

    def _card(self, index: int) -> Iterator[tuple[str, CardReading]]:
        try:
            card = self._nvml.nvmlDeviceGetHandleByIndex(index)
            uuid = self._nvml.nvmlDeviceGetUUID(card)
        except self._nvml.NVMLError:  # it fell off the bus
            return
        yield uuid if isinstance(uuid, str) else uuid.decode(), CardReading(self._percent(card), self._memory(card))

    def _percent(self, card: object) -> int | None:
        try:
            return int(self._nvml.nvmlDeviceGetUtilizationRates(card).gpu)
        except self._nvml.NVMLError:
            return None

    def _memory(self, card: object) -> int | None:
        try:
            return int(self._nvml.nvmlDeviceGetMemoryInfo(card).used) // _BYTES_PER_MIB
        except self._nvml.NVMLError:
            return None


def card_meter(probe: Probe) -> CardMeter:
    """Return the fastest meter that works on this machine."""
    try:
        nvml = import_module(BINDING)
        nvml.nvmlInit()
    except Exception:  # noqa: BLE001 - no binding, no driver, another binding of that name: the program may still answer
        return Smi(probe)
    return Nvml(nvml)


def _lines(text: str) -> Iterator[tuple[str, CardReading]]:
    for match in map(_LINE.match, map(str.strip, text.splitlines())):
        if match:
            yield match["uuid"], CardReading(_figure(match["percent"]), _figure(match["memory"]))


def _figure(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None
