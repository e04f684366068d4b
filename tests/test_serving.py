"""examples/serve.py: a model as a service answers as the model does, and refuses what is bad."""

import concurrent.futures
import contextlib
import http.client
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from making import classifier
from patience import PATIENCE, eventually
from places import ROOT

uvicorn = pytest.importorskip("uvicorn")
pytest.importorskip("starlette")

SCRIPT = ROOT / "examples" / "serve.py"


def load_example():
    spec = importlib.util.spec_from_file_location("serve_example", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


serve = load_example()


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(40, 9, 200), "city": rng.choice(["Bern", "Rome"], 200)})
    frame.loc[::9, "age"] = np.nan
    return frame, np.where(frame["age"].fillna(40) > 40, "old", "young")


def fitted(table, l2):
    return classifier(lift="spline", n_planes=1, l2=l2, max_iter=10, random_state=0).fit(*table)


@pytest.fixture(scope="module")
def path(table, tmp_path_factory):
    made = tmp_path_factory.mktemp("serving") / "model.geomix"
    fitted(table, 1e-2).save(made)
    return made


@pytest.fixture(scope="module")
def service(path):
    """The service on a free port of this machine: (service, port)."""
    made = serve.Service(lambda: serve.load_geomix(path))
    server = uvicorn.Server(serve.config(made, "127.0.0.1", 0))
    thread = threading.Thread(target=server.run)
    thread.start()
    assert eventually(lambda: server.started)
    yield made, server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join(PATIENCE)


def ask(port, method, path, body=None, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    with contextlib.closing(connection):
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"null")


def predict(port, content):
    body = content if isinstance(content, (str, bytes)) else json.dumps(content)
    return ask(port, "POST", "/predict", body)


def as_rows(frame):
    return [
        {name: None if pd.isna(cell) else cell for name, cell in row.items()}
        for row in frame.to_dict("records")
    ]


def test_the_service_answers_as_the_model_does(service, table):
    (made, port), (frame, _) = service, table
    status, answer = predict(port, {"rows": as_rows(frame), "explain": True})
    assert status == 200
    model = made.model.model
    found = np.array([one["probabilities"] for one in answer["predictions"]])
    assert np.array_equal(found, model.predict_proba(frame))
    assert [one["label"] for one in answer["predictions"]] == model.predict(frame).tolist()
    told = model.explain_local(frame)
    contributions = [list(one["contributions"].values()) for one in answer["predictions"]]
    np.testing.assert_allclose(contributions, told.contributions, atol=1e-12)
    assert answer["classes"] == ["old", "young"]


def test_health_and_version_are_there(service, path):
    _, port = service
    status, health = ask(port, "GET", "/health")
    assert (status, health["status"]) == (200, "ok")
    _, about = ask(port, "GET", "/model")
    assert about["model"] == health["model"]
    assert about["columns"] == [
        {"name": "age", "kind": "number"},
        {"name": "city", "kind": "category"},
    ]


