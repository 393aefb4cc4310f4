from __future__ import annotations

from cockpit.runtime.containers.shim.bubblewrap import View, arguments


def pairs(words: list[str], option: str) -> list[tuple[str, str]]:
    return [(words[i + 1], words[i + 2]) for i, word in enumerate(words) if word == option]


def built(**parts) -> list[str]:
    return arguments(View(root="/s/root", shared_memory_bytes=1 << 20, **parts), block_fd=7, info_fd=8)


def test_the_root_is_bound_before_all_mounts_on_it():
    words = built(binds=[("/s/0", "/workspace/outputs", True)])
    assert words[:4] == ["bwrap", "--bind", "/s/root", "/"]
    assert pairs(words, "--bind") == [("/s/root", "/"), ("/s/0", "/workspace/outputs")]


def test_read_only_mounts_are_bound_read_only():
    words = built(binds=[("/s/0", "/workspace/algorithm", False)])
    assert ("/s/0", "/workspace/algorithm") in pairs(words, "--ro-bind")


def test_devices_follow_dev_and_masks_follow_all_mounts():
    words = built(binds=[("/s/0", "/home/ann", False)], devices=["/dev/nvidia0"], masked=["/home/ann/state"])
    assert words.index("--dev") < words.index("--dev-bind-try")
    assert pairs(words, "--dev-bind-try") == [("/dev/nvidia0", "/dev/nvidia0")]
    mask = words.index("/home/ann/state")
    assert words[mask - 1 : mask + 3] == ["--tmpfs", "/home/ann/state", "--remount-ro", "/home/ann/state"]
    assert mask > words.index("/home/ann")


def test_bubblewrap_runs_no_command_and_drops_every_capability():
    words = built()
    assert words[-2:] == ["--", "/"]
    assert words[words.index("--cap-drop") + 1] == "ALL"
    assert words[words.index("--block-fd") + 1] == "7"


def test_root_cannot_change_the_kernel_through_proc():
    assert ("/proc/sys", "/proc/sys") in pairs(built(), "--ro-bind-try")
    assert ("/proc/sysrq-trigger", "/proc/sysrq-trigger") in pairs(built(), "--ro-bind-try")
