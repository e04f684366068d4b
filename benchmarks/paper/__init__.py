"""The paper's experiments again, all of them: tables, ablations, figures, and a verdict per claim.

    data.py, sets/        the eight data sets, and the way they are split
    adult.py              one more, for the comparison with GAM and EBM
    bayes.py              the best possible classifier of the sets whose generator is known
    models/               geomix three times and its rivals, one file each
    ablations.py          the paper's recipe with one thing changed
    sensitivity.py        the paper's recipe with one number moved
    limits.py             few rows and rare classes
    measure.py            one fit: quality, calibration, times, responsibilities
    results.py            measurements on disk
    tables.py             facts: what each table says, ours beside the paper's
    claims.py             facts: what the paper claims, and whether it held here
    concepts.py           facts: families of models side by side
    figures.py            the paper's figures;  diagram.py: the model as a picture;
                          glass_figure.py: three explanations of Adult
    render.py, report.py  Markdown and LaTeX; one HTML page
    run.py                the command

Protocol. Each set is split 60/20/20 into train, validation and test, stratified, once per seed;
the seed also feeds every model. Everyone learns from the same 80 %:

    geomix         the defaults, fitted on train + validation; it holds out its own rows
    geomix linear  the same with lift="linear", so that every plane is a sum over the columns
    GMC recipe     the paper's recipe: trained on train, stopped and calibrated on validation
    the rivals     standardised columns and the paper's grids: each setting is fitted on train, the
                   best on validation (accuracy, then log-loss) is refitted on train + validation;
                   beside the recipe, the fit on train counts: equal rows

Temperatures come from ``geomix.core.calibration`` for all: the rivals' from the validation rows
before
the refit, on log p. Support vector machines get probabilities by cross-validated Platt scaling
and predictions from the machine itself. Everything runs on one thread.
"""
