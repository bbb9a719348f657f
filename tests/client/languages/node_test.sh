#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The Node program of client/languages/README.md, as it stands there, against the real server: with
# the packages that package-lock.json names, from npm's registry. Where Node is missing or the
# registry cannot be reached it is skipped, and says so.
set -euo pipefail

source tests/integration/start_server.sh

skip() {
  echo "skipped: $1"
  cat >"${XML_OUTPUT_FILE:-/dev/null}" <<XML
<testsuite name="node_test"><testcase name="node_example"><skipped message="$1"/></testcase></testsuite>
XML
  exit 0
}

for tool in node npm; do
  command -v "$tool" >/dev/null || skip "there is no $tool (Debian's packages nodejs and npm)"
done
# Where npm's configuration may name another registry.
HOME=$(getent passwd "$(id -u)" | cut -d: -f6)
export HOME
packages=$TEST_TMPDIR/packages
mkdir "$packages"
cp -L tests/client/languages/package*.json "$packages"
npm=(npm --prefix "$packages" --cache "$TEST_TMPDIR/npm" --fetch-retries=1 --fetch-timeout=30000
     --no-audit --no-fund --no-update-notifier --loglevel=error)
for attempt in 1 2 3; do
  "${npm[@]}" ci --ignore-scripts && break
  "${npm[@]}" view @grpc/grpc-js version >/dev/null || skip "npm's registry cannot be reached"
  echo "attempt $attempt: npm ci failed, though the registry answers"
  [[ $attempt -lt 3 ]] || exit 1
done

start_server
awk '/^```js$/ { on = 1; next } /^```/ { on = 0 } on' client/languages/README.md |
  sed "s/127.0.0.1:8001/$server_address/" >"$packages/digits.js"
[[ $(wc -l <"$packages/digits.js") -ge 10 ]] || { echo "no program in README.md"; exit 1; }
NODE_PATH=$packages/node_modules node "$packages/digits.js" >"$TEST_TMPDIR/scores"
stop_server
cat "$TEST_TMPDIR/scores"
/usr/bin/python3 - "$TEST_TMPDIR/scores" <<'CHECK'
import json
import struct
import sys
with open('deploy/models/digits/heldout/logits.f32', 'rb') as file:
    expected = struct.unpack('<10f', file.read(40))
with open(sys.argv[1], encoding='ascii') as file:
    scores = json.load(file)
assert len(scores) == 10, scores
# As server_test.py has it: relative, over all ten.
error = sum((a - b) ** 2 for a, b in zip(scores, expected)) / sum(b ** 2 for b in expected)
assert error ** 0.5 < 1e-4, (scores, expected)
CHECK
