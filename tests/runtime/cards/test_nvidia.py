"""Samples have the form of nvidia-smi 535 (MIG User Guide) and of /proc/driver/nvidia (README of the driver)."""

from __future__ import annotations

import pytest

from cockpit.model.node import CardVendor
from cockpit.runtime.cards import nvidia
from cockpit.runtime.findings import FindingLevel
from cockpit.runtime.probe_command import Answer, Outcome, probe_command

QUERY_A100 = """\
0, GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77, 81920, 00000000:07:00.0, 535.104.05, NVIDIA A100-SXM4-80GB
1, GPU-9b4a4a2c-42a5-4d0d-9b2c-3a2f1e0d4c5b, 81920, 00000000:0F:00.0, 535.104.05, NVIDIA A100-SXM4-80GB
"""
LIST_MIG = """\
GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77)
GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-9b4a4a2c-42a5-4d0d-9b2c-3a2f1e0d4c5b)
  MIG 3g.40gb     Device  0: (UUID: MIG-11110000-0000-0000-0000-000000000000)
  MIG 3g.40gb     Device  1: (UUID: MIG-11110000-0000-0000-0000-000000000001)
"""
INFORMATION = """\
Model: \t\t NVIDIA GeForce RTX 4090
IRQ:   \t\t 141
GPU UUID: \t GPU-e953c3c5-dba7-029e-ce44-7b51417131df
Video BIOS: \t 95.02.3c.40.b9
Bus Type: \t PCIe
DMA Size: \t 47 bits
DMA Mask: \t 0x7fffffffffff
Bus Location: \t 0000:0f:00.0
Device Minor: \t {minor}
GPU Excluded:\t No
"""
VERSION = (
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\n"
    "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n"
)
VERSION_OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  560.35.03  Release Build  (dvs-builder)\n"


def answers(**texts: str):
    def fake(command):
        key = "list" if "-L" in command else "query"
        return Answer(Outcome.ANSWERED, 0, texts[key]) if key in texts else Answer(Outcome.HUNG)

    return fake


@pytest.mark.req("JT-43", "JT-47")
def test_cards_with_their_memory_driver_and_device_nodes(machine_root) -> None:
    root = machine_root(
        {
            "dev/nvidia0": "",
            "dev/nvidia1": "",
            "dev/nvidiactl": "",
            "dev/nvidia-uvm": "",
            "proc/driver/nvidia/gpus/0000:07:00.0/information": INFORMATION.format(minor=1),
            "proc/driver/nvidia/gpus/0000:0f:00.0/information": INFORMATION.format(minor=0),
        }
    )
    found = nvidia.probe(root, answers(query=QUERY_A100, list=""))
    assert found.driver_version == "535.104.05"
    assert found.findings == ()
    first, second = found.cards
    assert (first.index, first.model, first.vendor, first.memory_mib) == (0, "A100", CardVendor.NVIDIA, 81920)
    assert first.uuid == "GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77"
    assert first.devices == ("/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm")  # the minor, not the index
    assert second.devices[0] == "/dev/nvidia0"
    assert not first.declared


@pytest.mark.req("JT-47")
def test_mig_instances_become_slices_with_their_capability_devices(machine_root) -> None:
    root = machine_root(
        {
            "dev/nvidia1": "",
            "dev/nvidia-caps/nvidia-cap12": "",
            "dev/nvidia-caps/nvidia-cap13": "",
            "proc/driver/nvidia/capabilities/gpu1/mig/gi1/access": "DeviceFileMinor: 12\nDeviceFileMode: 292\n",
            "proc/driver/nvidia/capabilities/gpu1/mig/gi1/ci0/access": "DeviceFileMinor: 13\nDeviceFileMode: 292\n",
        }
    )
    whole, sliced = nvidia.probe(root, answers(query=QUERY_A100, list=LIST_MIG)).cards
    assert (whole.slices, whole.slice_uuids) == (0, ())
    assert sliced.slices == 2
    assert sliced.slice_uuids[1] == "MIG-11110000-0000-0000-0000-000000000001"
    assert set(sliced.devices) == {"/dev/nvidia1", "/dev/nvidia-caps/nvidia-cap12", "/dev/nvidia-caps/nvidia-cap13"}


