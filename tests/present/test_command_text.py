"""Commands as they are shown: harmless to look at, and exactly the same once they are copied and run."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.present.command_text import command_lines, shell_text
from tests.hostile import HOSTILE
from tests.present.corpus import is_harmless

WORDS = {what: text for what, text in HOSTILE.items() if what != "nul" and "surrogate" not in what}
ATTACK = "x'; touch INJECTED; $(touch INJECTED)\nEND_OF_SCRIPT\ntouch INJECTED\n"


def run(text: str, folder: Path) -> bytes:
    done = subprocess.run(["bash", "-c", text], cwd=folder, capture_output=True, check=True)
    assert not (folder / "INJECTED").exists()
    return done.stdout


@pytest.mark.req("TR-05", "TR-06")
@pytest.mark.parametrize("text", [*WORDS.values(), ATTACK, "", "\udcff"], ids=ascii)
def test_a_shown_command_is_escaped_and_runs_unchanged(text: str, tmp_path: Path) -> None:
    shown = shell_text(["printf", "%s\\0", text, "-n", "plain"])
    assert is_harmless(shown)
    assert run(shown, tmp_path).split(b"\0")[:-1] == [text.encode("utf-8", "surrogateescape"), b"-n", b"plain"]


@pytest.mark.req("TR-05", "TR-06")
@pytest.mark.parametrize("text", [*WORDS.values(), ATTACK, "#!/bin/sh\n\tindented\n", "\n\n"], ids=ascii)
@pytest.mark.parametrize("end", ["", "\n"])
def test_the_input_of_a_command_arrives_unchanged(text: str, end: str, tmp_path: Path) -> None:
    lines = list(command_lines(["cat"], text + end))
    assert all(is_harmless(line.replace("\t", "")) for line in lines)
    assert run("\n".join(lines), tmp_path) == (text + end).encode()


@pytest.mark.req("TR-06")
@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20), max_size=4))
def test_any_arguments_are_split_again(words: list[str]) -> None:
    told = subprocess.run(["bash", "-c", shell_text(["printf", "%s\\0", "", *words])], capture_output=True, check=True)
    assert told.stdout.decode().split("\0")[1:-1] == words
