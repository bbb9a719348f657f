#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `tilewire-server --probe` as health checks run it: exit status 0 from a server that serves, 1 from
# one that is draining or absent.
set -uo pipefail

source tests/integration/start_server.sh
failures=0
expect() {  # STATUS PATTERN COMMAND...
  local wanted=$1 pattern=$2 output status
  shift 2
  output=$("$@" 2>&1)
  status=$?
  [[ $status -eq $wanted && $output =~ $pattern ]] && return
  echo "FAILED: $*: exit status $status, not $wanted, or not '$pattern': $output"
  failures=$((failures + 1))
}

start_server --drain_delay=3600
port=${server_address##*:}
probe=(service/tilewire-server --probe)
expect 0 '^$' "${probe[@]}" --port="$port"
expect 0 '^$' env TILEWIRE_PORT="$port" TILEWIRE_HOST=0.0.0.0 "${probe[@]}"
# A proxy would be asked for 127.0.0.1 as well.
expect 0 '^$' env -u no_proxy http_proxy=http://127.0.0.1:1 "${probe[@]}" --port="$port"
expect 1 '^no server answers at 127.0.0.1:1: ' env TILEWIRE_PORT="$port" "${probe[@]}" --port=1
expect 1 'say --port' env TILEWIRE_PORT=0 "${probe[@]}"
expect 2 'port' "${probe[@]}" --port=many

kill -TERM "$server_pid"
while "${probe[@]}" --port="$port" 2>/dev/null; do sleep 0.05; done  # it has not begun to drain yet
expect 1 'is not serving' "${probe[@]}" --port="$port"
kill -KILL "$server_pid"
wait "$server_pid" 2>/dev/null
expect 1 'no server answers' "${probe[@]}" --port="$port"
[[ $failures -eq 0 ]]
