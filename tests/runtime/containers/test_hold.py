"""How a shim learns what the machine refuses, and what it does with a refusal."""

from __future__ import annotations

import errno
import os

import pytest

from cockpit.runtime.containers.shim import hold

pytestmark = pytest.mark.req("TR-03")


@pytest.mark.parametrize("number", [errno.EPERM, errno.EACCES, errno.ENOSPC, errno.EUSERS, errno.EINVAL, errno.ENOSYS])
def test_a_machine_that_forbids_namespaces_refuses_containers(number: int) -> None:
    refused = hold.refusal_or_error(OSError(number, "unshare: no"))
    assert (type(refused), str(refused)) == (hold.Refused, "unshare: no")


def test_another_error_is_no_refusal() -> None:
    error = OSError(errno.EIO, "unshare: no")
    assert hold.refusal_or_error(error) is error


@pytest.mark.parametrize(
    ("raised", "plain", "byte"),
    [
        (None, True, 0),
        (None, False, 0),
        (OSError(errno.EPERM, "no"), True, errno.EPERM),
        (OSError(errno.EBUSY, "no"), False, errno.EBUSY),
        (OSError("without a number"), False, errno.EIO),
    ],
)
def test_the_holder_reports_its_first_system_call(
    raised: OSError | None, plain: bool, byte: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[str] = []

    def calls(name: str) -> None:
        called.append(name)
        if raised is not None:
            raise raised

    monkeypatch.setattr(hold.linux, "become_subreaper", lambda: calls("subreaper"))
    monkeypatch.setattr(hold, "mount_own_proc", lambda: calls("proc"))
    read, write = os.pipe()
    assert hold._prepare_child(write, plain=plain) is (raised is None)
    assert os.read(read, 2) == bytes([byte])
    assert os.read(read, 1) == b"", "it is closed"
    os.close(read)
    assert called == ["subreaper" if plain else "proc"]


@pytest.mark.parametrize(
    ("sent", "raised", "number", "words"),
    [
        (b"\0", None, 0, ""),
        (bytes([errno.EPERM]), hold.Refused, 0, "mount proc on /proc: Operation not permitted"),
        (bytes([errno.EBUSY]), OSError, errno.EBUSY, "mount proc on /proc: Device or resource busy"),
        (b"", OSError, errno.EIO, "mount proc on /proc: Input/output error"),
    ],
)
def test_the_shim_learns_what_the_holders_call_came_to(
    sent: bytes, raised: type[Exception] | None, number: int, words: str
) -> None:
    read, write = os.pipe()
    os.write(write, sent)
    os.close(write)
    if raised is None:
        hold._await_child(read)
    else:
        with pytest.raises(raised) as seen:
            hold._await_child(read)
        assert words in str(seen.value)
        assert (getattr(seen.value, "errno", None) or 0) == number
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(read)


@pytest.mark.parametrize(
    ("order", "done"),
    [
        ("", None),
        ("/state/containers/7.1.0", (False, False)),
        ("/state/containers/7.1.0\nagain", (True, False)),
        ("/state/containers/7.1.0\nplain", (False, True)),
        ("/state/containers/7.1.0\nagain\nplain", (True, True)),
    ],
)
def test_an_order_names_the_attempt_and_its_modes(
    order: str, done: tuple[bool, bool] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, bool, bool]] = []

    def shim(attempt: hold.Attempt, *, again: bool, plain: bool) -> int:
        seen.append((attempt.path, again, plain))
        return 42

    class Input:
        def read(self) -> str:
            return order

    monkeypatch.setattr(hold, "_shim", shim)
    monkeypatch.setattr(hold.sys, "stdin", Input())
    assert hold.main() == (hold.NOTHING_TO_DO if done is None else 42)
    assert seen == ([] if done is None else [("/state/containers/7.1.0", *done)])
