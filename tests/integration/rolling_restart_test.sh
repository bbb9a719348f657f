#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Three replicas that are replaced in turn under load lose no request, whether clients watch their
# health or not; of those that are killed, only what was on its way. Other counts of replacements and
# options: see rolling_restart.py.
#
# Clients have some seconds to notice, which they miss on a machine that stalls: hence three attempts.
set -euo pipefail
own=(env TILEWIRE_OWN_NETWORK=1 tests/support/in_namespaces.sh)
"${own[@]}" true || own=()  # it has said why: ports instead of hosts
rolling=(tests/integration/rolling_restart.py service/tilewire-server deploy/models)
try() {
  for attempt in 1 2 3; do
    "${own[@]}" /usr/bin/python3 "${rolling[@]}" "$@" && return
    echo "attempt $attempt failed"
  done
  return 1
}
try watching 3 --drain_delay=4
try ignoring 3 --drain_delay=4 --max_age=1
"${own[@]}" /usr/bin/python3 tests/integration/lost_replicas.py service/tilewire-server deploy/models
