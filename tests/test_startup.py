"""Starting: importing is light and compiles nothing; compiling is announced once, and never again once it is kept."""

import os
import subprocess
import sys

import numpy as np
import pytest

import pyramid_env as pe

HEAVY = ("torch", "stable_baselines3", "agents", "pyramid_env.solver", "pyramid_env.benchmark")


def start(program: str, cache) -> subprocess.CompletedProcess:
    """A fresh Python that keeps its machine code in ``cache``."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    return subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True, timeout=300
    )


def test_importing_is_light_and_compiles_nothing(tmp_path) -> None:
    program = f"import sys, pyramid_env; print([name for name in {HEAVY} if name in sys.modules])"
    done = start(program, tmp_path)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
    assert not [path for path in tmp_path.rglob("*") if path.is_file()], "no machine code was made"


def test_compiling_is_announced_once_and_not_where_the_code_was_kept(tmp_path) -> None:
    program = "import pyramid_env as pe; print(pe.Deal.number(42).name, pe.Deal.number(43).name)"
    first, second = start(program, tmp_path), start(program, tmp_path)
    assert first.stdout == second.stdout
    assert first.stderr.count("\n") == 1
    assert f"pyramid_env: compiling the rules (some seconds), kept in {tmp_path}" in first.stderr
    assert second.stderr == ""


def test_a_program_that_sets_up_logging_gets_the_word_there(tmp_path) -> None:
    program = (
        "import logging, pyramid_env as pe; logging.getLogger('pyramid_env').setLevel('ERROR'); pe.Deal.number(42)"
    )
    assert start(program, tmp_path).stderr == ""


def test_names_loaded_late_are_ordinary_names() -> None:
    for name in pe.__all__:
        assert getattr(pe, name) is not None
    assert set(pe.__all__) <= set(dir(pe))
    from pyramid_env.solver import solve

    assert pe.solve is solve
    assert pe.__version__ == "0.1.0"
    assert not hasattr(pe, "nonsense")
    with pytest.raises(AttributeError, match="module 'pyramid_env' has no attribute 'slove'"):
        pe.slove  # noqa: B018 (the look-up is the subject)
    names: dict = {}
    exec("from pyramid_env import *", names)
    assert set(pe.__all__) <= set(names)
    assert np.isin(["solver", "winnable"], dir(pe)).all()
