"""Parameters of a fit: from --config and --set, checked against the estimator's own."""

from __future__ import annotations

import ast
import difflib
import importlib
import json
import sys
from typing import Any

from geomix.command.exit_codes import USAGE, Failure, usage

NOT_IN_A_FILE = {"help", "config", "set", "debug"}
LISTS = {"id", "drop", "categorical", "missing"}
SWITCHES = {"drop_unlabelled", "no_header", "json", "quiet", "strict", "single", "paper", "stream"}
SET_OTHERWISE = {
    "random_state": "--seed",
    "time_limit": "--time-limit",
    "categorical_features": "--categorical",
    "verbose": "a terminal",
    "advanced": "the names of its own fields, such as sharpness",
}


def read_config(path: Any, known: dict[str, Any]) -> dict[str, Any]:
    """The options in a TOML file, by their names with underscores."""
    content = _toml(path)
    options: dict[str, Any] = {}
    for key, value in content.items():
        name = key.replace("-", "_")
        if key == "parameters":
            if not isinstance(value, dict):
                raise usage(f"{path}: [parameters] must be a table")
            options["parameters"] = value
            continue
        if name not in known or name in NOT_IN_A_FILE:
            raise usage(f"{path}: no option {key!r}{_near(name, list(known))}")
        options[name] = _checked(path, key, name, value)
    return options


def _toml(path: Any) -> dict[str, Any]:
    try:
        tomllib = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    except ImportError as error:
        raise Failure(
            USAGE, "--config needs tomli before Python 3.11: pip install 'geomix[cli]'"
        ) from error
    with open(path, "rb") as file:
        try:
            content: dict[str, Any] = tomllib.load(file)
            return content
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise usage(f"{path}: {error}") from error


def _checked(path: Any, key: str, name: str, value: Any) -> Any:
    if name in LISTS:
        value = [value] if isinstance(value, str) else value
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise usage(f"{path}: {key} must be a text or a list of texts")
        return value
    if name in SWITCHES:
        expected: Any = bool
    elif name == "seed":
        expected = int
    else:
        expected = (int, float) if name == "time_limit" else (str, int, float)
    if not isinstance(value, expected) or (isinstance(value, bool) and expected is not bool):
        raise usage(f"{path}: got {key} = {value!r}, which it cannot be")
    return value if name in SWITCHES | {"seed", "time_limit"} else str(value)


def estimator_of(a: Any, *, verbose: bool) -> Any:
    """The estimator that the options describe; its parameters are checked before any reading."""
    from geomix.estimator import GeometricMixtureClassifier, routed

    given = {name: _value(text) for name, text in a.parameters.items()}
    for name in given:
        if name in SET_OTHERWISE:
            raise usage(f"the parameter {name} is set by {SET_OTHERWISE[name]}")
    given |= {"random_state": a.seed, "time_limit": a.time_limit, "verbose": int(verbose)}
    if a.paper:
        estimator = GeometricMixtureClassifier.paper(**given)
    else:
        estimator = GeometricMixtureClassifier(**routed(given))
    estimator.settings()
    return estimator


def _value(given: Any) -> Any:
    return value_of(given) if isinstance(given, str) else _fixed(given)


def value_of(text: str) -> Any:
    """The value of a text: as JSON or Python write it, or else the text itself."""
    for read in (json.loads, ast.literal_eval):
        try:
            return _fixed(read(text))
        except (ValueError, SyntaxError):
            continue
    return _fixed(text.split(",")) if "," in text else text


def _fixed(value: Any) -> Any:
    """Lists as tuples, which is how the estimator takes several lifts."""
    return tuple(value) if isinstance(value, list) else value


def _near(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""
