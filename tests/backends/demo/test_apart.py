"""What is made up can never be taken for what is real: engines and their clients do not even load it."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "cockpit"
FACES = ("cli.py", "clusters/opening.py", "headless/verbs/demo.py", "tui/")
"""Who may open a demo, because somebody asked for one."""


@pytest.mark.req("UI-50")
def test_a_real_engine_and_its_client_load_no_module_of_the_demo() -> None:
    code = (
        "import cockpit.backends.local.daemon, cockpit.backends.local.backend, cockpit.headless.main, sys;"
        "print([name for name in sys.modules if 'demo' in name and name.startswith('cockpit')])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.req("UI-50")
def test_only_the_user_interfaces_import_the_demo_backend() -> None:
    importing = {
        str(file.relative_to(PACKAGE))
        for file in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("cockpit.backends.demo")
    }
    others = {each for each in importing if not each.startswith(("backends/demo/", *FACES))}
    assert others == set()
    assert "cli.py" in importing
