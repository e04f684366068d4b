"""Model files: the same model gives the same bytes, and files are written atomically.

saving           save, load, verify and inspect a model file
manifest         everything about a model except its arrays, as JSON
model_tensors    the parts of a model as tensors, and back; spline_tensors for splines
tensor_reader    the tensors of a file, with checks of shape and range
tensor_file      the bytes: a strict subset of the safetensors format
canonical_json   JSON with exactly one text per value
atomic           atomic writing: the old file or the new one, never a part
"""
