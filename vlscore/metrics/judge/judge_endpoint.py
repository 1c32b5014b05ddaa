"""Language models behind an OpenAI-compatible endpoint, on this machine or elsewhere.

Reports are patients' data. So an endpoint on another machine must be named a second time, by
`send_to`. Redirects are not followed, and no proxy is used on the way to this machine itself.
"""

import contextlib
import errno
import http.client
import ipaddress
import json
import os
import re
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from vlscore.errors import InvalidSetting, MissingDependency, VLScoreError
from vlscore.metrics.judge.judge_answers import answer_schema
from vlscore.metrics.judge.judge_questions import JudgePrompt, JudgeQuestion, OnReply, Reply

#: Environment variables: the key, the endpoint, hosts that may receive reports, requests at once.
KEY, ENDPOINT, SEND_TO, IN_FLIGHT = (
    "VLSCORE_JUDGE_KEY",
    "VLSCORE_JUDGE_ENDPOINT",
    "VLSCORE_JUDGE_SEND_TO",
    "VLSCORE_JUDGE_IN_FLIGHT",
)
DEFAULT_IN_FLIGHT = 8
# OpenAI's own key is sent to OpenAI alone.
_OPENAI_KEY, _OPENAI = "OPENAI_API_KEY", "api.openai.com"
# Retries wait 0.5, 1, 2, 4, 8, 8, ... seconds, or as long as the server's Retry-After asks.
RETRIES, TIMEOUT = 8, 120.0
# Bytes of one answer that are read: an answer of 4096 tokens has some ten thousand. The rest of a
# longer one is not read, so that it costs its own question and no memory.
_MOST_BYTES = 2 * 1024 * 1024
# Beyond this a count of tokens is no count.
_MOST_TOKENS = 2**53
# Questions in a row without any answer, after which the endpoint is taken for broken.
_FAILURES_IN_A_ROW = 10
# A code such as context_length_exceeded; it can hold no part of a key, nor a sentence of a report.
_CODE = re.compile(r"[a-z_]{1,60}")
_KEY_CHARACTERS = re.compile(r"[\x21-\x7e]+")
# Statuses that may pass: the request is sent again.
_PASSING = frozenset((408, 409, 429, *range(500, 600)))
_NO_CONNECTION = (ConnectionRefusedError, socket.gaierror, ssl.SSLError)


class EndpointFailed(VLScoreError):
    """An endpoint answers no question: it cannot be reached, or refuses all of them."""


class QuestionFailed(VLScoreError):
    """An endpoint did not answer one question, after all retries."""


