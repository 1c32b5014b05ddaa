"""Claim: GLoRIA's and LIMITR's global report vector needs no loop over words.

Their code walks through every token of every report, adds word pieces up to words, pads the words
with zeros to 97, averages over the 97 and adds four layers. As words are sums of pieces, that is
the masked sum over tokens divided by 97 (`vlscore.encoders.blocks.gloria_towers.pool_report`). It
must be at least 4 times as fast as the loop at batch 16, and equal to 1e-6.

Protocol. 16 reports padded to 97 tokens, once all of them full and once of 20 to 97 tokens, every
fourth token continuing a word; four layers of standard normal float32 states, 768 wide. The loop
follows the authors' steps in torch, ids and words looked up one by one. Only pooling is timed,
not BERT. One thread; times are of the processor, so that other work on the machine does not count.
Eleven interleaved rounds, medians. Equality: largest relative error of a row
in the Euclidean norm.

Run: python benchmarks/text_pooling.py [--out benchmarks/results/text_pooling.md]
"""

import statistics

import torch
from authors_way import add_up_pieces
from machine import describe_machine, out_of, publish, timed
from torch import Tensor

from vlscore.encoders import Tokens
from vlscore.encoders.models.gloria import DIM, POSITIONS, pool_report

BATCH, LAYERS, ROUNDS, CONTINUES_EVERY = 16, 4, 11, 4
PAD, END, FIRST_WORD = 0, 1, 2
WORDS = ["[PAD]", "[SEP]", *(f"##{n}" if n % CONTINUES_EVERY == 0 else str(n) for n in range(96))]


def pool_by_words(layers: list[Tensor], ids: Tensor) -> Tensor:
    """The authors' way: (layers, n, L, d) and (n, L) -> (n, d)."""
    by_token = torch.stack(layers).permute(1, 2, 0, 3)
    reports = [
        add_up_pieces(states, row, WORDS.__getitem__)
        for states, row in zip(by_token, ids, strict=True)
    ]
    return torch.stack(reports).mean(dim=1).sum(dim=1)


def batch(lengths: list[int]) -> Tokens:
    rows = [[*(FIRST_WORD + n % 96 for n in range(1, length)), END] for length in lengths]
    return Tokens.padded(rows, max_tokens=POSITIONS, pad=PAD, pad_to=POSITIONS)


def measure(name: str, tokens: Tokens) -> str:
    generator = torch.Generator().manual_seed(0)
    shape = (*tokens.ids.shape, DIM)
    layers = [torch.randn(shape, generator=generator) for _ in range(LAYERS)]
    loop, pooled = [], []
    for _ in range(ROUNDS):
        loop.append(timed(lambda: pool_by_words(layers, tokens.ids))[0])
        pooled.append(timed(lambda: pool_report(layers, tokens.mask))[0])
    expected, found = pool_by_words(layers, tokens.ids), pool_report(layers, tokens.mask)
    error = ((found - expected).norm(dim=1) / expected.norm(dim=1)).max().item()
    slow, fast = statistics.median(loop), statistics.median(pooled)
    return f"| {name} | {slow * 1e3:.1f} | {fast * 1e3:.2f} | {slow / fast:.1f} | {error:.1e} |"


def main() -> None:
    out = out_of(__doc__)
    torch.set_num_threads(1)
    mixed = [20 + 77 * n // (BATCH - 1) for n in range(BATCH)]
    with torch.inference_mode():
        lines = [
            "# Pooling reports: masked sum against the loop over words",
            "",
            describe_machine(),
            "",
            f"{BATCH} reports, {LAYERS} layers, {DIM} dimensions, one thread, processor time, "
            f"medians of {ROUNDS} interleaved rounds.",
            "",
            "| reports | loop, ms | masked sum, ms | ratio | relative difference |",
            "|---|---|---|---|---|",
            measure(f"{POSITIONS} tokens each", batch([POSITIONS] * BATCH)),
            measure(f"{mixed[0]} to {mixed[-1]} tokens", batch(mixed)),
        ]
    text = "\n".join(lines) + "\n"
    publish(text, out)


if __name__ == "__main__":
    main()
