#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds everything, runs every test, names every skipped one with its reason, and ends
# with "N passed, N failed". Exit status 0 only if nothing failed.
#
#   tests/run.sh                       all tests, and a minute of tests/standalone_sources.sh
#   tests/run.sh //tests/engine/...    some of them (Bazel targets and options)
set -uo pipefail
cd "$(dirname "$0")/.."

if [[ ${1:-} == --help ]]; then sed -n '3,7s/^# \{0,1\}//p' "$0"; exit 0; fi

deploy/install_deps.sh --tests || { echo "0 passed, 1 failed"; exit 1; }

targets=("$@")
[[ ${#targets[@]} -eq 0 ]] && targets=(//...)

events=$(mktemp)
trap 'rm -f "$events"' EXIT
bazel test --keep_going --build_event_json_file="$events" "${targets[@]}"
status=$?
beside=()  # what failed that Bazel does not run
[[ $# -gt 0 ]] || tests/standalone_sources.sh --seconds=60 || beside=(tests/standalone_sources.sh)
cpu=$(sed -n '/^model name/{s/.*: //p;q}' /proc/cpuinfo)
echo "The run took $((SECONDS / 60)) min $((SECONDS % 60)) s on $(nproc) cores of $cpu"
python3 tests/support/summarize_tests.py "$events" "$status" "${beside[@]}"
