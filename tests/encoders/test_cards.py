"""Cards are data: printed at once, without torch, and whole at 80 columns."""

import subprocess
import sys

import pytest

from tests.command import run_command
from vlscore.cli.encoders import cards_text
from vlscore.encoders import encoder_card, encoder_cards, entry_of

COMMANDS = [("encoders", "GLoRIA"), ("weights", "list"), ("weights", "verify", "--help")]
# Of the processor, which other work on the machine hardly changes: half a second here.
SECONDS = 2.5


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_it_answers_at_once_without_torch(command):
    program = (
        "import sys, time\n"
        "from vlscore.cli import command_line\n"
        "command_line()\n"
        "heavy = {'torch', 'transformers', 'open_clip', 'timm', 'pyarrow', 'cv2'}\n"
        "print(sorted(heavy & set(sys.modules)), time.process_time(), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *command], capture_output=True, text=True, check=True
    )
    loaded, seconds = done.stderr.rsplit(maxsplit=1)
    assert loaded == "[]"
    assert float(seconds) < SECONDS
    assert done.stdout.strip()


def test_the_table_fits_80_columns_and_breaks_nothing(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = cards_text(encoder_cards()).splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines[1:]] == [card.name for card in encoder_cards()]
    assert "demonstration only" in lines[1]


def test_a_card_says_all_and_fits_the_terminal():
    for card in encoder_cards():
        shown = run_command("encoders", card.name).stdout
        assert max(map(len, shown.splitlines())) <= 100
        together = " ".join(shown.split())
        facts = (card.name, card.title, card.citation, card.licence, card.C_source, *card.notes)
        assert all(" ".join(fact.split()) in together for fact in facts)
        assert ("by style" in shown) == (card.name == "small")


def test_variants_differ_where_the_file_says_so():
    raw = encoder_card("convirt-mgca:raw")
    assert (raw.C, raw.normalised, raw.dim) == (124, False, 128)
    assert encoder_card("convirt-mgca").C is None
    assert entry_of("mgca-vit").variants["raw"].name == "mgca-vit:raw"
