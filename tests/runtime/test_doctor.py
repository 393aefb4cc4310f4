from __future__ import annotations

import os
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from cockpit.runtime.checks import containers, surroundings
from cockpit.runtime.checks.surroundings import Surroundings
from cockpit.runtime.doctor import CHECKS, findings
from cockpit.runtime.findings import FindingLevel
from cockpit.runtime.probe_command import Answer, Outcome, probe_command
from tests.builders import a_card, a_node
from tests.mounts import mounts


def absent(_command):
    return Answer(Outcome.ABSENT)


def hung(_command):
    return Answer(Outcome.HUNG)


def answering(**answers: Answer):
    return lambda command: answers.get(command[0], Answer(Outcome.ABSENT))


@pytest.fixture
def around(tmp_path: Path):
    def build(**given) -> Surroundings:
        defaults = {
            "env": {},
            "uid": 1000,
            "socket": tmp_path / "run/engine.sock",
            "state_folder": tmp_path / "state",
            "probe": absent,
            "root": tmp_path / "root",
        }
        return Surroundings(**{**defaults, **given})

    return build


@pytest.mark.req("UI-44")
def test_images_by_name_need_a_program_that_has_them(around) -> None:
    (none,) = surroundings.images(around())
    assert (none.level, "podman" in none.advice) == (FindingLevel.NOTE, True)
    docker = answering(docker=Answer(Outcome.ANSWERED, 0, "Docker version 24.0.7"))
    podman = answering(podman=Answer(Outcome.ANSWERED, 0, "podman version 4.3.1"))
    for known, uid, by_name in (
        (docker, 0, "Docker version 24.0.7, as copies"),
        (podman, 0, "podman version 4.3.1, in containers of its own"),
        (podman, 1000, "podman version 4.3.1, as copies"),
    ):
        (found,) = surroundings.images(around(probe=known, uid=uid))
        assert (found.level, found.found) == (FindingLevel.OK, f"by name from {by_name}, or as dir:PATH and tar:PATH")


def install_nft(folder: Path) -> None:
    (folder / "root/usr/sbin").mkdir(parents=True)
    (folder / "root/usr/sbin/nft").touch()


@pytest.mark.req("UI-44", "LA-10")
def test_an_ordinary_users_networks_need_a_program_and_a_tunnel_for_outgoing_connections(
    around, tmp_path: Path
) -> None:
    here = Answer(Outcome.ANSWERED, 0, "1.2.0")
    (no_rules,) = containers.outward(around())
    assert "nftables is not installed" in no_rules.found
    install_nft(tmp_path)  # where the user's PATH does not lead
    (no_program,) = containers.outward(around())
    assert (no_program.level, "slirp4netns nor pasta" in no_program.found) == (FindingLevel.NOTE, True)
    with_pasta = around(probe=answering(pasta=here))
    (no_tunnel,) = containers.outward(with_pasta)
    assert "/dev/net/tun" in no_tunnel.found
    (tmp_path / "root/dev/net").mkdir(parents=True)
    (tmp_path / "root/dev/net/tun").touch()
    (found,) = containers.outward(with_pasta)
    assert (found.level, found.found) == (FindingLevel.OK, "jobs with several nodes have one, by pasta")


@pytest.mark.req("UI-44", "LA-10")
def test_roots_networks_need_a_machine_that_forwards(around, tmp_path: Path) -> None:
    install_nft(tmp_path)
    root = around(uid=0)
    (found,) = containers.outward(root)
    assert "this machine forwards nothing" in found.found
    (tmp_path / "root/proc/sys/net/ipv4").mkdir(parents=True)
    (tmp_path / "root/proc/sys/net/ipv4/ip_forward").write_text("1\n")
    assert containers.outward(root)[0].found == "jobs with several nodes have one, by NAT"


@pytest.mark.req("UI-44")
def test_every_check_of_this_machine_is_a_sentence(tmp_path: Path) -> None:
    env = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "HOME": str(tmp_path)}
    found = findings(socket=tmp_path / "engine.sock", state_folder=tmp_path / "state", env=env)
    subjects = [finding.subject for finding in found]
    for subject in ("Python", "machine", "bubblewrap", "limits", "state folder", "Slurm", "terminal", "time"):
        assert subject in subjects
    assert all(finding.found for finding in found)
    assert all(finding.advice for finding in found if finding.level is FindingLevel.MISSING)
    assert list(tmp_path.iterdir()) == []  # it looked and left nothing


