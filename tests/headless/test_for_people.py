"""What a person reads is whole at eighty columns, led by where it is wrong, and not cluttered by what is empty."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from cockpit.formats.job.file import Defaults, read_jobs
from cockpit.headless.verbs.wait import timeout
from cockpit.model.ids import NodeName
from cockpit.model.node import Node
from cockpit.model.reasons import NeverFits, Resource
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.view import NodeRow
from tests.doubles.samples import five_jobs
from tests.headless.conftest import Desk


class Finding(NamedTuple):
    level: str
    subject: str
    found: str
    advice: str


ADVICE = "Install bubblewrap as root with apt-get, or ask whoever runs this machine to do so; jobs need it to run."
TOO_BIG = NeverFits(Resource.CARDS, 9, 8)


@pytest.mark.req("UI-44")
def test_the_advice_of_doctor_is_never_truncated(desk: Desk) -> None:
    desk.findings = [Finding("missing", "bubblewrap", "not installed", ADVICE), Finding("ok", "disk", "8 GiB free", "")]
    shown = desk("doctor", terminal=True, columns=60)
    assert shown.lines[0] == "✗ bubblewrap  not installed"
    assert shown.lines[-1] == "✓ disk        8 GiB free"
    assert max(map(len, shown.lines)) <= 60
    assert ADVICE in " ".join(" ".join(line.split()) for line in shown.lines)
    assert len(desk("doctor").lines) == 3
    assert desk("doctor", "--columns", "subject,advice", "--no-header").lines[1].split() == ["disk"]


@pytest.mark.req("UI-40")
def test_the_engines_status_is_a_page_to_read(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = desk("engine", "status", terminal=True, columns=20).lines
    assert lines[:2] == ["status        running", "pid           77"]
    assert "state folder  /var/s" in lines
    assert not any(line.startswith("trouble") for line in lines)
    ill = replace(desk.engine.status(), trouble=("The disk is full.", "No job can run here."))
    monkeypatch.setattr(desk.engine, "status", lambda: ill)
    assert "trouble       The disk is full. No job can run here." in desk("engine", "status").lines
    monkeypatch.undo()
    desk.engine.running = False
    stopped = desk("engine", "status", terminal=True)
    assert stopped.lines[0].split() == ["status", "stopped"]
    assert "cockpit jobs" in stopped.err


def test_a_filter_without_matches_prints_a_message_without_titles(desk: Desk) -> None:
    desk.backend.job_rows = five_jobs()
    nothing = desk("jobs", "--filter", "name:nobody", terminal=True)
    assert (nothing.out, nothing.err) == (b"", "The filter leaves none of 5.\n")
    part = str(desk.backend.job_rows[0].name)[1:]
    hint = desk("jobs", "--filter", f"name:{part}", terminal=True).err
    assert f"No name is {part}: name:{part} wants the whole of it; name~{part} finds it in " in hint
    desk.backend.job_rows = []
    assert desk("jobs", terminal=True).out == b""
    assert desk("jobs").lines[0].startswith("ID")


@pytest.mark.req("UI-41")
def test_a_refusal_begins_with_the_file_name(desk: Desk, tmp_path: Path) -> None:
    one, two = tmp_path / "one.yaml", tmp_path / "two.yaml"
    one.write_text("a")
    two.write_text("b c")
    message = "jobs[1].name: job 3 already has this name"
    desk.backend.refusal = Refusal(RefusalKind.INVALID, message, (("jobs[2].specs[0].cards", TOO_BIG),))
    assert desk("submit", str(one), str(two)).err.splitlines() == [
        f"{two}: job 1: name: job 3 already has this name",
        f"{two}: job 2: specs[0].cards: asks for 9 cards on one node; the largest has 8",
    ]
    desk.backend.refusal = Refusal(RefusalKind.INVALID, "", (("specs[0].cards", TOO_BIG),))
    assert desk("submit", str(one)).err.startswith(f"{one}: specs[0].cards: asks for 9")


@pytest.mark.req("LA-70")
@pytest.mark.parametrize(
    ("options", "nodes", "remedy"),
    [
        ("-n 16", 8, "add -N 8, or -N 8 --ntasks-per-node=2"),
        ("-n 5", 3, "add -N 3, or -N 3 --ntasks-per-node=2"),
        ("-n 4 -c 2", 9, "add -N 4, or -N 4 --ntasks-per-node=1"),
        ("-n 16", 7, None),
        ("-n 16", 1, None),
        ("-n 4 -c 3", 9, None),
        ("-n 16 -N 2", 9, None),
        ("-c 16", 9, None),
    ],
)
def test_a_script_whose_tasks_do_not_fit_on_one_node_names_a_remedy(
    desk: Desk, tmp_path: Path, options: str, nodes: int, remedy: str | None
) -> None:
    script = tmp_path / "x.sh"
    script.write_text(f"#!/bin/bash\n#SBATCH -J x {options}\nsrun ./a.out\n")
    desk.read_jobs = lambda _, text, folder: read_jobs("x.json", text, folder, defaults=Defaults())
    large, small = (Node(name=NodeName("n"), cpus=cpus, memory_mib=1024) for cpus in (2, 1))
    rows = [NodeRow(node, 0, 0, 0, 0, (), ()) for node in (*[large] * nodes, *[small] * 9)]
    desk.backend.node_rows = [*rows, *[NodeRow(large, 0, 0, 0, 0, (), (), login=True)] * 9]
    reason = NeverFits(Resource.CPUS, 16, 2, ())
    desk.backend.refusal = Refusal(RefusalKind.INVALID, "", (("specs[0].cpus", reason),))
    lines = desk("submit", str(script)).err.splitlines()
    assert lines[-1] == f"{script}: specs[0].cpus: asks for 16 CPUs on one node; the largest has 2"
    assert ("add -N" in "".join(lines)) == (remedy is not None)
    assert remedy is None or any(line.startswith(f"{script}: --ntasks=") and line.endswith(remedy) for line in lines)


@pytest.mark.parametrize(("text", "seconds"), [("0.5", 0.5), ("90", 90), ("90s", 90), ("10m", 600), ("1h30m", 5400)])
@pytest.mark.req("UI-41")
def test_a_time_out_is_seconds_or_a_duration(text: str, seconds: float) -> None:
    assert timeout(text) == seconds


def test_nodes_are_not_checked_against_an_empty_spec(desk: Desk) -> None:
    assert desk("nodes", "--cpus", "0", "--cards", "0").out == desk("nodes").out
