#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The monitoring port of the real server, and HTTP that is sent to do it harm.
set -euo pipefail
for checks in monitoring_port hostile_http; do
  /usr/bin/python3 "tests/integration/$checks.py" service/tilewire-server deploy/models
done
