"""Judge by rules: each error of a candidate, with its category, its severity and a correction.

    >>> from vlscore.metrics import RuleJudge
    >>> judgement = RuleJudge().judge("Small left effusion.", "Small right effusion.")
    >>> [(str(e.category), e.severity, e.correction) for e in judgement.errors]
    [('wrong_location', 3, 'Small right effusion.')]

Every judge returns a `Judgement`. The rule judge needs no model: it compares the statements that
`vlscore.findings` extracts from two reports, with the tables in the folder `data`. Its steps, each
in a file of its own:

1. `statement_reading`: each finding of a report is a statement: what, where, how much, since when;
   `statement_parts` makes one for each place, `merged_statements` makes one of what is said twice.
2. `statement_pairs`: statements of both reports about one finding are pairs.
3. `pair_errors`: name, place, position and extent of a pair differ, or it is right.
4. `lone_statements`: what is left of the candidate is invented, what is left of the reference is
   omitted, unless the other report says it in other words.
5. `stated_changes`: what a report says of changes; `judged_changes`: those of pairs, and of what is
   left, agree or do not.
6. `severities`: how much each error matters; `judgement`: the rating of all of them.

`report_comparison` runs them; `corrected_lines` writes each correction.
"""
