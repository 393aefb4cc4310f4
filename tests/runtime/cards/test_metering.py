"""How busy cards are, as recorded answers of nvidia-smi and the binding's own functions say it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from cockpit.runtime.cards import metering
from cockpit.runtime.cards.metering import CardReading, Nvml, Smi, card_meter
from cockpit.runtime.probe_command import Answer, Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

# nvidia-smi 550.90.07: a busy A100, an idle one, one divided by MIG, and one that fell off the bus
RECORDED = """\
GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77, 97, 61440
GPU-11b2c3d4-0000-2b2c-524d-9e3d8d2b8a78, 0, 3
GPU-22b2c3d4-0000-2b2c-524d-9e3d8d2b8a79, [N/A], 12036
Unable to determine the device handle for GPU0000:C1:00.0: Unknown Error
"""


def smi(command: Sequence[str]) -> Answer:
    assert command == metering.QUERY
    return Answer(Outcome.ANSWERED, 0, RECORDED)


@pytest.mark.req("JT-48")
def test_the_program_reports_each_card() -> None:
    assert Smi(smi).read() == {
        "GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77": CardReading(97, 61440),
        "GPU-11b2c3d4-0000-2b2c-524d-9e3d8d2b8a78": CardReading(0, 3),
        "GPU-22b2c3d4-0000-2b2c-524d-9e3d8d2b8a79": CardReading(None, 12036),
    }
    assert Smi(lambda _: Answer(Outcome.HUNG)).read() == {}


class NotTold(Exception):
    """As the binding's own errors are."""


def library() -> SimpleNamespace:
    """As the binding is. Card 1 does not tell how busy it is, card 2 is lost."""

    def handle(index: int) -> int:
        if index == 2:
            raise NotTold
        return index

    def rates(card: int) -> SimpleNamespace:
        if card == 1:
            raise NotTold
        return SimpleNamespace(gpu=88, memory=31)

    return SimpleNamespace(
        NVMLError=NotTold,
        nvmlDeviceGetCount=lambda: 3,
        nvmlDeviceGetHandleByIndex=handle,
        nvmlDeviceGetUUID=lambda card: ("GPU-a", b"GPU-b")[card],
        nvmlDeviceGetUtilizationRates=rates,
        nvmlDeviceGetMemoryInfo=lambda card: SimpleNamespace(used=(card + 2) << 30),
    )


@pytest.mark.req("JT-48")
def test_the_library_reports_each_card() -> None:
    assert Nvml(library()).read() == {"GPU-a": CardReading(88, 2048), "GPU-b": CardReading(None, 3072)}


@pytest.mark.req("JT-48")
def test_without_the_binding_or_its_driver_the_program_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_driver(_: str) -> SimpleNamespace:
        def fails() -> None:
            raise NotTold("driver not loaded")

        return SimpleNamespace(nvmlInit=fails)

    monkeypatch.setattr(metering, "import_module", no_driver)
    assert card_meter(smi).read()["GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77"].percent == 97
