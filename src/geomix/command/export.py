"""``geomix export``: a model as ONNX, C, SQL or JSON."""

from __future__ import annotations

from typing import Any

from geomix.command import options
from geomix.command.exit_codes import USAGE, exit_code_for_bad_values, usage_error

EXAMPLES = """\
  geomix export m.geomix --to onnx -o m.onnx
  geomix export m.geomix --to c -o m.c --prefix credit_
  geomix export m.geomix --to sql --table customers --keep id --dialect sqlite
"""
ONLY_FOR = {
    "prefix": "c",
    "double": "onnx",
    "missing_text": "onnx",
    "table": "sql",
    "keep": "sql",
    "dialect": "sql",
}


def add(commands: Any) -> None:
    parser = options.new_parser(commands, "export", "write a model in another format", EXAMPLES)
    options.add_model(parser)
    parser.add_argument(
        "--to", required=True, choices=("onnx", "c", "sql", "json"), help="the format"
    )
    parser.add_argument(
        "-o", "--output", default="-", metavar="FILE", help="default: standard output"
    )
    parser.add_argument("--prefix", metavar="TEXT", help="c: prefix of every name")
    parser.add_argument("--double", action="store_true", help="onnx: float64 instead of float32")
    parser.add_argument(
        "--missing-text",
        metavar="TEXT",
        help="onnx: the text that stands for a missing category (default: empty)",
    )
    parser.add_argument("--table", metavar="NAME", help="sql: the table to read from")
    parser.add_argument(
        "--keep", action="append", metavar="COL", help="sql: a column to copy (repeatable)"
    )
    parser.add_argument(
        "--dialect", choices=("duckdb", "sqlite", "postgres"), help="sql: default duckdb"
    )
    parser.set_defaults(run=run)


def run(args: Any) -> int:
    from geomix.tablefile.writer import output

    for name, form in ONLY_FOR.items():
        if getattr(args, name) and args.to != form:
            raise usage_error(f"--{name.replace('_', '-')} is for --to {form}")
    options.check_output_is_no_input(args.output, args.model)
    options.check_writable(args.output)
    model = options.load_model(args.model)
    with exit_code_for_bad_values(USAGE):
        content = exported(model, args)
    with output(args.output) as file:
        file.write(content)
    return 0


def exported(model: Any, args: Any) -> bytes:
    """The content of the exported file."""
    from geomix import export

    if args.to == "onnx":
        from geomix.export.onnx import to_onnx

        graph = to_onnx(model, double=args.double, missing_text=args.missing_text or "")
        content: bytes = graph.SerializeToString()
        return content
    if args.to == "c":
        return export.to_c(model, prefix=args.prefix or "").encode()
    if args.to == "json":
        return export.to_json(model).encode()
    if args.table is None:
        raise usage_error("--to sql needs --table NAME")
    _check_kept(model, args.keep or [])
    query = export.to_sql(model, args.table, keep=args.keep or (), dialect=args.dialect or "duckdb")
    return query.encode()


def _check_kept(model: Any, kept: list[str]) -> None:
    """Raise if two columns of the output would have one name, which is the same in any case."""
    made = ["prediction", "plane", *(f"p_{label}" for label in model.classes.tolist())]
    seen = {name.casefold() for name in made}
    for name in kept:
        if name.casefold() in seen:
            raise usage_error(
                f"the output would have two columns {name!r}; rename the one of --keep in the table"
            )
        seen.add(name.casefold())
