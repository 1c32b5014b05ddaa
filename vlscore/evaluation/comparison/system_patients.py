"""Which of the compared studies are of one patient."""

from collections.abc import Sequence

from vlscore.data import read_rows
from vlscore.errors import InvalidTable
from vlscore.evaluation.comparison.systems import Source


def patients_of(column: str, sources: Sequence[Source], ids: Sequence[str]) -> list[str]:
    """Return whose each study is, from the first table that has the column.

    A study without an entry is a patient of its own.

    Args:
        column: of the patient.
        ids: of the n studies.

    Raises: InvalidTable where no table has the column, or a study has two patients.
    """
    source = next((each for each in sources if column in each.table.found), None)
    if source is None:
        paths = ", ".join(str(each.table.path) for each in sources)
        raise InvalidTable(f"no table has a column {column}: {paths}")
    table = source.table
    if not table.has_ids:
        raise InvalidTable(
            f"{table.path} has no column of ids, so its column {column} cannot be joined"
        )
    wanted, found = set(ids), dict[str, str]()
    for row, record in read_rows(table.path, {table.id_column, column}):
        if isinstance(record, str):
            continue
        name, patient = (str(record.get(each) or "") for each in (table.id_column, column))
        if name not in wanted or not patient:
            continue
        if found.setdefault(name, patient) != patient:
            raise InvalidTable(f"{table.path}, row {row}: study {name} has two patients")
    return [found.get(name, f"\0{name}") for name in ids]
