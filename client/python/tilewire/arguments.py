# SPDX-License-Identifier: Apache-2.0
"""Checks of what callers pass: InvalidArgument names the argument, its value and what is allowed."""
from __future__ import annotations

import numbers
import operator
import reprlib
from typing import Any

from tilewire.errors import InvalidArgument

# Longer than any process lives: gRPC's clock ends before the largest float does.
_LONGEST = 1e8


def refused(name: str, value: Any, expected: str) -> InvalidArgument:
    return InvalidArgument(f'{name}={reprlib.repr(value)}: expected {expected}')


def text(name: str, value: Any, expected: str = 'a str') -> str:
    if not isinstance(value, str):
        raise refused(name, value, expected)
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise refused(name, value, 'a str that UTF-8 has') from error
    return value


def whole(name: str, value: Any, least: int, most: int | None = None) -> int:
    """A whole number within these bounds."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least or most is not None and number > most:
        to = '' if most is None else f' to {most}'
        raise refused(name, value, f'a whole number from {least}{to}')
    return number


def truth(name: str, value: Any) -> bool:
    try:
        return bool(value)
    except (TypeError, ValueError) as error:
        raise refused(name, value, 'True or False') from error


def seconds(name: str, value: Any) -> float | None:
    """None if there is no limit."""
    if value is None:
        return None
    number: Any = value if isinstance(value, numbers.Real) else -1
    if not number >= 0:  # which NaN is not
        raise refused(name, value, 'seconds from 0, or None')
    return None if number > _LONGEST else float(number)


def options(value: Any) -> list[tuple[str, Any]]:
    """Pairs of a name and what gRPC takes as its value."""
    try:
        pairs = [(name, setting) for name, setting in value]
    except (TypeError, ValueError) as error:
        raise refused('options', value, "pairs such as ('grpc.lb_policy_name', 'pick_first')") from error
    return [(text('options', name), setting) for name, setting in pairs]
