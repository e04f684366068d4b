"""Requests per second and 99th percentile of examples/serve.py, beside ONNX Runtime in its place.

    python benchmarks/serving.py --seconds 5 --clients 4

Both services are the same program with the same checks; only what scores the rows differs: a
``GeometricMixture``, or its ONNX export in ONNX Runtime with one thread. Clients are threads of
this process with one connection each, on the loopback interface of this machine, so clients and
service share its cores: read the two columns beside each other, not as figures of a network.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import importlib.util
import json
import logging
import multiprocessing
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer

SERVE = Path(__file__).resolve().parent.parent / "examples" / "serve.py"
ROWS_PER_REQUEST = (1, 100)


def serve_example() -> Any:
    spec = importlib.util.spec_from_file_location("serve_example", SERVE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True, eq=False)
class OnnxModel:
    """The ONNX export of a model of numbers as the service sees it."""

    version: str
    session: Any
    names: tuple[str, ...]
    classes: list[Any]

    @property
    def facts(self) -> dict[str, Any]:
        return {"columns": [{"name": name, "kind": "number"} for name in self.names]}

    def predictions(self, rows: list[dict[str, Any]], *, explain: bool) -> list[dict[str, Any]]:
        if explain:
            raise ValueError("ONNX Runtime has no contributions.")
        for row in rows:
            if row.keys() != set(self.names):
                raise ValueError("Expected one number for each column.")
        X = np.array([[row[name] for name in self.names] for row in rows], dtype=np.float32)
        labels, P = self.session.run(None, {self.session.get_inputs()[0].name: X})[:2]
        pairs = zip(labels.tolist(), P.tolist(), strict=True)
        return [{"label": label, "probabilities": p} for label, p in pairs]


def load_onnx(path: Path) -> OnnxModel:
    import onnxruntime

    import geomix
    from geomix.export.onnx import to_onnx

    model = geomix.load(path)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    graph = to_onnx(model).SerializeToString()
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    return OnnxModel("onnx", session, model.columns, model.classes.tolist())


def run_service(kind: str, path: Path, port: int) -> None:
    import uvicorn

    serve = serve_example()
    load = {"geomix": serve.load_geomix, "onnx": load_onnx}[kind]
    config = serve.config(serve.Service(lambda: load(path)), "127.0.0.1", port)
    logging.disable()
    uvicorn.Server(config).run()


@contextlib.contextmanager
def running(kind: str, path: Path) -> Iterator[int]:
    """The port of a service in a process of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = multiprocessing.get_context("spawn").Process(
        target=run_service, args=(kind, path, port)
    )
    process.start()
    try:
        for _ in range(600):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1)
        yield port
    finally:
        process.terminate()
        process.join()


def client(port: int, body: str, until: float, times: list[float]) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    while time.perf_counter() < until:
        started = time.perf_counter()
        connection.request("POST", "/predict", body)
        answer = connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise RuntimeError(content[:200])
        times.append(time.perf_counter() - started)


def measured(port: int, body: str, seconds: float, n_clients: int) -> tuple[float, float, float]:
    """Requests per second, median and 99th percentile in milliseconds."""
    client(port, body, time.perf_counter() + min(1.0, seconds), [])  # warm
    times: list[list[float]] = [[] for _ in range(n_clients)]
    until = time.perf_counter() + seconds
    threads = [threading.Thread(target=client, args=(port, body, until, one)) for one in times]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    every = np.concatenate(times)
    return len(every) / seconds, *(1e3 * np.percentile(every, [50, 99]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--clients", type=int, default=4)
    args = parser.parse_args()
    from geomix import GeometricMixtureClassifier

    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    clf = GeometricMixtureClassifier(lift="spline", n_planes=2, l2=1e-3, random_state=0).fit(X, y)
    records = X.to_dict("records")
    print(f"{args.clients} clients, {args.seconds:g} s each; spline model of 30 columns")
    print("rows  service  requests/s  median ms  p99 ms")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.geomix"
        clf.save(path)
        for kind in ("geomix", "onnx"):
            with running(kind, path) as port:
                for n_rows in ROWS_PER_REQUEST:
                    body = json.dumps({"rows": records[:n_rows]})
                    figures = measured(port, body, args.seconds, args.clients)
                    print(f"{n_rows:4d}  {kind:7s}  {figures[0]:10.0f}  {figures[1]:9.2f}  "
                          f"{figures[2]:6.2f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
