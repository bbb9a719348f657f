#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The least server that the same gRPC gives, to tell what a restart costs there: rolling_restart.py
runs it in the place of the real one. It answers every request with its bytes and drains as the real
one does: not ready, --drain_delay, no new connections, the age of connections (--max_age), shutdown.

usage: rolling_restart.py tests/integration/bare_server.py deploy/models ignoring 20 --drain_delay=1 --max_age=1
"""
import argparse
import concurrent.futures
import signal
import time

import grpc

SERVING, NOT_SERVING = b'\x08\x01', b'\x08\x02'


class Handler(grpc.GenericRpcHandler):
    """Health, and an echo by every other name."""

    def __init__(self):
        self.status = SERVING

    def watch(self, request, context):
        sent = None
        while context.is_active():
            if sent != self.status:
                sent = self.status
                yield sent
            time.sleep(0.01)

    def service(self, details):
        if details.method.endswith('/Watch'):
            return grpc.unary_stream_rpc_method_handler(self.watch)
        return grpc.unary_unary_rpc_method_handler(lambda request, context: request)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--host')
    parser.add_argument('--port', type=int, default=0)
    parser.add_argument('--model_repository')
    parser.add_argument('--drain_delay', type=float, default=0)
    parser.add_argument('--max_age', type=float, default=43200)
    options = parser.parse_args()
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])  # before any thread starts
    handler = Handler()
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(64), handlers=(handler,), options=(
        ('grpc.max_connection_age_ms', int(options.max_age * 1000)),
        ('grpc.max_connection_age_grace_ms', 60_000)))
    port = server.add_insecure_port(f'{options.host}:{options.port}')
    server.start()
    print(f'tilewire-server listening on {options.host}:{port}', flush=True)
    print('tilewire-server ready: an echo', flush=True)
    signal.sigwait([signal.SIGTERM])
    handler.status = NOT_SERVING
    time.sleep(options.drain_delay)
    server.stop(10).wait()


if __name__ == '__main__':
    main()
