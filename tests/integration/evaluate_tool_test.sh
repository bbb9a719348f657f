#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `tilewire evaluate` with arrays of numbers, against a real server; pictures are in tool_test.sh.
set -uo pipefail

source tests/integration/start_server.sh
source tests/support/expect.sh
digits=deploy/models/digits

start_server
export TILEWIRE_SERVER=$server_address

# The pictures of the built-in model as numbers.
/usr/bin/python3 - "$digits/heldout" "$TEST_TMPDIR" <<'PYTHON'
import array, sys
images, labels = (open(sys.argv[1] + name, 'rb').read() for name in ('/images.u8', '/labels.u8'))
array.array('f', [byte / 255 for byte in images]).tofile(open(sys.argv[2] + '/images.f32', 'wb'))
array.array('i', list(labels)).tofile(open(sys.argv[2] + '/labels.s32', 'wb'))
array.array('f', list(labels)).tofile(open(sys.argv[2] + '/labels.f32', 'wb'))
PYTHON
numbers=(evaluate --model=digits --images="$TEST_TMPDIR/images.f32" --shape=3x24x20)
expect 0 'layouts     the one that the input is declared in, 1x3x24x20$' "${numbers[@]}" \
  --labels="$TEST_TMPDIR/labels.s32" --show=1 --min_accuracy="$(cat "$digits/accuracy.txt")"
expect 2 'labels.f32 holds FP32 of shape 360; the class of each example is needed' \
  "${numbers[@]}" --labels="$TEST_TMPDIR/labels.f32"
expect 2 'images.f32: examples of 1440 do not fit the input .image., which is Nx3x24x20' \
  "${numbers[@]:0:3}" --shape=1440 --labels="$TEST_TMPDIR/labels.s32"
expect 2 'images.f32 has no header: --shape of one example is required' \
  "${numbers[@]:0:3}" --labels="$TEST_TMPDIR/labels.s32"
expect 2 'scale, --mean and --std turn bytes into floats' \
  "${numbers[@]}" --labels="$TEST_TMPDIR/labels.s32" --scale=1
expect 0 '^Example 0: answer .*, label ' "${numbers[@]}" --labels="$TEST_TMPDIR/labels.s32" --show=1
printf 'abc' >"$TEST_TMPDIR/short"
expect 2 'images: .*/short has 3 bytes, fewer than one example of 3x24x20 has' evaluate --model=digits \
  --images="$TEST_TMPDIR/short" --shape=3x24x20 --labels="$TEST_TMPDIR/labels.s32"

exit $((failures > 0))
