"""The addresses of the explorer. Arrays travel as safetensors, all the rest as JSON."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from fastapi import FastAPI, HTTPException, Query, Request
from fastapi.responses import JSONResponse, Response
from safetensors.numpy import save

from dqd.explorer import describe, page
from dqd.explorer.library import ERRORS, Library, NotThereError
from dqd.explorer.places import Place
from dqd.saved import words

TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
MOST_CELLS = 4_096  # whose solutions one request may ask for


def build(root: Path) -> FastAPI:
    """The application that shows what lies below `root`. `guard.Guard` belongs around it."""
    app = FastAPI(title="dqd", docs_url=None, redoc_url=None, openapi_url=None)
    library = Library(root)
    _add_files(app)
    _add_lists(app, library)
    _add_arrays(app, library)

    @app.exception_handler(NotThereError)
    def not_there(request: Request, error: NotThereError) -> JSONResponse:
        return JSONResponse({"detail": str(error)}, 404)

    for kind in ERRORS:

        @app.exception_handler(kind)
        def unreadable(request: Request, error: Exception) -> JSONResponse:
            return JSONResponse({"detail": library.said(error)}, 422)

    return app


def _add_files(app: FastAPI) -> None:
    files = {name: text for name, text in page.static().items() if Path(name).suffix in TYPES}

    @app.get("/")
    def index() -> Response:
        return Response(files["index.html"], media_type="text/html")

    @app.get("/static/{name}")
    def file(name: str) -> Response:
        if name not in files:
            raise HTTPException(404, "there is no such file")
        return Response(files[name], media_type=TYPES[Path(name).suffix])


def _add_lists(app: FastAPI, library: Library) -> None:
    @app.get("/api/runs")
    def runs() -> JSONResponse:
        return JSONResponse({"root": library.root.name, "runs": library.lines()})

    @app.get("/api/runs/{name}")
    def run(name: str) -> JSONResponse:
        place = library.place(name)
        return JSONResponse(words.finite(describe.run(library, place)))

    @app.get("/api/runs/{name}/stamp")
    def stamp(name: str) -> JSONResponse:
        place = library.place(name)
        return JSONResponse({"stamp": library.stamp(place), "state": library.about(place)["state"]})

    @app.get("/api/runs/{name}/curves")
    def curves(name: str) -> JSONResponse:
        return JSONResponse(words.finite(library.curves(library.place(name))))

    @app.get("/api/compare")
    def comparison(runs: str = Query(max_length=32_000)) -> JSONResponse:
        places = [library.place(name) for name in dict.fromkeys(runs.split(","))]
        return JSONResponse(words.finite(describe.comparison([library.trial(place) for place in places])))

    @app.get("/api/runs/{name}/views")
    def views(name: str) -> JSONResponse:
        return JSONResponse(library.views(library.place(name)))


def _add_arrays(app: FastAPI, library: Library) -> None:
    @app.get("/api/runs/{name}/elites")
    def elites(name: str) -> Response:
        return _tensors(describe.elites(library.archive(library.place(name))))

    @app.get("/api/runs/{name}/solutions")
    def solutions(name: str, cells: str = Query(max_length=32_000)) -> Response:
        place = library.place(name)
        return _tensors({"solutions": _solutions(library, place, cells)})

    @app.api_route("/api/runs/{name}/page.html", methods=["GET", "HEAD"])
    def one_file(name: str, solutions: bool = True) -> Response:
        headers = {"Content-Disposition": "attachment"}
        return Response(library.page(library.place(name), solutions), media_type="text/html", headers=headers)

    @app.get("/api/runs/{name}/thumbnail")
    def thumbnail(name: str) -> Response:
        return _tensors({"picture": library.thumbnail(library.place(name))})

    @app.get("/api/runs/{name}/pictures")
    def slots(name: str) -> Response:
        place = library.place(name)
        return _tensors({"cell": library.archive(place).cell, "slot": library.slots(place)[0]})

    @app.get("/api/runs/{name}/pictures/{number}")
    def picture_page(name: str, number: int) -> Response:
        return Response(library.picture_page(library.place(name), number), media_type="image/png")

    @app.get("/api/runs/{name}/views/{step}")
    def view(name: str, step: int) -> Response:
        return _tensors(describe.narrow(library.view(library.place(name), step)))


def _solutions(library: Library, place: Place, cells: str) -> np.ndarray:
    """The solutions of some cells, in their order."""
    archive = library.archive(place)
    if archive.solutions is None:
        raise NotThereError("this archive was saved without its solutions")
    wanted = cells.split(",")
    if len(wanted) > MOST_CELLS or not all(cell.isdecimal() and len(cell) <= 10 for cell in wanted):
        raise HTTPException(422, f"cells: expected up to {MOST_CELLS} whole numbers with commas between them")
    numbers = np.array([int(cell) for cell in wanted])
    rows = np.minimum(np.searchsorted(archive.cell, numbers), max(len(archive) - 1, 0))
    if len(archive) == 0 or not np.array_equal(archive.cell[rows], numbers):
        raise NotThereError("one of these cells is empty")
    return archive.solutions[rows]


def _tensors(arrays: dict[str, np.ndarray]) -> Response:
    content = save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    return Response(content, media_type="application/octet-stream")
