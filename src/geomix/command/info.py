"""``geomix info``: the content of a model file. Exit code 4 if the file is damaged."""

from __future__ import annotations

from typing import Any

from geomix.command import options
from geomix.command.exit_codes import MODEL, CommandError, printable_text

EXAMPLES = """\
  geomix info m.geomix
  geomix info m.geomix --json
"""
MOST_SHOWN = 12


def add(commands: Any) -> None:
    parser = options.new_parser(commands, "info", "show the content of a model file", EXAMPLES)
    options.add_model(parser)
    options.add_json(parser)
    parser.set_defaults(run=run)


def run(args: Any) -> int:
    from dataclasses import asdict

    from geomix.modelfile.saving import info

    facts = info(args.model)
    if args.json:
        options.print_json(asdict(facts))
    else:
        print(as_text(facts))
    if facts.problem is not None:
        raise CommandError(MODEL, f"{facts.path}: {facts.problem}.")
    return 0


def as_text(facts: Any) -> str:
    """One line per fact; of a damaged file, the facts that can still be read."""
    about = facts.manifest
    lines = {"file": facts.path, "bytes": facts.n_bytes, "sha256": facts.sha256}
    if about:
        version = about.get("format_version")
        lines["format"] = ".".join(map(str, version)) if isinstance(version, list) else version
        for key in ("written_by", "n_members", "sharpness", "temperature"):
            lines[key.replace("_", " ")] = about.get(key)
        lines["lift"] = _get(about.get("lift"), "kind")
        lines["classes"] = _shortened(_get(about.get("classes"), "values"))
        lines["columns"] = _shortened(_columns(about))
        training = about.get("training")
        if isinstance(training, dict):
            shown_facts = {key: value for key, value in training.items() if key != "plane_rows"}
            lines["training"] = ", ".join(
                f"{key} {value}" for key, value in shown_facts.items() if value not in ("", [])
            )
        edits = about.get("edits")
        lines["edits"] = len(edits) if isinstance(edits, list) else None
    lines["tensors"] = ", ".join(f"{one.name} {list(one.shape)}" for one in facts.tensors)
    shown = {key: value for key, value in lines.items() if value not in (None, "")}
    return "\n".join(f"{key:12s} {printable_text(str(value))}" for key, value in shown.items())


def _get(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None


def _shortened(values: Any) -> str | None:
    if not isinstance(values, list):
        return None if values is None else str(values)
    shown = ", ".join(str(one) for one in values[:MOST_SHOWN])
    more = len(values) - MOST_SHOWN
    return f"{len(values)}: {shown}" + (f" and {more} more" if more > 0 else "")


def _columns(about: dict[str, Any]) -> Any:
    columns = about.get("columns")
    if not isinstance(columns, list):
        return about.get("n_columns")
    return [_get(one, "name") if isinstance(one, dict) else one for one in columns]
