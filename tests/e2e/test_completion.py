"""Tab in the three shells, with the real command behind it."""

from __future__ import annotations

import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.cockpit_user import ROOT, CockpitUser, a_new_user
from tests.programs import needs_tmux
from tests.tui.tmux import Tmux

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.real
READY = "ready>"


@pytest.fixture(scope="module")
def user() -> Iterator[CockpitUser]:
    """Has the command on the path, and a job that waits."""
    with a_new_user() as somebody:
        python = shlex.quote(sys.executable)
        command = somebody.write("bin/cockpit", f'#!/bin/sh\nexec {python} -P -m cockpit.cli "$@"\n', 0o755)
        somebody.env |= {"PATH": f"{command.parent}:{somebody.env['PATH']}", "PYTHONPATH": str(ROOT)}
        file = somebody.write("job.yaml", "{name: waits, command: 'true', output: ./out, hold: true}")
        somebody.ok("submit", str(file))
        for shell, name in (("bash", "bashrc"), ("zsh", ".zshrc")):
            begin = "autoload -U compinit && compinit -u -D\n" if shell == "zsh" else ""
            somebody.write(name, f"{begin}PS1='{READY} '\nsource <(cockpit completion {shell})\n")
        somebody.write("config.fish", f"function fish_prompt; echo '{READY} '; end; cockpit completion fish | source")
        yield somebody


STARTED = {
    "bash": "bash --rcfile bashrc -i",
    "zsh": "ZDOTDIR=$PWD zsh -i",
    "fish": "fish --no-config --init-command 'source config.fish'",
}


@pytest.mark.req("UI-43")
@pytest.mark.parametrize("shell", STARTED)
@needs_tmux
def test_tab_completes_verbs_options_jobs_and_files(user: CockpitUser, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    with tempfile.TemporaryDirectory(prefix="tmux-", dir="/var/tmp") as folder:
        terminal = Tmux(Path(folder), user.env)
        try:
            terminal.type(f"cd {shlex.quote(str(user.work))} && {STARTED[shell]}").press("Enter")
            terminal.until(lambda screen: screen.count(READY), "a prompt")
            for typed, completed in (
                ("explai", "cockpit explain "),
                ("jobs --output=cs", "cockpit jobs --output=csv "),
                ("jobs --no-h", "cockpit jobs --no-header "),
                ("release ", "cockpit release 1 "),
                ("predict jo", "cockpit predict job.yaml "),
                ("accounts remove-c", "cockpit accounts remove-coordinator "),
            ):
                terminal.press("C-u").type(f"cockpit {typed}").press("Tab").type("END").sees(f"{completed}END")
        finally:
            terminal.close()
