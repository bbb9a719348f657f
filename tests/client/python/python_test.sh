#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The Python package on Debian's grpcio, protobuf and numpy: against doubles, beside other stubs,
# against the real server, against torchvision, before a type checker.
set -euo pipefail

source tests/integration/start_server.sh
export PYTHONPATH=$PWD/client/python PYTHONDONTWRITEBYTECODE=1
here=tests/client/python

# It computes while the others mostly wait.
MYPYPATH=$PYTHONPATH /usr/bin/mypy --strict --ignore-missing-imports --disable-error-code=import \
  --cache-dir="$TEST_TMPDIR/mypy" --no-error-summary "$here/typed_use.py" &
types=$!
for test in double arguments replicas stubs images; do
  echo "== $test"
  /usr/bin/python3 "$here/${test}_test.py"
done
/usr/bin/python3 "$here/halves.py" "$TEST_TMPDIR/halves.onnx"
start_server --model=digits=deploy/models/digits --model=halves="$TEST_TMPDIR/halves.onnx"
/usr/bin/python3 "$here/server_test.py" "$server_address" deploy/models/digits
stop_server
echo "== types"
wait "$types"
