"""A program that gives a kubeconfig's user a token, as those of cloud providers do."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

VERSION = "client.authentication.k8s.io/v1"


class CredentialPlugin:
    """`entry` is what the user's entry in a kubeconfig has to say; `answer` sets what the program says from now on."""

    def __init__(self, folder: Path) -> None:
        self._answer = folder / "answer.json"
        self._calls = folder / "calls"
        self._calls.touch()

    @property
    def entry(self) -> dict[str, Any]:
        script = f"echo called >>'{self._calls}'; cat '{self._answer}'"
        return {"exec": {"apiVersion": VERSION, "command": "sh", "args": ["-c", script], "interactiveMode": "Never"}}

    def answer(self, token: str, seconds: float) -> None:
        """Give this token, and say that it is accepted for so long, whether or not that is true."""
        until = datetime.now(UTC) + timedelta(seconds=seconds)  # noqa: TID251 - clients compare it with their clock
        status = {"token": token, "expirationTimestamp": until.strftime("%Y-%m-%dT%H:%M:%SZ")}
        self._answer.write_text(json.dumps({"apiVersion": VERSION, "kind": "ExecCredential", "status": status}))

    def calls(self) -> int:
        """How often the program was called."""
        return len(self._calls.read_text().splitlines())
