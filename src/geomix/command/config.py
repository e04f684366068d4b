"""Parameters of ``geomix fit``, from --config and --set, checked against the estimator."""

from __future__ import annotations

import ast
import difflib
import importlib
import json
import sys
from typing import Any

from geomix.command.exit_codes import USAGE, CommandError, usage_error
from geomix.command.options import LARGEST_SEED

ONLY_TYPED = {
    "set": "write parameters in the table [parameters]",
    "data": "name the files of rows on the command line",
    "config": "a settings file cannot name another one",
    "debug": "type --debug on the command line",
}
NOT_CONFIGURABLE = {"help", *ONLY_TYPED}
LISTS = {"id", "drop", "categorical", "missing"}
SWITCHES = {
    "drop_unlabelled",
    "no_header",
    "json",
    "quiet",
    "strict",
    "single",
    "paper",
    "stream",
    "force",
}
SET_BY_OPTION = {
    "random_state": "--seed",
    "time_limit": "--time-limit",
    "categorical_features": "--categorical",
    "verbose": "the terminal: progress is shown there unless --quiet",
    "advanced": "the names of its own fields, such as sharpness",
}


def read_config(path: Any, known: dict[str, Any]) -> dict[str, Any]:
    """The options of a TOML file, by name with underscores."""
    content = _toml(path)
    options: dict[str, Any] = {}
    for key, value in content.items():
        name = key.replace("-", "_")
        if key == "parameters":
            if not isinstance(value, dict):
                raise usage_error(f"{path}: [parameters] must be a table")
            options["parameters"] = value
            continue
        if name not in known or name in NOT_CONFIGURABLE:
            allowed = sorted(set(known) - NOT_CONFIGURABLE)
            raise usage_error(f"{path}: no option {key!r}{_unknown(name, allowed)}")
        options[name] = _checked(path, key, name, value)
    return options


def _toml(path: Any) -> dict[str, Any]:
    try:
        tomllib = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    except ImportError as error:
        raise CommandError(
            USAGE, "--config needs tomli before Python 3.11: pip install 'geomix[cli]'"
        ) from error
    with open(path, "rb") as file:
        try:
            content: dict[str, Any] = tomllib.load(file)
            return content
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise usage_error(f"{path}: {error}") from error


def _checked(path: Any, key: str, name: str, value: Any) -> Any:
    if name in LISTS:
        value = [value] if isinstance(value, str) else value
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise usage_error(f"{path}: {key} must be a string or a list of strings")
        return value
    types, described = _expected(name)
    if not isinstance(value, types) or (isinstance(value, bool) and types is not bool):
        raise usage_error(f"{path}: got {key} = {value!r}; expected {described}")
    if name == "seed" and not 0 <= value <= LARGEST_SEED:
        raise usage_error(
            f"{path}: got {key} = {value}; expected a whole number from 0 to {LARGEST_SEED}"
        )
    return value if name in SWITCHES | {"seed", "time_limit"} else str(value)


def _expected(name: str) -> tuple[Any, str]:
    """The types of an option's value, and what to call them."""
    if name in SWITCHES:
        return bool, "true or false"
    if name == "seed":
        return int, "a whole number"
    return ((int, float), "a number") if name == "time_limit" else ((str, int, float), "a string")


def estimator_of(args: Any, *, verbose: bool) -> Any:
    """The estimator for these options; its parameters are checked before any file is read."""
    from geomix.estimator import GeometricMixtureClassifier, routed

    given = {name: _value(text) for name, text in args.parameters.items()}
    for name in given:
        if name in SET_BY_OPTION:
            raise usage_error(f"the parameter {name} is set by {SET_BY_OPTION[name]}")
    given |= {"random_state": args.seed, "time_limit": args.time_limit, "verbose": int(verbose)}
    if args.paper:
        estimator = GeometricMixtureClassifier.paper(**given)
    else:
        estimator = GeometricMixtureClassifier(**routed(given))
    estimator.settings()
    return estimator


def _value(given: Any) -> Any:
    return value_of(given) if isinstance(given, str) else _as_tuple(given)


def value_of(text: str) -> Any:
    """A string as a JSON or Python value; the string itself if it is neither."""
    for read in (json.loads, ast.literal_eval):
        try:
            return _as_tuple(read(text))
        except (ValueError, SyntaxError):
            continue
    return _as_tuple(text.split(",")) if "," in text else text


def _as_tuple(value: Any) -> Any:
    """Lists as tuples, as the estimator expects for several lifts."""
    return tuple(value) if isinstance(value, list) else value


def _unknown(name: str, known: list[str]) -> str:
    if name in ONLY_TYPED:
        return f"; {ONLY_TYPED[name]}"
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""
