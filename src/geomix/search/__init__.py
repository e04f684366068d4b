"""Choosing a model: candidates compete on held-out rows, the winner is trained on all rows.

splits       which rows train a candidate and which validate it
folds        a candidate trained on one fold
trials       a candidate measured on every fold, and how two of them compare
neighbours   from a candidate to the next: penalty, width, knots
families     which kinds of model are tried, and in which order
selection    the winner, and the reason in a sentence
fit          ``fit_model``: from labelled rows to a model
warm_start   training that goes on from a fitted model
"""
