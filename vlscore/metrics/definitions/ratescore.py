"""RaTEScore: each entity matched to the most similar one of the other report."""

from vlscore.metrics.metric import Metric, Output, Parameter

NER_VARIABLE = "VLSCORE_RATESCORE_NER"
SYNONYMS_VARIABLE = "VLSCORE_RATESCORE_SYNONYMS"

# How much an entity of one type counts that is matched to one of another, and, under "neg_weight",
# by what a similarity is multiplied where one of the two types denies what the other states. Found
# by the authors by search against ratings of whole reports ("long") and of sentences ("short");
# RaTEScore 0.6.0, scorer.py, DEFAULT_MATRIX_LONG and DEFAULT_MATRIX_SHORT. The rows are the types
# of the entities that are matched, the columns those of what they are matched to, in this order.
TYPES = ("ABNORMALITY", "ANATOMY", "DISEASE", "NON-ABNORMALITY", "NON-DISEASE")
MATRICES = {
    "long": (
        (0.4276119164393705, 0.6240929990607657, 0.0034478181112993847, 0.5431049700217344,
         0.27005425386213877),
        (0.7487824274337533, 0.2856134859160784, 0.4592143222158069, 0.02097055139911715,
         0.00013736314126696204),
        (0.8396510075734789, 0.9950209388542061, 0.8460555030578727, 0.9820689020512646,
         0.3789136708096537),
        (0.16546764653692908, 0.018670610691852826, 0.719397354576018, 0.0009357166071730684,
         0.0927333564267591),
        (0.7759420231214385, 0.1839139293714062, 0.10073046076318157, 0.03860183811876373,
         0.34065681486566446),
    ),
    "short": (
        (0.4070293318365468, 0.6952639610605605, 0.28342529466226446, 0.9479148658006686,
         0.23875064111146294),
        (0.5829759950441763, 0.7709590751917746, 0.0006059634829551632, 0.794672584951181,
         0.27982942400798977),
        (0.8840397619834857, 0.9637659445696822, 0.19018958438059513, 0.6962283914800402,
         0.943727057946997),
        (0.1712744286898638, 0.4485149671497294, 0.00045065329822896076, 0.0007887930317199857,
         0.8555432840895761),
        (0.9555801066212176, 0.13122106162635216, 0.6072996585919443, 0.05650711141169969,
         0.3214769399791204),
    ),
}  # fmt: skip
DENIED = {"long": 0.8716553966489615, "short": 0.3611577852354489}

RATESCORE = Metric(
    name="ratescore",
    description="F1 of how similar each entity is to the nearest one of the other report, weighted "
    "by their types; .5 where a report has no entities",
    higher_is_better=True,
    # Cosines of the published encoder are positive, and the number is then in [0, 1].
    bounds=(None, None),
    uses_image=False,
    uses_reference=True,
    citation="Zhao et al. 2024, RaTEScore, EMNLP",
    parameters=(
        Parameter(
            "ner",
            None,
            f"folder of the model RaTE-NER-Deberta; default: {NER_VARIABLE}; nothing is fetched",
            kind=str,
        ),
        Parameter(
            "synonyms",
            None,
            f"folder of the model BioLORD-2023-C; default: {SYNONYMS_VARIABLE}; nothing is fetched",
            kind=str,
        ),
        Parameter(
            "affinity",
            "long",
            "the published weights of pairs of types: for whole reports or for single sentences",
            choices=("long", "short"),
        ),
    ),
    further=(
        Output("precision", "of the candidate's entities", bounds=(-1.0, 1.0)),
        Output("recall", "of the reference's entities", bounds=(-1.0, 1.0)),
    ),
    cost="model",
)
