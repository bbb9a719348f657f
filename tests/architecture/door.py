# SPDX-License-Identifier: Apache-2.0
"""How much of the project a user of the engine's doors has to read."""

from includes import NARROW_DOORS
from tree import included_by, reachable

MAX_HEADERS = 8


def closure(tree, header):
    """The headers of the project that `header` includes, directly or not, without itself."""
    return sorted(reachable([header], lambda path: included_by(tree, path)) - {header})


def check(tree):
    problems = []
    for header in NARROW_DOORS:
        if header not in tree.files:
            continue
        headers = closure(tree, header)
        if len(headers) > MAX_HEADERS:
            problems.append(f"{header}: includes {len(headers)} headers of the project, at most "
                            f"{MAX_HEADERS}: {' '.join(headers)}")
    return problems
