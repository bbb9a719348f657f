#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Two replicas that restart in turn under load lose no request, whether clients watch their health
# or not. Other counts of restarts and options: see rolling_restart.py.
#
# Clients have a second to notice, which they miss on a machine that stalls: hence three attempts.
set -euo pipefail
for attempt in 1 2 3; do
  /usr/bin/python3 tests/integration/rolling_restart.py service/tilewire-server deploy/models \
    6 --drain_delay=1 --max_age=1 && exit 0
  echo "attempt $attempt failed"
done
exit 1
