#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a clone to real answers: installs what is missing, builds, serves the built-in models on this machine and
# classifies every held-out digit over gRPC in both layouts.
#
#   deploy/quickstart.sh           do all that, then stop the server
#   deploy/quickstart.sh --keep    leave the server running and print how to call it
#
# Exit status: 0 only if the accuracy is what training gave and both layouts agree bit for bit.
set -euo pipefail
cd "$(dirname "$0")/.."

keep=
for option in "$@"; do
  case $option in
    --keep) keep=1 ;;
    --help) sed -n '3,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "quickstart.sh: unknown option '$option'; --help shows the options" >&2; exit 2 ;;
  esac
done

digits=deploy/models/digits
server=bazel-bin/service/tilewire-server
client=bazel-bin/client/tilewire
log=$(mktemp -t tilewire-server.XXXXXX.log)

echo "== 1/4 Installing what is missing"
deploy/install_deps.sh
echo "== 2/4 Building the server and the client (a few minutes the first time)"
bazel build //service:tilewire-server //client:tilewire
echo "== 3/4 Starting the server on the built-in models"
"$server" --model_repository=deploy/models --host=127.0.0.1 --port=0 >"$log" 2>&1 &
server_pid=$!
stop_server() { kill "$server_pid" 2>/dev/null && wait "$server_pid" || true; rm -f "$log"; }
trap stop_server EXIT

address=
for _ in $(seq 100); do
  if grep -q '^tilewire-server ready' "$log"; then
    address=$(sed -n 's/.*listening on \([^ ]*:[0-9]*\).*/\1/p' "$log" | head -n 1)
    break
  fi
  kill -0 "$server_pid" 2>/dev/null || { echo "The server did not start:" >&2; cat "$log" >&2; exit 1; }
  sleep 0.1
done
[[ $address ]] || { echo "The server was not ready within 10 s:" >&2; cat "$log" >&2; exit 1; }
"$client" probe --server="$address"
echo "Serving on $address"

echo "== 4/4 Classifying the held-out digits"
"$client" evaluate --server="$address" --model=digits --images="$digits/heldout/images.u8" \
  --labels="$digits/heldout/labels.u8" --shape=3x24x20 \
  --min_accuracy="$(cat "$digits/accuracy.txt")" --show=4

if [[ $keep ]]; then
  trap - EXIT
  cat <<MESSAGE

The server (process $server_pid, log $log) keeps running. Call it:
  $client models --server=$address
  $client load --server=$address --model=digits --duration=5
  kill $server_pid     # stops it
MESSAGE
else
  trap - EXIT
  kill -TERM "$server_pid"
  if wait "$server_pid"; then echo "The server stopped cleanly."; else
    echo "The server ended with status $?" >&2; exit 1
  fi
  rm -f "$log"
fi
