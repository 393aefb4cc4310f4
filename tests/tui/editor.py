"""A person's $EDITOR that follows a plan: what it saw each time it was opened, and what it made of that."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

SCRIPT = """\
#!/bin/sh
number=$(ls {folder}/seen | wc -l)
cp "$1" {folder}/seen/$number
sh {folder}/plan/$number "$1" 2>/dev/null
"""


class Editor:
    """`plan`: a line of shell for each opening, with the file as $1; without one, it is left as it is."""

    def __init__(self, folder: Path, plan: tuple[str, ...]) -> None:
        self._folder = folder
        for name in ("seen", "plan"):
            (folder / name).mkdir()
        for number, line in enumerate(plan):
            (folder / "plan" / str(number)).write_text(line)
        self.program = folder / "editor"
        self.program.write_text(SCRIPT.format(folder=folder))
        self.program.chmod(0o755)

    @property
    def seen(self) -> list[str]:
        files = sorted((self._folder / "seen").iterdir(), key=lambda file: int(file.name))
        return [file.read_text() for file in files]


def an_editor(monkeypatch: pytest.MonkeyPatch, folder: Path, *plan: str) -> Editor:
    """Set as $EDITOR."""
    editor = Editor(folder, plan)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", str(editor.program))
    return editor
