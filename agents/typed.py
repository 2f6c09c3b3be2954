"""Typed settings: dataclasses from nested mappings and ``key=value`` texts; what does not fit is named."""

from __future__ import annotations

import dataclasses
import difflib
import math
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, Union

import yaml

from pyramid_env.errors import PyramidError

Built = TypeVar("Built")


class ConfigError(PyramidError):
    """A setting that is unknown, of the wrong type, out of range, or at odds with another."""


def build(made: type[Built], data: Mapping[str, Any], overrides: Iterable[str], source: str) -> Built:
    """A dataclass of settings from nested mappings, then ``key=value`` texts; ``source`` names the mappings in errors.

    Raises:
        ConfigError: unknown key (the nearest known one is named), wrong type, or what the dataclass itself refuses.
    """
    if not isinstance(data, Mapping):
        raise ConfigError(f"{source}: expected a mapping of settings, got {type(data).__name__}")
    merged = _deep_copy(data)
    for text in overrides:
        key, value = _read_override(text)
        _set(merged, key, value, text)
    return _build(made, merged, "", source, made)


def plain(value: Any) -> Any:
    """Settings as YAML values."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return list(value) if isinstance(value, tuple) else value


def _read_override(text: str) -> tuple[list[str], Any]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"override: expected key=value such as ppo.learning_rate=3e-4, got {text!r}")
    try:
        return key.strip().split("."), yaml.safe_load(value)
    except yaml.YAMLError:
        raise ConfigError(f"override {text!r}: cannot read the value {value!r}") from None


def _set(settings: dict[str, Any], key: list[str], value: Any, text: str) -> None:
    for part in key[:-1]:
        inner = settings.setdefault(part, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"override {text!r}: {part} has no settings of its own")
        settings = inner
    settings[key[-1]] = value


def _build(made: type[Built], data: Mapping[Any, Any], prefix: str, source: str, whole: type) -> Built:
    """A config class from a mapping; ``prefix`` is the dotted path to it from the ``whole``."""
    hints = typing.get_type_hints(made)
    values = {}
    for key, value in data.items():
        if key not in hints:
            raise ConfigError(f"{source}: unknown key {prefix + str(key)!r}{_nearest(prefix + str(key), whole)}")
        values[key] = _convert(hints[key], value, prefix + key, source, whole)
    try:
        return made(**values)
    except ConfigError as error:
        if str(error).startswith(source):
            raise
        raise ConfigError(f"{source}: {error}") from None


def _convert(hint: Any, value: Any, where: str, source: str, whole: type) -> Any:
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        if not isinstance(value, Mapping):
            raise _wrong(source, where, f"settings ({', '.join(typing.get_type_hints(hint))})", value)
        return _build(hint, value, where + ".", source, whole)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        inner = next(kind for kind in arguments if kind is not type(None))
        return None if value is None else _convert(inner, value, where, source, whole)
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            raise _wrong(source, where, "a list such as [256, 256]", value)
        return tuple(_convert(arguments[0], item, f"{where}[{i}]", source, whole) for i, item in enumerate(value))
    if hint is float:
        return _number(value, where, source)
    if hint is int:
        if isinstance(value, float) and value.is_integer():
            return int(value)  # 1e6 is a fine way to write a number of steps
        if isinstance(value, str) and _reads_as_number(value) and float(value).is_integer():
            return int(float(value))
        if isinstance(value, bool) or not isinstance(value, int):
            raise _wrong(source, where, "a whole number", value)
        return value
    if hint is bool:
        if not isinstance(value, bool):
            raise _wrong(source, where, "true or false", value)
        return value
    if not isinstance(value, str):
        raise _wrong(source, where, "text", value)
    return value


def _number(value: Any, where: str, source: str) -> float:
    """A float; YAML 1.1 reads 3e-4 as text, which people do not expect, so numbers written that way are read here."""
    if isinstance(value, str) and _reads_as_number(value):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise _wrong(source, where, "a finite number", value)
    return float(value)


def _reads_as_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _wrong(source: str, where: str, expected: str, value: Any) -> ConfigError:
    return ConfigError(f"{source}: {where}: expected {expected}, got {value!r} ({type(value).__name__})")


def _all_keys(made: type, prefix: str = "") -> list[str]:
    keys = []
    for name, hint in typing.get_type_hints(made).items():
        keys.append(prefix + name)
        if dataclasses.is_dataclass(hint) and isinstance(hint, type):
            keys += _all_keys(hint, prefix + name + ".")
    return keys


def _nearest(key: str, whole: type) -> str:
    """The nearest known key, by its whole path or by its last part: ``learnig_rate`` finds ``ppo.learning_rate``."""
    known = _all_keys(whole)
    by_last = {name.rpartition(".")[2]: name for name in reversed(known)}
    last = key.rpartition(".")[2]
    close = [by_last[last]] if last in by_last else difflib.get_close_matches(key, known, n=1, cutoff=0.75)
    if not close:
        close = [by_last[name] for name in difflib.get_close_matches(last, by_last, n=1)]
    return f"; did you mean {close[0]!r}?" if close else f"; known: {', '.join(known)}"


def _deep_copy(data: Mapping[Any, Any]) -> dict[Any, Any]:
    return {key: _deep_copy(value) if isinstance(value, Mapping) else value for key, value in data.items()}


# ---- checks for the dataclasses' own use -----------------------------------------------------------------------------


def one_of(where: str, value: str, known: tuple[str, ...]) -> None:
    """ConfigError unless the value is known; the nearest known one is named."""
    if value not in known:
        close = difflib.get_close_matches(value, known, n=1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise ConfigError(f"{where}: expected one of {', '.join(known)}, got {value!r}{hint}")


def at_least(where: str, value: int, low: int) -> None:
    """ConfigError for a value below ``low``."""
    if value < low:
        raise ConfigError(f"{where}: expected {low} or more, got {value}")


def positive(where: str, value: float) -> None:
    """ConfigError unless the value is more than 0."""
    if not value > 0:
        raise ConfigError(f"{where}: expected more than 0, got {value}")


def between(where: str, value: float, low: float, high: float) -> None:
    """ConfigError for a value outside low..high, both ends allowed."""
    if not low <= value <= high:
        bound = f"from {low} to {high}" if math.isfinite(high) else f"{low} or more"
        raise ConfigError(f"{where}: expected a number {bound}, got {value}")
