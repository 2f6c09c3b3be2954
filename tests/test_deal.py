"""Deals: numbers give the same cards for ever, on every platform; dates, generators and text give deals too."""

import copy
import datetime
import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyramid_env.cards import deck
from pyramid_env.deal import FIRST_TRAINING_NUMBER, MAX_NUMBER, Deal, deal_numbers
from pyramid_env.errors import DeckError
from pyramid_env.rules import PRESETS, rules

MASK = 2**64 - 1

# The first eight cards, and a digest of the order of all. A change here breaks every published result.
GOLDEN = (
    ("pyramid", 0, "Qd Jd 5d 5c 6d Ad Qh 6c", 1159308411434253357),
    ("pyramid", 1, "Th Td 6s 5c 7c Ad 2h 9c", 1871577032329995524),
    ("pyramid", 42, "5h Kc 8h 3d Jd 8s Jh 9d", 2218042656706686670),
    ("pyramid", 9999, "6d 3h Kc 8d 8h 6h As 7s", 2093277524488320536),
    ("pyramid", 20261129, "Ah Kd Js 5c 5s 6s Jc 9d", 1919447346469244098),
    ("pyramid", 9223372036854775807, "Kc 7h 9d 8s Qh As Qs 9c", 2071105979079942680),
    ("double_pyramid", 0, "Qc Jc Kh Th 7s 4c 3d Td", 525935019351518325),
    ("double_pyramid", 42, "7d Ad 7h 3s Js 4h 8d Qd", 1803423688711814847),
    ("double_pyramid", 9223372036854775807, "Th 9d 2d 8d 3s 8c Jh 6d", 69156384045958281),
    ("mini", 0, "2c 3c 5c Ad 6d 6c Ac 7c", 1368175464632039978),
    ("mini", 42, "Ad 4d 6c 5d 7c 4c 3d 5c", 304007057781629209),
)


def plain_deal(number: int, sorted_cards: list) -> list:
    """The documented algorithm in plain Python integers."""

    def mix(x):
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
        return x ^ (x >> 31)

    gamma = 0x9E3779B97F4A7C15
    state = mix((number + gamma) & MASK)
    cards = list(sorted_cards)
    for i in range(len(cards) - 1, 0, -1):
        while True:
            state = (state + gamma) & MASK
            x = mix(state)
            if x >= 2**64 % (i + 1):
                break
        j = x % (i + 1)
        cards[i], cards[j] = cards[j], cards[i]
    return cards


def digest(deal: Deal) -> int:
    value = 0
    for card in deal.cards:
        value = (value * 53 + card.id + 1) % (2**61 - 1)
    return value


@pytest.mark.parametrize(("preset", "number", "cards", "value"), GOLDEN)
def test_same_deal_number_same_cards_for_ever(preset, number, cards, value):
    deal = Deal.number(number, preset)
    assert " ".join(map(str, deal.cards[:8])) == cards
    assert digest(deal) == value


@given(st.integers(0, MAX_NUMBER), st.sampled_from(["pyramid", "double_pyramid", "mini"]))
def test_numbered_deals_follow_the_documented_algorithm(number, preset):
    deal = Deal.number(number, preset)
    assert list(deal.cards) == plain_deal(number, deck(rules(preset)))
    assert deal.deal_number == number
    assert Deal.parse(str(deal), preset) == deal


@pytest.mark.parametrize("name", PRESETS)
def test_a_deal_is_the_deck(name):
    assert Counter(Deal.number(7, name).cards) == Counter(deck(rules(name)))
    Deal.number(7, name).check(rules(name))


def test_the_same_number_is_the_same_deal_under_all_rules_with_that_deck():
    assert Deal.number(42, "pyramid") == Deal.number(42, "till_dawn") == Deal.number(42, rules("giza"))


def test_batches_equal_single_deals():
    numbers = np.array([0, 1, 5, MAX_NUMBER])
    ids = deal_numbers(numbers, rules("pyramid"))
    assert ids.shape == (4, 52)
    for number, row in zip(numbers, ids, strict=True):
        assert [card.id for card in Deal.number(int(number)).cards] == row.tolist()


def test_every_card_is_as_likely_in_every_place():
    ids = deal_numbers(np.arange(52_000), rules("pyramid"))
    for place in (0, 27, 28, 51):
        counts = np.bincount(ids[:, place], minlength=52)
        assert ((counts - 1000) ** 2 / 1000).sum() < 100  # chi square, 51 degrees of freedom: p = 0.00005


@pytest.mark.parametrize("number", [-1, 2**63, 1.0, "7", True, None])
def test_other_numbers_are_refused(number):
    with pytest.raises(DeckError, match="expected a whole number from 0 to 9223372036854775807"):
        Deal.number(number)


def test_daily_deals():
    assert Deal.daily(datetime.date(2026, 3, 1)) == Deal.number(20260301)
    late = datetime.datetime(2026, 3, 1, 23, 30, tzinfo=datetime.timezone(datetime.timedelta(hours=-5)))
    assert Deal.daily(late) == Deal.number(20260302)
    before = datetime.datetime.now(datetime.UTC).date()
    today = Deal.daily()
    after = datetime.datetime.now(datetime.UTC).date()
    assert today in (Deal.daily(before), Deal.daily(after))


def test_random_deals_come_from_the_generator_and_the_training_range():
    rng = np.random.default_rng(3)
    deals = [Deal.random(rng) for _ in range(200)]
    assert len(set(deals)) == 200
    assert all(FIRST_TRAINING_NUMBER <= deal.deal_number <= MAX_NUMBER for deal in deals)
    assert deals[:3] == [Deal.random(rng) for rng in [np.random.default_rng(3)] for _ in range(3)]


def test_text_and_copies():
    deal = Deal.parse("94J856JJ9QQ457QT4K2T839TAA6A837A78Q34T56K2K97K3J6522")
    assert deal.deal_number is None
    assert deal.name == str(deal)
    assert deal.ranks[:5].tolist() == [9, 4, 11, 8, 5]
    assert copy.deepcopy(deal) == pickle.loads(pickle.dumps(deal)) == deal
    assert Deal.number(5).name == "5"
    assert repr(Deal.number(5)) == "Deal.number(5)"


def test_a_deal_of_another_deck_is_refused():
    with pytest.raises(DeckError, match="missing"):
        Deal.number(1, "pyramid").check(rules("double_pyramid"))


@pytest.mark.parametrize("value", [5, None, np.random.RandomState(1)])
def test_symptom_a_random_deal_from_no_generator_was_an_attribute_error(value):
    with pytest.raises(DeckError, match=r"random deal: expected a numpy\.random\.Generator, got "):
        Deal.random(value)


def test_symptom_the_number_of_a_deal_was_taken_for_the_classmethod():
    deal = Deal.number(42)
    assert deal.deal_number == 42
    assert deal.number(43) == Deal.number(43)
    assert "``deal.deal_number``" in Deal.__doc__
    assert "``deal_number``" in Deal.number.__doc__


def test_a_deal_is_checked_against_rules_by_name():
    Deal.number(1).check("giza")
    with pytest.raises(DeckError, match="expected 104 cards, got 52"):
        Deal.number(1).check("double_pyramid")
