"""Sections of reports that are published as one text."""

from vlscore.data.datasets.dataset_base import SECTIONS, sections_present
from vlscore.data.reports import split_sections


def sections_of(report: str) -> tuple[dict[str, str], bool]:
    """Return the sections of a whole report, and whether its findings are its last paragraph.

    The last paragraph counts as the findings if neither findings nor impression has a heading, as
    in MIMIC-CXR's own order of sections (Johnson et al. 2019).

    >>> sections_of("INDICATION: Cough.\\nIMPRESSION: Normal.")
    ({'indication': 'Cough.', 'impression': 'Normal.'}, False)
    """
    found = split_sections(report)
    named = {name: found.get(name) for name in SECTIONS}
    # A combined section goes into one column alone, so that it does not count twice.
    named["findings"] = found.findings
    if found.get("findings") is not None:
        named["impression"] = found.impression
    from_last = not (named["findings"] or named["impression"])
    if from_last:
        named["findings"] = found.last_paragraph
    sections = sections_present(named)
    return sections, from_last and "findings" in sections
