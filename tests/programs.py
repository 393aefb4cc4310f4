"""Marks of tests that need a program which an ordinary user cannot install. Where CI=true such a skip fails the run."""

from __future__ import annotations

import shutil

import pytest


def _needs(program: str, package: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{package} is not installed")


needs_bubblewrap = _needs("bwrap", "bubblewrap")
needs_pgrep = _needs("pgrep", "procps")
needs_tmux = _needs("tmux", "tmux")
