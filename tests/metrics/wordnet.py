"""A WordNet of a handful of words in WordNet's own file format, so that METEOR runs offline.

Written for these tests; nothing of Princeton's WordNet is in it but the layout of its files
(wndb(5WN)): in `data.noun` a line a synset at a byte offset that it states itself, in `index.noun`
a line a lemma with the offsets of its synsets.
"""

from pathlib import Path

SYNSETS = {
    "noun": [["fluid", "liquid"], ["radiograph", "x-ray"], ["chest", "thorax"]],
    "verb": [["show", "reveal"]],
    "adj": [["small", "little"], ["enlarged", "big"]],
    "adv": [["slightly", "somewhat"]],
}
_LETTERS = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
_LEXNAMES = "".join(
    f"{number:02d}\t{name}\t{part}\n"
    for number, (name, part) in enumerate(
        [("adj.all", 3), ("adj.pert", 3), ("adv.all", 4), ("noun.Tops", 1)]
    )
)
# The reader takes the version from here; every line of the licence begins with two blanks.
_HEAD = "  1 A handful of words for tests.  \n  2 WordNet 0.1 Copyright: none.  \n"


def write_wordnet(folder: Path) -> Path:
    """Write the corpus under folder/corpora/wordnet; give `folder` to NLTK as a data path."""
    corpus = folder / "corpora" / "wordnet"
    corpus.mkdir(parents=True)
    (corpus / "lexnames").write_text(_LEXNAMES)
    (corpus / "index.sense").write_text("")
    for part, synsets in SYNSETS.items():
        data, index = _HEAD, {}
        for words in synsets:
            offset = len(data.encode())
            lemmas = " ".join(f"{word} 0" for word in words)
            frames = " 01 + 02 00" if part == "verb" else ""
            data += (
                f"{offset:08d} 00 {_LETTERS[part]} {len(words):02x} {lemmas} 000{frames} | for "
                "tests  \n"
            )
            index.update(dict.fromkeys(words, offset))
        (corpus / f"data.{part}").write_text(data)
        lines = [
            f"{word} {_LETTERS[part]} 1 0 1 0 {offset:08d}  \n"
            for word, offset in sorted(index.items())
        ]
        (corpus / f"index.{part}").write_text(_HEAD + "".join(lines))
        (corpus / f"{part}.exc").write_text("")
    return folder