@pytest.mark.req("UI-44", "TR-03")
@pytest.mark.parametrize("answer", [absent, hung, lambda _: Answer(Outcome.ANSWERED, 1, "\x1b[2J\0%s{}[bold]" * 99)])
def test_a_machine_where_every_program_misbehaves(answer, tmp_path: Path) -> None:
    found = findings(socket=tmp_path / "engine.sock", state_folder=tmp_path, env={}, uid=1000, probe=answer)
    assert not any("could not be checked" in finding.found for finding in found)
    assert all((finding.found + finding.advice).isprintable() for finding in found)
    levels = {finding.subject: finding.level for finding in found}
    assert levels["overlays"] is FindingLevel.MISSING
    assert levels["bubblewrap"] is (FindingLevel.NOTE if answer is absent else FindingLevel.MISSING)


@pytest.mark.req("TR-03")
def test_a_check_that_fails_is_a_finding(tmp_path: Path) -> None:
    def explode(_command):
        raise RuntimeError("boom\x1b")

    found = findings(socket=tmp_path / "e.sock", state_folder=tmp_path, env={}, uid=1000, probe=explode)
    assert {finding.found for finding in found if finding.subject == "bubblewrap"} == {
        "could not be checked: RuntimeError: boom?"
    }
    assert len(found) >= len(CHECKS)


@pytest.mark.real
@pytest.mark.req("UI-44")
@pytest.mark.skipif(os.getuid() != 0, reason="mounts as root")
def test_an_overlay_is_actually_mounted_and_unmounted_again() -> None:
    with tempfile.TemporaryDirectory(prefix="cockpit-", dir="/var/tmp") as folder:
        state = Path(folder) / "with, comma:colon/state"
        state.parent.mkdir()
        around = Surroundings(env={}, uid=0, socket=state / "s", state_folder=state, probe=probe_command)
        before = mounts()
        (finding,) = containers.overlay(around)
        assert (finding.level, finding.found) == (FindingLevel.OK, "can be mounted as root")
        assert mounts() == before
        assert list(state.parent.iterdir()) == []


def test_bubblewrap_installed_but_forbidden(around) -> None:
    def bwrap(command):
        if "--version" in command:
            return Answer(Outcome.ANSWERED, 0, "bubblewrap 0.8.0\n")
        return Answer(Outcome.ANSWERED, 1, "bwrap: No permissions to create new namespace\n")

    (finding,) = containers.bubblewrap(around(probe=bwrap))
    assert finding.level is FindingLevel.MISSING
    assert "No permissions to create new namespace" in finding.found


@pytest.mark.req("UI-44")
@pytest.mark.parametrize(
    ("sysctl", "value", "mends"),
    [
        ("kernel/unprivileged_userns_clone", "0", "sysctl -w kernel.unprivileged_userns_clone=1"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "kernel.apparmor_restrict_unprivileged_userns=0"),
        ("user/max_user_namespaces", "0", "user.max_user_namespaces=15000"),
    ],
)
def test_namespaces_and_the_setting_that_forbids_them(
    around, machine_root, sysctl: str, value: str, mends: str
) -> None:
    root = machine_root({f"proc/sys/{sysctl}": f"{value}\n"})
    (finding,) = containers.namespaces(around(root=root))
    assert finding.level is FindingLevel.MISSING
    assert mends in finding.advice
    (allowed,) = containers.namespaces(around(root=root, uid=0))
    assert allowed.level is FindingLevel.OK


@pytest.mark.req("UI-44")
@pytest.mark.parametrize("uid", [0, 1000])
def test_namespaces_that_no_setting_forbids_are_tried(around, uid: int) -> None:
    words = []

    def unshare(command):
        words.extend(command)
        return Answer(Outcome.ANSWERED, 1, "unshare: unshare failed: Operation not permitted\n")

    (finding,) = containers.namespaces(around(probe=unshare, uid=uid))
    assert finding.found == "refused: unshare: unshare failed: Operation not permitted"
    assert "docker run --privileged" in finding.advice
    assert ("--user" in words) == (uid != 0)


