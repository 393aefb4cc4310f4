"""`cockpit play`, through the command: scripts hold or do not, and pictures are the same every time."""

from __future__ import annotations

import asyncio
import itertools
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from cockpit.backends.demo.backend import DemoBackend
from cockpit.cli import main
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.play_script import Screenshot, read_script
from cockpit.tui import forecasts
from cockpit.tui.play import _rest
from tests.tui.lab import FIXTURE, the_lab

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cockpit.model.forecast import ExpectedStart
    from cockpit.model.ids import JobId

ROOT = Path(__file__).parents[2]
SHIPPED = sorted((ROOT / "fixtures/plays").glob("*.play"))
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def play(tmp_path: Path) -> Callable[..., int]:
    def run(*lines: str, out: str = "out") -> int:
        script = tmp_path / "story.play"
        script.write_text("\n".join((f"cluster demo {shlex.quote(FIXTURE)}", *lines)))
        return main(["play", str(script), "--out", str(tmp_path / out)])

    return run


@pytest.mark.req("UI-42")
def test_a_play_script_with_true_expectations_passes(play: Callable[..., int], tmp_path: Path) -> None:
    code = play("size 100x30", "wait 'No jobs yet'", "expect not bert", "press 2", "wait n01", "screenshot nodes")
    assert code == ExitCode.OK
    text = (tmp_path / "out/nodes.txt").read_text()
    assert "n01" in text
    assert len(text.splitlines()) == 30
    picture = ET.fromstring((tmp_path / "out/nodes.svg").read_text())
    assert "n01" in "".join(picture.itertext())
    assert {element.tag for element in picture.iter()} <= {
        SVG + tag for tag in ("svg", "style", "rect", "text", "tspan")
    }


@pytest.mark.req("UI-42")
@pytest.mark.parametrize("line", ["expect bert", "expect not 'No jobs yet'", "wait bert within 1s"])
def test_a_failed_play_script_names_the_line_and_shows_the_screen(
    line: str, play: Callable[..., int], capfd: pytest.CaptureFixture[str]
) -> None:
    assert play("wait 'No jobs yet'", line) == ExitCode.UNMET
    said = capfd.readouterr().err
    assert f"story.play:3: {line}" in said
    assert "No jobs yet" in said


@pytest.mark.parametrize(
    ("lines", "code", "words"),
    [
        (["theme beige"], ExitCode.INVALID, "no theme 'beige'"),
        (["press Entre"], ExitCode.INVALID, "no key 'Entre'"),
        (["press q", "expect jobs"], ExitCode.UNMET, "was left before"),
    ],
)
def test_an_invalid_play_script_is_reported(
    lines: list[str], code: int, words: str, play: Callable[..., int], capfd: pytest.CaptureFixture[str]
) -> None:
    assert play(*lines) == code
    assert words in capfd.readouterr().err


@pytest.mark.req("UI-42")
def test_a_demos_time_passes_only_while_the_script_waits(play: Callable[..., int]) -> None:
    assert (
        play("wait 'No jobs yet'", "speed 600", "wait 2s", "expect 600×", "pause demo", "wait 1s", "expect paused") == 0
    )


@pytest.mark.req("UI-42")
@pytest.mark.parametrize("script", SHIPPED, ids=lambda path: path.stem)
def test_the_shipped_scripts_pass_and_their_pictures_are_small(script: Path, tmp_path: Path) -> None:
    assert main(["play", str(script), "--out", str(tmp_path)]) == ExitCode.OK
    wanted = {step.act.name for step in read_script("", script.read_text()).steps if isinstance(step.act, Screenshot)}
    pictures = {path.stem: path.stat().st_size for path in tmp_path.glob("*.svg")}
    assert pictures.keys() == wanted
    assert max(pictures.values()) < 40_000


@pytest.mark.req("UI-42")
def test_the_same_script_takes_the_same_picture_on_a_slow_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "twice.play"
    script.write_text("cluster demo campus --seed 5\nwait running\nspeed 600\nwait 3s\nscreenshot it\n")
    moments = itertools.count()
    for out in ("first", "second"):
        assert main(["play", str(script), "--out", str(tmp_path / out)]) == ExitCode.OK
        # Between any two looks of the second script an hour of real time passes.
        monkeypatch.setattr(forecasts, "time", SimpleNamespace(monotonic=lambda: 3600.0 * next(moments)))
    first, second = ((tmp_path / out / "it.svg").read_text() for out in ("first", "second"))
    assert first == second


@pytest.mark.req("UI-42")
async def test_a_wait_lasts_until_the_answer_to_what_was_asked_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """A prediction takes longer than a script waits where the machine is busy."""
    answered, looks = asyncio.Event(), 0
    starts = DemoBackend.starts

    async def slow(backend: DemoBackend, jobs: Sequence[JobId]) -> list[ExpectedStart]:
        await answered.wait()
        return await starts(backend, jobs)

    def shows_a_start(screen: str) -> bool:
        nonlocal looks
        looks += 1
        if looks == 60:
            answered.set()
        return "~" in screen

    monkeypatch.setattr(DemoBackend, "starts", slow)
    async with the_lab() as lab:
        assert await lab.cockpit.player.until(shows_a_start, 0.1)


async def test_a_step_is_over_only_when_nothing_is_due_any_more() -> None:
    loop, turns = asyncio.get_running_loop(), 0

    def again() -> None:
        nonlocal turns
        turns += 1
        if turns < 50:
            loop.call_soon(again)

    loop.call_soon(again)
    await _rest()
    assert turns == 50
