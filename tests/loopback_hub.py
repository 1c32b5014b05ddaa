"""A hub on the loopback address, with what the Hugging Face hub's client asks for."""

import hashlib
import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"

Repositories = Mapping[str, Mapping[str, bytes]]


def _handler(repositories: Repositories, asked: list[str]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path).strip("/")
            asked.append(f"{self.command} {path}")
            if path.startswith("api/models/"):
                self._list(path.removeprefix("api/models/"))
            else:
                repository, _, rest = path.partition("/resolve/")
                revision, _, name = rest.partition("/")
                content = repositories.get(repository, {}).get(name)
                commit = COMMIT if revision == "main" else revision
                self._send(content, commit)

        do_HEAD = do_GET

        def _list(self, rest: str) -> None:
            for repository, files in repositories.items():
                if rest == repository or rest.startswith(f"{repository}/"):
                    names = [{"rfilename": name} for name in files]
                    content: object = {"id": repository, "sha": COMMIT, "siblings": names}
                    if "/tree/" in rest:
                        content = [
                            {"type": "file", "path": name, "size": len(held), "oid": "0" * 40}
                            for name, held in files.items()
                        ]
                    self._send(json.dumps(content).encode(), COMMIT, "application/json")
                    return
            self._send(None, COMMIT)

        def _send(self, content: bytes | None, commit: str, kind: str = "text/plain") -> None:
            self.send_response(404 if content is None else 200)
            if content is None:
                self.send_header("X-Error-Code", "EntryNotFound")
            body = content or b""
            self.send_header("X-Repo-Commit", commit)
            self.send_header("ETag", f'"{hashlib.sha256(body).hexdigest()}"')
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Write nothing."""

    return Handler


@contextmanager
def loopback_hub(repositories: Repositories) -> Iterator[tuple[str, list[str]]]:
    """Serve repositories: name -> file -> content. Yield the address, and what was asked."""
    asked: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(repositories, asked))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def hub_environment(address: str, folder: Path) -> dict[str, str]:
    """Return the environment of a process that knows no hub but this, and has no files yet."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("VLSCORE_", "HF_", "HUGGINGFACE_"))
        and not name.lower().endswith("_proxy")
    }
    return kept | {
        "HF_ENDPOINT": address,
        "HF_HOME": str(folder / "hub"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "HF_HUB_DISABLE_XET": "1",
    }
