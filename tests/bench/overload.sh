#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A server under more requests than it can answer: measures its capacity with a closed loop, then
# sends 2, 5 and 10 times as many requests per second in open loops and prints, per loop, the
# good answers per second, the share of the capacity that they are, percentiles of the admitted
# requests, the CPU that sending took, and how long a request took a second after the loop.
#
# Beside the share stands what receiving and refusing leave: the cores without the CPU that the
# sender and the server's other threads took, over the same in the closed loop.
#
#   tests/bench/overload.sh                                 the built-in model, 10 s per loop
#   tests/bench/overload.sh FILE.onnx --seconds=60          another model
#   tests/bench/overload.sh FILE.onnx -- --max_queue_ms=50  flags of the server after --
set -euo pipefail
cd "$(dirname "$0")/../.."

if [[ ${1:-} == --help ]]; then sed -n '3,14s/^# \{0,1\}//p' "$0"; exit 0; fi

model=deploy/models/digits/1/model.onnx
seconds=10
while (($#)); do
  case $1 in
    --) shift; break ;;
    --seconds=*) seconds=${1#*=} ;;
    -*) echo "overload.sh: unknown option '$1'; --help shows the options" >&2; exit 2 ;;
    *) model=$1 ;;
  esac
  shift
done

bazel build --noshow_progress --ui_event_filters=-info,-stdout,-stderr //service:tilewire-server //client:tilewire
scratch=$(mktemp -d)
bazel-bin/service/tilewire-server --host=127.0.0.1 --port=0 --model="$model" "$@" >"$scratch/out" 2>"$scratch/log" &
server=$!
trap 'kill "$server" 2>/dev/null; rm -rf "$scratch"' EXIT
until grep -q ready "$scratch/out"; do
  kill -0 "$server" || { cat "$scratch/log"; exit 1; }
  sleep 0.1
done
address=$(grep -om1 '127.0.0.1:[0-9]*' "$scratch/out")
name=$(bazel-bin/client/tilewire --server="$address" models | awk 'NR == 1 { print $1 }')
load() { bazel-bin/client/tilewire --server="$address" load --model="$name" "$@" 2>/dev/null || true; }
# Seconds of CPU that the server took without its compute threads, since its start.
receiving() {
  local ticks compute
  ticks=$(awk '{ print $14 + $15 }' "/proc/$server/stat")
  compute=$(cat /proc/"$server"/task/*/stat | awk '$2 == "(tw-compute)" { t += $14 + $15 } END { print t }')
  awk -v t="$ticks" -v c="$compute" -v hz="$(getconf CLK_TCK)" 'BEGIN { print (t - c) / hz }'
}
# Cores that the loop whose report is on standard input left for computing: reads the time that
# receiving took before and after it.
left_of_cores() {
  awk -v before="$1" -v after="$2" -v cores="$(nproc)" '
    / answers in / { for (i = 1; i < NF; ++i) if ($i == "in") seconds = $(i + 1) }
    /this client used/ { sending = $4 / 100 }
    END { print cores - sending - (after - before) / seconds }'
}
field() { awk -v name="$1" -v unit="$2" '$1 == name { for (i = 2; i < NF; ++i) if ($(i + 1) ~ unit) { print $i; exit } }'; }

grep -m1 'model name' /proc/cpuinfo | sed 's/.*: //'
load --concurrency=4 --duration=2 >/dev/null
before=$(receiving)
load --concurrency=4 --duration="$seconds" --inputs=1 | tee "$scratch/closed"
left_closed=$(left_of_cores "$before" "$(receiving)" <"$scratch/closed")
capacity=$(field throughput requests <"$scratch/closed")
for times in 2 5 10; do
  echo "== $times x $capacity requests/s"
  before=$(receiving)
  load --rate="$(awk "BEGIN { print $times * $capacity }")" --duration="$seconds" --inputs=1 | tee "$scratch/open"
  left=$(left_of_cores "$before" "$(receiving)" <"$scratch/open")
  awk -v good="$(field throughput requests <"$scratch/open")" -v capacity="$capacity" -v left="$left" -v closed="$left_closed" \
    'BEGIN { printf "share of the capacity %.2f; receiving and refusing leave %.2f\n", good / capacity, left / closed }'
  sleep 1
  echo "a second later: $(load --requests=20 --inputs=1 | grep latency)"
done
