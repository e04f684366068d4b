"""Every constant of the choice, with its reason. Nothing else in ``search/`` counts rows.

Each was kept because it helps or is level on both parts of the benchmark tables
(``benchmarks/results/suite``); the decisions have the figures.
"""

from __future__ import annotations

# --- rows ---
# Fewer distinct rows than this cannot both train and validate: nothing is held out.
FEWEST_ROWS_TO_HOLD_OUT = 50
# Up to each number of rows, the folds of the cross-validation; above, one split. A validation
# part of fewer than 200 rows would choose at random.
FOLDS_UP_TO = {300: 10, 1000: 5}
# Training rows of each rung of the race. Families that lose on few rows are dropped before they
# cost anything; a penalty found on n rows is l2 n / N beside N rows.
ROWS_PER_RUNG = (2_500, 10_000, 20_000)
# Above this many rows the final planes leave a share out, at most so many rows, to calibrate them:
# the temperature of planes trained on fewer rows would be too high.
ROWS_TO_HOLD_OUT_FOR_CALIBRATION = 50_000
SHARE_FOR_CALIBRATION, MOST_FOR_CALIBRATION = 0.05, 10_000

# --- the rules of the race ---
# A family is dropped when it is behind by this many standard errors of the paired difference ...
ERRORS_TO_DROP = 2.0
# ... plus this share of the best loss: on many rows every difference is significant.
MARGIN_TO_DROP = 0.02
# A simpler family wins if it is behind by at most this many standard errors: the best of many
# candidates is partly lucky.
ERRORS_TO_PREFER_SIMPLE = 0.5
# ... plus this share of the best loss, by preset: what a reader gains is worth that much.
WORTH_IT = {"readable": 0.005, "accurate": 0.0, "fast": 0.0}
# Validation rows whose losses sum to less than this leave nothing to win (nats).
NOTHING_TO_WIN = 1.0

# --- costs: rows x columns x planes x iterations, counted before a trial starts ---
# Iterations of a trial; candidates differ by more than what later iterations gain.
ITERATIONS_PER_TRIAL = 100
# The race may count this many operations for each cell and class of its largest rung ...
OPERATIONS_PER_CELL = 150_000
# ... and at most so many in all (about 15 s of one core for "readable"), by preset.
MOST_OPERATIONS = {"readable": 1.5e10, "accurate": 5e10, "fast": 1.5e10}

# --- finishing a readable model ---
# Folds on which the winner is trained again, to decide its temperature and how calm its curves are.
CHECK_FOLDS = 4
# Changes of direction of a curve that may be removed (log-odds), the largest first, and the share
# of the validation loss that may be paid for it.
CALM_TOLERANCES = (0.5, 0.3, 0.2, 0.1, 0.05, 0.02)
CALM_PRICE = 0.002

# --- ensembles, preset "accurate" only ---
# Members even out which of many optima training fell into; many rows leave few optima.
MEMBERS, MOST_ROWS_FOR_ENSEMBLE = 8, 20_000
