"""``geomix info``: what a model file says about itself, sound or broken (then exit code 4)."""

from __future__ import annotations

from typing import Any

from geomix.command import options
from geomix.command.exit_codes import MODEL, Failure, printed

EXAMPLES = """\
  geomix info m.geomix
  geomix info m.geomix --json
"""
MOST_SHOWN = 12


def add(commands: Any) -> None:
    parser = options.new_parser(commands, "info", "show what a model file holds", EXAMPLES)
    options.add_model(parser)
    options.add_json(parser)
    parser.set_defaults(run=run)


def run(a: Any) -> int:
    from dataclasses import asdict

    from geomix.modelfile.saving import info

    facts = info(a.model)
    if a.json:
        options.print_json(asdict(facts))
    else:
        print(text_of(facts))
    if facts.problem is not None:
        raise Failure(MODEL, f"{facts.path}: {facts.problem}.")
    return 0


def text_of(facts: Any) -> str:
    """Facts about a file, a line each; of a broken file those that can be told."""
    about = facts.manifest
    lines = {"file": facts.path, "bytes": facts.n_bytes, "sha256": facts.sha256}
    if about:
        version = about.get("format_version")
        lines["format"] = ".".join(map(str, version)) if isinstance(version, list) else version
        for key in ("written_by", "n_members", "sharpness", "temperature"):
            lines[key.replace("_", " ")] = about.get(key)
        lines["lift"] = _inside(about.get("lift"), "kind")
        lines["classes"] = _several(_inside(about.get("classes"), "values"))
        lines["columns"] = _several(_columns(about))
        training = about.get("training")
        if isinstance(training, dict):
            told = {key: value for key, value in training.items() if key != "plane_rows"}
            lines["training"] = ", ".join(
                f"{key} {value}" for key, value in told.items() if value not in ("", [])
            )
        edits = about.get("edits")
        lines["edits"] = len(edits) if isinstance(edits, list) else None
    lines["tensors"] = ", ".join(f"{one.name} {list(one.shape)}" for one in facts.tensors)
    shown = {key: value for key, value in lines.items() if value not in (None, "")}
    return "\n".join(f"{key:12s} {printed(str(value))}" for key, value in shown.items())


def _inside(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None


def _several(values: Any) -> str | None:
    if not isinstance(values, list):
        return None if values is None else str(values)
    shown = ", ".join(str(one) for one in values[:MOST_SHOWN])
    more = len(values) - MOST_SHOWN
    return f"{len(values)}: {shown}" + (f" and {more} more" if more > 0 else "")


def _columns(about: dict[str, Any]) -> Any:
    columns = about.get("columns")
    if not isinstance(columns, list):
        return about.get("n_columns")
    return [_inside(one, "name") if isinstance(one, dict) else one for one in columns]
