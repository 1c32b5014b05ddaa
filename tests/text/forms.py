"""Forms in which programs and people hand on the same report, from public reports of faults.

Each takes the sentences of a report, with their full stops, and returns one text.
"""

import html
import json
import quopri
import re
import textwrap
from collections.abc import Callable
from urllib.parse import quote, quote_plus

Form = Callable[[list[str]], str]


def bare(sentence: str) -> str:
    """Return the sentence without its full stop."""
    return sentence.rstrip(".")


def lines(join: str, each: str = "{}", stop: bool = True) -> Form:
    """Return the form with `each` sentence, with or without its full stop, joined by `join`."""
    return lambda sentences: join.join(each.format(s if stop else bare(s)) for s in sentences)


def numbered(pattern: str, join: str = " ", stop: bool = False) -> Form:
    return lambda sentences: join.join(
        pattern.format(n) + " " + (s if stop else bare(s)) for n, s in enumerate(sentences, 1)
    )


def bert(sentences: list[str]) -> str:
    """Return the text as an uncased BERT tokenizer decodes it: each sign of punctuation apart."""
    return re.sub(r"\s+", " ", re.sub(r"([^\w\s])", r" \1 ", " ".join(sentences).lower())).strip()


def treebank(sentences: list[str]) -> str:
    """Return the text in tokens of the Penn Treebank."""
    text = " ".join(sentences)
    text = re.sub(r"(?i)(\w)n't\b", r"\1 n't", text)
    text = re.sub(r"([,;:?!()]|'s\b|\.(?=\s|$))", r" \1 ", text)
    return re.sub(r"\s+", " ", text.replace("(", "-LRB-").replace(")", "-RRB-")).strip()


def pieces(sentences: list[str]) -> str:
    """Return the text in pieces of words, as SentencePiece divides it."""
    words = " ".join(sentences).split()
    return " ".join("▁" + (f"{w[:4]} {w[4:]}" if len(w) > 6 and w.isalpha() else w) for w in words)


def as_json(sentences: list[str]) -> str:
    return json.dumps({"findings": "\n".join(sentences), "impression": ""})


def wrapped(width: int) -> Form:
    return lambda sentences: textwrap.fill(" ".join(sentences), width)


def curly(sentences: list[str]) -> str:
    """Return the text with the apostrophe and blanks of a word processor."""
    return " ".join(sentences).replace("'", "’").replace(". ", ".\u00a0 ")


def misread(codec: str, times: int = 1) -> Form:
    """Return the form of a text whose UTF-8 was read in another encoding, once or more often."""

    def form(sentences: list[str]) -> str:
        text = curly(sentences)
        for _ in range(times):
            text = text.encode().decode(codec)
        return text

    return form


def rich_text(sentences: list[str]) -> str:
    """Return the text in the Rich Text Format, as Word writes it for Windows."""
    body = "\\par\n".join(map(bare, sentences)).replace("'", "\\'92")
    return (
        "{\\rtf1\\ansi\\deff0{\\fonttbl{\\f0\\fnil Arial;}}{\\*\\generator Riched20;}\n"
        f"\\pard\\sa200\\f0\\fs22\\lang9 {body}\\par}}"
    )


