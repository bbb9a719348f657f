#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts test cases from Bazel's build events and the tests' XML reports.

usage: summarize_tests.py EVENTS.json BAZEL_STATUS [FAILED...]

Prints the skipped cases by reason, then every failed one with the end of its test's log, then
"N passed, N failed, N skipped". FAILED names checks beside Bazel's that failed. Exits 0 only if
Bazel's status was 0 and nothing failed.
"""
import collections
import json
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree


LOG_LINES = 40  # of a failed test, counted from its end


def local_path(uri):
    """The file that a file:// address names, None for an empty one."""
    return urllib.parse.unquote(urllib.parse.urlparse(uri).path) or None


def read_events(path):
    """Yields (label, status, its files by name) of every test's run or shard, and of targets not built."""
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            event = json.loads(line)
            identity = event.get("id", {})
            if "testResult" in identity:
                test, result = identity["testResult"], event["testResult"]
                files = {file["name"]: local_path(file.get("uri", ""))
                         for file in result.get("testActionOutput", [])}
                yield test["label"], result["status"], files
            elif "targetCompleted" in identity and not event.get("completed", {}).get("success"):
                yield identity["targetCompleted"]["label"], "FAILED_TO_BUILD", {}


def cases(xml_path):
    """Yields (name, 'passed' | 'failed' | 'skipped', message) for each case of one report."""
    for case in ElementTree.parse(xml_path).iter("testcase"):
        name = f"{case.get('classname', '')}.{case.get('name', '')}".lstrip(".")
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            yield name, "failed", ""
        elif skipped is not None:
            yield name, "skipped", " ".join((skipped.get("message") or skipped.text or "").split())
        elif case.get("result") != "suppressed":
            yield name, "passed", ""


def log_end(path):
    """The last lines of a test's log, indented."""
    try:
        with open(path, encoding="utf-8", errors="replace") as lines:
            return "".join(f"  | {line.rstrip()[:300]}\n"
                           for line in collections.deque(lines, LOG_LINES))
    except (OSError, TypeError):
        return ""


class Summary:
    """Counts outcomes; keeps what is said of skipped and failed cases until all are there."""

    def __init__(self):
        self.counts = {"passed": 0, "failed": 0, "skipped": 0}
        self.skipped = collections.defaultdict(list)  # (label, test, reason) -> parameters
        self.failed = []

    def fail(self, what, log=""):
        self.counts["failed"] += 1
        self.failed.append(f"failed: {what}\n{log}")

    def add(self, label, status, files):
        found = []
        if files.get("test.xml"):
            try:
                found = list(cases(files["test.xml"]))
            except (OSError, ElementTree.ParseError) as error:
                print(f"unreadable report of {label}: {error}")
        log = log_end(files.get("test.log"))
        for name, outcome, message in found:
            if outcome == "failed":
                self.fail(f"{label} {name}", log)
                log = ""  # once per test
                continue
            self.counts[outcome] += 1
            if outcome == "skipped":
                test, _, parameter = name.rpartition("/")
                self.skipped[label, test, message].append(parameter)
        if status != "PASSED" and not any(outcome == "failed" for _, outcome, _ in found):
            self.fail(f"{label}: {status}", log)

    def show(self):
        for (label, test, reason), parameters in self.skipped.items():
            test = f"{test}/" if test else ""
            print(f"skipped: {label} {test}{{{', '.join(parameters)}}}: {reason}"
                  if len(parameters) > 1 else f"skipped: {label} {test}{parameters[0]}: {reason}")
        for text in self.failed:
            print(text, end="")
        counts = self.counts
        print(f"{counts['passed']} passed, {counts['failed']} failed"
              + (f", {counts['skipped']} skipped" if counts["skipped"] else ""))


def main():
    summary = Summary()
    for label, status, files in read_events(sys.argv[1]):
        summary.add(label, status, files)
    for name in sys.argv[3:]:
        summary.fail(name)
    bazel_status = int(sys.argv[2])
    if bazel_status != 0 and summary.counts["failed"] == 0:
        summary.fail(f"bazel ended with status {bazel_status}")
    summary.show()
    sys.exit(1 if summary.counts["failed"] else 0)


if __name__ == "__main__":
    main()
