# SPDX-License-Identifier: Apache-2.0
"""How much of the project a user of the engine's doors has to read."""

import re

from includes import NARROW_DOORS

MAX_HEADERS = 8

_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def closure(tree, header):
    """The headers of the project that `header` includes, directly or not, without itself."""
    seen, unread = set(), [header]
    while unread:
        for other in _INCLUDE.findall(tree.text(unread.pop())):
            if other in tree.files and other not in seen and other != header:
                seen.add(other)
                unread.append(other)
    return sorted(seen)


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
