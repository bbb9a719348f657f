# SPDX-License-Identifier: Apache-2.0
#
# Sourced by the tests of this folder: start_server [OPTION...] starts the server on the built-in
# models if the options name no others, waits until it is ready and sets $server_address and
# $server_pid; it is stopped when the test ends.

# Servers of tests run side by side, and have one default port.
export TILEWIRE_METRICS_PORT=${TILEWIRE_METRICS_PORT:-off}
# Where others take most of the machine, requests wait for longer than a server lets them by default.
export TILEWIRE_MAX_QUEUE_MS=${TILEWIRE_MAX_QUEUE_MS:-120000}
server_log=$(mktemp -p "$TEST_TMPDIR" server.XXXXXX.log)

start_server() {
  local models=--model_repository=deploy/models
  [[ $* != *--model=* ]] || models=
  : >"$server_log"  # what an earlier server wrote there must not be taken for this one's
  service/tilewire-server $models --host=127.0.0.1 --port=0 "$@" >"$server_log" 2>&1 &
  server_pid=$!
  trap 'kill -KILL $server_pid 2>/dev/null' EXIT
  server_address=
  until grep -q '^tilewire-server ready' "$server_log"; do
    kill -0 "$server_pid" 2>/dev/null || { echo "the server ended:"; cat "$server_log"; exit 1; }
    sleep 0.05
  done
  server_address=$(sed -n 's/.*listening on \([^ ]*:[0-9]*\).*/\1/p' "$server_log" | head -n 1)
}

# SIGTERM must end it with status 0.
stop_server() {
  kill -TERM "$server_pid"
  wait "$server_pid" || {
    echo "after SIGTERM the server ended with status $?"
    cat "$server_log"
    exit 1
  }
  trap - EXIT
}
