"""The text that names deals: what it means, that it reads back, and what is refused with which words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyramid_env.benchmark import SPLITS, format_deals, may_be_training_deals, parse_deals
from pyramid_env.errors import PyramidError


def test_the_splits_are_what_the_benchmark_promises() -> None:
    assert dict(SPLITS) == {"test": range(0, 10_000), "validation": range(10_000, 20_000)}


@pytest.mark.parametrize(
    ("text", "deals"),
    [
        ("test:0-3", [0, 1, 2, 3]),
        ("validation:0-2", [10_000, 10_001, 10_002]),
        ("validation:5,0-1", [10_005, 10_000, 10_001]),
        ("123,456-460", [123, 456, 457, 458, 459, 460]),
        (" 7 , 3-3 ", [7, 3]),
        ("9223372036854775806-9223372036854775807", [2**63 - 2, 2**63 - 1]),
    ],
)
def test_parse_deals(text: str, deals: list[int]) -> None:
    found = parse_deals(text)
    assert found.dtype == np.int64
    assert found.tolist() == deals


@pytest.mark.parametrize("name", SPLITS)
def test_a_splits_name_is_the_whole_split(name: str) -> None:
    assert parse_deals(name).tolist() == list(SPLITS[name])
    assert format_deals(SPLITS[name]) == name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tset:0-9", "unknown split 'tset' in 'tset:0-9'; known: test, validation"),
        ("test:9990-10000", "test has the places 0-9999, got 10000"),
        ("validation:10000-10009", "validation has the places 0-9999, got 10009"),
        ("9-0", "runs backwards; expected 0-9"),
        ("test:", "cannot read ''"),
        ("", "cannot read ''"),
        ("1,,2", "cannot read ''"),
        ("-5", "cannot read '-5'"),
        ("10,000", "cannot read '000'"),
        ("1.5", "cannot read '1.5'"),
        ("3,1-5", "3 is named twice"),
        ("0-9223372036854775807", "at most 1,000,000 at once"),
        ("9223372036854775808", "expected a whole number from 0 to 9223372036854775807"),
    ],
)
def test_parse_deals_refuses(text: str, said: str) -> None:
    with pytest.raises(PyramidError, match=said):
        parse_deals(text)


@given(st.lists(st.integers(0, 2**63 - 1) | st.integers(0, 30) | st.integers(9_990, 10_010), unique=True, min_size=1))
def test_the_text_of_deals_reads_back(deals: list[int]) -> None:
    assert parse_deals(format_deals(deals)).tolist() == deals


@given(st.sampled_from(sorted(SPLITS)), st.integers(0, 9_999), st.integers(0, 50))
def test_a_range_within_a_split_is_named_by_its_places(name: str, first: int, more: int) -> None:
    last = min(first + more, 9_999)
    text = f"{name}:{first}-{last}" if last > first else f"{name}:{first}"
    if last - first < 9_999:
        assert format_deals(parse_deals(text)) == text


def test_training_deals_are_recognised() -> None:
    assert not may_be_training_deals(parse_deals("test"))
    assert may_be_training_deals([5, 1_000_000])
