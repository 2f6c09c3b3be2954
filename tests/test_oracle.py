"""Oracle: the solver against answers that an independent exhaustive program found for fixed decks."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import pyramid_env as pe
from pyramid_env.solver import Status, solve

ROWS = Path(__file__).parent / "data" / "oracle.csv"
IN_OUR_WORDS = {
    "microsoft with passes=1": "microsoft:passes=1",
    "pyramid with overlap on": "pyramid:overlap=true",
    "pysol with predealt=0": "pysol:predealt=0",
    "solitaire13_three_piles with pair_waste_tops off": "solitaire13_three_piles:pair_waste_tops=false",
}
OBJECTIVES = {"par": "score"}
ORDINARY = 10
"""Of the lines of one kind the ordinary run checks the first and then every so many-th; the slow run checks all."""


def oracle() -> dict[tuple[str, str], list[tuple[str, int]]]:
    """(deck, value) of every line by (rules, objective)."""
    kinds: dict[tuple[str, str], list[tuple[str, int]]] = {}
    with ROWS.open(newline="") as lines:
        for row in csv.DictReader(line for line in lines if not line.startswith("#")):
            rules = IN_OUR_WORDS.get(row["rules"], row["rules"])
            objective = OBJECTIVES.get(row["objective"], row["objective"])
            kinds.setdefault((rules, objective), []).append((row["deck"], int(row["value"])))
    return kinds


KINDS = oracle()


def check(name: str, objective: str, lines: list[tuple[str, int]]) -> None:
    rules = pe.rules(name)
    for deck, value in lines:
        solution = solve(pe.Deal.parse(deck, rules), rules, objective)
        assert solution.status is not Status.LIMIT
        assert solution.value == value, f"{name}, {objective}, {deck}: expected {value}, got {solution.value}"


def test_the_oracle_is_whole() -> None:
    assert sum(map(len, KINDS.values())) == 1390


@pytest.mark.parametrize(("name", "objective"), KINDS)
def test_answers_equal_the_oracle(name: str, objective: str) -> None:
    check(name, objective, KINDS[name, objective][::ORDINARY])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "objective"), KINDS)
def test_answers_equal_the_whole_oracle(name: str, objective: str) -> None:
    check(name, objective, KINDS[name, objective])