class EndpointModel:
    """Language model behind an OpenAI-compatible endpoint.

    Args:
        model: name of the model, as the endpoint knows it.
        url: base address, such as "http://localhost:8000/v1".
        send_to: hosts on other machines that may receive reports.
        in_flight: most requests at once.
        timeout: seconds of one attempt without an answer.
        retries: further attempts after 408, 409, 429, 5xx, a timeout or a cut connection.

    Raises: MissingDependency without an address; InvalidSetting for a wrong one, or a host on
        another machine that `send_to` does not name.
    """

    def __init__(
        self,
        model: str,
        url: str | None,
        *,
        send_to: Iterable[str] = (),
        in_flight: int = DEFAULT_IN_FLIGHT,
        timeout: float = TIMEOUT,
        retries: int = RETRIES,
    ) -> None:
        if not url:
            raise MissingDependency(
                f"the model {model} needs the service that runs it: name its address, as in "
                "--endpoint http://localhost:11434/v1 (Ollama, llama.cpp or vLLM on this machine)"
            )
        self.model, self.url = model, url.rstrip("/")
        self.host, self.is_here = checked_host(self.url, send_to)
        if in_flight < 1:
            raise InvalidSetting(
                f"in_flight, the number of requests at once, must be 1 or more, not {in_flight}"
            )
        self._in_flight, self._timeout, self._retries = in_flight, timeout, retries
        # Names of the fields of a request, which a service may refuse.
        self._sent: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the address, and whether it is this machine."""
        where = "on this machine" if self.is_here else "another machine"
        plain = "" if self.is_here or self.url.startswith("https:") else ", not encrypted"
        return f"{self.url} ({where}{plain})"

    def facts(self, prompt: JudgePrompt) -> Mapping[str, str]:
        """Return model and endpoint."""
        return {"model": re.sub(r"[|\n\r]", "_", self.model), "endpoint": self.url}

    def ask(
        self, questions: Sequence[JudgeQuestion], prompt: JudgePrompt, on_reply: OnReply
    ) -> dict[int, VLScoreError]:
        """Ask all questions, several at once; return the errors of those without a reply.

        Raises: EndpointFailed if the endpoint cannot be reached, refuses the key, the model or
            further requests, or fails ten questions in a row.
        """
        fields = _fields(prompt)
        self._sent = tuple(fields)
        failures: dict[int, VLScoreError] = {}
        in_a_row: list[QuestionFailed] = []
        ended: list[BaseException] = []
        left, lock = iter(enumerate(questions)), threading.Lock()

        def drawn() -> tuple[int, JudgeQuestion] | None:
            with lock:
                return None if ended else next(left, None)

        def work(_: int) -> None:
            while (question := drawn()) is not None:
                try:
                    reply = self._reply(question[1], fields)
                    with lock:
                        on_reply(question[0], reply)
                        in_a_row.clear()
                except QuestionFailed as error:
                    failures[question[0]] = error
                    in_a_row.append(error)
                    if len(in_a_row) >= _FAILURES_IN_A_ROW:
                        many = f"{len(in_a_row)} questions in a row had no answer. The last error: "
                        ended.append(EndpointFailed(f"{many}{error}"))
                except BaseException as error:
                    ended.append(error)

        workers = max(1, min(self._in_flight, len(questions)))
        with ThreadPoolExecutor(workers) as pool:
            try:
                list(pool.map(work, range(workers)))
            except BaseException as error:
                # Requests under way end, and their answers are stored; no other one is sent.
                ended.append(error)
                raise
        if ended:
            raise ended[0]
        return failures

    def _reply(self, question: JudgeQuestion, fields: Mapping[str, Any]) -> Reply:
        """Return the reply to one question; raise QuestionFailed or EndpointFailed."""
        messages = [{"role": role, "content": text} for role, text in question.messages]
        body = json.dumps({"model": self.model, "messages": messages, **fields}).encode()
        # A packed answer is refused: a small one can unpack to gigabytes.
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if key := _key(self.host):
            headers["Authorization"] = f"Bearer {key}"
        request = urllib.request.Request(f"{self.url}/chat/completions", body, headers)
        handlers = [_NoRedirect(), *([urllib.request.ProxyHandler({})] if self.is_here else ())]
        opener = urllib.request.build_opener(*handlers)
        for attempt in range(self._retries + 1):
            last = attempt == self._retries
            try:
                with opener.open(request, timeout=self._timeout) as answer:
                    content = _read_within(answer, self._timeout)
                return self._read(json.loads(content))
            except urllib.error.HTTPError as error:
                with error:
                    if last or error.code not in _PASSING:
                        raise self._refusal(error.code, _content_of(error)) from None
                _wait(attempt, error.headers.get("Retry-After"))
            except (ValueError, RecursionError):
                raise QuestionFailed(
                    f"{self.url} returned an answer that is not json: it has another form, is "
                    f"packed, nested too deeply, or larger than {_MOST_BYTES >> 20} MiB"
                ) from None
            except (OSError, http.client.HTTPException) as error:
                if last:
                    raise self._unanswered(getattr(error, "reason", error)) from None
                _wait(attempt, None)
        raise AssertionError("the last attempt returns or raises")

    def _unanswered(self, reason: object) -> VLScoreError:
        """Return the error of a request without an answer."""
        if isinstance(reason, TimeoutError):
            times = self._retries + 1
            return QuestionFailed(
                f"{self.url} did not answer within {self._timeout:g} s, {times} times"
            )
        unreachable = getattr(reason, "errno", None) in (errno.ENETUNREACH, errno.EHOSTUNREACH)
        if unreachable or isinstance(reason, _NO_CONNECTION):
            return EndpointFailed(f"{self.url} cannot be reached; is it running?")
        return QuestionFailed(
            f"{self.url} closed the connection, also after {self._retries} retries"
        )

    def _read(self, completion: Any) -> Reply:
        try:
            choice = completion["choices"][0]
            text, finish = choice["message"].get("content") or "", choice.get("finish_reason")
            # Half a surrogate pair cannot be sent back with the next question.
            whole = text.encode("utf-8", "replace").decode("utf-8")
            usage = completion.get("usage") or {}
            counts = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")]
        except (AttributeError, LookupError, TypeError):
            raise QuestionFailed(
                f"{self.url} returned an answer that is not a chat completion"
            ) from None
        tokens_in, tokens_out = (
            n if type(n) is int and 0 <= n <= _MOST_TOKENS else None for n in counts
        )
        if key := _key(self.host):
            whole = whole.replace(key, "[key]")
        return Reply(whole, finish == "length", tokens_in, tokens_out)

    def _refusal(self, status: int, content: bytes) -> VLScoreError:
        """Return the error of a status; the server's own words may repeat a report or the key."""
        try:
            stated = json.loads(content)["error"]
            known = [str(stated.get(name, "")) for name in ("type", "code", "param")]
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            known = []
        what = ", ".join([f"HTTP {status}", *filter(_CODE.fullmatch, dict.fromkeys(known))])
        if 300 <= status < 400:
            return EndpointFailed(
                f"{self.url} redirects to another address ({what}). Reports are not sent there: "
                "use the final address as the endpoint"
            )
        if status in (401, 403):
            return EndpointFailed(f"{self.url} refuses access ({what}): set {KEY} to your key")
        if status == 404:
            return EndpointFailed(
                f"{self.url} has no model {self.model!r}, or no chat completions ({what}); check "
                "both"
            )
        if status == 429:
            return EndpointFailed(
                f"{self.url} accepts no more requests ({what}). "
                "The answers so far are stored; run the same command again later"
            )
        fields = [name for name in known if name in self._sent]
        advice = (
            f". This model may not take {fields[0]}: copy the prompt, change [request], and name "
            "the copy with --prompt; docs/judge.md"
            if fields
            else ""
        )
        return QuestionFailed(f"{self.url} refused the question ({what}){advice}")


