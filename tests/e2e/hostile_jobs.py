"""A cluster full of text that attacks, for every suite that shows one."""

from __future__ import annotations

import json
import shlex
import unicodedata
from typing import TYPE_CHECKING

from tests.hostile import HOSTILE, LONG, UNSEEN

if TYPE_CHECKING:
    from tests.e2e.cockpit_user import CockpitUser

SAYABLE = {what: text for what, text in HOSTILE.items() if "surrogate" not in what and what != "nul"}
"""What a path, an argument or a variable can hold."""
SHORT = {what: text for what, text in SAYABLE.items() if what not in LONG}
OBEYED = {"Cc", "Cf", "Cs", "Zl", "Zp"}
UNDRAWN = set("\u115f\u1160\u3164\uffa0\u034f\U000e0100")
EVIL = "".join(text for what, text in UNSEEN.items() if what in SHORT)
"""All that draws nothing or moves something, in one word."""
EVIL_NAME = EVIL.replace("/", "")
"""The same as the name of a file or folder."""


def obeyed(text: str, spared: str = "") -> set[str]:
    """Characters that a terminal would obey or not draw."""
    return {char for char in set(text) - set(spared) if unicodedata.category(char) in OBEYED or char in UNDRAWN}


def a_hostile_job(user: CockpitUser) -> str:
    """Its id: it has failed, is kept, and is full of text that attacks, in its command, paths, environment and output.
    Others like it wait beside it."""
    lines = [
        {
            "name": f"hostile-{number}",
            "command": f"true {shlex.quote(text)}",
            "output": str(user.work / f"out-{text[:60]}".replace("/", "-")),
            "env": {"TEXT": text},
            "hold": True,
        }
        for number, text in enumerate(SHORT.values())
    ]
    user.ok("submit", str(user.write("hostile.json", json.dumps(lines))))
    (user.work / f"data-{EVIL_NAME}").mkdir()
    script = "cat /workspace/volume/d/printed; cat /workspace/volume/d/printed >&2; exit 3"
    (user.work / f"data-{EVIL_NAME}" / "printed").write_text("\n".join(SAYABLE.values()))
    failed = user.submit(
        script,
        name="failed",
        terminal=True,
        volumes=[{"name": "d", "path": str(user.work / f"data-{EVIL_NAME}")}],
        env={"EVIL": EVIL},
    )
    assert user.wait(failed) == 3
    user.run("shell", failed, "--", "true", EVIL)
    return failed
