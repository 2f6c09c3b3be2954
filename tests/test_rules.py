"""Rules: the presets as the rules document has them, and inconsistent switches refused with the reason."""

import pickle

import pytest

import pyramid_env as pe
from pyramid_env.errors import RulesError
from pyramid_env.rules import PRESETS, Rules, rules

TOPS = {"stock_top": True, "pair_stock_waste": True}
EXPECTED = {
    "pyramid": {},
    "one_pass": {"passes": 1},
    "solitaire13": {"passes": 1},
    "solitaire13_three_piles": {"passes": 1, "draw_count": 3, "waste_piles": 3, "pair_waste_tops": True},
    "till_dawn": {**TOPS, "pair_waste_two": True, "goal": "all", "match_games": 6},
    "double_pyramid": {"decks": 2, "rows": 9},
    "microsoft": {**TOPS, "scoring": "msc"},
    "classic": {**TOPS, "passes": 1, "goal": "all"},
    "pysol": {**TOPS, "goal": "all", "predealt": 1},
    "double_pyramid_pysol": {**TOPS, "decks": 2, "rows": 9, "goal": "all", "predealt": 1},
    "tuts_tomb": {"draw_count": 3, "passes": None},
    "giza": {
        "draw_count": 8,
        "waste_piles": 8,
        "predealt": 24,
        "pair_waste_tops": True,
        "passes": 1,
        "goal": "all",
    },
    "overlap": {"passes": None, "overlap": True},
    "mini": {"ranks": 7, "suits": 2, "rows": 3},
    "mini_one_pass": {"ranks": 7, "suits": 2, "rows": 3, "passes": 1},
}


def test_presets_are_the_documents():
    assert list(PRESETS) == list(EXPECTED)
    for name, switches in EXPECTED.items():
        assert pe.rules(name) == Rules(**switches), name


def test_double_pyramid_has_45_and_59_cards():
    double = rules("double_pyramid")
    assert (double.cards, double.places, double.stock_size) == (104, 45, 59)


def test_mini_has_6_and_8_cards():
    assert (rules("mini").places, rules("mini").stock_size) == (6, 8)


@pytest.mark.parametrize("name", PRESETS)
def test_text_and_dict_and_pickle_read_back(name):
    for chosen in (rules(name), rules(name).replace(scoring="none", match_games=3)):
        assert rules(str(chosen)) == chosen
        assert Rules(**chosen.to_dict()) == chosen
        assert pickle.loads(pickle.dumps(chosen)) == chosen


def test_text_names_the_preset_and_what_differs():
    assert str(rules("microsoft", passes=1)) == "microsoft:passes=1"
    assert str(rules("overlap")) == "overlap"
    assert str(Rules(rows=5, passes=None)) == "pyramid:rows=5,passes=unlimited"
    assert rules("pyramid:passes=unlimited, overlap=on") == rules("overlap")


def test_rules_are_frozen_and_hashable():
    with pytest.raises(AttributeError):
        rules("pyramid").passes = 1
    assert len({rules("one_pass"), rules("solitaire13")}) == 1


@pytest.mark.parametrize(
    ("switches", "reason"),
    [
        ({"ranks": 12}, "odd"),
        ({"ranks": 15}, "from 5 to 13"),
        ({"suits": 5}, "from 1 to 4"),
        ({"rows": 1}, "from 2 to 9"),
        ({"rows": 9, "suits": 3}, "needs 45 cards, the deck has 39"),
        ({"decks": 2, "rows": 8}, "stock of 68 cards"),
        ({"passes": 4}, "passes: expected a whole number from 1 to 3 or unlimited"),
        ({"passes": 0}, "passes"),
        ({"passes": "many"}, "passes"),
        ({"passes": True}, "passes"),
        ({"draw_count": 0}, "draw_count"),
        ({"draw_count": 25}, "more than the stock of 24"),
        ({"draw_count": 3, "waste_piles": 2}, "waste_piles must be 1 or draw_count"),
        ({"predealt": 25}, "more than the stock"),
        ({"predealt": -1}, "predealt"),
        ({"pair_stock_waste": True}, "needs stock_top"),
        ({"pair_waste_tops": True}, "needs two waste piles"),
        ({"end_on_exhausted": True, "passes": None}, "needs a last pass"),
        ({"end_on_exhausted": True, "goal": "all", "passes": 1}, "can't be won"),
        ({"end_on_exhausted": True, "passes": 1, "predealt": 24}, "before the first move"),
        ({"goal": "win"}, "expected one of pyramid, all"),
        ({"scoring": "pars"}, "expected one of par, msc, none"),
        ({"overlap": 1}, "expected true or false"),
        ({"rows": 7.0}, "rows"),
        ({"overlaps": True}, "did you mean 'overlap'"),
    ],
)
def test_inconsistent_rules_are_refused_with_the_reason(switches, reason):
    with pytest.raises(RulesError, match=reason):
        rules("pyramid", **switches)


def test_all_cards_before_the_stock_of_the_last_pass_is_empty_is_a_game():
    assert Rules(end_on_exhausted=True, goal="all", passes=2)
    assert Rules(end_on_exhausted=True, goal="all", passes=1, stock_top=True)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("pyramid:rows=--5", "rows: expected a whole number"),
        ("pyramid:rows=" + "9" * 5000, "rows: expected a whole number"),
        ("pyramid:rows=7,rows=8", "rows twice"),
        ("pyramid:preset=mini", "expected a switch, got 'preset'"),
        ("pyramid:=5", "unknown switch"),
    ],
)
def test_bad_rules_text_gives_one_clear_error(text, reason):
    with pytest.raises(RulesError, match=reason):
        rules(text)


def test_unknown_preset_names_the_nearest():
    with pytest.raises(RulesError, match="did you mean 'double_pyramid'"):
        rules("double_piramid")
    with pytest.raises(RulesError, match="switch=value"):
        rules("pyramid:overlap")
    with pytest.raises(RulesError, match="expected a preset's name"):
        rules(7)
