#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# How the real server starts, becomes ready and ends; arguments name single checks of life_cycle.py.
set -euo pipefail
exec /usr/bin/python3 tests/integration/life_cycle.py service/tilewire-server deploy/models "$@"
