"""A real HTTP server on this machine with the interface of a language model, that can misbehave."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

EMPTY = '{"errors": [], "correct": []}'


@dataclass
class Answer:
    """What the server does with one request.

    Attributes:
        text: answer of the model.
        status: of HTTP; another than 200 has a body with an error.
        headers: further headers.
        body: whole body, in place of a chat completion.
        seconds: waits before the answer.
        is_cut: closes the connection within the body.
        finish: why the model stopped.
        usage: counts of tokens.
    """

    text: str = EMPTY
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    seconds: float = 0.0
    is_cut: bool = False
    finish: str = "stop"
    usage: Any = field(default_factory=lambda: {"prompt_tokens": 100, "completion_tokens": 10})


class Endpoint:
    """The running server.

    Attributes:
        url: base address.
        requests: (headers, body) of each request, in order of arrival.
        answered: bodies of the requests whose answer was sent whole.
        most: most requests that were open at once.
    """

    def __init__(self, behave: Callable[[int, dict[str, Any]], Answer]) -> None:
        self.behave = behave
        self.requests: list[tuple[dict[str, str], dict[str, Any]]] = []
        self.answered: list[dict[str, Any]] = []
        self.most = self._open = 0
        self._lock = threading.Lock()
        self.url = ""

    def questions(self) -> list[str]:
        """Return the last message of each request."""
        return [body["messages"][-1]["content"] for _, body in self.requests]

    def take(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer one request."""
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        with self._lock:
            number = len(self.requests)
            self.requests.append((dict(handler.headers), body))
            self._open += 1
            self.most = max(self.most, self._open)
        try:
            answer = self.behave(number, body)
            time.sleep(answer.seconds)
        finally:
            # Before the answer is sent: its client may ask again at once.
            with self._lock:
                self._open -= 1
        try:
            self._send(handler, answer)
        finally:
            with self._lock:
                self.answered.append(body)

    def _send(self, handler: BaseHTTPRequestHandler, answer: Answer) -> None:
        content = answer.body
        if content is None and answer.status == 200:
            message = {"role": "assistant", "content": answer.text}
            choice = {"index": 0, "message": message, "finish_reason": answer.finish}
            content = json.dumps(
                {"id": "x", "object": "chat.completion", "created": 0, "model": "fake",
                 "choices": [choice], "usage": answer.usage}
            ).encode()  # fmt: skip
        elif content is None:
            error = {"message": answer.text, "type": "fake_error", "code": "fake_code"}
            content = json.dumps({"error": error}).encode()
        handler.send_response(answer.status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(content)))
        for name, value in answer.headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        if answer.is_cut:
            handler.wfile.write(content[: len(content) // 2])
            handler.wfile.flush()
            handler.connection.shutdown(socket.SHUT_RDWR)
            return
        handler.wfile.write(content)


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client may close the connection before its answer."""


@contextmanager
def running(behave: Callable[[int, dict[str, Any]], Answer]) -> Iterator[Endpoint]:
    """Run a server on a free port of this machine.

    Args: behave: function of the request's number and body; returns what to do.
    """
    endpoint = Endpoint(behave)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            endpoint.take(self)

        def log_message(self, *args: Any) -> None:
            """Nothing is logged."""

    server = _Quiet(("127.0.0.1", 0), Handler)
    endpoint.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
