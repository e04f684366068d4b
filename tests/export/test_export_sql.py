"""Models as SQL: a database answers as the library does, and no name becomes code."""

import sqlite3
from dataclasses import replace

import duckdb
import numpy as np
import pandas as pd
import pytest
from making import classifier
from saved_models import MAKERS, case

from geomix import GeometricMixtureClassifier
from geomix.core.planes import Planes, class_starts
from geomix.export.sql import literal, number, quoted, to_sql

NAMES = [name for name in MAKERS if "fourier" not in name]


def cells_of(model, rows):
    """Rows as a database holds them: None for missing, an identifier first."""
    kinds = [column.kind for column in model.schema.columns]
    return [
        (i, *(_cell(cell, kind) for cell, kind in zip(row, kinds, strict=True)))
        for i, row in enumerate(rows.tolist())
    ]


def _cell(cell, kind):
    if cell is None or cell != cell:
        return None
    return float(cell) if kind == "number" else cell


def declared(model):
    kinds = [
        "DOUBLE" if column.kind == "number" else "BIGINT" if 7 in column.levels else "VARCHAR"
        for column in model.schema.columns
    ]
    names = [quoted(name) for name in model.columns]
    pairs = [f"{name} {kind}" for name, kind in zip(names, kinds, strict=True)]
    return ", ".join(["id BIGINT", *pairs])


def by_sqlite(model, rows, query, table):
    connection = sqlite3.connect(":memory:")
    if connection.execute("SELECT sqlite_compileoption_used('ENABLE_MATH_FUNCTIONS')") == (0,):
        connection.create_function("exp", 1, np.exp)
        connection.create_function("ln", 1, np.log)
    connection.execute(f"CREATE TABLE {quoted(table)} ({declared(model)})")
    marks = ", ".join("?" * (len(model.columns) + 1))
    connection.executemany(f"INSERT INTO {quoted(table)} VALUES ({marks})", cells_of(model, rows))
    found = connection.execute(query)
    return [one[0] for one in found.description], sorted(found.fetchall())


def by_duckdb(model, rows, query, table):
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE {quoted(table)} ({declared(model)})")
    marks = ", ".join("?" * (len(model.columns) + 1))
    connection.executemany(f"INSERT INTO {quoted(table)} VALUES ({marks})", cells_of(model, rows))
    found = connection.execute(query)
    return [one[0] for one in found.description], sorted(found.fetchall())


ENGINES = {"sqlite": by_sqlite, "duckdb": by_duckdb}


def check(engine, model, rows, table="rows"):
    query = to_sql(model, table, keep=["id"], dialect=engine)
    names, found = ENGINES[engine](model, rows, query, table)
    assert names == [
        "id",
        "prediction",
        "plane",
        *(f"p_{label}" for label in model.classes.tolist()),
    ]
    P = np.array([row[3:] for row in found])
    np.testing.assert_allclose(P, model.predict_proba(rows), rtol=0.0, atol=1e-12)
    assert [row[1] for row in found] == model.predict(rows).tolist()
    score = model.scorer()
    assert [row[2] for row in found] == [score.explain(row.tolist()).plane for row in rows]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", NAMES)
def test_a_database_answers_as_the_model_does(engine, name):
    check(engine, case(name).model, case(name).rows)


@pytest.mark.parametrize("engine", ENGINES)
def test_names_and_levels_cannot_become_code(engine):
    model = case("linear mixed").model
    names = ('x"; DROP TABLE rows; --', "select", "a'b", "ü\n/*")
    columns = [
        replace(one, name=name) for one, name in zip(model.schema.columns, names, strict=True)
    ]
    hostile = replace(
        model,
        columns=names,
        schema=type(model.schema)(tuple(columns)),
        classes=np.array(["'; DROP TABLE rows; --", 'p"q']),
    )
    check(engine, hostile, case("linear mixed").rows, table='t"; --')


@pytest.mark.parametrize("engine", ENGINES)
def test_many_planes_do_not_blow_the_query_up(engine):
    rng = np.random.default_rng(0)
    start = class_starts([48, 48])
    model = case("linear one plane").model
    planes = Planes(rng.normal(size=(96, 3)), rng.normal(size=96), start, n_members=4)
    rows = case("linear").rows[:-2]  # SQL does not limit numbers to 1e150 deviations
    check(engine, replace(model, planes=planes, classes=np.array([0, 1])), rows)


@pytest.mark.parametrize("engine", ENGINES)
def test_many_columns_are_not_too_deep_for_a_database(engine):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1200))
    settings = {"lift": "linear", "n_planes": 1, "l2": 1e-2, "max_iter": 5, "pca": None}
    settings |= {"calibrate": False, "early_stopping": "off"}
    model = classifier(**settings, random_state=0).fit(X, X[:, 0] > 0).model_
    frame = pd.DataFrame(X[:5], columns=model.columns)
    query = to_sql(model, "frame", dialect=engine)
    if engine == "duckdb":
        found = duckdb.sql(query).fetchall()
    else:
        connection = sqlite3.connect(":memory:")
        frame.to_sql("frame", connection)
        found = connection.execute(query).fetchall()
    P = np.array([row[2:] for row in found])
    np.testing.assert_allclose(P, model.predict_proba(X[:5]), rtol=0.0, atol=1e-12)


