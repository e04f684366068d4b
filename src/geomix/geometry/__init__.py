"""Exact geometry of a model: decision boundaries, distances to them, and rules.

Everything here works on the additive form of a model (``explain/additive_form.py``): exact for
linear models, exact or with proved bounds for spline models (with pairs too) and ensembles.
Fourier models raise ``NoShapes``, except in ``rules``, which needs predictions only. Solvers are
SciPy's.

    projection       the nearest point of a polyhedron
    constraints      which cells of a row may change
    elimination      the smallest sum of small tables: the best cells of columns linked by pairs
    moves            the changes of a row as a table of segments; segments makes it
    search           search for cheap changes; refinement makes them exact
    cell_search      which cells columns should move to, where pairs link them
    few_columns      which columns to change, if only a few may change
    bounds           proved lower bounds of the distance to another class
    counterfactual   the nearest row of another class; its answers
    task, nearest    the search for one class; continuous and tightening find and improve its row;
                     several for more answers
    steps, options   the values that columns may take; branch_and_bound chooses among them
    certificate      radius without a change of the prediction; column_radius for curves
    intervals        probability intervals under measurement errors
    thresholds       values of one column at which the prediction changes
    rules            short rules that cover most rows, over rule_search and conditions
    regions, boxes   the regions of planes as inequalities or boxes
    monotone         whether a probability only rises, or only falls, with a column
"""