ROW = {"age": 31, "city": "Bern"}
MALFORMED = {
    "no JSON": (b"{", 400, "not JSON"),
    "bytes": (b"\xff\xfe\x00", 400, "not JSON"),
    "deep": (b"[" * 100_000, 400, "not JSON"),
    "NaN": (b'{"rows": [{"age": NaN, "city": "Bern"}]}', 400, "a missing number is null"),
    "a list": ([ROW], 400, "Expected"),
    "another key": ({"rows": [ROW], "model": "x"}, 400, "Expected"),
    "no rows": ({"rows": []}, 413, "expected 1 to"),
    "too many rows": ({"rows": [{}] * 1001}, 413, "Got 1001 rows"),
    "rows of lists": ({"rows": [[31, "Bern"]]}, 400, "by column name"),
    "explain as text": ({"rows": [ROW], "explain": "yes"}, 400, "true or false"),
    "a column too few": ({"rows": [{"age": 31}]}, 422, "city"),
    "a column too many": ({"rows": [{**ROW, "id": 7}]}, 422, "id"),
    "text for a number": ({"rows": [{**ROW, "age": "31"}]}, 422, "'age' holds text"),
    "a list for a number": ({"rows": [{**ROW, "age": [31]}]}, 422, "'age' holds"),
    "a number for text": ({"rows": [{**ROW, "city": 7}]}, 422, "'city' holds 7"),
    "too large": ({"rows": [{**ROW, "age": 10**400}]}, 422, "'age' holds"),
    "infinite": (b'{"rows": [{"age": 1e999, "city": "Bern"}]}', 422, "infinite"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_requests_are_refused_with_a_sentence(service, case):
    _, port = service
    content, expected, sentence = MALFORMED[case]
    status, answer = predict(port, content)
    assert status == expected, answer
    assert sentence in answer["error"]
    assert predict(port, {"rows": [ROW]})[0] == 200  # and the service goes on


def raw_answer(port, *parts):
    """What comes back for bytes that no client library would send."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        for part in parts:
            connection.sendall(part)
        answer = b""
        with contextlib.suppress(ConnectionError):
            while part := connection.recv(65536):
                answer += part
    return answer


POST = b"POST /predict HTTP/1.1\r\nHost: x\r\n"


def test_huge_bodies_are_refused_unread(service):
    _, port = service
    declared = raw_answer(port, POST + b"Content-Length: 99999999999\r\n\r\n")
    assert declared.startswith(b"HTTP/1.1 413")
    chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    with contextlib.suppress(ConnectionError):
        chunked = raw_answer(port, POST + b"Transfer-Encoding: chunked\r\n\r\n", *[chunk] * 40)
        assert chunked.startswith(b"HTTP/1.1 413")


def test_slow_bodies_and_headers_are_refused(service, monkeypatch):
    _, port = service
    monkeypatch.setattr(serve, "SECONDS_FOR_BODY", 0.3)
    monkeypatch.setattr(serve, "SECONDS_FOR_HEADERS", 0.3)
    assert raw_answer(port, POST + b"Content-Length: 10\r\n\r\n{").startswith(b"HTTP/1.1 408")
    assert raw_answer(port, b"POST /pre") == b""  # closed


def test_a_reload_takes_the_new_file_and_keeps_the_old_model_if_it_is_bad(service, table, path):
    made, port = service
    old, content = made.model.version, path.read_bytes()
    fitted(table, 1e-1).save(path)
    assert made.reload()
    new = ask(port, "GET", "/health")[1]["model"]
    assert new != old
    path.write_bytes(content[:-5])
    assert not made.reload()
    assert ask(port, "GET", "/health")[1]["model"] == new
    path.write_bytes(content)
    assert made.reload()


def test_no_request_fails_while_models_are_reloaded(service, table, path):
    made, port = service
    rows, stop = as_rows(table[0])[:20], threading.Event()
    expected = made.model.predictions(rows, explain=False)

    def client():
        n_asked = 0
        while not stop.is_set():
            status, answer = predict(port, {"rows": rows})
            assert (status, answer["predictions"]) == (200, expected)
            n_asked += 1
        return n_asked

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        clients = [pool.submit(client) for _ in range(4)]
        for _ in range(20):
            assert made.reload()
            time.sleep(0.01)
        stop.set()
        assert sum(one.result(PATIENCE) for one in clients) > 0


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="needs SIGHUP")
def test_signals_reload_and_end_the_process(path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, str(SCRIPT), str(path), "--port", str(port)]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert eventually(lambda: answers(port))
        before = Path(path).read_bytes()
        server.send_signal(signal.SIGHUP)
        assert eventually(lambda: answers(port))
        os.kill(server.pid, signal.SIGTERM)
        _, told = server.communicate(timeout=PATIENCE)
    finally:
        server.kill()
    assert "The model is now" in told
    assert before == Path(path).read_bytes()


def answers(port):
    try:
        return predict(port, {"rows": [ROW]})[0] == 200
    except OSError:
        return False