def test_what_has_no_sql_form_is_refused_with_a_remedy():
    with pytest.raises(ValueError, match=r"Fourier.*lift='spline'"):
        to_sql(case("fourier").model, "t")
    with pytest.raises(ValueError, match="dialect='oracle'"):
        to_sql(case("linear").model, "t", dialect="oracle")
    with pytest.raises(ValueError, match="_geomix_"):
        to_sql(case("linear").model, "t", keep=["_geomix_z0"])
    for name in ("", "a\0b"):
        with pytest.raises(ValueError, match="name"):
            quoted(name)
    with pytest.raises(ValueError, match="NUL"):
        literal("a\0")


def test_numbers_are_doubles_to_the_last_bit():
    for value in (0.1, -2.5e-300, 1e22, 3.0, -0.0, np.nextafter(1.0, 2.0)):
        kind, found = duckdb.sql(f"SELECT typeof({number(value)}), {number(value)}").fetchall()[0]
        assert (kind, found) == ("DOUBLE", value)
        assert sqlite3.connect(":memory:").execute(f"SELECT {number(value)}").fetchone() == (value,)


def small_model(names=("a", "b"), lift="spline"):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(120, 2)), columns=list(names))
    y = np.where(X.iloc[:, 0] + 0.3 * X.iloc[:, 1] > 0.0, "yes", "no")
    settings = {"lift": lift, "n_planes": 1, "l2": 1e-3, "random_state": 0}
    return GeometricMixtureClassifier(**settings).fit(X, y).model_, X


@pytest.mark.parametrize("lift", ["linear", "spline"])
def test_a_column_that_the_table_lacks_is_an_error_in_sqlite(lift):
    model, _ = small_model(lift=lift)
    connection = sqlite3.connect(":memory:")
    connection.execute('CREATE TABLE "rows" ("a" DOUBLE, "bb" DOUBLE)')
    connection.execute('INSERT INTO "rows" VALUES (1.0, 2.0)')
    with pytest.raises(sqlite3.OperationalError, match="no such column"):
        connection.execute(to_sql(model, "rows", dialect="sqlite")).fetchall()
    with pytest.raises(sqlite3.OperationalError, match="no such column"):
        connection.execute(to_sql(model, "rows", keep=["id"], dialect="sqlite")).fetchall()


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
def test_columns_that_differ_in_case_only_are_refused_where_case_does_not_count(dialect):
    model, _ = small_model(("a", "A"))
    with pytest.raises(ValueError, match="'a' and 'A' are one name"):
        to_sql(model, "rows", dialect=dialect)
    assert '"_geomix_rows"."A"' in to_sql(model, "rows", dialect="postgres")


@pytest.mark.parametrize("lift", ["linear", "spline"])
def test_nan_is_missing_in_duckdb_as_in_the_model(lift):
    model, X = small_model(lift=lift)
    X.iloc[0, 0] = np.nan
    connection = duckdb.connect()
    connection.execute('CREATE TABLE "rows" ("a" DOUBLE, "b" DOUBLE)')
    for row in X.head(3).to_numpy().tolist():
        connection.execute('INSERT INTO "rows" VALUES (?, ?)', row)
    stored = connection.execute('SELECT isnan("a") FROM "rows"').fetchall()
    assert stored[0] == (True,)  # a NaN, not a NULL
    found = connection.execute(to_sql(model, "rows")).fetchall()
    P = np.array([row[2:] for row in found])
    np.testing.assert_allclose(P, model.predict_proba(X.head(3)), atol=1e-12)


def test_nan_is_missing_in_duckdb_where_levels_are_whole_numbers(rng):
    X = pd.DataFrame({"code": rng.choice([1.0, 2.0, np.nan], 200), "z": rng.normal(size=200)})
    settings = {"lift": "linear", "n_planes": 1, "l2": 1e-3, "categorical_features": ["code"]}
    model = classifier(**settings, random_state=0).fit(X, X.code.isna()).model_
    connection = duckdb.connect()
    connection.execute('CREATE TABLE "rows" ("code" DOUBLE, "z" DOUBLE)')
    for row in X.head(20).to_numpy().tolist():
        connection.execute('INSERT INTO "rows" VALUES (?, ?)', row)
    found = connection.execute(to_sql(model, "rows")).fetchall()
    P = np.array([row[2:] for row in found])
    np.testing.assert_allclose(P, model.predict_proba(X.head(20)), atol=1e-12)


def model_of(n_classes, planes_per_class, rng):
    start = class_starts([planes_per_class] * n_classes)
    planes = Planes(rng.normal(size=(start[-1], 3)), rng.normal(size=start[-1]), start)
    return replace(case("linear one plane").model, planes=planes, classes=np.arange(n_classes))


def test_sqlite_takes_hundreds_of_classes(rng):
    check("sqlite", model_of(600, 1, rng), case("linear").rows[:5])


def test_more_columns_than_sqlite_has_are_refused(rng):
    with pytest.raises(ValueError, match=r"SQLite has at most 2,000; use dialect='duckdb'"):
        to_sql(model_of(400, 3, rng), "rows", dialect="sqlite")
    to_sql(model_of(400, 3, rng), "rows", dialect="duckdb")
