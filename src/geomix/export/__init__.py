"""Models for other places: JSON, C, SQL and ONNX.

    from geomix.export import to_c, to_json, to_sql
    from geomix.export.onnx import to_onnx              # needs geomix[onnx]
    from geomix.export.sklearn_onnx import register     # so does this

All of them write down the same few tables, which ``terms`` makes of a model.
"""

from geomix.export.c_source import to_c
from geomix.export.json_model import to_json
from geomix.export.sql import to_sql

__all__ = ["to_c", "to_json", "to_sql"]
