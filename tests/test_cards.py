"""Cards and decks: notation reads back, and a bad deck is refused with the list of what is wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyramid_env.cards import Card, deck, parse_cards
from pyramid_env.errors import DeckError
from pyramid_env.rules import PRESETS, rules

PYRAMID = rules("pyramid")
RANKS_ONLY = "94J856JJ9QQ457QT4K2T839TAA6A837A78Q34T56K2K97K3J6522"


@given(st.integers(0, 51))
def test_card_text_reads_back(card_id):
    card = Card.from_id(card_id)
    assert card.id == card_id
    assert Card.parse(str(card)) == Card.parse(card.symbol) == Card.parse(str(card).lower()) == card


@pytest.mark.parametrize("text", ["", "1h", "9", "9x", "99h", "T", "h9", "10", " 9h"])
def test_no_card(text):
    with pytest.raises(DeckError, match="expected a card"):
        Card.parse(text)


@given(st.permutations(deck(PYRAMID)))
def test_deck_text_reads_back_in_every_spelling(cards):
    for text in (
        " ".join(map(str, cards)),
        "".join(map(str, cards)),
        ", ".join(card.symbol for card in cards),
        "\n".join(map(str, cards)).lower(),
    ):
        assert parse_cards(text, PYRAMID) == cards


def test_ranks_alone_get_suits_in_the_order_they_come():
    cards = parse_cards(RANKS_ONLY, PYRAMID)
    assert [str(card) for card in cards[:8]] == ["9c", "4c", "Jc", "8c", "5c", "6c", "Jd", "Jh"]
    assert sorted(cards) == sorted(deck(PYRAMID))
    assert parse_cards(RANKS_ONLY.replace("T", "10"), PYRAMID) == cards


@pytest.mark.parametrize("name", PRESETS)
def test_every_presets_deck_reads_back(name):
    cards = deck(rules(name))
    assert len(cards) == rules(name).cards
    assert parse_cards("".join(map(str, cards)), rules(name)) == cards


def test_missing_and_doubled_cards_are_all_named():
    cards = deck(PYRAMID)
    text = " ".join(map(str, [*cards[2:], cards[5], cards[5]]))
    with pytest.raises(DeckError, match="missing: Ac 2c; too many: 6c 6c"):
        parse_cards(text, PYRAMID)


def test_unreadable_cards_are_named():
    with pytest.raises(DeckError, match=r"expected 52 cards, got 51; missing: 9; unreadable: x"):
        parse_cards("x" + RANKS_ONLY[1:], PYRAMID)


def test_ranks_alone_missing_and_doubled():
    with pytest.raises(DeckError, match="missing: 9; too many: A"):
        parse_cards("A" + RANKS_ONLY[1:], PYRAMID)


def test_suits_on_some_cards_only_are_refused():
    with pytest.raises(DeckError, match="suits on all cards or on none"):
        parse_cards("9c" + RANKS_ONLY[1:], PYRAMID)


def test_a_short_deck_refuses_high_cards():
    with pytest.raises(DeckError, match="too many: K"):
        parse_cards("K" + "A234567" + "A23456", rules("mini"))


@pytest.mark.parametrize("value", [5, None, b"9h", ["9h"]])
def test_symptom_a_card_that_is_no_text_was_an_attribute_error(value):
    with pytest.raises(DeckError, match="expected a card such as 9h, Ts or 10♠, got "):
        Card.parse(value)
