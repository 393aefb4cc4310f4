from __future__ import annotations

from pathlib import Path

import pytest

from cockpit.errors import SpecErrors
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.play_script import (
    PATIENCE_SECONDS,
    Cluster,
    Expect,
    Pause,
    Press,
    Screenshot,
    Size,
    Speed,
    Theme,
    Type,
    Wait,
    read_script,
)
from tests.headless.conftest import Desk

DOCUMENT = (Path(__file__).parents[2] / "docs" / "headless.md").read_text()


@pytest.mark.req("UI-42")
@pytest.mark.parametrize(
    ("line", "act"),
    [
        ("size 80x24", Size(80, 24)),
        ("theme light", Theme("light")),
        ("press j j Enter ? /", Press(("j", "j", "Enter", "?", "/"))),
        ('type "state:queued user:me"', Type("state:queued user:me")),
        ('wait "3 running" within 10s', Wait("3 running", 10)),
        ('wait "#1"  # a comment', Wait("#1", PATIENCE_SECONDS)),
        ("wait 2m", Wait("", 120)),
        ('expect "a text"', Expect("a text")),
        ('expect not "a text"', Expect("a text", absent=True)),
        ("expect not", Expect("not")),
        ("pause demo", Pause()),
        ("speed 600", Speed(600)),
        ("screenshot jobs-80x24", Screenshot("jobs-80x24")),
    ],
)
def test_a_line_is_a_step(line: str, act: object) -> None:
    (step,) = read_script("x.play", f"# a tour\n\n{line}\n").steps
    assert step.act == act
    assert step.origin == f"x.play:3: {line}"


@pytest.mark.parametrize(
    ("line", "cluster"),
    [
        ("cluster local", Cluster("local")),
        ("cluster demo", Cluster("demo")),
        ("cluster demo campus --seed 3", Cluster("demo", "campus", 3)),
        ("cluster demo --seed 7", Cluster("demo", seed=7)),
    ],
)
def test_the_cluster_is_named_in_the_first_line(line: str, cluster: Cluster) -> None:
    assert read_script("x", f"{line}\npress j").cluster == cluster
    with pytest.raises(SpecErrors, match="once, before everything"):
        read_script("x", f"press j\n{line}")


@pytest.mark.req("UI-42")
@pytest.mark.parametrize(
    "line",
    [
        "pres j",
        "press",
        "size 80",
        "size 8x2",
        "size 9000x40",
        "wait",
        "wait a with 5s",
        "wait a within soon",
        "expect",
        "expect a b",
        "pause",
        "speed fast",
        "speed 0",
        "screenshot ../x",
        'type "open',
        "cluster local campus",
        "size 120x",
        "size x40",
        "speed 1.2.3",
        "speed 100001",
    ],
)
def test_every_invalid_line_is_reported_with_its_number(line: str) -> None:
    with pytest.raises(SpecErrors) as wrong:
        read_script("x.play", f"press j\n{line}\n\nfoo")
    assert [error.split(": ")[0] for error in wrong.value.errors] == ["x.play:2", "x.play:4"]


@pytest.mark.parametrize(
    "line", ["cluster", "cluster demo campus elastic", "cluster demo campus --seed many", "cluster lab campus"]
)
def test_an_impossible_cluster_is_reported(line: str) -> None:
    with pytest.raises(SpecErrors, match=r"x\.play:1: cluster wants a name, as in: cluster demo campus --seed 3"):
        read_script("x.play", f"{line}\npress j")


@pytest.mark.parametrize(("line", "times"), [("speed 600", 600.0), ("speed 0.5", 0.5), ("speed 100000", 100_000.0)])
def test_a_demo_is_played_at_a_whole_or_broken_speed(line: str, times: float) -> None:
    assert read_script("x.play", line).steps[0].act == Speed(times)


def test_the_script_in_the_documentation_is_valid() -> None:
    example = DOCUMENT.split("## Playing the cockpit")[1].split("```")[1]
    assert len(read_script("docs", example).steps) == 6


@pytest.mark.req("UI-42")
def test_the_exit_code_tells_whether_the_script_passed(desk: Desk, tmp_path: Path) -> None:
    script = tmp_path / "tour.play"
    script.write_text("cluster demo\npress j\n")
    assert desk("play", str(script), "--out", str(tmp_path)).code == ExitCode.OK
    ((played, folder),) = desk.played
    assert (played.cluster, folder) == (Cluster("demo"), tmp_path)
    desk.unmet = "tour.play:2: the screen is\n…"
    done = desk("play", str(script))
    assert (done.code, done.out) == (ExitCode.UNMET, b"")
    assert desk.unmet in done.err


def test_a_script_from_standard_input_on_another_cluster(desk: Desk) -> None:
    assert desk("play", "-", "-c", "lab", stdin=b"cluster demo\npress j").code == ExitCode.OK
    assert desk.played[0][0].cluster == Cluster("lab")


def test_a_missing_or_invalid_script_is_an_invalid_request(desk: Desk, tmp_path: Path) -> None:
    assert desk("play", str(tmp_path / "none.play")).code == ExitCode.INVALID
    done = desk("play", "-", stdin=b"jump")
    assert done.code == ExitCode.INVALID
    assert "-:1: 'jump' is no step" in done.err
    assert desk("play", "-", stdin=b"\xff").code == ExitCode.INVALID
