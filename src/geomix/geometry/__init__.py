"""Exact questions about a model's regions: where they end, how far that is, what they look like.

Everything here works on the additive form of a model (``explain/additive_form.py``): exact for
linear models, exact or with proved bounds for spline models and ensembles, declared unavailable
(``NoShapes``) for Fourier ones. Solvers are SciPy's.

    projection       the nearest point of a polyhedron
    freedom          what of a row may change
    moves            the changes of a row as a table
    search           the search for cheap ones, tightening makes them exact
    bounds           proved lower bounds of the distance to another class
    counterfactual   the nearest row of another class
    certificate      radius without a change of answer, falls that of curves
    intervals        probabilities under errors of measurement
    thresholds       values of one column at which the answer flips
    regions, boxes   regions as rules
    monotone         whether a probability only rises, or only falls, with a column
"""
