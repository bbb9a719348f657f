#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A client that knows nothing of this project: stubs from the public protocol, Debian's grpcio.
set -euo pipefail

source tests/integration/start_server.sh
stubs=$TEST_TMPDIR/stubs
mkdir -p "$stubs"
protoc -I. --python_out="$stubs" --grpc_out="$stubs" \
  --plugin=protoc-gen-grpc="$(command -v grpc_python_plugin)" protos/open_inference.proto protos/model_config.proto

start_server
PYTHONPATH=$stubs /usr/bin/python3 tests/integration/stock_client.py \
  "$server_address" deploy/models/digits
stop_server
