"""Packages of the extra ``render``, imported when first needed: none of them is needed to play or to learn."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

EXTRA: Final = 'pip install -e ".[render]"'


class MissingPackage(ImportError):
    """A package of the extra ``render`` is not installed."""


def needed(package: str, what: str) -> Any:
    """The imported package; MissingPackage, which says what needs it and how it is installed, if there is none."""
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingPackage(
            f"{what}: expected the package {package}, got none ({error}); {EXTRA}", name=package
        ) from None