#: Forms that end no sentence with a full stop and a blank, or add signs around sentences.
FORMS: dict[str, Form] = {
    "a line each": lines("\n"),
    "a line each, no stop": lines("\n", stop=False),
    "windows lines, no stop": lines("\r\n", stop=False),
    "old macintosh lines, no stop": lines("\r", stop=False),
    "line separator, no stop": lines("\u2028", stop=False),
    "paragraph separator, no stop": lines("\u2029", stop=False),
    "next line, no stop": lines("\x85", stop=False),
    "form feed, no stop": lines("\x0c", stop=False),
    "vertical tab, no stop": lines("\x0b", stop=False),
    "escaped lines": lines("\\n"),
    "escaped lines, no stop": lines("\\n", stop=False),
    "escaped windows lines": lines("\\r\\n"),
    "twice escaped lines": lines("\\\\n"),
    "hl7 line": lines("\\.br\\"),
    "hl7 line, no stop": lines("\\.br\\", stop=False),
    "hl7 repetition": lines("~"),
    "hl7 repetition, no stop": lines("~", stop=False),
    "excel line": lines("_x000D_\n"),
    "excel line, no stop": lines("_x000D_", stop=False),
    "url line": lines("%0A"),
    "br": lines("<br>"),
    "br, no stop": lines("<br />", stop=False),
    "escaped br": lines("&lt;br&gt;", stop=False),
    "paragraphs": lambda s: "".join(f"<p>{bare(x)}</p>" for x in s),
    "divisions": lambda s: "<html>" + "".join(f"<div>{x}</div>" for x in s) + "</html>",
    "list of html": lambda s: "<ul>" + "".join(f"<li>{bare(x)}</li>" for x in s) + "</ul>",
    "spans": lines(" ", "<span class='s'>{}</span>"),
    "bold lines": lines("\n", "**{}**"),
    "bold lines, no stop": lines("\n", "**{}**", stop=False),
    "bold, one line": lines(" ", "**{}**"),
    "bold, nothing between": lines("", "**{}**"),
    "underlined lines": lines("\n", "__{}__"),
    "italic lines": lines("\n", "*{}*"),
    "headings": lines("\n", "## {}", stop=False),
    "starred items": lines("\n", "* {}", stop=False),
    "quoted lines": lines("\n", "> {}", stop=False),
    "code lines": lines("\n", "`{}`", stop=False),
    "fenced": lambda s: "```\n" + "\n".join(map(bare, s)) + "\n```",
    "bullets in one line": lines(" ", "• {}", stop=False),
    "tight bullets in one line": lines("", "•{}", stop=False),
    "dashes in one line": lines(" ", "- {}", stop=False),
    "stars in one line": lines(" ", "* {}", stop=False),
    "arrows in one line": lines(" ", "➢ {}", stop=False),
    "entity bullets in one line": lines(" ", "&bull; {}", stop=False),
    "1) in one line": numbered("{})"),
    "1. in one line": numbered("{}."),
    "(1) in one line": numbered("({})"),
    "1) lines": numbered("{})", "\n"),
    "(1) lines": numbered("({})", "\n"),
    "dashed lines, no stop": lines("\n", "- {}", stop=False),
    "bullet lines, no stop": lines("\n", "•{}", stop=False),
    "letter lines": lambda s: "\n".join(f"{'abcdefgh'[n % 8]}) {bare(x)}" for n, x in enumerate(s)),
    "semicolons": lines("; ", stop=False),
    "tight semicolons": lines(";", stop=False),
    "two bars": lines(" || ", stop=False),
    "pieces of words": pieces,
    "sentence marks": lambda s: "<s> " + " </s> <s> ".join(map(bare, s)) + " </s>",
    "bert marks": lambda s: "[CLS] " + " [SEP] ".join(map(bare, s)) + " [SEP]",
    "newline marks": lines("<n>", stop=False),
    "chat marks": lambda s: "<|im_start|>assistant\n" + "\n".join(s) + "<|im_end|>",
    "thought": lambda s: "<think>There may be edema and a fracture.</think>\n" + " ".join(s),
    "thought, end alone": lambda s: "Edema and fracture?</think>" + " ".join(s),
    "sentencepiece": lambda s: "▁" + " ".join(s).replace(" ", "▁"),
    "byte level": lambda s: " ".join(s).replace(" ", "Ġ"),
    "nbsp": lambda s: " ".join(s).replace(" ", "\u00a0"),
    "nbsp entities": lambda s: " ".join(s).replace(" ", "&nbsp;"),
    "entities": lambda s: html.escape(" ".join(s)),
    "twice escaped": lambda s: html.escape(html.escape(" ".join(s))),
    "byte order mark": lambda s: "\ufeff" + " ".join(s),
    "zero width": lambda s: " \u200b".join(s),
    "utf-8 read as windows": misread("cp1252"),
    "utf-8 read as latin-1": misread("latin-1"),
    "utf-8 read as macintosh": misread("mac-roman"),
    "utf-8 read as windows twice": misread("cp1252", 2),
    "windows read as latin-1": lambda s: " ".join(s).replace("'", "\x92"),
    "quoted printable": lambda s: quopri.encodestring(curly(s).encode()).decode(),
    "percent": lambda s: quote(curly(s)),
    "form": lambda s: quote_plus(" ".join(s)),
    "rich text": rich_text,
    "unicode escapes": lambda s: curly(s).encode("unicode_escape").decode(),
    "code points": lambda s: " ".join(s).replace("'", "<U+2019>"),
    "doubled apostrophes": lambda s: " ".join(s).replace("'", "''"),
    "lost apostrophes": lambda s: " ".join(s).replace("'", "\ufffd"),
    "escaped tags, twice": lambda s: html.escape(
        html.escape("".join(f"<p>{bare(x)}</p>" for x in s), quote=False)
    ),
    "tags as code points": lambda s: "".join(f"\\u003cp\\u003e{x}\\u003c/p\\u003e" for x in s),
    "tags with names": lambda s: f'<section name="Findings">{" ".join(s)}</section>',
    "tuple of strings": lambda s: repr(tuple(s)),
    "json": as_json,
    "list of strings": lambda s: repr(s),
    "bert": bert,
    "treebank": treebank,
    "no blank": lambda s: "".join(s),
    "capitals": lambda s: " ".join(s).upper(),
    "capitals, a line each, no stop": lambda s: "\n".join(map(bare, s)).upper(),
    "small letters": lambda s: " ".join(s).lower(),
    "small letters, a line each, no stop": lambda s: "\n".join(map(bare, s)).lower(),
    "wrapped at 40": wrapped(40),
    "wrapped at 72": wrapped(72),
    "wrapped at 40, capitals": lambda s: wrapped(40)(s).upper(),
    "wrapped at 60, small letters": lambda s: wrapped(60)(s).lower(),
    "wrapped with br": lambda s: wrapped(60)(s).replace("\n", "<br>"),
    "wrapped with hl7 lines": lambda s: wrapped(60)(s).replace("\n", "\\.br\\"),
    "empty lines": lines("\n\n", stop=False),
    "heading above": lambda s: "**FINDINGS:** " + " ".join(s),
    "heading alone": lambda s: "### Findings\n" + "\n".join(map(bare, s)),
    "tagged section": lambda s: "<findings>" + " ".join(s) + "</findings>",
}  # fmt: skip
