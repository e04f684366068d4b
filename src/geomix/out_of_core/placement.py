"""Which worker of a cluster holds which partitions, and which of its threads sums them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def spread_evenly(
    lengths: Sequence[int], holders: Sequence[Sequence[str]], threads: Mapping[str, int]
) -> list[str | None]:
    """The worker for each partition: one that holds it, while that has room; in proportion to the
    threads. None where there is no worker."""
    if not threads:
        return [None] * len(lengths)
    room = {one: sum(lengths) * n / sum(threads.values()) for one, n in threads.items()}
    places: list[str | None] = [None] * len(lengths)
    for only_holders in (True, False):
        for i, n in enumerate(lengths):
            some = [one for one in holders[i] if one in room] if only_holders else list(room)
            best = max(some, key=room.__getitem__, default=None)
            if places[i] is None and best is not None and (not only_holders or 2 * room[best] >= n):
                places[i] = best
                room[best] -= n
    return places


def groups_of(places: Sequence[str | None], threads: Mapping[str, int]) -> list[list[int]]:
    """The partitions of each thread of each worker."""
    if None in places:
        return [[i] for i in range(len(places))]
    groups = []
    for worker, n_threads in threads.items():
        own = [i for i, place in enumerate(places) if place == worker]
        groups += [own[k::n_threads] for k in range(min(n_threads, len(own)))]
    return groups
