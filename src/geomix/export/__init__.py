"""Exports of a model to JSON, C, SQL and ONNX.

    from geomix.export import to_c, to_json, to_sql
    from geomix.export.onnx import to_onnx              # needs geomix[onnx]
    from geomix.export.sklearn_onnx import register     # so does this

All of them write the same few tables.

    tables                             a model as tables over raw columns
    json_model, c_source over c_code   JSON, and C without dependencies
    sql                                a query for DuckDB, SQLite or Postgres
    onnx over onnx_graph               an ONNX graph; sklearn_onnx for pipelines
"""

from geomix.export.c_source import to_c
from geomix.export.json_model import to_json
from geomix.export.sql import to_sql

__all__ = ["to_c", "to_json", "to_sql"]
