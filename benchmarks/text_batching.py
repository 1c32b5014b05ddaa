"""Claim: sorted by length, and each distinct one once, reports cost far less than padded ones.

The authors' code pads every report to a fixed length: 97 tokens in LIMITR and GLoRIA, 256 in
BiomedCLIP. The engine embeds distinct reports once, sorts those of a window by length and fills
batches up to a number of tokens. It must take at most 1/1.3 of the time of batches padded to 97,
and at most 1/3 of that of batches padded to 256; of all reports at most 82 % may go through the
encoder; embeddings must agree to 2e-6 of their length.

Protocol. The report tower of LIMITR (BERT-base, random weights, as time does not depend on their
values) on reports of the Indiana University collection, findings and impression joined. For time: a
random sample of SAMPLE distinct ones. Bucketed: the engine
as it is. Fixed: batches of 16 in table order, padded to 97 by the tokenizer; padded on to 256 by
masked tokens, no report being longer than 97 here, and of those the first FEWER, as their cost does
not depend on which they are; times are of one report. One thread; times are of the processor, so
that other work on the machine does not count; interleaved rounds, medians. Work without time:
tokens, padding included, of the distinct reports under each way, the engine having rows of two
reports at once as an evaluation has. The share of distinct reports is that of the whole file.
Windows: rows of two reports drawn with replacement from all of the file, so many of them embedded
in one call; the share of tokens that are no padding, in batches of a processor (1,024 tokens) and
of a GPU (8,192), of at least DRAWN rows.

Run: python benchmarks/text_batching.py REPORTS --vocabulary VOCAB [--out FILE]
     REPORTS: the reports of `data.INDIANA_REPORTS`; VOCAB: Bio_ClinicalBERT's vocab.txt
"""

import argparse
import json
import random
import statistics
from collections.abc import Callable
from pathlib import Path

import torch
from data import INDIANA_REPORTS
from machine import describe_machine, publish, timed
from torch import Tensor

from vlscore.data import clean_limitr
from vlscore.embedding import EmbeddingEngine
from vlscore.embedding.batches import by_length, default_batch_size
from vlscore.encoders import Tokens, WordPieceTokenizer, inference
from vlscore.encoders.models.limitr import LimitrEncoder
from vlscore.testing import row_error

SAMPLE, FEWER, ROUNDS, BATCH, LIMIT, WIDE = 200, 48, 3, 16, 97, 256
NOT_TIMED = ["Times: not measured in this run (--rounds 0)."]
TOKENS = 64 * default_batch_size(torch.device("cpu"))
# Of an evaluation on a processor, as `EmbeddingEngine.rows_at_once` has it.
ROWS = 16 * default_batch_size(torch.device("cpu"))
WINDOWS, DRAWN = (128, 256, 512, 2048, 8192), 2048


def texts_of(path: Path) -> list[str]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    texts = [f"{row.get('findings') or ''} {row.get('impression') or ''}".strip() for row in rows]
    return [text for text in texts if text]


def padded(tokens: Tokens, length: int) -> Tokens:
    more = length - tokens.ids.shape[1]
    ids = torch.nn.functional.pad(tokens.ids, (0, more))
    return Tokens(ids, torch.nn.functional.pad(tokens.mask, (0, more)), tokens.full_lengths)


def fixed(encoder: LimitrEncoder, texts: list[str], length: int) -> Tensor:
    """As the authors: batches in order, every report padded to one length."""
    found = []
    for start in range(0, len(texts), BATCH):
        tokens = padded(encoder.tokenize(texts[start : start + BATCH]), length)
        with inference(encoder.device, "fp32"):
            found.append(encoder.embed_reports(tokens))
    return torch.cat(found)


