"""The errors and warnings that geomix raises on its own account."""

from __future__ import annotations


class InvalidParameterError(ValueError):
    """A parameter has a value that it cannot take."""


class SchemaError(ValueError):
    """A column cannot be used as it is: its type, or a value in it."""


class DataQualityWarning(UserWarning):
    """The data can be used, but probably are not what their owner thinks."""


class ModelFileError(ValueError):
    """A model file is truncated, damaged, hostile, or no model file at all."""


class ModelVersionError(ModelFileError):
    """A model file of a version that this release cannot read."""


class TableFileError(ValueError):
    """A file of rows cannot be read as it is: its form, or a cell in it."""
