"""The README tells the truth: its Python blocks run, its tables agree with the code, its commands name real files."""

import importlib.util
import re
import shlex
from pathlib import Path

import pytest
from conftest import missing

import pyramid_env as pe
from pyramid_env.moves import move_table
from pyramid_env.rules import PRESETS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_there_are_python_blocks():
    assert len(BLOCKS) >= 4


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_python_blocks_run(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if "pe.Table" in block and not importlib.util.find_spec("anywidget"):
        missing("the extra 'notebook' is not installed")
    exec(compile(block, "README.md", "exec"), {"__name__": "__main__"})


def test_preset_table_names_every_preset_with_its_actions():
    section = README.split("### Presets")[1].split("###")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \|.*\| (\d+) \|$", section, re.MULTILINE))
    assert {name: int(actions) for name, actions in rows.items()} == {
        name: len(move_table(chosen)) for name, chosen in PRESETS.items()
    }


def test_switch_table_names_every_switch():
    section = README.split("### Switches")[1].split("###")[0]
    named = set(re.findall(r"`(\w+)`", section))
    assert set(pe.Rules().to_dict()) - {"preset"} <= named


def test_commands_name_files_that_exist():
    commands = "\n".join(re.findall(r"```bash\n(.*?)```", README, re.DOTALL)).replace("\\\n", " ")
    words = [word for line in commands.splitlines() for word in shlex.split(line, comments=True)]
    files = {word for word in words if re.fullmatch(r"[\w/]+\.(py|yaml|txt)", word)}
    assert {"train.py", "evaluate.py", "constraints.txt"} <= files
    assert not [file for file in files if not (ROOT / file).exists()]
