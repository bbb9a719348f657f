#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# HAProxy as deploy/haproxy/haproxy.cfg sets it up, before a server; see front_door.py.
set -euo pipefail
PATH=$PATH:/usr/sbin PYTHONPATH=tests/integration /usr/bin/python3 tests/deploy/front_door.py \
  service/tilewire-server deploy/models
