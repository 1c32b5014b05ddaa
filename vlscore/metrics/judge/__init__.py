"""Judge by rules: each error of a candidate, with its category, its severity and a correction.

    >>> from vlscore.metrics import RuleJudge
    >>> judgement = RuleJudge().judge("Small left effusion.", "Small right effusion.")
    >>> [(str(e.category), e.severity, e.correction) for e in judgement.errors]
    [('wrong_location', 3, 'Small right effusion.')]

Every judge returns a `Judgement`. The rule judge needs no model: it compares the statements that
`vlscore.findings` extracts from two reports, with the tables in the folder `data`.
"""
