#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Models whose files clients send, in the real server; arguments name single checks.
set -euo pipefail
exec /usr/bin/python3 tests/integration/uploads.py service/tilewire-server deploy/models "$@"
