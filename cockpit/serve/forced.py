"""The one session of an sshd that has `cockpit serve --forced` as its ForceCommand."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NoReturn

from cockpit.errors import RequestRefused
from cockpit.model.access_level import AccessLevel
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.serve.accounts import PASSED, own_account, session_environment
from cockpit.serve.starting import command_line
from cockpit.serve.verbs import why_not_served, words_of


def run_forced(level: AccessLevel, env: Mapping[str, str]) -> NoReturn:
    """Become the program that the client asked for. Raises `RequestRefused` for what is not served."""
    words = words_of(env.get("SSH_ORIGINAL_COMMAND", ""))
    if reason := why_not_served(words, level):
        raise RequestRefused(Refusal(RefusalKind.DENIED, reason))
    asked = {name: env[name] for name in PASSED if name in env}
    program = command_line(words)
    os.execve(program[0], program, session_environment(own_account(), level, asked, env))  # noqa: S606 - of no shell
