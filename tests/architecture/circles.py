# SPDX-License-Identifier: Apache-2.0
"""No circle of units: a unit is a header with the source file of its name, and depends on the units
whose headers either includes. Who reads one unit of a circle has to read them all."""

import re

_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
ROOMS = ("engine/", "service/", "client/")
# Rooms whose circles are to be opened.
CLOSED = ("client/load/", "client/primitive_", "engine/cache/", "engine/lowering/", "engine/memory/",
          "engine/primitives/operation_count")


def _unit(path):
    return path.rsplit(".", 1)[0]


def _graph(tree):
    graph = {}
    for path in tree.with_suffix(".h", ".cc", ".inc"):
        if not path.startswith(ROOMS):
            continue
        used = graph.setdefault(_unit(path), set())
        used.update(_unit(header) for header in _INCLUDE.findall(tree.text(path))
                    if header in tree.files and header.startswith(ROOMS))
    return {unit: used - {unit} for unit, used in graph.items()}


def _reachable(graph, start):
    seen, todo = set(), [start]
    while todo:
        for other in graph.get(todo.pop(), ()):
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return seen


def circles(tree):
    """Each circle as a sorted list of units."""
    graph = _graph(tree)
    found, known = [], set()
    for unit in sorted(graph):
        if unit in known:
            continue
        reached = _reachable(graph, unit)
        if unit not in reached:
            continue
        circle = sorted(other for other in reached if unit in _reachable(graph, other))
        known.update(circle)
        found.append(circle)
    return found


def check(tree):
    return [f"{circle[0]}: a circle of units: {', '.join(circle)}" for circle in circles(tree)
            if not circle[0].startswith(CLOSED)]
