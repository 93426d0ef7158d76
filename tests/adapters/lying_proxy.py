"""A reverse proxy for one S3 server that lies as asked: drops conditions, flips or cuts bytes, loses answers, fails.

The server behind it must not check signatures (moto does not).
"""

import http.client
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import urlsplit

CONFLICT = b"<Error><Code>ConditionalRequestConflict</Code><Message>try again</Message></Error>"
UNWELL = b"<Error><Code>InternalError</Code><Message>we are unwell</Message></Error>"


class LyingProxy:
    """Set the fields to choose the lies; ``seen`` lists every (method, path) that came in.

    ``failures`` requests (``write_failures``: writes) are answered ``failure_status`` instead of being served,
    ``late_failures`` writes after they happened. ``honest_writes`` go by before the next lie about a write.
    ``delay_s`` slows every answer down.
    """

    def __init__(self, target: str) -> None:
        self.drop: frozenset[str] = frozenset()
        self.flip_bodies = False
        self.lose_answers = 0
        self.conflicts = 0
        self.cut_bodies = 0
        self.failures = 0
        self.write_failures = 0
        self.failure_status = 503
        self.late_failures = 0
        self.honest_writes = 0
        self.delay_s = 0.0
        self.meanwhile: Callable[[], object] | None = None
        self.seen: list[tuple[str, str]] = []
        proxy, address = self, urlsplit(target)
        self._lock = threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                proxy.handle(self, http.client.HTTPConnection(str(address.hostname), address.port, timeout=20))

            do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = handle_any  # noqa: N815

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def handle(self, request: BaseHTTPRequestHandler, upstream: http.client.HTTPConnection) -> None:
        self.seen.append((request.command, request.path))
        body = request.rfile.read(int(request.headers.get("Content-Length", 0)))
        time.sleep(self.delay_s)
        writes = request.command == "PUT" and ".probe" not in request.path
        real = writes and not self._take("honest_writes")
        refused = real and self._take("write_failures")
        if refused or (".probe" not in request.path and self._take("failures")):
            self._answer(request, self.failure_status, {"Content-Type": "application/xml"}, UNWELL)
            return
        if real and self._take("conflicts"):
            self._answer(request, 409, {"Content-Type": "application/xml"}, CONFLICT)
            return
        headers = {name: value for name, value in request.headers.items() if name.lower() not in self.drop}
        upstream.request(request.command, request.path, body, headers)
        response = upstream.getresponse()
        content = response.read()
        if real and self._take("late_failures"):
            self._answer(request, self.failure_status, {"Content-Type": "application/xml"}, UNWELL)
            return
        if real and self._take("lose_answers"):
            if self.meanwhile:
                self.meanwhile()
            request.close_connection = True
            return
        whole = request.command == "GET" and "list-type" not in request.path and response.status == 200
        if whole and self.flip_bodies:
            content = bytes([content[0] ^ 1]) + content[1:]
        cut = len(content) // 2 if whole and self._take("cut_bodies") else None
        self._answer(request, response.status, dict(response.getheaders()), content, cut)

    def _take(self, name: str) -> bool:
        """Use up one of a counted lie."""
        with self._lock:
            left = int(getattr(self, name))
            setattr(self, name, max(0, left - 1))
            return left > 0

    def _answer(
        self, request: BaseHTTPRequestHandler, status: int, headers: dict[str, str], body: bytes, cut: int | None = None
    ) -> None:
        request.send_response_only(status)
        for name, value in headers.items():
            if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                request.send_header(name, value)
        length = headers.get("Content-Length", "0") if request.command == "HEAD" else str(len(body))
        request.send_header("Content-Length", length)
        request.end_headers()
        request.wfile.write(body[:cut])
        request.close_connection = request.close_connection or cut is not None
