# SPDX-License-Identifier: Apache-2.0
"""The table of passes over a network: each has a file, a reason, and stands before the passes it names."""

import re

FOLDER = "engine/network/passes/"
TABLE = FOLDER + "passes.cc"
# The files that the passes share.
NOT_PASSES = {"passes", "editor"}

_ROW = re.compile(r'\{"(\w+)",\s*(\w+),\s*"([^"]*)",\s*((?:"[^"]*"\s*)+)\}')


def _function_of(name):
    return "".join(word.capitalize() for word in name.split("_"))


def check(tree):
    if TABLE not in tree.files:
        return []
    rows = _ROW.findall(tree.text(TABLE))
    order = {name: place for place, (name, _, _, _) in enumerate(rows)}
    problems = [] if rows else [f"{TABLE}: holds no row {{name, function, before, why}}"]
    for name, function, before, why in rows:
        if FOLDER + name + ".cc" not in tree.files:
            problems.append(f"{TABLE}: {name} has no {FOLDER}{name}.cc")
        if function != _function_of(name):
            problems.append(f"{TABLE}: {name} runs {function}")
        if len(why.strip('" \n')) < 10:
            problems.append(f"{TABLE}: {name} does not say why it stands there")
        problems += [f"{TABLE}: {name} must stand before {later}" for later in before.split()
                     if order.get(later, -1) <= order[name]]
    files = {path[len(FOLDER):-3] for path in tree.files
             if path.startswith(FOLDER) and path.endswith(".cc")}
    problems += [f"{TABLE}: {name} is not in the table"
                 for name in sorted(files - NOT_PASSES - set(order))]
    return problems
