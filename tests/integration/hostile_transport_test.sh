#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Input from the wire or from the system that is not a request; arguments name single checks of
# hostile_transport.py.
set -euo pipefail
exec /usr/bin/python3 tests/integration/hostile_transport.py service/tilewire-server deploy/models "$@"
