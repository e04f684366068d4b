"""Models for other places: JSON, C, SQL and ONNX.

    from geomix.export.json_model import to_json
    from geomix.export.c_source import to_c
    from geomix.export.sql import to_sql
    from geomix.export.onnx import to_onnx          # needs geomix[onnx]

All of them write down the same few tables, which ``additive`` makes of a model.
"""
