"""A model as a service: rows as JSON in, probabilities and contributions out.

    pip install 'geomix[serve]'
    python examples/serve.py model.geomix --port 8000

    GET  /health    {"status": "ok", "model": "5f0c..."}
    GET  /model     classes, columns and version of the model
    POST /predict   {"rows": [{"age": 31, "city": "Bern"}, ...], "explain": false}

``kill -HUP`` reads the model file again: requests that are under way end with the old model, and a
file that cannot be read leaves the old model in place. SIGTERM ends the service after the requests
that are under way. Bodies that are too large, too slow, or no rows of the model are refused with
one sentence. Put a proxy in front for encryption, authentication and limits by client.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import json
import logging
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

import geomix

MOST_BYTES = 2**20  # of a body
MOST_ROWS = 1000  # of one request
SECONDS_FOR_HEADERS = 10.0
SECONDS_FOR_BODY = 10.0
MOST_CONNECTIONS = 256
# Up to this many rows are scored at once; more rows leave the event loop free for other requests.
ROWS_WITHOUT_A_THREAD = 64

log = logging.getLogger("uvicorn.error")


class Scored(Protocol):
    """What the service needs of a model. Never changes, so requests may share it."""

    version: str
    classes: list[Any]
    facts: dict[str, Any]

    def predictions(self, rows: list[dict[str, Any]], *, explain: bool) -> list[dict[str, Any]]: ...


@dataclass(frozen=True, eq=False)
class GeomixModel:
    """A ``GeometricMixture`` as the service sees it."""

    version: str
    model: Any

    @property
    def classes(self) -> list[Any]:
        return self.model.classes.tolist()

    @property
    def facts(self) -> dict[str, Any]:
        columns = self.model.schema.columns
        return {"columns": [{"name": one.name, "kind": one.kind} for one in columns]}

    def predictions(self, rows: list[dict[str, Any]], *, explain: bool) -> list[dict[str, Any]]:
        encoded = self._encoded(rows)
        if np.isinf(encoded).any():
            raise ValueError("A number is infinite or too large for a float64.")
        P = self.model.answer("predict_proba", encoded)
        found = [{"label": self.classes[p.argmax()], "probabilities": p.tolist()} for p in P]
        if explain:
            for one, row in zip(found, rows, strict=True):
                told = self.model.explain_local(row)
                one["contributions"] = dict(
                    zip(told.columns, told.contributions[0].tolist(), strict=True)
                )
        return found

    def _encoded(self, rows: list[dict[str, Any]]) -> Any:
        """Rows as the model reads them: all at once, or one by one to name the first bad one."""
        names = self.model.columns
        with contextlib.suppress(KeyError, ValueError, TypeError):
            if all(len(row) == len(names) for row in rows):
                return self.model.encoded([[row[name] for name in names] for row in rows])
        for place, row in enumerate(rows):
            try:
                self.model.encoded(row)
            except (ValueError, TypeError) as wrong:
                raise ValueError(f"Row {place}: {wrong}") from None
        return np.vstack([self.model.encoded(row) for row in rows])


def load_geomix(path: Path) -> GeomixModel:
    content = path.read_bytes()
    model = geomix.load(path)
    if path.read_bytes() != content:
        raise ValueError(f"{path} changed while it was being read; reload again.")
    return GeomixModel(hashlib.sha256(content).hexdigest()[:16], model)


class Refused(Exception):
    """A request that gets an error: a status code and a sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class Service:
    """Holds the model that new requests are answered by."""

    def __init__(self, load: Callable[[], Scored]) -> None:
        self._load = load
        self.model = load()

    def reload(self) -> bool:
        """Load the model again; False and the old model if that fails."""
        try:
            self.model = self._load()
        except Exception as error:
            log.error("The model was not reloaded: %s", error)
            return False
        log.info("The model is now %s.", self.model.version)
        return True

    async def health(self, request: Request) -> JSONResponse:
        return JSONResponse({"status": "ok", "model": self.model.version})

    async def about(self, request: Request) -> JSONResponse:
        model = self.model
        about = {"model": model.version, "classes": model.classes, "geomix": geomix.__version__}
        return JSONResponse(about | model.facts)

    async def predict(self, request: Request) -> JSONResponse:
        model = self.model  # one model for the whole request
        try:
            rows, explain = rows_of(await body_of(request))
            if len(rows) <= ROWS_WITHOUT_A_THREAD and not explain:
                found = model.predictions(rows, explain=explain)
            else:
                found = await run_in_threadpool(model.predictions, rows, explain=explain)
        except Refused as refused:
            return error(refused.status, str(refused))
        except (ValueError, TypeError) as wrong:  # a row that the model cannot read
            return error(422, str(wrong))
        answer = {"model": model.version, "classes": model.classes, "predictions": found}
        return JSONResponse(answer)


