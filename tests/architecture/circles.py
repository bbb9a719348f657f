# SPDX-License-Identifier: Apache-2.0
"""No circle of units: a unit is a header with the source file of its name, and depends on the units
whose headers either includes. Who reads one unit of a circle has to read them all."""

from tree import SOURCES, included_by, reachable


def _unit(path):
    return path.rsplit(".", 1)[0]


def _graph(tree):
    graph = {}
    for path in tree.with_suffix(".h", ".cc", ".inc"):
        if path.startswith(SOURCES):
            used = graph.setdefault(_unit(path), set())
            used.update(_unit(header) for header in included_by(tree, path)
                        if header.startswith(SOURCES))
    return {unit: used - {unit} for unit, used in graph.items()}


def circles(tree):
    """Each circle as its units, sorted."""
    graph = _graph(tree)
    beyond = {unit: reachable(used, graph.__getitem__) for unit, used in graph.items()}
    found = {tuple(sorted(other for other in reached if unit in beyond[other]))
             for unit, reached in beyond.items() if unit in reached}
    return sorted(found)


def check(tree):
    return [f"{circle[0]}: a circle of units: {', '.join(circle)}" for circle in circles(tree)]
