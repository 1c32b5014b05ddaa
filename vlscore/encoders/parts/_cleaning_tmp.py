import re

import regex


def _s(t, minraw):
    out = []
    for piece in re.split(r"[0-9]+\.", t.replace("\n", " ")):
        for s in piece.split("."):
            raw = regex.findall(r"\w+", s.replace("\ufffd\ufffd", " ").lower())
            if len(raw) < minraw:
                continue
            w = [x for x in (r.encode("ascii", "ignore").decode() for r in raw) if x]
            if w:
                out.append(" ".join(w))
    return " ".join(out)


def clean_limitr(t):
    return _s(t, 1)


def clean_gloria(t):
    return _s(t, 2)


def clean_mgca(t):
    return _s(t, 2)
