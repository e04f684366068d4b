"""Whether the native and the NumPy kernel choose the same model.

    python benchmarks/kernel_agreement.py [--data FOLDER] [--sets a,b] [--presets a,b] [--fresh]

The paper's eight data sets and four small tables of each part of the suite are split 80/20,
stratified, with seed 0. Each is fitted with the default parameters of a preset, once with each
kernel, each in a process of its own on one thread.

Reported: the chosen family, planes and penalty of both, how many trials of the race were the same
before the two parted (and the median relative difference of their losses), and on test rows the
log-loss and the largest difference of a probability.
``kernel_agreement.csv`` gets a line for each data set; a stopped run goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from itertools import takewhile
from pathlib import Path
from typing import Any

import ledger
import numpy as np
from markdown_table import table

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"
OUTPUT = ROOT / "benchmarks" / "results" / "kernel_agreement.csv"
TABLES = (
    "glass", "ionosphere", "credit_approval", "vehicle",
    "second/pima", "second/cmc", "second/mfeat_zernike", "second/churn",
)  # fmt: skip
PRESETS = ("readable", "accurate")
KERNELS = ("native", "numpy")
CHOICE = ("family", "planes", "pairs", "knots", "l2", "adaptive", "shrink_to_mean")
HEADER = (
    "preset", "data", *(f"{kernel}_{name}" for kernel in KERNELS for name in (*CHOICE, "log_loss")),
    "same_trials", "trials", "trial_difference", "largest_difference",
)  # fmt: skip


def main() -> None:
    from geomix.datasets import NAMES

    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA, metavar="FOLDER")
    parser.add_argument("--sets", default=",".join((*NAMES, *TABLES)), metavar="A,B")
    parser.add_argument("--presets", default=",".join(PRESETS), metavar="A,B")
    parser.add_argument("--fresh", action="store_true", help="measure again what is there already")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.one:
        print(json.dumps(fitted(*wanted.one, wanted.data)))
        return
    runs = [(p, name) for p in wanted.presets.split(",") for name in wanted.sets.split(",")]
    measure(runs, wanted.data, fresh=wanted.fresh)
    OUTPUT.with_suffix(".md").write_text(report(ledger.read(OUTPUT)))


def measure(runs: list[tuple[str, str]], data: Path, *, fresh: bool) -> None:
    """Run what the file does not have, adding a line for each; ``fresh`` drops them first."""
    lines = ledger.read(OUTPUT)
    if fresh:
        lines = [line for line in lines if (line["preset"], line["data"]) not in runs]
        ledger.replace(OUTPUT, HEADER, ([line[name] for name in HEADER] for line in lines))
    known = {(line["preset"], line["data"]) for line in lines}
    for preset, name in runs:
        if (preset, name) not in known:
            made = compared(name, preset, data)
            ledger.append(OUTPUT, HEADER, [[made[column] for column in HEADER]])
            print(preset, name, *(made[f"{kernel}_family"] for kernel in KERNELS), flush=True)


def compared(name: str, preset: str, data: Path) -> dict[str, Any]:
    """Both fits of a data set, as one line."""
    both = {kernel: in_process(name, preset, data, kernel) for kernel in KERNELS}
    native, numpy = (both[kernel] for kernel in KERNELS)
    pairs = zip(native["trials"], numpy["trials"], strict=False)
    same = list(takewhile(lambda pair: pair[0][:-1] == pair[1][:-1], pairs))
    losses = np.array([[one[-1], other[-1]] for one, other in same])
    gap = np.abs(np.array(native["P"]) - np.array(numpy["P"])).max()
    return {
        "preset": preset,
        "data": name,
        **{
            f"{kernel}_{name}": value
            for kernel, made in both.items()
            for name, value in zip(CHOICE, made["chosen"], strict=False)
        },
        **{f"{k}_log_loss": f"{made['log_loss']:.8g}" for k, made in both.items()},
        "same_trials": len(same),
        "trials": len(native["trials"]),
        "trial_difference": f"{np.median(np.abs(losses[:, 0] / losses[:, 1] - 1.0)):.2g}",
        "largest_difference": f"{gap:.2g}",
    }


def in_process(name: str, preset: str, data: Path, kernel: str) -> dict[str, Any]:
    """A fit in a process with this kernel."""
    threads = {"OPENBLAS_NUM_THREADS": "1", "GEOMIX_NUM_THREADS": "1"}
    environment = {**os.environ, **threads, "GEOMIX_KERNEL": kernel}
    command = [sys.executable, __file__, "--one", name, preset, "--data", str(data)]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


def fitted(name: str, preset: str, data: Path) -> dict[str, Any]:
    from quality import log_loss
    from sklearn.model_selection import train_test_split

    from geomix import GeometricMixtureClassifier

    X, y = rows_of(name, data)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, stratify=y, random_state=0)
    clf = GeometricMixtureClassifier(preset=preset, random_state=0).fit(X, y)
    P = clf.predict_proba(X_test)
    return {
        "chosen": next(choice_of(trial) for trial in clf.history_.trials if trial.chosen),
        "trials": [choice_of(trial) for trial in clf.history_.trials],
        "log_loss": log_loss(P, np.searchsorted(clf.classes_, y_test)),
        "P": P.tolist(),
    }


def choice_of(trial: Any) -> list[Any]:
    """The values of ``CHOICE``, and the validation loss."""
    values = [trial.family, trial.n_planes, trial.n_pairs, trial.n_knots, f"{trial.l2:.6g}"]
    return [*values, trial.adaptive, trial.shrink_to_mean, trial.valid_loss]


def rows_of(name: str, data: Path) -> tuple[Any, Any]:
    from geomix.datasets import NAMES, load

    if name in NAMES:
        made = load(name, random_state=0)
        return made.X, made.y
    from suite_tables import read_table

    return read_table(data / f"{name}.parquet")


def report(lines: list[dict[str, str]]) -> str:
    text = ["# Kernels", "", "Made by `python benchmarks/kernel_agreement.py`, which describes it."]
    for preset in dict.fromkeys(line["preset"] for line in lines):
        found = [line for line in lines if line["preset"] == preset]
        text += ["", f"## {preset}", "", *summary(found), "", *comparison(found)]
    return "\n".join(text) + "\n"


def summary(lines: list[dict[str, str]]) -> list[str]:
    """How many chose the same, and the largest differences on test rows."""
    counts = {name: sum(is_same(line, name) for line in lines) for name in CHOICE}
    whole = sum(all(is_same(line, name) for name in CHOICE) for line in lines)
    worst = max(lines, key=loss_difference)
    return [
        f"The same model on {whole} of {len(lines)} data sets: the same family on "
        f"{counts['family']}, as many planes on {counts['planes']}, the same penalty on "
        f"{counts['l2']}. Largest difference of log-loss: {loss_difference(worst):.4f} "
        f"({worst['data']})."
    ]


def comparison(lines: list[dict[str, str]]) -> list[str]:
    head = ["data", "native", "NumPy", "trials before they part", "their losses differ by"]
    head += ["test log-loss, native", "NumPy", "largest difference of a probability"]
    body = [
        [
            line["data"],
            *(described(line, kernel) for kernel in KERNELS),
            "all" if is_whole(line) else f"{line['same_trials']} of {line['trials']}",
            f"{float(line['trial_difference']):.0e}",
            *(f"{float(line[f'{kernel}_log_loss']):.4f}" for kernel in KERNELS),
            f"{float(line['largest_difference']):.0e}",
        ]
        for line in lines
    ]
    return table(head, body)


def is_same(line: dict[str, str], name: str) -> bool:
    native, numpy = (line[f"{kernel}_{name}"] for kernel in KERNELS)
    return native == numpy


def is_whole(line: dict[str, str]) -> bool:
    return line["same_trials"] == line["trials"]


def loss_difference(line: dict[str, str]) -> float:
    native, numpy = (float(line[f"{kernel}_log_loss"]) for kernel in KERNELS)
    return abs(native - numpy)


def described(line: dict[str, str], kernel: str) -> str:
    """A chosen model in a few words; the second kernel's only where it differs."""
    if kernel == KERNELS[1] and all(is_same(line, name) for name in CHOICE):
        return "the same"
    found = {name: line[f"{kernel}_{name}"] for name in CHOICE}
    words = [found["family"], f"{found['planes']} planes", f"l2 {float(found['l2']):.3g}"]
    words += [f"{found['knots']} knots"] if found["knots"] not in ("", "None") else []
    words += [f"{found['pairs']} pairs"] if found["pairs"] != "0" else []
    words += ["adaptive"] if found["adaptive"] == "True" else []
    return ", ".join(words)


if __name__ == "__main__":
    main()
