#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts test cases from Bazel's build events and the tests' XML reports.

usage: summarize_tests.py EVENTS.json BAZEL_STATUS

Prints every skipped case with its reason and every failed one, then "N passed, N failed, N skipped".
Exits 0 only if Bazel's status was 0 and nothing failed.
"""
import json
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree


def read_events(path):
    """Yields (label, status, path of test.xml or None) for every test, and failed build targets."""
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            event = json.loads(line)
            identity = event.get("id", {})
            if "testResult" in identity:
                label = identity["testResult"]["label"]
                result = event["testResult"]
                files = {f["name"]: f.get("uri", "") for f in result.get("testActionOutput", [])}
                uri = files.get("test.xml", "")
                yield label, result["status"], urllib.parse.unquote(urllib.parse.urlparse(uri).path) or None
            elif "targetCompleted" in identity and not event.get("completed", {}).get("success"):
                yield identity["targetCompleted"]["label"], "FAILED_TO_BUILD", None


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


def main():
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    seen = set()
    for label, status, xml_path in read_events(sys.argv[1]):
        if label in seen:
            continue
        seen.add(label)
        found = []
        if xml_path:
            try:
                found = list(cases(xml_path))
            except (OSError, ElementTree.ParseError) as error:
                print(f"unreadable report of {label}: {error}")
        for name, outcome, message in found:
            counts[outcome] += 1
            if outcome != "passed":
                print(f"{outcome}: {label} {name}" + (f": {message}" if message else ""))
        if status != "PASSED" and not any(outcome == "failed" for _, outcome, _ in found):
            counts["failed"] += 1
            print(f"failed: {label}: {status}")
    bazel_status = int(sys.argv[2])
    if bazel_status != 0 and counts["failed"] == 0:
        counts["failed"] = 1
        print(f"failed: bazel ended with status {bazel_status}")
    print(f"{counts['passed']} passed, {counts['failed']} failed"
          + (f", {counts['skipped']} skipped" if counts["skipped"] else ""))
    sys.exit(1 if counts["failed"] else 0)


if __name__ == "__main__":
    main()
