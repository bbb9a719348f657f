#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The server is linked without what only the tool calls: the trainer and the tuner (engine/trainer.h,
# engine/tuner.h). Builds for sanitizers, and those that are not optimised, link everything: there it is skipped, and
# says so.
set -euo pipefail

skip() {
  echo "skipped: $1"
  cat >"${XML_OUTPUT_FILE:-/dev/null}" <<XML
<testsuite name="linked_code_test"><testcase name="server"><skipped message="$1"/></testcase></testsuite>
XML
  exit 0
}

server=$TEST_TMPDIR/server tool=$TEST_TMPDIR/tool
[[ ${COMPILATION_MODE:-opt} == opt ]] || skip "--compilation_mode=$COMPILATION_MODE links what nothing calls"
nm --defined-only -C service/tilewire-server >"$server"
nm --defined-only -C client/tilewire >"$tool"
readelf -SW client/tilewire >"$TEST_TMPDIR/sections"
if grep -qE ' __(asan|tsan)_|\.debug_info' "$tool" "$TEST_TMPDIR/sections"; then
  skip 'this build links what nothing calls'
fi
failures=0
for name in 'tilewire::CreateTrainer(' 'tilewire::ModelTrainer::Update(' 'tilewire::Tune(' \
  'tilewire::training::TakeStep('; do
  if ! grep -qF "$name" "$tool"; then
    echo "FAILED: the tool contains no $name: what is it called now?"
    failures=$((failures + 1))
  fi
  if grep -F "$name" "$server"; then
    echo "FAILED: the server contains $name"
    failures=$((failures + 1))
  fi
done
[[ $failures -eq 0 ]]
