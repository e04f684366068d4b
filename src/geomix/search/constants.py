"""Every constant of the choice, with its reason. Nothing else in ``search/`` counts rows.

A constant is kept only if it helps or is level on both parts of the benchmark tables; the
decisions have the figures.
"""

from __future__ import annotations

from typing import NamedTuple

# --- rows ---


class FewestRows(NamedTuple):
    """Distinct rows from which on some are held out; training rows from which on several planes
    with pairs race."""

    to_hold_out: int
    for_planes_with_pairs: int


# Fewer rows cannot both train and validate. Of 45 races on 200 and 700 rows, several planes with
# pairs won none (decision 64).
FEWEST_ROWS = FewestRows(to_hold_out=50, for_planes_with_pairs=800)

# Below each number of rows, the folds of the cross-validation; above, one split. A validation
# part of 200 to 400 rows chooses in part at random (decision 75).
FOLDS_UP_TO = {300: 10, 2000: 5}

# Training rows of each rung of the race. Families that lose on few rows are dropped before they
# cost anything; a penalty found on n rows is l2 n / N beside N rows. A rung with less than twice
# the rows of the last takes its place (decision 101).
ROWS_PER_RUNG = (2_500, 10_000, 20_000)


class Calibration(NamedTuple):
    """Above ``from_rows`` rows the final planes leave a share out, at most ``most`` rows. Where
    families were not compared on folds, as many are trained as have ``enough`` validation rows."""

    from_rows: int
    share: float
    most: int
    enough: int = 1_000


# The temperature of planes that were trained on fewer rows than the final ones is too high.
CALIBRATION = Calibration(from_rows=50_000, share=0.05, most=10_000)

# --- the rules of the race ---

# A family is dropped when it is behind by this many standard errors of the paired difference ...
ERRORS_TO_DROP = 2.0


class Margin(NamedTuple):
    """Shares of a loss by which a family may be behind: the best of all, or the family that it
    starts from, after a walk along an axis; the latter, before the first walk on few rows."""

    of_best: float
    of_start: float


# ... plus this share of the best loss: on many rows every difference is significant. Of 130
# families of curves on few rows that started 5 % behind their parent, two won (decision 64).
MARGIN_TO_DROP = Margin(of_best=0.02, of_start=0.05)

# A simpler family wins if it is behind by at most this many standard errors, since the best of
# many candidates is partly lucky (the one-standard-error rule) ...
ERRORS_TO_PREFER_SIMPLE = 1.0
# ... plus this share of the best loss, by preset: what reading a simpler model is worth.
WORTH_IT = {"readable": 0.005, "accurate": 0.0, "fast": 0.0}


class Nats(NamedTuple):
    """Sums of losses over the validation rows."""

    left_to_win: float
    worth_a_step: float


# The race ends where less is left to win. A step along an axis that gains less is a tie, which
# rounding would decide: another CPU would choose another model (decision 65).
NATS = Nats(left_to_win=1.0, worth_a_step=0.1)

# --- costs: rows x features x planes x iterations, counted before a trial starts ---

# Iterations of a trial: candidates differ by more than what later iterations gain.
ITERATIONS_PER_TRIAL = 100
# Iterations of planes that others start from, or that measure importance: they need not converge.
ITERATIONS_OF_FIRST_PLANES = 50


class Starts(NamedTuple):
    """Random starts of the final training, and the share by which a later one must be lower."""

    number: int
    worth_it: float


# Several planes have several optima: the lowest training objective is kept, which is the lower
# test loss too (decision 56). A start that is lower by rounding found the same optimum.
STARTS = Starts(number=3, worth_it=1e-4)


class Operations(NamedTuple):
    """What the race of a preset may count: for each cell and class of its largest rung, and at most
    in all."""

    per_cell: dict[str, int]
    most: dict[str, float]


# 1e10 operations are 1 to 4 s of one core.
OPERATIONS = Operations(
    per_cell={"readable": 150_000, "accurate": 600_000, "fast": 150_000},
    most={"readable": 7e10, "accurate": 1.2e11, "fast": 2e10},
)

# --- where the axes start and end ---


class Axis(NamedTuple):
    """Where an axis starts, and its range."""

    start: float
    low: float
    high: float


# Fourier features are bounded by one, standardised columns are not: weights differ in scale.
L2 = {
    "linear": Axis(1e-4, 1e-6, 1e-1),
    "spline": Axis(1e-3, 1e-6, 1.0),
    "fourier": Axis(1e-5, 1e-7, 1e-2),
}
# Knots of a curve; the curves of several planes share the detail.
KNOTS = {"one plane": Axis(64, 16, 248), "several planes": Axis(32, 16, 64)}
# In steps of four: the kernel width as a factor of the one that the median distance suggests, and
# the penalty of a table over a pair of columns as a factor of that of the curves.
FACTORS = {"gamma": Axis(1.0, 1 / 16, 64.0), "pair penalty": Axis(1.0, 1 / 16, 64.0)}
# Share of the penalty that is taken off the mean plane of a class, so that planes shrink to it.
SHRINKAGE = 0.9

# --- finishing a model ---


class Calm(NamedTuple):
    """Changes of direction of a curve that may be removed (log-odds), and the share of the loss
    that this may cost, by preset."""

    tolerances: tuple[float, ...]
    price: dict[str, float]


# The largest tolerance whose validation loss is within 0.1 % of the smallest: people read the
# curves, and calm ones are better on new rows too. Nothing may be paid for what is not read.
CALM = Calm(
    (0.02, 0.05, 0.1, 0.2, 0.3, 0.5), price={"readable": 0.001, "accurate": 0.0, "fast": 0.001}
)

# How many times the plane of another model may be added to the planes of the winner. More than
# none only where that is better by ``ERRORS_TO_DROP`` standard errors.
SHARES_OF_OTHERS = (0.25, 0.5, 1.0, 2.0)

# --- ensembles, preset "accurate" only ---


class Ensemble(NamedTuple):
    """``members`` models up to ``most_rows`` rows."""

    members: int
    most_rows: int


# Members even out which of many optima training fell into; many rows leave few optima.
ENSEMBLE = Ensemble(members=8, most_rows=20_000)
