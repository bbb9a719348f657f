#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Creates and executes random descriptors of every primitive: 1,000,000 of them unless told otherwise, on one core.
# A case that kills the process is named, and the next one goes on. Exit status 0 only if every case was survived.
#
#   tests/fuzz_descriptors.sh                          a million (minutes)
#   tests/fuzz_descriptors.sh --gradients              a million of gradients and of forward for training, compared
#   tests/fuzz_descriptors.sh 50000 --config=asan      50,000, built with these options of Bazel
#   FIRST=1000000 tests/fuzz_descriptors.sh            other cases; a case depends on its number alone
set -uo pipefail
cd "$(dirname "$0")/.."

test=random_descriptors_test
operations=1e6
of=()
if [[ ${1:-} == --gradients ]]; then test=random_gradients_test operations=1e5 of=(--gradients); shift; fi
count=1000000
if [[ ${1:-} =~ ^[0-9]+$ ]]; then count=$1; shift; fi
target=tests/engine/primitives/random_descriptors/$test
bazel build --noshow_progress "$@" "//${target%/*}:${target##*/}" || exit 1
# One binary for the whole run, whatever is built meanwhile.
binary=$(mktemp)
log=$(mktemp)
trap 'rm -f "$binary" "$log"' EXIT
cp -L "$(bazel info "$@" bazel-bin 2>/dev/null)/$target" "$binary"
chmod +x "$binary"

next=${FIRST:-0}
end=$((next + count))
failed=0
while ((next < end)); do
  TILEWIRE_FIRST_DESCRIPTOR=$next TILEWIRE_DESCRIPTORS=$((end - next)) \
    TILEWIRE_MOST_OPERATIONS="${TILEWIRE_MOST_OPERATIONS:-$operations}" nice -n 10 "$binary" >"$log" 2>&1 && break
  bad=$(grep -oE '(died in random (descriptor|gradient) |TILEWIRE_FIRST_DESCRIPTOR=)[0-9]+' "$log" | tail -1 | grep -oE '[0-9]+$')
  if [[ -z $bad ]]; then cat "$log"; exit 1; fi
  failed=$((failed + 1))
  echo "== case $bad fails: TILEWIRE_VERBOSE=2 FIRST=$bad $0 ${of[*]} 1 $*"
  TILEWIRE_VERBOSE=2 TILEWIRE_FIRST_DESCRIPTOR=$bad TILEWIRE_DESCRIPTORS=1 "$binary" 2>&1 | grep -vE '^\[|^Running|^$' | cut -c1-1000 | tail -30
  next=$((bad + 1))
done
grep -E '^ +[0-9]+ ' "$log"
echo "$count descriptors, $failed failed"
((failed == 0))
