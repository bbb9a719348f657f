#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Versions that replace each other while the real server serves them; arguments name single checks.
set -euo pipefail
exec /usr/bin/python3 tests/integration/swaps.py service/tilewire-server deploy/models "$@"
