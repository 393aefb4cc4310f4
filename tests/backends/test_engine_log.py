"""The log of the engine's process."""

from __future__ import annotations

import asyncio
import sys
from io import StringIO

import pytest

from cockpit.backends.local.daemon import _MaskedLog
from cockpit.runtime.tasks import report_defect

pytestmark = pytest.mark.req("TR-10")


def test_the_engines_log_has_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    written = StringIO()
    monkeypatch.setattr(sys, "stderr", _MaskedLog(written))
    report_defect("the operation submit", ValueError("bad HF_TOKEN=planted-1 of https://me:planted-2@host/"))
    sys.stderr.write("password: planted-3\n")
    loop = asyncio.new_event_loop()
    loop.call_exception_handler(
        {"message": "failed with Bearer planted-45678", "exception": KeyError("PGPASSWORD=planted")}
    )
    loop.close()
    assert "planted" not in written.getvalue()
    assert "ValueError: bad HF_TOKEN=*** of https://me:***@host/" in written.getvalue()
