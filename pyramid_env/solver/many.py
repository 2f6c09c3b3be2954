"""Many deals at once: the same question about each, over worker processes, answers in the order of the deals."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import islice
from typing import Final

from pyramid_env import kernels
from pyramid_env.deal import Deal
from pyramid_env.positions import read_deal
from pyramid_env.rules import Rules
from pyramid_env.rules import rules as read_rules
from pyramid_env.solver.api import solve_limited
from pyramid_env.solver.result import DEFAULT_MAX_BYTES, Limits, Objective, Solution, SolverError, read_objective

_BATCH: Final = 8  # deals handed to a worker at a time: few enough that one hard deal does not hold up many


def solve_many(
    deals: Iterable[Deal | int | str],
    rules: Rules | str = "pyramid",
    objective: str = "win",
    *,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
    max_states: int | None = None,
    max_seconds: float | None = None,
    max_bytes: int | None = DEFAULT_MAX_BYTES,
) -> list[Solution]:
    """One Solution for each deal, in the order of ``deals``.

    Args:
        deals: deals, their numbers or their texts.
        rules: the rules of all of them.
        objective: see :class:`Objective`.
        workers: processes; 1 works in this one.
        progress: called with (deals done, deals in all) after each deal.
        max_states, max_seconds, max_bytes: limits of each deal, see :class:`Limits`.

    Raises:
        SolverError: unknown objective, a limit that is none, workers below 1, or one deal where several are expected.
        DeckError: one of the deals is not of the rules' deck, or bears a number that deals other cards; found before
            anything is solved.
    """
    chosen = read_rules(rules)
    asked = read_objective(objective)
    limits = Limits(max_states, max_seconds, max_bytes)
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise SolverError(f"workers: expected a whole number from 1 up, got {workers!r}")
    if isinstance(deals, str) or not isinstance(deals, Iterable):
        raise SolverError(f"deals: expected several, in a list or the like, got {type(deals).__name__} {deals!r}")
    wanted = [read_deal(deal, chosen) for deal in deals]
    solutions: list[Solution] = []
    for solution in _solved(wanted, chosen, asked, limits, min(workers, len(wanted))):
        solutions.append(solution)
        if progress is not None:
            progress(len(solutions), len(wanted))
    return solutions


def _solved(deals: list[Deal], rules: Rules, objective: Objective, limits: Limits, workers: int) -> Iterator[Solution]:
    work = partial(_solve_batch, rules, objective, limits)
    if workers <= 1:
        yield from (work([deal])[0] for deal in deals)
        return
    # A fresh interpreter each: a fork of a process that runs threads (a training run does) may hang.
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        for batch in pool.map(work, _batches(deals, _BATCH)):
            yield from batch


def _batches(deals: list[Deal], size: int) -> Iterator[list[Deal]]:
    remaining = iter(deals)
    while batch := list(islice(remaining, size)):
        yield batch


def _solve_batch(rules: Rules, objective: Objective, limits: Limits, deals: list[Deal]) -> list[Solution]:
    start = kernels.start_state(rules)
    return [solve_limited(rules, deal.ranks, start, objective, limits) for deal in deals]
