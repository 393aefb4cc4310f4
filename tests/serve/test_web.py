"""The cockpit in a real browser, and what the web server refuses."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import aiohttp
import pytest

from tests.e2e.cockpit_user import eventually
from tests.serve.served import ME, SECONDS, ServedCockpit, served_cockpit
from tests.serve.test_ssh import environment_of, programs_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Page

pytestmark = [pytest.mark.real, pytest.mark.req("TR-08", "TR-10")]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
LEVELS = ("read", "own", "admin")
ROWS = "(document.querySelector('.xterm-rows')?.innerText ?? '')"


@pytest.fixture(scope="module")
def web() -> Iterator[ServedCockpit]:
    with served_cockpit() as server:
        for level in LEVELS:
            server.key(level, f'user="{ME}",access="{level}"')
        server.start("--web", "127.0.0.1:0")
        server.user.ok("submit", str(server.user.job("true", hold=True, name="waiting")))
        yield server


def address(server: ServedCockpit, level: str = "own") -> str:
    done = server.ssh(server.folder / level, "web")
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().strip()


@pytest.fixture
def page(request: pytest.FixtureRequest) -> Iterator[Page]:
    """A page of a headless Chromium, which fails the test where a script of it does."""
    if CHROMIUM is None:
        pytest.skip("needs chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1000, "height": 600})
        page.set_default_timeout(SECONDS * 1000)
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        yield page
        browser.close()
    assert errors == []


def until(page: Page, holds: str) -> None:
    """Wait until an expression is true; the page's own policy forbids what `wait_for_function` does."""
    eventually(lambda: page.evaluate(holds))


def shows(page: Page, text: str) -> None:
    until(page, f"{ROWS}.replaceAll('\\u00a0', ' ').includes({text!r})")


def test_the_page_shows_the_cockpit_takes_keys_and_clicks_and_connects_again(
    web: ServedCockpit, page: Page, tmp_path: Path
) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    at = address(web)
    page.goto(at)
    shows(page, "waiting")
    page.keyboard.type("?")
    shows(page, "Show what every key does")
    page.keyboard.press("Escape")
    shows(page, "2 Nodes")
    # The second view's tab is in the second row.
    box = page.locator(".xterm-rows").bounding_box()
    assert box is not None
    cell = box["width"] / page.evaluate("terminal.cols"), box["height"] / page.evaluate("terminal.rows")
    lines = page.evaluate("[...document.querySelector('.xterm-rows').children].map(each => each.textContent)")
    row = next(number for number, line in enumerate(lines) if "Nodes" in line)
    column = lines[row].index("Nodes")
    page.mouse.click(box["x"] + (column + 2) * cell[0], box["y"] + (row + 0.5) * cell[1])
    until(page, f"!{ROWS}.includes('waiting')")
    page.keyboard.type("1")
    shows(page, "waiting")
    columns = page.evaluate("terminal.cols")
    page.set_viewport_size({"width": 700, "height": 500})
    until(page, f"terminal.cols < {columns}")
    shows(page, "waiting")
    assert len(page.screenshot(path=tmp_path / "page.png")) > 5000
    (pid,) = programs_of(web)
    page.evaluate("socket.close()")
    page.wait_for_selector("#notice:not(:empty)")
    page.wait_for_selector("#notice:empty", state="attached")
    shows(page, "waiting")
    eventually(lambda: pid not in programs_of(web))
    page.keyboard.type("q")
    until(page, "document.getElementById('notice').textContent.includes('Enter')")
    eventually(lambda: not programs_of(web))
    assert {url.partition("://")[2].partition("/")[0] for url in asked} == {at.partition("://")[2].partition("/")[0]}


async def open_session(at: str, **headers: str) -> aiohttp.ClientWebSocketResponse:
    host = at.partition("://")[2].partition("/")[0]
    client = aiohttp.ClientSession()
    try:
        return await client.ws_connect(f"{at}session", headers={"Origin": f"http://{host}", **headers})
    except aiohttp.ClientError:
        await client.close()
        raise


