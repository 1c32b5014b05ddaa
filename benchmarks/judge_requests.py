"""Claim: the work of the judge itself for one request to a language model takes milliseconds.

Protocol. A server in a process of its own on this machine speaks HTTP as a model's service does. It
waits a fixed time, as if a model worked, and sends an answer that follows the schema. Pairs of
reports are synthetic (phantoms of seed 20263, candidates with 0 to 5 errors), each pair distinct,
with the few-shot prompt, without a cache. Reported for 1, 8 and 32 requests under way: requests a
second, the bound that the server's pause sets (requests under way / pause), and their ratio; then
the same without a pause, where the work of client and server alone counts. Rounds of all settings
are interleaved; the median of the rounds is reported. The server shares the processor with the
client. Other programs slow the requests down; the client's own processor time, which is reported
too, depends little on them.

Run: python benchmarks/judge_requests.py [--out benchmarks/results/judge_requests.md]
"""

import argparse
import asyncio
import json
import multiprocessing
import statistics
import time
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
from machine import describe_machine, publish

from vlscore.data import corrupt, write_report
from vlscore.data.phantom.phantom_pairs import scene_at
from vlscore.metrics import EndpointModel, JudgeCase, ModelJudge
from vlscore.stats import TextTable

IN_FLIGHT = (1, 8, 32)
PAUSES = (0.2, 0.0)
ROUNDS = 3
SEED = 20263
# Requests of one measurement, for each request under way.
REQUESTS = 12
LEAST = 48
_ANSWER = (
    '{"errors": [{"category": "false_finding", "severity": 3, "finding": "effusion", '
    '"candidate_line": 1, "reference_line": null, "correction": "", '
    '"reason": "The reference does not state it."}], "correct": []}'
)


async def _serve(pause: float, ready: Connection) -> None:
    message = {"role": "assistant", "content": _ANSWER}
    body = json.dumps(
        {
            "id": "x",
            "object": "chat.completion",
            "created": 0,
            "model": "m",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1900, "completion_tokens": 60},
        }
    ).encode()
    head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
    response = f"{head}{len(body)}\r\n\r\n".encode() + body

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                header = await reader.readuntil(b"\r\n\r\n")
                (length,) = (
                    int(line.split(b":")[1])
                    for line in header.split(b"\r\n")
                    if line.lower().startswith(b"content-length:")
                )
                await reader.readexactly(length)
                await asyncio.sleep(pause)
                writer.write(response)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    ready.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


def _server(pause: float, ready: Connection) -> None:
    asyncio.run(_serve(pause, ready))


def cases(first: int, count: int) -> list[JudgeCase]:
    """Distinct pairs of synthetic reports."""
    found = []
    for number in range(first, first + count):
        findings = scene_at(SEED, number).findings
        rng = np.random.default_rng([SEED, number])
        reference = write_report(rng, findings)
        candidate = write_report(rng, corrupt(rng, findings, int(rng.integers(0, 6))))
        found.append(JudgeCase(f"{candidate} Study {number}.", reference))
    return found


def measure(url: str, in_flight: int, pairs: list[JudgeCase]) -> tuple[float, float]:
    """Requests a second of one run, and milliseconds of this process's processor time for each."""
    judge = ModelJudge(EndpointModel("m", url, in_flight=in_flight), cache=False)
    began, worked = time.perf_counter(), time.process_time()
    outcomes = judge.judge_all(pairs)
    seconds, work = time.perf_counter() - began, time.process_time() - worked
    assert all(outcome.judgement is not None for outcome in outcomes)
    assert judge.paid.answers == len(pairs)
    return len(pairs) / seconds, 1000 * work / len(pairs)


def measured() -> dict[tuple[float, int], tuple[float, float]]:
    """(pause, requests under way) -> medians of what `measure` returns."""
    context = multiprocessing.get_context("spawn")
    urls, processes = {}, []
    for pause in PAUSES:
        here, there = context.Pipe()
        process = context.Process(target=_server, args=(pause, there), daemon=True)
        process.start()
        processes.append(process)
        urls[pause] = f"http://127.0.0.1:{here.recv()}/v1"
    rates: dict[tuple[float, int], list[tuple[float, float]]] = {}
    number = 0
    try:
        measure(urls[0.0], 1, cases(10**6, 4))  # imports the client
        for _ in range(ROUNDS):
            for pause in PAUSES:
                for in_flight in IN_FLIGHT:
                    count = max(LEAST, REQUESTS * in_flight)
                    pairs = cases(number, count)
                    number += count
                    rate = measure(urls[pause], in_flight, pairs)
                    rates.setdefault((pause, in_flight), []).append(rate)
    finally:
        for process in processes:
            process.terminate()
    return {
        setting: (statistics.median(r for r, _ in found), statistics.median(w for _, w in found))
        for setting, found in rates.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    rows = []
    for (pause, in_flight), (rate, work) in measured().items():
        bound = f"{in_flight / pause:.0f}" if pause else "-"
        share = f"{rate * pause / in_flight:.2f}" if pause else "-"
        rows.append(
            (f"{pause * 1000:.0f} ms", str(in_flight), f"{rate:.1f}", bound, share, f"{work:.1f}")
        )
    table = TextTable(
        "Requests of the judge by a language model",
        (
            "pause of the server",
            "under way",
            "requests/s",
            "bound",
            "share of the bound",
            "processor ms/request",
        ),
        tuple(rows),
    )
    report = f"# Requests to a language model\n\n{describe_machine()}\n\n{table.markdown()}"
    publish(report, arguments.out)


if __name__ == "__main__":
    main()
