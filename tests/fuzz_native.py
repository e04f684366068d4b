"""A fuzzer on native code: scorer, tables, frames, sparse rows, binning, training terms.

    python tests/fuzz_native.py --seconds 600 --seed 1

Cases run in child processes: when one dies, its seed is printed. A case may be refused with
TypeError, ValueError or OverflowError. Answers have to agree with NumPy, or with the same row in
another form.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

import numpy as np
import scipy.sparse

REFUSALS = (TypeError, ValueError, OverflowError)
CASES_PER_CHILD = 400
ODD = [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 1e-300, 0.0, -0.0, 2.0**53]


def numbers(rng, *shape):
    """Numbers of every size, some of them odd."""
    made = rng.standard_normal(shape) * 10.0 ** rng.integers(-8, 9)
    if rng.random() < 0.5 and made.size:
        made.ravel()[rng.integers(made.size, size=3)] = rng.choice(ODD, 3)
    return made


def layout(rng, X):
    """The same numbers in some other layout or type."""
    kind = rng.integers(8)
    if kind == 0:
        return np.asfortranarray(X)
    if kind == 1:
        return np.repeat(X, 2, axis=0)[::2]
    if kind == 2:
        return X[::-1][::-1]
    if kind == 3:  # not aligned
        raw = np.frombuffer(b"\0" + np.ascontiguousarray(X).tobytes(), np.uint8)[1:]
        return raw.view(np.float64).reshape(X.shape) if X.size else X
    if kind == 4:
        return X.astype(">f8")
    if kind == 5:
        X = X.copy()
        X.flags.writeable = False
        return X
    return X


def models():
    """Small models of every lift, by name."""
    from geomix import GeometricMixtureClassifier, Recipe

    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 5))
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)
    holes = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    made = {}
    for lift in ("linear", "spline", "fourier"):
        settings = {"lift": lift, "l2": 1e-3, "max_iter": 3, "random_state": 0}
        recipe = Recipe(calibrate=False, n_frequencies=16)
        for n_planes in (1, 3):
            clf = GeometricMixtureClassifier(**settings, n_planes=n_planes, advanced=recipe)
            made[lift, n_planes] = clf.fit(X, y).model_
        clf = GeometricMixtureClassifier(**settings, n_planes=2, advanced=recipe)
        made[lift, "holes"] = clf.fit(holes, y).model_
    return list(made.values())


def answers_are_probabilities(P):
    assert np.isfinite(P).all()
    assert (P >= 0.0).all()
    np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=1e-9)


def fuzz_table(rng, model):
    n_columns = 5 if rng.random() < 0.9 else int(rng.integers(0, 9))
    X = numbers(rng, int(rng.integers(0, 300)), n_columns)
    P = model.predict_proba(layout(rng, X))
    for what in ("class_scores", "plane_scores", "responsibilities"):
        getattr(model, what)(layout(rng, X))
    if not np.isinf(X).any():
        answers_are_probabilities(P)
        some = rng.integers(len(X), size=3) if len(X) else []
        for i in some:
            assert np.array_equal(model.predict_proba(X[i : i + 1])[0], P[i])


def fuzz_scorer(rng, model):
    score = model.scorer()
    row = numbers(rng, 5 if rng.random() < 0.9 else int(rng.integers(0, 9)))
    kind = rng.integers(6)
    given = [row, row.tolist(), tuple(row), row[::-1][::-1], row.astype(np.float32), row[None, :]][
        kind
    ]
    if rng.random() < 0.2:
        odd = ["x", None, b"1", 1j, [1.0], 10**400, object(), np.float16(3), True]
        given = row.tolist()
        if given:
            given[int(rng.integers(len(given)))] = odd[int(rng.integers(len(odd)))]
    out = None
    if rng.random() < 0.3:
        out = np.empty(int(rng.integers(1, 5)), dtype=rng.choice([np.float64, np.float32]))
    p = score(given) if out is None else score(given, out=out)
    score.predict(given)
    score.explain(given)
    if np.isfinite(row).all() and kind in (0, 1, 2, 3) and given is not None and out is None:
        answers_are_probabilities(p[None, :])


def fuzz_sparse(rng, model):
    X = numbers(rng, int(rng.integers(1, 60)), 5)
    X[rng.random(X.shape) < 0.6] = 0.0
    S = scipy.sparse.csr_array(X)
    S.indices, S.indptr = S.indices.copy(), S.indptr.copy()
    broken = rng.random() < 0.6
    if broken:
        target = S.indices if rng.random() < 0.5 and len(S.indices) else S.indptr
        target[int(rng.integers(len(target)))] = rng.choice([-1, 5, 7, 10**6, -(2**31), 2**31 - 1])
        if rng.random() < 0.3:
            S.indices = S.indices[:-1]
    P = model.predict_proba(S)
    if not broken and np.isfinite(X).all():
        answers_are_probabilities(P)


def fuzz_frame(rng, model):
    """Frames of polars and Arrow in many types, with offsets, chunks and nulls."""
    import polars as pl
    import pyarrow as pa

    n = int(rng.integers(1, 40))
    types = ["float64", "float32", "int64", "int8", "uint16", "bool"]
    columns, plain = {}, np.empty((n, 5))
    for j in range(5):
        kind = types[int(rng.integers(len(types)))]
        cells = rng.integers(0, 2 if kind == "bool" else 100, n).astype(kind)
        missing = rng.random(n) < (0.3 if rng.random() < 0.5 else 0.0)
        columns[f"x{j}"] = pa.array(cells, mask=missing)
        plain[:, j] = np.where(missing, np.nan, cells)
    table = pa.table(columns)
    first = int(rng.integers(0, n))
    table, plain = table.slice(first), plain[first:]
    kind = rng.integers(4)
    if kind == 0 and len(plain) > 1:
        cut = int(rng.integers(1, len(plain)))
        table = pa.concat_tables([table.slice(0, cut), table.slice(0, 0), table.slice(cut)])
    frame = [table, table.combine_chunks(), pl.from_arrow(table), table.to_pandas()][kind]
    P = model.predict_proba(frame)
    answers_are_probabilities(P)
    assert np.array_equal(P, model.predict_proba(plain))
    assert np.array_equal(model.predict_proba(frame[:1]), P[:1])


def fuzz_binning(rng, model):
    from geomix.core import kernel
    from geomix.core.spline import fit_spline

    X = numbers(rng, int(rng.integers(2, 200)), 3)
    X[np.isinf(X)] = 1.0
    levels = int(rng.integers(0, 5))
    if levels:
        X[:, 2] = rng.integers(-1, levels, len(X))
    counts = np.array([0, 0, levels])
    lift = fit_spline(X, rng.uniform(0.1, 2.0, len(X)), counts, int(rng.integers(2, 60)), ((0, 1),))
    if lift.parts:
        Z = numbers(rng, int(rng.integers(1, 100)), 3)
        assert np.array_equal(kernel.binned(lift, layout(rng, Z)).codes, lift.binned(Z).codes)


def fuzz_training(rng, model):
    from geomix.core import kernel
    from geomix.core.planes import Planes, class_starts

    n, d, per_class = int(rng.integers(1, 200)), int(rng.integers(1, 20)), rng.integers(1, 4, 3)
    X, y = rng.standard_normal((n, d)), rng.integers(0, 3, n)
    weight = rng.uniform(0.1, 2.0, n)
    planes = Planes(
        rng.standard_normal((per_class.sum(), d)),
        rng.standard_normal(per_class.sum()),
        class_starts(per_class),
    )
    ours = kernel.training_rows(layout(rng, X), y, weight).terms(planes, 6.0, 0.02)
    theirs = kernel.NumpyRows(X, y, weight).terms(planes, 6.0, 0.02)
    np.testing.assert_allclose(ours.loss, theirs.loss, rtol=1e-9)
    np.testing.assert_allclose(
        ours.weights_gradient, theirs.weights_gradient, atol=1e-8 * max(n, 1)
    )


PARTS = (fuzz_table, fuzz_scorer, fuzz_sparse, fuzz_frame, fuzz_binning, fuzz_training)


def child(seed):
    import warnings

    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    every, n_refused = models(), 0
    for case in range(CASES_PER_CHILD):
        rng = np.random.default_rng((seed, case))
        part = PARTS[int(rng.integers(len(PARTS)))]
        try:
            part(rng, every[int(rng.integers(len(every)))])
        except REFUSALS:
            n_refused += 1
        except Exception as error:
            raise SystemExit(f"seed {seed}, case {case}, {part.__name__}: {error!r}") from error
    print(n_refused)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--child", type=int)
    args = parser.parse_args()
    if args.child is not None:
        return child(args.child)
    end, seed, n_refused = time.monotonic() + args.seconds, args.seed, 0
    while time.monotonic() < end:
        done = subprocess.run(
            [sys.executable, __file__, "--child", str(seed)], capture_output=True, text=True
        )
        if done.returncode:
            print(f"seed {seed}: exit code {done.returncode}\n{done.stderr[-3000:]}")
            raise SystemExit(1)
        n_refused += int(done.stdout)
        seed += 1
    n_cases = (seed - args.seed) * CASES_PER_CHILD
    print(f"{n_cases} cases in {args.seconds:g} s: {n_refused} refused, no crash, none wrong.")
    return None


if __name__ == "__main__":
    main()
