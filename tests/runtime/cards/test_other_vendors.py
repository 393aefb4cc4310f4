"""Ascend, Cambricon and AMD. The samples have the forms named in the modules under test, shortened."""

from __future__ import annotations

import pytest

from cockpit.model.node import CardVendor
from cockpit.runtime.cards import ascend, cambricon, rocm
from cockpit.runtime.probe_command import Answer, Outcome

NPU_910B = """\
+------------------------------------------------------------------------------------------------+
| npu-smi 23.0.7                   Version: 23.0.7                                               |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 0     910B3               | OK            | 102.8       55                0    / 0             |
| 0                         | 0000:C1:00.0  | 0           0    / 0          3338 / 65536         |
+===========================+===============+====================================================+
| 1     910B3               | Warning       | 97.6        54                0    / 0             |
| 0                         | 0000:C2:00.0  | 0           0    / 0          3337 / 65536         |
+===========================+===============+====================================================+
+---------------------------+---------------+----------------------------------------------------+
| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
+===========================+===============+====================================================+
| 0       0                 | 1234          | python                   | 300                     |
"""
NPU_310P = """\
| npu-smi 23.0.0                                   Version: 23.0.0                                       |
| 24      310P3                 | OK              | NA           29                0     / 0             |
| 0       0                     | 0000:04:00.0    | 0            1832 / 21527                            |
"""
NPU_A3 = """\
| npu-smi 25.2.1                   Version: 25.2.1                                               |
| 0     Ascend910           | OK            | 172.7       45                0    / 0             |
| 0     0                   | 0000:9D:00.0  | 12          0    / 0          3122 / 65536         |
| 0     Ascend910           | OK            | -           47                0    / 0             |
| 1     1                   | 0000:9F:00.0  | 0           0    / 0          2887 / 65536         |
"""
CNMON_370 = """\
Sat Oct  8 11:22:22 2022
+------------------------------------------------------------------------------+
| CNMON v5.10.13                                               Driver v5.10.13 |
+-------------------------------+----------------------+-----------------------+
| Card  VF  Name       Firmware |               Bus-Id | Util        Ecc-Error |
| Fan   Temp      Pwr:Usage/Cap |         Memory-Usage | SR-IOV   Compute-Mode |
|===============================+======================+=======================|
| 0     /   MLU370-X8    v1.1.6 |         0000:39:00.0 | 0%                N/A |
|  0%   32C        106 W/ 250 W |     0 MiB/ 23374 MiB | N/A           Default |
+-------------------------------+----------------------+-----------------------+
| 1     /   MLU370-X8    v1.1.6 |         0000:3D:00.0 | 0%                N/A |
|  0%   39C        106 W/ 250 W |     0 MiB/ 23374 MiB | N/A           Default |
+-------------------------------+----------------------+-----------------------+
| Processes:                                                                   |
|  Card  MI  PID     Command Line                             MLU Memory Usage |
"""
CNMON_OLD = """\
| CNMON v4.20.11                                                               |
| 0     /   MLU370-X4    v1.1.6 | On          v4.20.11 | 0%          N/A       |
|  0%   32C         30 W/ 150 W |     0 MiB/ 23308 MiB | 10240 MiB/1048576 MiB |
"""
KFD_CARD = (
    "cpu_cores_count 0\nsimd_count 440\ngfx_target_version 90010\nvendor_id 4098\n"
    "drm_render_minor 129\nunique_id 7809984429061111111\n"
)
KFD_CPU = "cpu_cores_count 192\nsimd_count 0\ngfx_target_version 0\nvendor_id 0\ndrm_render_minor 0\n"
KFD_APU = "cpu_cores_count 16\nsimd_count 8\ngfx_target_version 90012\ndrm_render_minor 128\n"
KFD = "sys/class/kfd/kfd/topology/nodes"


def says(text: str):
    return lambda _command: Answer(Outcome.ANSWERED, 0, text)


def test_ascend_cards_of_one_chip() -> None:
    chips, version, findings = ascend.parse_info(NPU_910B)
    assert [(chip.number, chip.model, chip.memory_mib) for chip in chips] == [
        (0, "Ascend910B3", 65536),
        (1, "Ascend910B3", 65536),
    ]
    assert version == "23.0.7"
    assert [finding.found for finding in findings] == ["NPU 1 says its health is Warning"]


