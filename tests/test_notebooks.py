"""Notebooks run from top to bottom in a kernel, as Jupyter runs them, and show tables and pictures."""

import json
import os
import re
import sys
import time
from pathlib import Path

import pytest
from conftest import missing

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
WIDGET = "application/vnd.jupyter.widget-view+json"
LIMIT_S = 300
SHOWN = {  # tables, pictures
    "1_first_steps": (1, 5),
    "2_play_and_inspect": (3, 2),
    "3_train_and_watch": (1, 1),
    "4_compare_with_the_bound": (1, 1),
    "5_your_own_agent": (1, 1),
}
every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def text_of(cell):
    return "".join(cell["source"])


def code_cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def test_all_are_there():
    assert [path.stem for path in NOTEBOOKS] == list(SHOWN)


@every_notebook
def test_no_trace_of_a_run_or_a_machine_is_kept(path):
    notebook = read(path)
    for cell in code_cells(notebook):
        assert cell["outputs"] == [], "clear the outputs before committing"
        assert cell["execution_count"] is None
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert "widgets" not in notebook["metadata"]
    for cell in notebook["cells"]:
        assert not re.search(r"/(home|root|tmp|work|Users)/|[A-Z]:\\", text_of(cell))


@every_notebook
def test_links_lead_to_files(path):
    for cell in read(path)["cells"]:
        if cell["cell_type"] == "markdown":
            for target in re.findall(r"\]\(([^)#:]+)\)", text_of(cell)):
                assert (path.parent / target).exists(), target


@pytest.fixture
def execute(tmp_path, monkeypatch):
    """Run a notebook in a kernel of this interpreter, which sees nothing of the user's and leaves nothing behind."""
    try:
        import anywidget  # noqa: F401 - is it there?
        import nbclient
        import nbformat
        import torch  # noqa: F401 - is it there?
    except ModuleNotFoundError as error:
        missing(f"{error.name} is not installed: the notebooks need the extras 'train', 'notebook' and 'browser'")
    kernel = tmp_path / "jupyter" / "kernels" / "python3"
    kernel.mkdir(parents=True)
    call = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernel / "kernel.json").write_text(json.dumps({"argv": call, "display_name": "Python 3", "language": "python"}))
    for name in ("path", "books", "data"):
        (tmp_path / name).mkdir()
    # The package of this checkout; its agents must be found by the notebook's own first cell.
    (tmp_path / "path" / "pyramid_env").symlink_to(ROOT / "pyramid_env", target_is_directory=True)
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    places = {"PYTHONPATH": str(tmp_path / "path"), "PYRAMID_ENV_DATA": str(tmp_path / "data")}

    def run(path):
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        client = nbclient.NotebookClient(
            notebook, timeout=LIMIT_S, kernel_name="python3", resources={"metadata": {"path": str(tmp_path / "books")}}
        )
        client.execute(env=os.environ | places)
        return notebook, client.widget_state

    return run


@every_notebook
def test_it_runs_and_shows_what_it_promises(path, execute, tmp_path):
    began = time.monotonic()
    notebook, widgets = execute(path)
    assert time.monotonic() - began < LIMIT_S
    outputs = [output for cell in code_cells(notebook) for output in cell["outputs"]]
    assert not [output for output in outputs if output["output_type"] == "error" or output.get("name") == "stderr"]
    shown = [output["data"] for output in outputs if "data" in output]
    tables = [widgets[data[WIDGET]["model_id"]] for data in shown if WIDGET in data]
    pictures = [data for data in shown if "image/svg+xml" in data or "<svg" in data.get("text/html", "")]
    assert (len(tables), len(pictures)) == SHOWN[path.stem]
    for table in tables:
        assert table["_model_module"] == "anywidget"
        assert "<svg" in json.dumps(table["state"])
    assert list((tmp_path / "books").iterdir()) == []
