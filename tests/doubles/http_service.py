"""A real HTTP server on this machine, whose answers a test sets and whose requests it reads."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Request(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    """By name in lower case."""
    body: bytes


class Reply(NamedTuple):
    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


class HttpService:
    """`replies`: the answers by method and path, such as `GET /x`, or functions that make them; all others are 404."""

    def __init__(self) -> None:
        self.replies: dict[str, object] = {}
        self.requests: list[Request] = []
        self.silent = threading.Event()
        """While set, requests get no answer."""
        self.woken = threading.Event()
        service = self

        class Handler(BaseHTTPRequestHandler):
            def handle_any(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = Request(self.command, self.path, headers, self.rfile.read(length))
                service.requests.append(request)
                if service.silent.is_set():
                    service.woken.wait(30)
                    return
                found = service.replies.get(f"{self.command} {self.path}", Reply(404))
                reply = found(request) if callable(found) else found
                self.send_response(reply.status)
                for name, value in reply.headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(reply.body)))
                self.end_headers()
                self.wfile.write(reply.body)

            do_GET = do_PUT = do_POST = handle_any  # noqa: N815 - the names that http.server calls

            def log_message(self, *_: object) -> None:
                """Stay quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def answer(self, what: str, body: str | bytes = b"", status: int = 200) -> None:
        self.replies[what] = Reply(status, body if isinstance(body, bytes) else body.encode())

    def close(self) -> None:
        self.woken.set()
        self._server.shutdown()
        self._server.server_close()