def test_instances_of_several_sizes_are_reported_and_one_size_is_used() -> None:
    uneven = LIST_MIG + "  MIG 1g.10gb     Device  2: (UUID: MIG-11110000-0000-0000-0000-000000000002)\n"
    (parts,) = nvidia.parse_list(uneven).values()
    assert [profile for profile, _ in parts] == ["3g.40gb", "3g.40gb", "1g.10gb"]
    assert len(nvidia.even_slices(parts)) == 2


def test_mig_uuids_of_old_drivers() -> None:
    old = (
        "GPU 0: A100-SXM4-40GB (UUID: GPU-e91edf3b-b297-37c1-a2a7-7601c3238fa2)\n"
        "  MIG 1g.5gb Device 0: (UUID: MIG-GPU-e91edf3b-b297-37c1-a2a7-7601c3238fa2/11/0)\n"
    )
    assert nvidia.parse_list(old) == {0: (("1g.5gb", "MIG-GPU-e91edf3b-b297-37c1-a2a7-7601c3238fa2/11/0"),)}


@pytest.mark.parametrize(
    ("product", "model"),
    [
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("NVIDIA A100 80GB PCIe", "A100"),
        ("NVIDIA H100 PCIe", "H100"),
        ("NVIDIA GH200 480GB", "GH200"),
        ("Tesla V100-SXM2-32GB", "V100"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada Generation"),
    ],
)
def test_models_have_their_common_names(product: str, model: str) -> None:
    assert nvidia.model_name(product) == model


def test_lines_that_are_no_card_are_ignored() -> None:
    text = (
        "Unable to determine the device handle for GPU0000:3B:00.0: GPU is lost.  Reboot the system to recover\n"
        "0, GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77, [N/A], 00000000:07:00.0, 535.104.05, NVIDIA \x1b[31mGB10\n"
        "No devices were found\n"
        "1, 2, 3\n"
    )
    (card,) = nvidia.parse_query(text)
    assert (card.memory_mib, card.model) == (0, "?[31mGB10")


@pytest.mark.req("TR-03")
def test_a_hung_nvidia_smi_costs_one_timeout_and_the_driver_is_read(tools, machine_root, tmp_path) -> None:
    calls = tmp_path / "calls"
    tools("nvidia-smi", f"echo called >> {calls}; exec sleep 1000")
    root = machine_root(
        {
            "dev/nvidia0": "",
            "proc/driver/nvidia/version": VERSION,
            "proc/driver/nvidia/gpus/0000:0f:00.0/information": INFORMATION.format(minor=0),
        }
    )
    found = nvidia.probe(root, lambda command: probe_command(command, seconds=0.3))
    assert calls.read_text() == "called\n"
    assert [card.model for card in found.cards] == ["RTX 4090"]
    assert (found.driver_version, found.cards[0].devices) == ("535.104.05", ("/dev/nvidia0",))
    (finding,) = found.findings
    assert finding.level is FindingLevel.MISSING
    assert "did not answer in time" in finding.found


def test_a_driver_without_cards_in_use_yet(machine_root) -> None:
    root = machine_root(
        {
            "proc/driver/nvidia/version": VERSION_OPEN,
            "proc/driver/nvidia/gpus/0000:0f:00.0/information": "Model: \t\t Unknown\nGPU UUID: \t GPU-????????-????\n",
        }
    )
    found = nvidia.probe(root, lambda _: Answer(Outcome.ABSENT))
    assert (found.driver_version, found.cards[0].uuid) == ("560.35.03", "")
    assert "could not be started" in found.findings[0].found


def test_a_machine_without_nvidia_has_no_findings(machine_root) -> None:
    found = nvidia.probe(machine_root({"dev/null": ""}), lambda _: Answer(Outcome.ABSENT))
    assert found == type(found)()


def test_a_card_without_its_device_node_is_reported(machine_root) -> None:
    found = nvidia.probe(machine_root({"dev/nvidia0": ""}), answers(query=QUERY_A100, list=""))
    assert [finding.found for finding in found.findings] == ["there is no /dev/nvidiaN for card 1"]


def test_a_missing_list_of_cards_is_reported(machine_root) -> None:
    root = machine_root({"dev/nvidia0": "", "dev/nvidia1": ""})
    found = nvidia.probe(root, answers(query=QUERY_A100))
    assert len(found.cards) == 2
    assert [finding.found for finding in found.findings] == ["nvidia-smi -L did not answer in time and was killed"]
