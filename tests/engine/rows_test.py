#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every inference row of the specification names the cases that fail when its behaviour is broken (rows.txt)."""

import os
import re
import sys
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))

# (letter, last number, rows that are not here): the other B rows are options of PaddlePaddle's
# build, and the benchmark's networks.
TABLES = [("A", 17, set()), ("T", 8, set()), ("P", 14, set()), ("Q", 13, set()), ("S", 7, set()),
          ("C", 5, set()), ("V", 5, set()), ("Z", 5, set()), ("B", 8, {1})]

TEST = re.compile(r"^\s*TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)", re.MULTILINE)


def wanted_ids():
    return {f"{letter}{number:02}" for letter, last, without in TABLES
            for number in range(1, last + 1) if number not in without}


def parse(text):
    """Lines of (id, what is checked, cases or "due: reason")."""
    lines = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        lines.append(tuple(field.strip() for field in line.split("|")))
    return lines


def existing_cases(folder):
    cases = set()
    for path, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".cc"):
                with open(os.path.join(path, name), encoding="utf-8") as file:
                    cases |= {f"{suite}.{case}" for suite, case in TEST.findall(file.read())}
    return cases


def problems(lines, cases):
    found = [f"not id | check | cases: {line}" for line in lines if len(line) != 3 or not all(line)]
    if found:
        return found
    ids = {row for row, _, _ in lines}
    found += [f"{row}: no line" for row in sorted(wanted_ids() - ids)]
    found += [f"{row}: no such row" for row in sorted(ids - wanted_ids())]
    for row, _, named in lines:
        if not named.startswith("due: "):
            found += [f"{row}: no case {case}" for case in named.split() if case not in cases]
    return found


class RowsTest(unittest.TestCase):
    def setUp(self):
        with open(os.path.join(HERE, "rows.txt"), encoding="utf-8") as file:
            self.lines = parse(file.read())
        self.cases = existing_cases(HERE)

    def test_every_row_names_cases_that_exist(self):
        self.assertFalse(problems(self.lines, self.cases),
                         "\n" + "\n".join(problems(self.lines, self.cases)))
        due = [line for line in self.lines if line[2].startswith("due: ")]
        print(f"{len(self.lines) - len(due)} of {len(self.lines)} lines are covered; due:")
        for row, check, reason in due:
            print(f"  {row} {check}: {reason[5:]}")

    def test_notices_what_is_missing(self):
        self.assertIn("A01: no line", problems([line for line in self.lines if line[0] != "A01"],
                                               self.cases))
        self.assertIn("A01: no case Gone.Away", problems(
            self.lines + [("A01", "something", "Gone.Away")], self.cases))
        self.assertIn("X01: no such row", problems(
            self.lines + [("X01", "something", "due: x")], self.cases))
        self.assertTrue(problems(self.lines + [("A01", "something", "")], self.cases))


if __name__ == "__main__":
    unittest.main()
