#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes, loads, plans and runs random networks and compares their answers with the oracle's: 100,000 of them unless told
# otherwise, on one core. A network that fails or ends the process is named, and the next one goes on. Exit status 0 only
# if every network was survived.
#
#   tests/fuzz/run_networks.sh                          a hundred thousand (an hour)
#   tests/fuzz/run_networks.sh 100000 --config=asan     built with these options of Bazel: under sanitizers (hours)
#   FIRST=100000 tests/fuzz/run_networks.sh             other networks; one depends on its number alone
set -uo pipefail
cd "$(dirname "$0")/../.."

count=100000
if [[ ${1:-} =~ ^[0-9]+$ ]]; then count=$1; shift; fi
target=tests/fuzz/networks/random_networks_test
bazel build --noshow_progress "$@" "//${target%/*}:${target##*/}" || exit 1
# One binary for the whole run, whatever is built meanwhile.
binary=$(mktemp)
log=$(mktemp)
trap 'rm -f "$binary" "$log"' EXIT
export UBSAN_OPTIONS=abort_on_error=1:print_stacktrace=1  # so that the network is named
cp -L "$(bazel info "$@" bazel-bin 2>/dev/null)/$target" "$binary"
chmod +x "$binary"

first=${FIRST:-0}
next=$first
end=$((first + count))
failed=0
while ((next < end)); do
  # A process at a time for 10,000, so that one that fails is found in minutes.
  here=$((end - next < 10000 ? end - next : 10000))
  if TILEWIRE_FIRST_NETWORK=$next TILEWIRE_NETWORKS=$here nice -n 10 "$binary" >"$log" 2>&1; then
    next=$((next + here))
    echo "$((next - first)) networks, $failed failed"
    continue
  fi
  bad=$(grep -oE '(died in random network |TILEWIRE_FIRST_NETWORK=)[0-9]+' "$log" | tail -1 | grep -oE '[0-9]+$')
  if [[ -z $bad ]]; then cat "$log"; exit 1; fi
  failed=$((failed + 1))
  echo "== network $bad fails: FIRST=$bad $0 1 $*"
  grep -E 'Failure|ERROR|runtime error|SUMMARY|off by|status|INTERNAL|Assertion|    #[0-9] ' "$log" | cut -c1-400 | head -20
  next=$((bad + 1))
done
grep -E '^ +[0-9]+ ' "$log"
echo "$count networks, $failed failed"
((failed == 0))
