"""``geomix export``: a model as ONNX, C, SQL or JSON."""

from __future__ import annotations

from typing import Any

from geomix.command import options
from geomix.command.exit_codes import USAGE, blamed_on, usage

EXAMPLES = """\
  geomix export m.geomix --to onnx -o m.onnx
  geomix export m.geomix --to c -o m.c --prefix credit_
  geomix export m.geomix --to sql --table customers --keep id --dialect sqlite
"""
ONLY_FOR = {"prefix": "c", "double": "onnx", "table": "sql", "keep": "sql", "dialect": "sql"}


def add(commands: Any) -> None:
    parser = options.new_parser(commands, "export", "write a model in another form", EXAMPLES)
    options.add_model(parser)
    parser.add_argument(
        "--to", required=True, choices=("onnx", "c", "sql", "json"), help="the form"
    )
    parser.add_argument(
        "-o", "--output", default="-", metavar="FILE", help="default: standard output"
    )
    parser.add_argument("--prefix", metavar="TEXT", help="c: before every name")
    parser.add_argument("--double", action="store_true", help="onnx: float64 instead of float32")
    parser.add_argument("--table", metavar="NAME", help="sql: the table to read from")
    parser.add_argument(
        "--keep", action="append", metavar="COL", help="sql: a column to pass through (repeatable)"
    )
    parser.add_argument(
        "--dialect", choices=("duckdb", "sqlite", "postgres"), help="sql: default duckdb"
    )
    parser.set_defaults(run=run)


def run(a: Any) -> int:
    from geomix.tablefile.writer import output

    for name, form in ONLY_FOR.items():
        if getattr(a, name) and a.to != form:
            raise usage(f"--{name} is for --to {form}")
    options.refuse_same_file(a.output, a.model)
    options.check_folder(a.output)
    model = options.loaded(a.model)
    with blamed_on(USAGE):
        content = exported(model, a)
    with output(a.output) as file:
        file.write(content)
    return 0


def exported(model: Any, a: Any) -> bytes:
    """The content of the exported file."""
    from geomix import export

    if a.to == "onnx":
        from geomix.export.onnx import to_onnx

        content: bytes = to_onnx(model, double=a.double).SerializeToString()
        return content
    if a.to == "c":
        return export.to_c(model, prefix=a.prefix or "").encode()
    if a.to == "json":
        return export.to_json(model).encode()
    if a.table is None:
        raise usage("--to sql needs --table NAME")
    query = export.to_sql(model, a.table, keep=a.keep or (), dialect=a.dialect or "duckdb")
    return query.encode()
