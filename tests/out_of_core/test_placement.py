"""Partitions spread over workers, and grouped by their threads."""

import pytest

from geomix.out_of_core.placement import groups_of, spread_evenly


def test_partitions_stay_where_they_are_while_workers_have_room():
    holders = [("a",), ("a",), ("b",), ("b",)]
    assert spread_evenly([10] * 4, holders, {"a": 1, "b": 1}) == ["a", "a", "b", "b"]


@pytest.mark.parametrize(
    ("threads", "expected"), [({"a": 1, "b": 1}, (6, 6)), ({"a": 1, "b": 2}, (4, 8))]
)
def test_a_worker_gets_rows_in_proportion_to_its_threads(threads, expected):
    places = spread_evenly([100] * 12, [("a",)] * 12, threads)
    assert (places.count("a"), places.count("b")) == expected


def test_a_large_partition_counts_as_many_small_ones():
    places = spread_evenly([900, *[100] * 9], [("a",)] * 10, {"a": 1, "b": 1})
    assert places == ["a", *["b"] * 9]


def test_partitions_of_workers_that_left_go_to_those_that_are_there():
    assert spread_evenly([5, 5], [("gone",), ()], {"a": 1}) == ["a", "a"]
    assert spread_evenly([5, 5], [("gone",), ()], {}) == [None, None]


def test_every_thread_has_one_group_and_every_partition_one_place():
    places = ["a", "b", "a", "a", "b"]
    groups = groups_of(places, {"a": 2, "b": 1, "c": 1})
    assert groups == [[0, 3], [2], [1, 4]]
    assert groups_of([None, None], {}) == [[0], [1]]
