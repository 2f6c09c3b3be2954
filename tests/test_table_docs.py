"""docs/table.md tells the truth: its tests are there, its controls are on the page, and each preset is covered."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import pyramid_env as pe
from pyramid_env.__main__ import parser

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "table.md").read_text()
SCRIPT = (ROOT / "pyramid_env" / "table" / "static" / "table.js").read_text()
PARLOUR = {"pyramid", "one_pass", "solitaire13", "solitaire13_three_piles", "till_dawn", "double_pyramid"}


def rows() -> list[list[str]]:
    """The cells of the table of controls: control, where, presets, tests."""
    lines = PAGE.partition("| control | at the table | presets | tests |\n")[2].splitlines()[1:]
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines if line.startswith("|")]


def names(cell: str) -> list[str]:
    return re.findall(r"`([\w-]+)`", cell)


def parts(kind: str) -> set[str]:
    """What the page's script makes: controls by their data-control, or what is shown by its data-shows."""
    direct = set(re.findall(rf'"data-{kind}": "([\w-]+)"', SCRIPT))
    made = "button|check" if kind == "control" else "part"
    fields = set(re.findall(r'\bfield\(this\.\w+, "([\w-]+)"', SCRIPT)) if kind == "control" else set()
    return direct | fields | set(re.findall(rf'\b(?:{made})\("([\w-]+)"', SCRIPT))


def functions() -> dict[str, ast.FunctionDef]:
    files = ("test_table.py", "test_table_browser.py")
    trees = [ast.parse((ROOT / "tests" / name).read_text()) for name in files]
    return {node.name: node for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_row_is_complete() -> None:
    assert len(rows()) > 30
    for row in rows():
        assert len(row) == 4, row
        assert row[2] == "all" or set(names(row[2])) <= PARLOUR, row
        assert names(row[3]), row


def test_every_test_is_there() -> None:
    known = functions()
    missing = {name for row in rows() for name in names(row[3]) if name not in known}
    assert not missing


def test_every_control_is_on_the_page() -> None:
    for control, where, *_ in rows():
        kind, _, rest = where.partition(" ")
        if kind == "gesture:":
            assert rest, control
            continue
        assert kind in ("control", "shown"), control
        assert names(rest), control
        assert set(names(rest)) <= parts("control" if kind == "control" else "shows"), control


def test_every_preset_of_the_pages_is_covered() -> None:
    """Each preset has a row of its own or takes part in the tests that run over presets."""
    every = ast.unparse(
        functions()["test_every_control_of_the_rule_pages_works_in_each_of_their_presets"].decorator_list[0]
    )
    assert set(re.findall(r"'(\w+)'", every)) - {"rules"} == PARLOUR
    told = PAGE.partition("## The controls of the rule pages")[2].partition("| control |")[0]
    assert set(names(told)) & set(pe.PRESETS) == PARLOUR
    assert {preset for row in rows() for preset in (PARLOUR if row[2] == "all" else names(row[2]))} == PARLOUR


@pytest.mark.parametrize(
    "word",
    ["undo", "redo", "hint", "restart", "new", "number", "winnable", "day", "pause", "large cards", "full screen",
     "favourites", "clock", "moves", "score", "match", "statistics", "drag", "kings", "stock", "near targets",
     "saved by itself"],
)  # fmt: skip
def test_every_control_that_the_pages_name_has_a_row(word: str) -> None:
    assert any(word in f"{row[0]} {row[1]}".lower() for row in rows())


def test_the_keys_are_those_of_the_page() -> None:
    listed = SCRIPT.partition("const KEYS = [")[2].partition("];")[0]
    keys = re.findall(r'\["(.*?)", "(.*?)"\]', listed)
    assert len(keys) > 10
    for key, what in keys:
        assert f"| {key} | {what} |" in PAGE


def test_the_calls_are_understood() -> None:
    for option in re.findall(r"`(--[\w-]+)", PAGE):
        assert option in parser()._subparsers._group_actions[0].choices["play"].format_help()
    assert parser().parse_args(["play", "till_dawn", "--deal", "42"]).deal == "42"
    assert str(pe.rules("microsoft:passes=1")) == "microsoft:passes=1"
