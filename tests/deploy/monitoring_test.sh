#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prometheus, its rules and the dashboard against the server; see monitoring.py.
set -euo pipefail
PYTHONPATH=tests/integration exec /usr/bin/python3 tests/deploy/monitoring.py service/tilewire-server \
  deploy/models "$@"
