#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Two replicas that restart in turn under load lose no request, whether clients watch their health
# or not. Other counts of restarts and options: see rolling_restart.py.
set -euo pipefail
exec /usr/bin/python3 tests/integration/rolling_restart.py service/tilewire-server deploy/models \
  6 --drain_delay=1 --max_age=1
