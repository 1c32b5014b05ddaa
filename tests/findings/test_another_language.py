"""Another language is a folder of tables, which the same code reads: ten findings in Spanish.

The values were written from the meaning of each report before it was read.
"""

from pathlib import Path

import pytest

from vlscore.findings import changes_of, chexpert_labels, extract, load_lexicon

SPANISH = load_lexicon(Path(__file__).parent / "data" / "spanish")


def read(report):
    return [
        (f.observation, str(f.polarity), f.severity, f.side and str(f.side), f.zones)
        for f in extract(report, SPANISH)
    ]


@pytest.mark.parametrize(
    ("report", "findings"),
    [
        (
            "Derrame pleural izquierdo pequeño. No hay neumotórax.",
            [
                ("pleural_effusion", "positive", "small", "left", ()),
                ("pneumothorax", "negative", None, None, ()),
            ],
        ),
        (
            "Consolidación en el lóbulo inferior derecho, sugestiva de neumonía.",
            [
                ("consolidation", "positive", None, "right", ("lower lobe",)),
                ("pneumonia", "uncertain", None, "right", ("lower lobe",)),
            ],
        ),
        (
            "Pulmones sin consolidaciones ni nódulos.",
            [
                ("consolidation", "negative", None, None, ()),
                ("nodule", "negative", None, None, ()),
            ],
        ),
        ("Corazón ligeramente agrandado.", [("cardiomegaly", "positive", "small", None, ())]),
        ("Silueta cardíaca normal.", [("cardiomegaly", "negative", None, None, ())]),
        ("Posible edema pulmonar.", [("edema", "uncertain", None, None, ())]),
        ("Atelectasia bibasal.", [("atelectasis", "positive", None, "bilateral", ("base",))]),
        ("Nodulo en LSD.", [("nodule", "positive", None, "right", ("upper lobe",))]),
        ("Neumotórax: no", [("pneumothorax", "negative", None, None, ())]),
        ("Fracturas costales derechas.", [("fracture", "positive", None, "right", ())]),
    ],
)
def test_spanish_findings(report, findings):
    assert read(report) == findings


def test_spanish_sizes_denials_and_sections():
    (nodule,) = extract("Nódulo de 9 milímetros.", SPANISH).findings
    assert [a.value for a in nodule.attributes] == ["9"]
    (denial,) = extract("Tórax normal.", SPANISH).denials
    assert denial.observations >= {"pneumothorax", "nodule", "fracture"}
    labels = chexpert_labels(extract("INDICACIÓN: Neumonía.\nHALLAZGOS: Pulmones claros.", SPANISH))
    assert (labels["Pneumonia"], labels["Consolidation"], labels["No Finding"]) == (None, 0, 1)


@pytest.mark.parametrize(
    ("report", "change"),
    [
        ("El derrame es mayor que en el estudio previo.", "worse"),
        ("El derrame ha disminuido desde ayer.", "improved"),
        ("Derrame izquierdo sin cambios.", "unchanged"),
        ("Nuevo derrame izquierdo.", "new"),
        ("Derrame mayor que antes.", "worse"),
    ],
)
def test_spanish_changes(report, change):
    assert [(c.topic, str(c.change)) for c in changes_of(extract(report, SPANISH))] == [
        ("pleural_effusion", change)
    ]
