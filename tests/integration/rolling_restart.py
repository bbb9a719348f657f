# SPDX-License-Identifier: Apache-2.0
"""Pairs of replicas, each ended and started in turn under load, and what their clients see.

usage: rolling_restart.py SERVER_BINARY MODEL_REPOSITORY [RESTARTS [SERVER_OPTION...]]

The clients balance in turn over both and have no policy of retries. They either watch the replicas'
health or do not know of it, and either have their library's own resending, too, switched off
(grpc.enable_retries=0) or not. That resending is of requests which the library had not yet written to
a connection when it read that the connection is to end; no server can see those requests.

A replica is ended when all clients are connected to the other. Prints the counts of answers by kind;
the exit status is 0 if all were right. Of clients that neither watch health nor resend, requests that
their library did not write are counted and allowed: a few, or one in LOST.
"""
import collections
import concurrent.futures
import contextlib
import os
import sys
import threading
import time

import grpc

from real_server import INFER, PATIENCE, Server, digits_request

HEALTH = ', "healthCheckConfig": {"serviceName": ""}'
# Clients of each kind: whether they watch health, whether their library may resend.
CLIENTS = {(True, False): 2, (False, True): 1, (False, False): 1}
LOST, FEW = 2000, 5
PAIRS = 2  # of replicas, side by side
UNWRITTEN = 'UNAVAILABLE: GOAWAY received'


class Client(threading.Thread):
    """Asks one replica after the other over one channel until it is stopped."""

    def __init__(self, ports, watches_health, resends, right):
        super().__init__()
        self.right, self.stopped = right, threading.Event()
        self.counts = collections.Counter()
        config = '{"loadBalancingConfig": [{"round_robin": {}}]' + HEALTH * watches_health + '}'
        self.channel = grpc.insecure_channel(
            'ipv4:' + ','.join(f'127.0.0.1:{port}' for port in ports),
            (('grpc.service_config', config), ('grpc.use_local_subchannel_pool', 1),
             ('grpc.enable_retries', int(resends)),
             ('grpc.initial_reconnect_backoff_ms', 100), ('grpc.max_reconnect_backoff_ms', 200)))
        grpc.channel_ready_future(self.channel).result(PATIENCE)
        self.start()

    def run(self):
        call = self.channel.unary_unary(INFER + 'ModelInfer')
        while not self.stopped.is_set():
            try:
                answer = call(digits_request(), timeout=PATIENCE)
                self.counts['right' if answer == self.right else 'wrong'] += 1
            except grpc.RpcError as error:
                self.counts[f'{error.code().name}: {error.details()}'] += 1

    def stop(self):
        self.stopped.set()
        self.join()
        self.channel.close()


def await_connections(server, count):
    """Returns when as many clients are connected; besides, a server has its listening socket."""
    begin = time.time()
    while time.time() - begin < PATIENCE:
        sockets = 0
        for fd in os.listdir(f'/proc/{server.process.pid}/fd'):
            with contextlib.suppress(OSError):
                link = os.readlink(f'/proc/{server.process.pid}/fd/{fd}')
                sockets += link.startswith('socket:')
        if sockets > count:
            return
        time.sleep(0.05)
    raise AssertionError(f'{count} clients do not connect again')


def restarts(rounds, *options):
    """The counts of each kind of clients."""
    with contextlib.ExitStack() as stack:
        replicas = [stack.enter_context(Server(*options)) for _ in range(2)]
        ports = [replica.port for replica in replicas]
        right = replicas[0].infer()
        clients = {kind: [Client(ports, *kind, right) for _ in range(count)]
                   for kind, count in CLIENTS.items()}
        try:
            for turn in range(rounds):
                time.sleep(0.3)
                replicas[turn % 2].end()
                replicas[turn % 2] = stack.enter_context(
                    Server(*options, f'--port={ports[turn % 2]}'))
                await_connections(replicas[turn % 2], sum(CLIENTS.values()))
                time.sleep(1)  # until those that watch health have seen it
        finally:
            counts = {}
            for kind, some in clients.items():
                counts[kind] = collections.Counter()
                for client in some:
                    client.stop()
                    counts[kind] += client.counts
        return counts


def main():
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 20
    good, all_counts = True, collections.defaultdict(collections.Counter)
    with concurrent.futures.ThreadPoolExecutor(PAIRS) as pool:
        pairs = [pool.submit(restarts, rounds // PAIRS, *sys.argv[4:]) for _ in range(PAIRS)]
        for pair in pairs:
            for kind, counts in pair.result().items():
                all_counts[kind] += counts
    for (watches, resends), counts in all_counts.items():
        print(f'{rounds} restarts, clients that {"watch" if watches else "ignore"} health and '
              f'{"resend" if resends else "never resend"}: {dict(counts)}')
        right, others = counts['right'], sum(counts.values()) - counts['right']
        unwritten = counts[UNWRITTEN] if not watches and not resends else 0
        good = good and right > 0 and others == unwritten and unwritten <= max(FEW, right / LOST)
    return 0 if good else 1


if __name__ == '__main__':
    sys.exit(main())
