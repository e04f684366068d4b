"""What a model is and why it answered: planes as sums over the user's own columns.

column_terms         a model folded into one term per raw column
additive_form        its planes as sums of shapes that can be evaluated; shapes holds those
cells                raw cells to encoded rows and back
contributions        what each column adds to a margin; shapley for Fourier lifts
plane_cards          what each plane stands for
findings             what the owner of a model should look at again
global_explanation   ``explain_global``: the model as a whole
local_explanation    ``explain_local``: single rows
diagnostics          the paper's diagnostics: usage, overlap, responsibilities
drift                which planes answer for how many rows, then and now
editing              edits by hand, each with the exact change that it makes
"""