@pytest.mark.parametrize("level", LEVELS)
async def test_a_session_has_the_level_of_the_key_that_asked(web: ServedCockpit, level: str) -> None:
    socket = await open_session(await asyncio.to_thread(address, web, level))
    await socket.send_str('{"columns": 90, "rows": 25}')
    assert (await asyncio.wait_for(socket.receive(), SECONDS)).type is aiohttp.WSMsgType.BINARY
    (pid,) = await asyncio.to_thread(programs_of, web)
    env = await asyncio.to_thread(environment_of, pid)
    assert (env["COCKPIT_ACCESS"], env.get("COCKPIT_READ_ONLY", "")) == (level, "true" if level == "read" else "")
    await socket.close()
    await asyncio.to_thread(eventually, lambda: not programs_of(web))


async def test_an_address_without_its_token_or_from_another_page_opens_nothing(web: ServedCockpit) -> None:
    at = await asyncio.to_thread(address, web)
    base, token = at.rstrip("/").rsplit("/", 1)
    async with aiohttp.ClientSession() as client:
        for path in (
            "/",
            "/x/",
            f"/{token[:-1]}/",
            f"/{token}x/",
            f"/{token}/../x",
            f"/{token}/index.html",
            "/x/session",
        ):
            async with client.get(base + path) as answer:
                assert answer.status in {403, 404}, path
        async with client.get(at) as answer:
            assert answer.headers["Referrer-Policy"] == "no-referrer"
    for origin in ("http://evil.example", "null", ""):
        with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
            await open_session(at, Origin=origin)
    assert token not in web.log


@pytest.mark.parametrize(
    "message", ["{", "[]", '{"columns": -5, "rows": 99999999}', '{"columns": "x"}', "\x00", "9" * 5000]
)
async def test_a_wrong_message_harms_nobody(web: ServedCockpit, message: str) -> None:
    at = await asyncio.to_thread(address, web)
    socket = await open_session(at)
    for text in (message, message, '{"columns": 80, "rows": 24}', "{}"):
        await socket.send_str(text)
    assert (await asyncio.wait_for(socket.receive(), SECONDS)).type is aiohttp.WSMsgType.BINARY
    await socket.close()
    await asyncio.to_thread(eventually, lambda: not programs_of(web))


def test_other_machines_are_served_with_tls_alone(fresh: ServedCockpit) -> None:
    refused = fresh.user.run("serve", "--listen", "127.0.0.1:0", "--web", "0.0.0.0:0")
    assert refused.returncode != 0
    assert b"needs TLS" in refused.stderr
    key, certificate = fresh.folder / "tls.key", fresh.folder / "tls.pem"
    make = ["openssl", "req", "-x509", "-newkey", "ed25519", "-nodes", "-subj", "/CN=localhost", "-days", "2"]
    make += ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(make, check=True, capture_output=True, timeout=SECONDS, env={"PATH": os.environ["PATH"]})
    own = fresh.key("own", f'user="{ME}"')
    fresh.start("--web", "127.0.0.1:0", "--tls-certificate", str(certificate), "--tls-key", str(key))
    at = fresh.ssh(own, "web").stdout.decode().strip()
    assert at.startswith("https://127.0.0.1:")
    shown = subprocess.run(["curl", "-sk", at], capture_output=True, timeout=SECONDS, check=True).stdout
    assert b"xterm.js" in shown


async def test_a_stop_ends_a_session_also_of_a_page_that_reads_nothing(fresh: ServedCockpit) -> None:
    own = fresh.key("own", f'user="{ME}"')
    fresh.start("--web", "127.0.0.1:0")
    at = (await asyncio.to_thread(fresh.ssh, own, "web")).stdout.decode().strip()
    socket = await open_session(at)
    await socket.send_str('{"columns": 90, "rows": 25}')
    await asyncio.to_thread(fresh.logged, "in a browser")
    assert await asyncio.to_thread(fresh.stop) == 0
    while (message := await asyncio.wait_for(socket.receive(), SECONDS)).type is aiohttp.WSMsgType.BINARY:
        pass
    assert message.type in {aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED}
