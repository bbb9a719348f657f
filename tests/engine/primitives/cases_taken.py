#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes cases_taken.txt from the reports of tests that have run, passed or failed.

  bazel test //tests/engine/primitives/...
  tests/engine/primitives/cases_taken.py

Lines "row test taken/asked", by row. Rows without a report, which the CPU lacks, keep their lines, as do tests that
did not run; a row that has none gets "row due". Lines whose test or row exists no longer go. Rows that run another one
are not counted: which row runs inside depends on the CPU.
"""
import glob
import os
import re
import sys
import xml.etree.ElementTree as ElementTree

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.join(HERE, '..', '..', '..')
FILE = os.path.join(HERE, 'cases_taken.txt')
PROPERTY = 'cases_taken '
TEST = re.compile(r'^\s*TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)', re.MULTILINE)


def declared():
    """{(row, test): counts} of the file."""
    if not os.path.exists(FILE):
        return {}
    with open(FILE, encoding='utf-8') as file:
        lines = map(str.split, file)
        return {(words[0], words[1]): words[2] for words in lines if len(words) == 3}


def reported():
    """{(row, test): counts} of the tests' reports, and the names of all rows."""
    found, rows = {}, set()
    for path in glob.glob(os.path.join(ROOT, 'bazel-testlogs/tests/engine/primitives/**/test.xml'), recursive=True):
        for case in ElementTree.parse(path).iter('testcase'):
            suite, name = case.get('classname', '').rpartition('/')[2], case.get('name', '').partition('/')[0]
            for entry in case.iter('property'):
                if entry.get('name') == 'rows':
                    rows |= set(entry.get('value').split())
                elif entry.get('name', '').startswith(PROPERTY):
                    found[entry.get('name')[len(PROPERTY):], f'{suite}.{name}'] = entry.get('value')
    if not rows:
        sys.exit('there is no report of //tests/engine/primitives:primitives_test, which lists the rows: run the tests')
    return found, rows


def existing():
    """The names of the tests in this folder."""
    names = set()
    for path in glob.glob(os.path.join(HERE, '**', '*.cc'), recursive=True):
        with open(path, encoding='utf-8') as file:
            names |= {f'{suite}.{name}' for suite, name in TEST.findall(file.read())}
    return names


def main():
    found, rows = reported()
    names = existing()
    lines = {(row, test): counts for (row, test), counts in (declared() | found).items()
             if row in rows and test in names}
    counted = {row for row, _ in lines}
    texts = [f'{row} {test} {counts}\n' for (row, test), counts in lines.items()]
    texts += [f'{row} due\n' for row in rows if row not in counted]
    with open(FILE, 'w', encoding='utf-8') as file:
        file.writelines(sorted(texts))


if __name__ == '__main__':
    main()
