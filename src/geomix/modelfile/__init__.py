"""Model files: one content, one file, written whole or not at all.

saving           save, load, verify and inspect a model file
manifest         everything about a model that is not a tensor, as JSON
model_tensors    the parts of a model as tensors, and back; spline_tensors for splines
tensor_reader    the tensors of a file, handed out one by one
tensor_file      the bytes: a safetensors file under a strict profile
canonical_json   JSON with one text for one value
atomic           writing that leaves the old file or the new one, never half of either
"""
