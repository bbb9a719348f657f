#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The steps of client/python/README.md: pip installs the package into a virtual environment without a
# network, and the example classifies the digits, from any folder.
set -euo pipefail

source tests/integration/start_server.sh
cp -rL client/python "$TEST_TMPDIR/package"
find "$TEST_TMPDIR/package" | sort >"$TEST_TMPDIR/before"
venv=$TEST_TMPDIR/venv
/usr/bin/python3 -m venv --system-site-packages "$venv"
"$venv/bin/pip" install --quiet --no-build-isolation --no-index "$TEST_TMPDIR/package"
find "$TEST_TMPDIR/package" -not -name __pycache__ -not -name '*.pyc' | sort |
  diff "$TEST_TMPDIR/before" - || { echo "pip has left its build beside the sources"; exit 1; }

example=client/python/examples/digits.py
[[ $(grep -c . "$example") -lt 15 ]] || { echo "the example has 15 lines or more"; exit 1; }
start_server
from_pip=$("$venv/bin/python" -I "$example" "$server_address")
echo "$from_pip"
[[ $from_pip == 0.9[89]*' of 360 digits are right' ]]

# The commands of README, as they stand there, with the tool at hand and time for a busy machine.
awk '/^```python/ { on = 1; next } /^```/ { on = 0 } on' client/python/README.md |
  sed "s/127.0.0.1:8001/$server_address/; s/timeout=5)/timeout=120)/" >"$TEST_TMPDIR/readme.py"
[[ $(wc -l <"$TEST_TMPDIR/readme.py") -ge 15 ]] || { echo "no examples in README.md"; exit 1; }
PATH=$PWD/client:$PATH "$venv/bin/python" "$TEST_TMPDIR/readme.py"
stop_server
