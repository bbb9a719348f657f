#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests of engine, service and client under sanitizers; generated code is not instrumented. Everything must be
# clean.
#
#   tests/sanitizers.sh            both
#   tests/sanitizers.sh address    address and undefined behaviour: all tests of engine, service and client library
#   tests/sanitizers.sh thread     threads: what they share, on the standard library's threads and locks, and what
#                                  divides its work among them, training too
set -uo pipefail
cd "$(dirname "$0")/.."

shared_by_threads=(
  //tests/engine:engine_test
  //tests/engine/cache/...
  //tests/engine/primitives:all
  //tests/engine/facade/...
  //tests/engine/lowering/...
  //tests/engine/network/...
  //tests/engine/threading/...
  //tests/engine/training/...
  //tests/service/schedule/...
  //tests/service/models/...
  //tests/service/observe/...
  //tests/service/trace/...
)

run() {
  local what=$1 config=$2
  shift 2
  echo "== $what"
  # Instrumented tests take ten times as long.
  bazel test --config="$config" --keep_going --test_tag_filters=-external --test_timeout=3600 "$@"
}

status=0
case "${1:-both}" in
  address | both) run "address and undefined behaviour" asan //tests/engine/... //tests/service/... //tests/fuzz/... \
    //tests/support/... \
    //tests/client:client_test //tests/client/training:training_test || status=1 ;;&
  thread | both) run "threads" tsan "${shared_by_threads[@]}" || status=1 ;;&
  address | thread | both) exit "$status" ;;
  *) echo "usage: tests/sanitizers.sh [address|thread]" >&2; exit 2 ;;
esac