def timings(tokenizer: WordPieceTokenizer, distinct: list[str], rounds: int) -> list[str]:
    torch.manual_seed(0)
    encoder = LimitrEncoder(tokenizer).eval().requires_grad_(False)
    sample = random.Random(0).sample(distinct, SAMPLE)
    ways: dict[str, Callable[[], Tensor]] = {
        "engine": lambda: EmbeddingEngine(encoder).embed_reports(sample).vectors,
        "padded to 97": lambda: fixed(encoder, sample[:FEWER], LIMIT),
        "padded to 256": lambda: fixed(encoder, sample[:FEWER], WIDE),
    }
    times: dict[str, list[float]] = {way: [] for way in ways}
    vectors: dict[str, Tensor] = {}
    for _ in range(rounds):
        for way, call in ways.items():
            spent, vectors[way] = timed(call)
            times[way].append(1000 * spent / len(vectors[way]))
    median = {way: statistics.median(found) for way, found in times.items()}
    lines = [
        f"{SAMPLE} distinct reports, one thread, fp32, time of the processor for one report, "
        f"medians of {rounds} interleaved rounds:",
        "",
        "| way | ms | of the engine's | error |",
        "|---|---:|---:|---:|",
    ]
    for way in ways:
        error = row_error(vectors[way], vectors["engine"][: len(vectors[way])])
        ratio = median[way] / median["engine"]
        lines.append(f"| {way} | {median[way]:.1f} | {ratio:.2f} | {error:.1e} |")
    return lines


def counted(tokenizer: WordPieceTokenizer, texts: list[str], distinct: list[str]) -> list[str]:
    clean = [clean_limitr(text) for text in distinct]
    lengths = tokenizer(clean, max_tokens=LIMIT).lengths.tolist()
    order = random.Random(0).sample(range(len(lengths)), len(lengths))
    lines = [
        f"Of {len(texts):,} reports {len(distinct):,} are distinct: the encoder sees "
        f"{len(distinct) / len(texts):.3f} of them. Tokens of the distinct ones, padding included, "
        f"of the {sum(lengths):,} that they have:",
        "",
        "| way | tokens | padded to 97, of these | padded to 256, of these |",
        "|---|---:|---:|---:|",
    ]
    ways = (f"{ROWS} rows at once", 2 * ROWS), ("all at once", len(lengths))
    for name, window in ways:
        some = [lengths[k] for k in order]
        total = padded_tokens(some, window, TOKENS, 1 / 32)
        fixed_97, fixed_256 = (len(lengths) * wide / total for wide in (LIMIT, WIDE))
        lines.append(f"| engine, {name} | {total:,} | {fixed_97:.2f} | {fixed_256:.2f} |")
    every = tokenizer([clean_limitr(text) for text in texts], max_tokens=LIMIT).lengths.tolist()
    return [*lines, "", *windows(every)]


def padded_tokens(lengths: list[int], window: int, tokens: int, share: float) -> int:
    """Tokens with padding, where so many reports go through the engine in one call."""
    total = 0
    for start in range(0, len(lengths), window):
        some = lengths[start : start + window]
        for rows in by_length(some, lambda: tokens, share):
            total += len(rows) * max(some[row] for row in rows)
    return total


def windows(lengths: list[int]) -> list[str]:
    lines = [
        "Tokens that are no padding, by how many rows of two reports are embedded in one call:",
        "",
        "| rows at once | on a processor | on a GPU |",
        "|---:|---:|---:|",
    ]
    for rows in WINDOWS:
        drawn = random.Random(0).choices(lengths, k=2 * max(rows, DRAWN))
        shares = [
            sum(drawn) / padded_tokens(drawn, 2 * rows, tokens, share)
            for tokens, share in ((TOKENS, 1 / 32), (8 * TOKENS, 1 / 8))
        ]
        lines.append(f"| {rows:,} | " + " | ".join(f"{share:.1%}" for share in shares) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("reports", type=Path)
    parser.add_argument("--vocabulary", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="0: count alone")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    data = INDIANA_REPORTS.check(options.reports)
    texts = texts_of(options.reports)
    distinct = list(dict.fromkeys(texts))
    tokenizer = WordPieceTokenizer.from_file(options.vocabulary)
    lines = [
        "# Reports through LIMITR's report tower: sorted by length against padded",
        "",
        describe_machine(),
        data,
        "",
        *(timings(tokenizer, distinct, options.rounds) if options.rounds else NOT_TIMED),
        "",
        *counted(tokenizer, texts, distinct),
    ]
    publish("\n".join(lines) + "\n", options.out)


if __name__ == "__main__":
    main()
