"""Words as sums of pieces, without a loop."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from vlscore.encoders import Tokens
from vlscore.encoders.blocks.bert import mean_over_tokens, sum_over_tokens
from vlscore.encoders.models.gloria import words_of

START, END, WORD, PIECE = 0, 1, 2, 3
CONTINUES = torch.tensor([False, False, False, True])
WIDTH = 4

bodies = st.lists(st.lists(st.sampled_from([WORD, PIECE]), max_size=9), min_size=1, max_size=4)


def words_by_loop(states: torch.Tensor, ids: list[int]) -> list[torch.Tensor]:
    """One word after the other, up to the first end token, as the authors of GLoRIA do."""
    words: list[torch.Tensor] = []
    for state, token in zip(states, ids, strict=False):
        if token == PIECE and words:
            words[-1] = words[-1] + state
        else:
            words.append(state)
        if token == END:
            break
    return words


@given(bodies)
def test_same_as_the_loop(rows: list[list[int]]) -> None:
    tokens = Tokens.padded([[START, *row, END] for row in rows], max_tokens=20, pad=WORD, pad_to=14)
    generator = torch.Generator().manual_seed(len(rows))
    states = torch.randn(*tokens.ids.shape, WIDTH, generator=generator)
    found, is_word = words_of(states, tokens, CONTINUES)
    for number, ids in enumerate(tokens.ids.tolist()):
        expected = torch.stack(words_by_loop(states[number], ids))
        torch.testing.assert_close(found[number, : len(expected)], expected)
        assert not found[number, len(expected) :].any()
        assert is_word[number].sum() == len(expected)


def test_padding_is_left_out_of_sums_and_means() -> None:
    states = torch.tensor([[[1.0], [3.0], [100.0]]])
    mask = torch.tensor([[1, 1, 0]])
    assert sum_over_tokens(states, mask).tolist() == [[4.0]]
    assert mean_over_tokens(states, mask).tolist() == [[2.0]]
