"""Language models behind an OpenAI-compatible endpoint, on this machine or elsewhere.

Reports are patients' data. So an endpoint on another machine must be named a second time, by
`send_to`. Redirects are not followed, and no proxy is used on the way to this machine itself.
"""

import asyncio
import contextlib
import ipaddress
import logging
import os
import re
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

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

Result = TypeVar("Result")


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
        self._failures = 0
        self._ended: EndpointFailed | None = None
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
            further requests, or fails ten questions in a row; MissingDependency.
        """
        return _run(self._ask_all(questions, prompt, on_reply))

    async def _ask_all(
        self, questions: Sequence[JudgeQuestion], prompt: JudgePrompt, on_reply: OnReply
    ) -> dict[int, VLScoreError]:
        failures: dict[int, VLScoreError] = {}
        left = iter(enumerate(questions))
        self._ended = None
        fields = _fields(prompt)
        self._sent = tuple(fields)
        async with self._client() as client:

            async def work(left: Iterator[tuple[int, JudgeQuestion]]) -> None:
                for number, question in left:
                    try:
                        on_reply(number, await self._reply(client, question, fields))
                        self._failures = 0
                    except QuestionFailed as error:
                        failures[number] = error
                        self._failures += 1
                        if self._failures >= _FAILURES_IN_A_ROW:
                            self._ended = EndpointFailed(
                                f"{self._failures} questions in a row had no answer. The last "
                                f"error: {error}"
                            )
                    except EndpointFailed as error:
                        self._ended = error
                    if self._ended is not None:
                        # Requests under way end, and their answers are stored.
                        return

            count = min(self._in_flight, len(questions))
            await asyncio.gather(*(work(left) for _ in range(count)))
        if self._ended is not None:
            raise self._ended
        return failures

    def _client(self) -> Any:
        try:
            import openai
        except ImportError:
            raise MissingDependency(
                "a model behind an endpoint needs openai: pip install 'vlscore[judge]'"
            ) from None
        # Its debug messages contain requests, and with them reports.
        logging.getLogger("openai").setLevel(logging.WARNING)
        key = _key(self.host)

        async def set_headers(request: Any) -> None:
            # The client adds names of organisations, and other keys, from the environment.
            for name in [n for n in request.headers if n.lower().startswith("openai-")]:
                del request.headers[name]
            request.headers.pop("Authorization", None)
            if key:
                request.headers["Authorization"] = f"Bearer {key}"
            request.headers["Accept-Encoding"] = "identity"

        async def limit(response: Any) -> None:
            # A packed answer stays packed: a small one can unpack to gigabytes.
            response.headers.pop("Content-Encoding", None)
            response.stream = _beginning_of(response.stream)

        transport = openai.DefaultAsyncHttpxClient(
            follow_redirects=False,
            trust_env=not self.is_here,
            timeout=self._timeout,
            event_hooks={"request": [set_headers], "response": [limit]},
        )
        return openai.AsyncOpenAI(
            api_key=key or "none",
            base_url=self.url,
            timeout=self._timeout,
            max_retries=self._retries,
            http_client=transport,
        )

    async def _reply(
        self, client: Any, question: JudgeQuestion, fields: Mapping[str, Any]
    ) -> Reply:
        """Return the reply to one question; raise QuestionFailed or EndpointFailed."""
        import openai

        messages = [{"role": role, "content": text} for role, text in question.messages]
        # The client checks each field of `messages` again, which takes half of its time.
        body = {**fields, "messages": messages}
        try:
            # A server that sends a byte now and then never reaches the timeout of the client.
            async with asyncio.timeout(self._timeout * (self._retries + 2)):
                completion = await client.chat.completions.create(
                    model=self.model, messages=[], extra_body=body
                )
        except openai.APIStatusError as error:
            raise self._refusal(error) from None
        except (TimeoutError, openai.APITimeoutError):
            raise QuestionFailed(
                f"{self.url} did not answer within {self._timeout:g} s, {self._retries + 1} times"
            ) from None
        except openai.APIConnectionError as error:
            if type(error.__cause__).__name__ == "ConnectError":
                raise EndpointFailed(f"{self.url} cannot be reached; is it running?") from None
            raise QuestionFailed(
                f"{self.url} closed the connection, also after {self._retries} retries"
            ) from None
        except (openai.OpenAIError, ValueError, RecursionError):
            raise QuestionFailed(
                f"{self.url} returned an answer that is not json: it has another form, is packed, "
                f"nested too deeply, or larger than {_MOST_BYTES >> 20} MiB"
            ) from None
        return self._read(completion)

    def _read(self, completion: Any) -> Reply:
        try:
            choice = completion.choices[0]
            text, finish = choice.message.content or "", choice.finish_reason
            # Half a surrogate pair cannot be sent back with the next question.
            whole = text.encode("utf-8", "replace").decode("utf-8")
        except (AttributeError, LookupError, TypeError):
            raise QuestionFailed(
                f"{self.url} returned an answer that is not a chat completion"
            ) from None
        usage = getattr(completion, "usage", None)
        counts = [getattr(usage, name, None) for name in ("prompt_tokens", "completion_tokens")]
        tokens_in, tokens_out = (
            n if type(n) is int and 0 <= n <= _MOST_TOKENS else None for n in counts
        )
        if key := _key(self.host):
            whole = whole.replace(key, "[key]")
        return Reply(whole, finish == "length", tokens_in, tokens_out)

    def _refusal(self, error: Any) -> VLScoreError:
        """Return the error of a status; the server's own words may repeat a report or the key."""
        status = int(error.status_code)
        known = [str(getattr(error, name, "")) for name in ("type", "code", "param")]
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


def _beginning_of(stream: Any) -> Any:
    """Return a stream of the first bytes of an answer, of the class that the client expects."""

    class _Beginning(type(stream)):  # type: ignore[misc]
        def __init__(self) -> None:
            """Read from `stream` itself."""

        async def __aiter__(self) -> AsyncIterator[bytes]:
            left = _MOST_BYTES
            async for part in stream:
                yield part[:left]
                left -= len(part)
                if left <= 0:
                    return

        async def aclose(self) -> None:
            await stream.aclose()

    return _Beginning()


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


def _run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine to its end, also where a loop runs already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()
