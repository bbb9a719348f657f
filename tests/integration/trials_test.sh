#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Trials of models that crash, hang or take memory, in the real server; arguments name single checks.
set -euo pipefail
exec /usr/bin/python3 tests/integration/trials.py tests/integration/misbehaving_server deploy/models "$@"