def error(status: int, sentence: str) -> JSONResponse:
    # What was refused may not have been read to its end: the connection cannot be used again.
    return JSONResponse({"error": sentence}, status, headers={"connection": "close"})


async def body_of(request: Request) -> bytes:
    """The body, if it is small enough and comes in time."""
    declared = request.headers.get("content-length", "0")
    if not declared.isdecimal() or int(declared) > MOST_BYTES:
        raise Refused(413, f"The body has {declared[:20]} bytes; at most {MOST_BYTES} are read.")
    try:
        return await asyncio.wait_for(_read(request), SECONDS_FOR_BODY)
    except asyncio.TimeoutError:  # a class of its own before Python 3.11
        raise Refused(408, f"The body took more than {SECONDS_FOR_BODY:g} seconds.") from None
    except ClientDisconnect:
        raise Refused(400, "The client went away.") from None


async def _read(request: Request) -> bytes:
    parts, n_bytes = [], 0
    async for part in request.stream():
        parts.append(part)
        n_bytes += len(part)
        if n_bytes > MOST_BYTES:
            raise Refused(413, f"The body has more than {MOST_BYTES} bytes.")
    return b"".join(parts)


def rows_of(body: bytes) -> tuple[list[dict[str, Any]], bool]:
    """The rows of a request, and whether they are to be explained."""
    try:
        content = json.loads(body, parse_constant=_no_constant)
    except (ValueError, RecursionError) as wrong:
        raise Refused(400, f"The body is not JSON: {str(wrong)[:200]}.") from None
    if not isinstance(content, dict) or not content.keys() <= {"rows", "explain"}:
        raise Refused(400, 'Expected {"rows": [...], "explain": true or false}.')
    rows, explain = content.get("rows"), content.get("explain", False)
    if not isinstance(explain, bool):
        raise Refused(400, "explain must be true or false.")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise Refused(400, "rows must be a list of objects, one for each row, by column name.")
    if not 1 <= len(rows) <= MOST_ROWS:
        raise Refused(413, f"Got {len(rows)} rows; expected 1 to {MOST_ROWS}.")
    return rows, explain


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON; a missing number is null")


def application(service: Service) -> Starlette:
    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> Any:
        loop = asyncio.get_running_loop()
        with contextlib.suppress(ValueError, NotImplementedError, RuntimeError):
            # Not in threads other than the main one, nor on every system.
            loop.add_signal_handler(signal.SIGHUP, service.reload)
        yield

    routes = [
        Route("/health", service.health),
        Route("/model", service.about),
        Route("/predict", service.predict, methods=["POST"]),
    ]
    return Starlette(routes=routes, lifespan=lifespan)


class TimedProtocol(H11Protocol):
    """HTTP that closes connections whose first request has no complete headers in time."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.loop.call_later(SECONDS_FOR_HEADERS, self._close_if_silent)

    def _close_if_silent(self) -> None:
        if self.cycle is None and not self.transport.is_closing():
            self.transport.close()


def config(service: Service, host: str, port: int) -> uvicorn.Config:
    return uvicorn.Config(
        application(service),
        host=host,
        port=port,
        http=TimedProtocol,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=10,
        access_log=False,
        server_header=False,
        log_level="info",
    )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    args = parser.parse_args(arguments)
    service = Service(lambda: load_geomix(args.model))
    uvicorn.Server(config(service, args.host, args.port)).run()


if __name__ == "__main__":
    main()
