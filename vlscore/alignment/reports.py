"""Reports of rated candidates from tables of their own, for ratings that bring no texts."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from vlscore.alignment.pairs import RatedPairs
from vlscore.errors import InvalidSetting, InvalidTable
from vlscore.studies import BadRow, Study, StudyTable


def with_reports(pairs: RatedPairs, tables: Mapping[str, StudyTable]) -> RatedPairs:
    """The same pairs with the reports of each candidate, by the study's id.

    A pair whose study is not in its candidate's table is left out and listed in `bad`.

    Args: tables: name of the candidate -> its studies, opened for references and candidates; any
        table will do, and so will a manifest of ReXrank.

    Raises:
        InvalidSetting: the ratings bring reports already, or a candidate has no table.
        InvalidTable: two tables differ in a study's reference, or no pair has a report.
    """
    if pairs.texts is not None:
        raise InvalidSetting(f"{pairs.source} brings reports itself; leave out other tables")
    if absent := sorted(set(pairs.candidates) - set(tables)):
        raise InvalidSetting(
            f"{pairs.source} rates {', '.join(absent[:5])}, whose reports are in no table; "
            f"there are tables of {', '.join(tables)}"
        )
    known = {name: _by_id(table) for name, table in tables.items()}
    references: dict[str, str] = {}
    for name, studies in known.items():
        for study, row in studies.items():
            said = (row.reference or "").split()
            if references.setdefault(study, row.reference or "").split() != said:
                raise InvalidTable(
                    f"{tables[name].path}: study {study} has another reference than in an "
                    "earlier table"
                )
    kept: list[int] = []
    texts: list[str] = []
    bad = list(pairs.bad)
    for k, (study, name) in enumerate(zip(pairs.studies, pairs.candidates, strict=True)):
        if study in known[name]:
            kept.append(k)
            texts.append(known[name][study].candidate or "")
        else:
            reason = f"{tables[name].path} has no report of it that can be used"
            bad.append(BadRow(0, f"{study}, {name}", reason))
    if not kept:
        raise InvalidTable(
            f"no table has a study of {pairs.source}, such as {pairs.studies[0]!r}; "
            f"{next(iter(tables.values())).path} has {', '.join(list(references)[:3])}, ..."
        )
    rows = np.array(kept)
    return replace(
        pairs,
        studies=tuple(pairs.studies[k] for k in kept),
        candidates=tuple(pairs.candidates[k] for k in kept),
        ratings={name: values[:, rows] for name, values in pairs.ratings.items()},
        counts={key: values[:, rows] for key, values in pairs.counts.items()},
        references=tuple(references[pairs.studies[k]] for k in kept),
        texts=tuple(texts),
        images=None if pairs.images is None else tuple(pairs.images[k] for k in kept),
        bad=tuple(bad),
        files=(*pairs.files, *(table.path for table in tables.values())),
        notes=(*pairs.notes, *(note for table in tables.values() for note in table.notes)),
    )


def _by_id(table: StudyTable) -> dict[str, Study]:
    return {row.id: row for row in table if isinstance(row, Study)}
