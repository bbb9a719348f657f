#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Traces of the real server, in files and with a collector; arguments name single checks of traces.py.
set -euo pipefail
exec /usr/bin/python3 tests/integration/traces.py service/tilewire-server deploy/models "$@"