def test_ascend_numbers_are_those_of_the_device_nodes() -> None:
    assert [chip.number for chip in ascend.parse_info(NPU_310P)[0]] == [0]
    assert [(chip.number, chip.model) for chip in ascend.parse_info(NPU_A3)[0]] == [(0, "Ascend910"), (1, "Ascend910")]


@pytest.mark.req("JT-47")
def test_ascend_cards_bring_the_managers_devices(machine_root) -> None:
    names = ("davinci0", "davinci1", "davinci_manager", "devmm_svm", "hisi_hdc")
    root = machine_root({f"dev/{name}": "" for name in names})
    found = ascend.probe(root, says(NPU_910B))
    assert found.cards[1].vendor is CardVendor.ASCEND
    assert found.cards[1].devices == ("/dev/davinci1", "/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc")


@pytest.mark.parametrize(
    ("text", "driver", "models"),
    [(CNMON_370, "5.10.13", ["MLU370-X8", "MLU370-X8"]), (CNMON_OLD, "4.20.11", ["MLU370-X4"])],
)
def test_cambricon_tables(text: str, driver: str, models: list[str]) -> None:
    cards, version = cambricon.parse_table(text)
    assert (version, [card.model for card in cards]) == (driver, models)
    assert cards[0].memory_mib in (23374, 23308)


@pytest.mark.req("JT-47")
def test_cambricon_cards_bring_the_control_device(machine_root) -> None:
    root = machine_root({"dev/cambricon_dev1": "", "dev/cambricon_ctl": ""})
    found = cambricon.probe(root, says(CNMON_370))
    assert [card.devices for card in found.cards] == [
        ("/dev/cambricon_ctl",),
        ("/dev/cambricon_dev1", "/dev/cambricon_ctl"),
    ]


@pytest.mark.req("JT-43", "JT-47")
def test_amd_cards_from_sysfs(machine_root) -> None:
    root = machine_root(
        {
            f"{KFD}/0/properties": KFD_CPU,
            f"{KFD}/2/properties": KFD_CARD,
            f"{KFD}/2/mem_banks/0/properties": "heap_type 1\nsize_in_bytes 68702699520\nflags 0\n",
            f"{KFD}/2/mem_banks/1/properties": "heap_type 5\nsize_in_bytes 65536\n",
            f"{KFD}/10/properties": KFD_APU,
            "sys/class/drm/renderD129/device/product_name": "AMD Instinct MI210\n",
            "sys/module/amdgpu/version": "6.3.6\n",
            "dev/kfd": "",
            "dev/dri/renderD129": "",
        }
    )
    found = rocm.probe(root, says("never asked"))
    (card,) = found.cards
    assert (card.model, card.vendor, card.memory_mib) == ("MI210", CardVendor.ROCM, 65520)
    assert (card.uuid, card.devices) == ("GPU-6c62a3758b84fd47", ("/dev/kfd", "/dev/dri/renderD129"))
    assert found.driver_version == "6.3.6"


def test_amd_architecture_names() -> None:
    assert [rocm.gfx_name(version) for version in (90008, 90010, 90402, 110000)] == [
        "gfx908",
        "gfx90a",
        "gfx942",
        "gfx1100",
    ]


@pytest.mark.parametrize("module", [ascend, cambricon])
@pytest.mark.parametrize("text", ["", "| | |\n||\n", "\x00\x1b[2J" * 100, "| 0 " * 1000, "| 1 MLU | 2 / 3 |\n" * 50])
def test_garbage_is_no_card(module, text: str, machine_root) -> None:
    found = module.probe(machine_root({"dev/null": ""}), says(text))
    assert found.cards == ()


@pytest.mark.req("TR-03")
@pytest.mark.parametrize("module", [ascend, cambricon])
def test_a_tool_without_output_is_a_finding(module, machine_root) -> None:
    root = machine_root({"dev/null": ""})
    (hung,) = module.probe(root, lambda _: Answer(Outcome.HUNG)).findings
    assert "did not answer in time" in hung.found
    (failed,) = module.probe(root, lambda _: Answer(Outcome.ANSWERED, 255, "dcmi module initialize failed\n")).findings
    assert "exit code 255: dcmi module initialize failed" in failed.found
    assert module.probe(root, lambda _: Answer(Outcome.ABSENT)).findings == ()