@pytest.mark.req("UI-44")
def test_limits_of_cgroup_v2(around, machine_root) -> None:
    top = "sys/fs/cgroup"
    root = machine_root({f"{top}/cgroup.controllers": "memory pids\n", f"{top}/cgroup.subtree_control": ""})
    (partly,) = surroundings.limits(around(root=root))
    assert partly.found == "cgroup v2 without cpu: limits are soft (rlimits)"
    (root / top / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    (full,) = surroundings.limits(around(root=root))
    assert full.level is FindingLevel.OK
    (root / top / "cgroup.subtree_control").unlink()
    (soft,) = surroundings.limits(around(root=root))
    assert "may not be written: limits are soft" in soft.found


def test_limits_of_cgroup_v1_and_of_none(around, machine_root) -> None:
    root = machine_root({f"sys/fs/cgroup/{name}/tasks": "" for name in ("cpu", "memory")})
    (partly,) = surroundings.limits(around(root=root))
    assert partly.found == "cgroup v1, pids may not be written: limits are soft (rlimits)"
    (root / "sys/fs/cgroup/pids").mkdir()
    assert surroundings.limits(around(root=root))[0].level is FindingLevel.OK
    assert surroundings.limits(around(root=root / "nowhere"))[0].found.startswith("no cgroups, cpu, memory, pids")


@pytest.mark.req("UI-44")
def test_schedulers(around, tmp_path: Path) -> None:
    up = answering(scontrol=Answer(Outcome.ANSWERED, 0, "Slurmctld(primary) at head is UP\n"))
    assert surroundings.slurm(around(probe=up))[0].level is FindingLevel.OK
    down = answering(scontrol=Answer(Outcome.ANSWERED, 1, "Slurmctld(primary) at head is DOWN\n"))
    assert "does not answer: Slurmctld(primary) at head is DOWN" in surroundings.slurm(around(probe=down))[0].found
    assert "no answer in time" in surroundings.slurm(around(probe=hung))[0].found
    assert surroundings.kubernetes(around(env={"HOME": str(tmp_path)}))[0].level is FindingLevel.NOTE
    (tmp_path / "kube.yaml").touch()
    assert surroundings.kubernetes(around(env={"KUBECONFIG": f":{tmp_path}/kube.yaml"}))[0].level is FindingLevel.OK


@pytest.mark.req("UI-44")
def test_terminals(around) -> None:
    assert surroundings.terminal(around(env={}))[0].found == "TERM is not set"
    assert surroundings.terminal(around(env={"TERM": "dumb"}))[0].level is FindingLevel.NOTE
    rich = surroundings.terminal(around(env={"TERM": "tmux-256color", "COLORTERM": "truecolor", "TMUX": "/tmp/t,1,0"}))
    assert [finding.found for finding in rich[:2]] == ["tmux-256color in tmux", "16 million"]
    assert surroundings.terminal(around(env={"TERM": "linux"}))[1].level is FindingLevel.NOTE
    assert surroundings.locale(around(env={"LC_ALL": "C", "LANG": "de_DE.UTF-8"}))[0].level is FindingLevel.NOTE
    assert surroundings.locale(around(env={"LANG": "de_DE.utf8"}))[0].level is FindingLevel.OK
    assert surroundings.tmux(around())[0].level is FindingLevel.NOTE


@pytest.mark.req("UI-44", "TR-03")
def test_folders(around, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, disk = surroundings.state_folder(around())
    assert made.found.endswith("(will be made)")
    assert "GiB free" in disk.found
    (tmp_path / "file").touch()
    (finding,) = surroundings.state_folder(around(state_folder=tmp_path / "file/state"))
    assert finding.level is FindingLevel.MISSING
    assert "Set state_folder" in finding.advice
    monkeypatch.setattr(surroundings, "network_filesystem", lambda _path: "nfs4")
    (finding,) = surroundings.state_folder(around())
    assert "network file system (nfs4)" in finding.found


def test_an_unsafe_socket_folder_is_missing(around, tmp_path: Path) -> None:
    (tmp_path / "run").symlink_to(tmp_path)
    (finding,) = surroundings.socket_folder(around(uid=os.getuid()))
    assert (finding.level, "symbolic link" in finding.found) == (FindingLevel.MISSING, True)


def test_a_clock_that_was_never_set(around, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surroundings, "wall_nanos", lambda: 86_400 * 10**9)
    (finding,) = surroundings.time_of_day(around())
    assert finding.found == "1970-01-02 00:00:00 UTC: the clock was never set"


@pytest.mark.req("JT-43")
def test_cards_are_counted_by_model(tools, around, machine_root) -> None:
    tools("cnmon", "for n in 0 1; do echo \"| $n / MLU370-X4  v1 | x |\"; echo '| 0 MiB/ 23308 MiB |'; done")
    found = surroundings.machine(around(probe=probe_command, root=machine_root({"dev/null": ""})))
    assert [finding.found for finding in found if finding.subject == "cards"] == ["2 × MLU370-X4, driver unknown"]


@pytest.mark.req("UI-24")
@pytest.mark.parametrize(
    ("size", "is_enough"), [((80, 24), True), ((200, 60), True), ((79, 24), False), ((80, 23), False)]
)
def test_the_screens_need_a_terminal_of_80_columns_and_24_lines(
    around, size: tuple[int, int], is_enough: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "get_terminal_size", lambda _fd: os.terminal_size(size))
    *_, finding = surroundings.terminal(around(env={"TERM": "xterm-256color"}))
    assert (finding.subject, finding.found) == ("size", f"{size[0]} × {size[1]}")
    assert (finding.level is FindingLevel.OK) is is_enough
    assert ("at least 80 × 24" in finding.advice) is not is_enough


@pytest.mark.req("UI-44", "TR-03")
def test_folders_that_are_there_already_are_not_said_to_be_made(around, tmp_path: Path) -> None:
    own = around(uid=os.getuid())
    (coming,) = surroundings.socket_folder(own)
    assert (coming.level, coming.found) == (FindingLevel.OK, f"{tmp_path}/run (will be made)")
    (tmp_path / "run").mkdir(mode=0o700)
    (tmp_path / "state").mkdir()
    (there,) = surroundings.socket_folder(own)
    assert (there.level, there.found) == (FindingLevel.OK, f"{tmp_path}/run")
    assert surroundings.state_folder(own)[0].found == f"{tmp_path}/state"
    (of_root,) = surroundings.state_folder(around(system=True))
    assert (of_root.level, of_root.found) == (FindingLevel.OK, f"{tmp_path}/state, which only root can read")
    assert len(surroundings.state_folder(around(system=True, uid=0))) == 2


@pytest.mark.req("UI-44", "TR-03")
@pytest.mark.parametrize(
    ("gib", "files", "files_left", "level"),
    [
        (2.0, 100, 50, FindingLevel.OK),
        (1.9, 100, 50, FindingLevel.NOTE),
        (0.11, 100, 50, FindingLevel.NOTE),
        (0.09, 100, 50, FindingLevel.MISSING),
        (9.0, 100, 0, FindingLevel.MISSING),
        (9.0, 0, 0, FindingLevel.OK),
    ],
)
def test_the_space_for_the_journal_and_containers(
    around, gib: float, files: int, files_left: int, level: FindingLevel, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = SimpleNamespace(f_bavail=round(gib * (1 << 30)), f_frsize=1, f_files=files, f_favail=files_left)
    monkeypatch.setattr(os, "statvfs", lambda _folder: facts)
    _, disk = surroundings.state_folder(around())
    assert (disk.level, disk.found) == (level, f"{gib:.1f} GiB free for the journal and containers")


@pytest.mark.req("UI-44")
def test_a_configured_slurm_that_does_not_answer_is_missing_and_another_is_a_note(around) -> None:
    for probe, found in ((absent, "scontrol is not installed"), (hung, "slurmctld does not answer: no answer in time")):
        (configured,) = surroundings.slurm(around(probe=probe, slurm="/etc/slurm/slurm.conf"))
        assert configured.level is FindingLevel.MISSING
        assert configured.found == f"configured by /etc/slurm/slurm.conf, but {found}"
        (other,) = surroundings.slurm(around(probe=probe))
        assert (other.level, found in other.found) == (FindingLevel.NOTE, True)


def test_a_clock_that_was_set_shows_its_time(around, monkeypatch: pytest.MonkeyPatch) -> None:
    for seconds, level in ((1_735_689_599, FindingLevel.MISSING), (1_735_689_600, FindingLevel.OK)):
        monkeypatch.setattr(surroundings, "wall_nanos", lambda seconds=seconds: seconds * 10**9)
        (finding,) = surroundings.time_of_day(around())
        assert finding.level is level
    assert finding.found == "2025-01-01 00:00:00 UTC"


@pytest.mark.req("UI-44")
def test_what_a_terminal_and_its_surroundings_can_do(around) -> None:
    def colours(**env: str) -> str:
        return surroundings.terminal(around(env=env))[1].found

    assert colours(TERM="xterm", COLORTERM="24bit") == "16 million"
    assert colours(TERM="xterm-direct").startswith("256")
    assert colours(TERM="vt100") == "few, as far as TERM=vt100 tells"
    assert surroundings.terminal(around(env={"TERM": "screen", "STY": "1"}))[0].found == "screen in screen"
    assert surroundings.terminal(around(env={"TERM": "xterm"}))[0].found == "xterm"
    tmux = answering(tmux=Answer(Outcome.ANSWERED, 0, "tmux 3.3a\n"))
    assert surroundings.tmux(around(probe=tmux))[0].found == "3.3a"
    assert surroundings.locale(around(env={}))[0].found == "no locale is not UTF-8"


@pytest.mark.req("UI-44")
def test_the_machine_is_shown_with_its_cards_and_their_driver(around, monkeypatch: pytest.MonkeyPatch) -> None:
    node = a_node(cpus=2, memory_mib=4096, cards=2, os="Debian", kernel="6.1")
    other = replace(node, cards=(*node.cards, a_card(2, "H100")), driver_version="550.1")
    for seen, cards in ((other, "2 × A100, 1 × H100, driver 550.1"), (node, "2 × A100, driver unknown")):
        monkeypatch.setattr(
            surroundings, "inspect_machine", lambda *_, seen=seen: SimpleNamespace(node=seen, findings=[])
        )
        machine, found = surroundings.machine(around())
        assert (machine.found, found.found) == ("2 CPUs, 4.0 GiB, Debian, Linux 6.1", cards)


FINE, FAILED = Answer(Outcome.ANSWERED, 0, "fine\n"), Answer(Outcome.ANSWERED, 7, "\n")


@pytest.mark.req("UI-44")
@pytest.mark.parametrize(
    ("version", "trial", "level", "found"),
    [
        (FINE, FINE, FindingLevel.OK, "fine, runs"),
        (Answer(Outcome.ANSWERED, 0, "bubblewrap 0.8.0\n"), FINE, FindingLevel.OK, "0.8.0, runs"),
        (Answer(Outcome.ABSENT), FINE, FindingLevel.NOTE, "not installed"),
        (FAILED, FINE, FindingLevel.MISSING, "does not run: exit code 7"),
        (FINE, FAILED, FindingLevel.MISSING, "does not run: exit code 7"),
        (FINE, Answer(Outcome.HUNG, text="words"), FindingLevel.MISSING, "does not run: it did not end in time"),
    ],
)
def test_bubblewrap_is_tried(around, version: Answer, trial: Answer, level: FindingLevel, found: str) -> None:
    (finding,) = containers.bubblewrap(around(probe=lambda words: version if "--version" in words else trial))
    assert (finding.level, finding.found) == (level, found)


@pytest.mark.req("UI-44")
@pytest.mark.parametrize(
    ("answer", "level", "found"),
    [
        (FINE, FindingLevel.OK, "can be made"),
        (Answer(Outcome.ABSENT), FindingLevel.OK, "no setting forbids them"),
        (FAILED, FindingLevel.MISSING, "refused: exit code 7"),
    ],
)
def test_namespaces_are_tried(around, machine_root, answer: Answer, level: FindingLevel, found: str) -> None:
    root = machine_root({"proc/sys/user/max_user_namespaces": "1000\n"})
    (finding,) = containers.namespaces(around(root=root, probe=lambda _words: answer))
    assert (finding.level, finding.found) == (level, found)


@pytest.mark.req("UI-44")
@pytest.mark.parametrize(("uid", "lower", "how"), [(0, "/", "as root"), (1000, "/usr", "as a user")])
def test_an_overlay_is_tried_as_containers_mount_it(
    around, tmp_path: Path, uid: int, lower: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []

    def probe(words: tuple[str, ...]) -> Answer:
        asked.append(tuple(words))
        return Answer(Outcome.ANSWERED, 1, "mount: permission denied\n")

    (finding,) = containers.overlay(around(uid=uid, probe=probe))
    assert finding.level is FindingLevel.MISSING
    assert finding.found == f"cannot be mounted {how} on the file system of {tmp_path}/state: mount: permission denied"
    ((*start, folder, under, options),) = asked
    assert ("--user" in start, under, options) == (uid != 0, lower, "" if uid == 0 else ",userxattr")
    assert Path(folder).parent == tmp_path
    assert not Path(folder).exists()
    monkeypatch.setattr(containers, "network_filesystem", lambda _folder: "nfs4")
    assert containers.overlay(around(probe=probe)) == []
    assert len(asked) == 1, "a network file system may hang"
