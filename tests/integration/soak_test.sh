#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Mixed work for some seconds; soak.py without a number of seconds does it for half an hour, and
# judges the slope of memory then.
set -euo pipefail
exec /usr/bin/python3 tests/integration/soak.py service/tilewire-server deploy/models "${1:-8}"
