"""Explaining a model: its planes as sums over the user's own columns.

cells                raw cells to encoded rows and back
column_terms         a model folded into one term per raw column
additive_form        planes as sums of shapes over columns; shapes
pair_grids           the pair terms of a model on common cells of each column
contributions        the part of a margin that each column adds; shapley for Fourier lifts
effects              ``effects``: a curve for each column and class, with bands
effect_facts, effect_reader, effect_bands   its facts, how they are made, how sure they are
partial_dependence, interactions, pair_tables   several planes, and columns that act together
interpret_data       explanations in the form of InterpretML
importances          mean size of each column's contributions
coefficients         ``coef_`` and ``intercept_`` of models with one linear plane per class
plane_cards          one summary per plane
findings             facts that the owner of a model should check
global_explanation   ``explain_global``: the model as a whole
local_explanation    ``explain_local``: single predictions
plane_names          planes in text for people, counted from 1
diagnostics          the paper's diagnostics: usage, overlap, responsibilities
drift, column_drift  differences between two tables, in planes and in columns
editing              edits of a model, each with the exact change of the scores
"""
