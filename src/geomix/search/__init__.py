"""Choosing a model: families race on validation rows, the winner is trained on all rows.

constants           every constant of the choice, with its reason
candidates          one way to build a model, and the steps to its neighbours
families            the families of models, from simple to rich
splits              which rows train a candidate and which validate it; the rungs of the race
fitted              what a fit on a fold leaves behind, with its rows or without
folds               a candidate trained on one fold
several_fits        a candidate trained on several folds, or from several random starts
trials              a candidate measured on every fold, and how two of them compare
parallel            fits side by side on threads
cost                the counted cost of a trial, and the budget
race                families compete, rung by rung
outcome             what a race found: the best of every family, the winner, the verdicts
shares              how many times the planes of other models are added to those of a model
winner              the families once more, as they would be returned
choosing            the race as part of a fit: the candidate and what was measured
blend               other models of the race, added to the planes of the winner
finish              spare planes go, curves are calmed, the temperature is fitted
assembly            the end of every fit: model, history and training state
fit                 ``fit_model``: from labelled rows to a model
warm_start          training that goes on from a fitted model
preset_comparison   every preset cross-validated: the price of readability
"""