def checked_host(url: str, send_to: Iterable[str] = ()) -> tuple[str, bool]:
    """Return the host of an endpoint, and whether it is this machine; no name server is asked.

    Raises: InvalidSetting for an address of another form, or a host on another machine that
        `send_to` does not name.

    >>> [checked_host(f"http://{host}/v1")[1] for host in ("localhost:8000", "127.0.0.2", "[::1]")]
    [True, True, True]
    """
    # Of an address with a user, a password or an odd sign two programs may read two hosts.
    found = re.fullmatch(r"https?://(\[[0-9a-f:]+\]|[a-z0-9._-]+)(:\d{1,5})?(/[!-~]*)?", url, re.I)
    if found is None or set(url) & set("@?#|\\,"):
        raise InvalidSetting(
            "an endpoint must be an address such as http://localhost:8000/v1, without user, "
            "password or parameters"
        )
    host = found[1].lower().strip("[]")
    with contextlib.suppress(ValueError):
        if host == "localhost" or ipaddress.ip_address(host).is_loopback:
            return host, True
    if host not in [name.strip().lower() for name in send_to]:
        raise InvalidSetting(
            f"{url} is on another machine and would receive every report. If your rules allow "
            f"that, permit it with --send-to {host}, or in Python send_to={host!r}, or "
            f"{SEND_TO}={host}"
        )
    return host, False


def endpoint_settings() -> tuple[tuple[str, ...], int]:
    """Return what the environment sets: hosts that may receive reports, and requests at once."""
    text = os.environ.get(IN_FLIGHT, "").strip() or str(DEFAULT_IN_FLIGHT)
    if not text.isdecimal():
        raise InvalidSetting(f"{IN_FLIGHT} must be a number of requests, 1 or more, not {text!r}")
    return tuple(filter(str.strip, os.environ.get(SEND_TO, "").split(","))), int(text)


def _fields(prompt: JudgePrompt) -> dict[str, Any]:
    fields = dict(prompt.request)
    if prompt.schema == "strict":
        schema = {"name": "judgement", "strict": True, "schema": answer_schema()}
        fields["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif prompt.schema == "json":
        fields["response_format"] = {"type": "json_object"}
    return fields


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Follow no redirect: it becomes an error of its status."""


def _read_within(answer: Any, seconds: float) -> bytes:
    """Return the answer, at most `_MOST_BYTES` of it; a server may send a byte now and then."""
    ends, parts, left = time.monotonic() + seconds, [], _MOST_BYTES
    while left > 0 and (part := answer.read1(min(left, 1 << 16))):
        parts.append(part)
        left -= len(part)
        if time.monotonic() > ends:
            raise TimeoutError
    if left > 0 and answer.length:
        raise http.client.IncompleteRead(b"", answer.length)
    return b"".join(parts)


def _content_of(error: urllib.error.HTTPError) -> bytes:
    """Return the beginning of the content of a refusal; b"" if it does not arrive."""
    try:
        return error.read(_MOST_BYTES)
    except (OSError, http.client.HTTPException):
        return b""


def _wait(attempt: int, asked: str | None) -> None:
    """Wait before the next attempt: as long as the server asks, or 0.5, 1, 2, 4, 8, 8 seconds."""
    stated = float(asked) if asked and asked.replace(".", "", 1).isdecimal() else None
    time.sleep(min(60.0, stated) if stated is not None else min(8.0, 0.5 * 2**attempt))


def _key(host: str) -> str:
    """Return the key for a host from the environment, "" without one."""
    key = os.environ.get(KEY, "").strip()
    if not key and host == _OPENAI:
        key = os.environ.get(_OPENAI_KEY, "").strip()
    if key and not _KEY_CHARACTERS.fullmatch(key):
        raise InvalidSetting(
            f"{KEY} contains characters that a key cannot have, such as a line break"
        )
    return key
