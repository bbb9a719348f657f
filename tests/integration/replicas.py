# SPDX-License-Identifier: Apache-2.0
"""Replicas on hosts of their own, and clients that balance over them.

A host is a network namespace with an address, as a pod has it, where tests/support/in_namespaces.sh
has made that possible; else a port of this machine.
"""
import collections
import contextlib
import os
import signal
import subprocess
import threading
import time

import grpc

from real_server import INFER, PATIENCE, Server, digits_request, until

OWN_NETWORK = 'TILEWIRE_OWN_NETWORK' in os.environ
PORT = 8001
PAUSE = 0.015  # of a client between two requests, so that these tests take little of the machine


def run(*command):
    subprocess.run(command, check=True)


class Host:
    """Host 1, 2, ... of the network 10.77.0.0/24."""

    def __init__(self, number, stack):
        self.launcher, self.options, self.address = (), (), None
        if not OWN_NETWORK:
            return
        if number == 1:
            run('ip', 'link', 'add', 'br0', 'type', 'bridge')
            run('ip', 'address', 'add', '10.77.0.254/24', 'dev', 'br0')
            run('ip', 'link', 'set', 'br0', 'up')
        holder = subprocess.Popen(['unshare', '--net', 'sh', '-c', 'echo; exec sleep 1000'],
                                  stdout=subprocess.PIPE)
        stack.callback(holder.wait)
        stack.callback(holder.kill)
        holder.stdout.readline()  # it is in its namespace
        inside = ('nsenter', f'--net=/proc/{holder.pid}/ns/net')
        run('ip', 'link', 'add', f'to{number}', 'type', 'veth', 'peer', 'name', 'eth0', 'netns',
            str(holder.pid))
        run('ip', 'link', 'set', f'to{number}', 'master', 'br0', 'up')
        run(*inside, 'ip', 'address', 'add', f'10.77.0.{number}/24', 'dev', 'eth0')
        run(*inside, 'ip', 'link', 'set', 'eth0', 'up')
        self.launcher, self.address = inside, f'10.77.0.{number}:{PORT}'
        self.options = ('--host=0.0.0.0', f'--port={PORT}')

    def start(self, stack, *options):
        """The replica on this host. On one machine the first takes a port, which those after it keep."""
        replica = stack.enter_context(Server(*options, *self.options, launcher=self.launcher))
        if OWN_NETWORK:
            replica.address = self.address
        else:
            self.address, self.options = replica.address, (f'--port={replica.port}',)
        return replica


class Client(threading.Thread):
    """Asks one replica after the other over one channel until it is stopped."""

    def __init__(self, addresses, config, resends, right):
        super().__init__()
        self.right, self.stopped = right, threading.Event()
        self.counts = collections.Counter()
        self.channel = grpc.insecure_channel(
            'ipv4:' + ','.join(addresses),
            (('grpc.service_config', config), ('grpc.use_local_subchannel_pool', 1),
             ('grpc.enable_retries', int(resends)),
             ('grpc.initial_reconnect_backoff_ms', 100), ('grpc.max_reconnect_backoff_ms', 200)))
        grpc.channel_ready_future(self.channel).result(PATIENCE)
        self.start()

    def run(self):
        call = self.channel.unary_unary(INFER + 'ModelInfer')
        while not self.stopped.wait(PAUSE):
            try:
                answer = call(digits_request(), timeout=PATIENCE)
                self.counts['right' if answer == self.right else 'wrong'] += 1
            except grpc.RpcError as error:
                self.counts[f'{error.code().name}: {error.details()}'] += 1

    def stop(self):
        self.stopped.set()
        self.join()
        self.channel.close()


class Fleet:
    """Replicas on hosts of which one is free, and clients of each kind that balance over them. A
    kind is (service config, whether the library resends what it had not written)."""

    def __init__(self, stack, replicas, kinds, *options):
        self.stack, self.options = stack, options
        self.hosts = [Host(number, stack) for number in range(1, replicas + 2)]
        self.replicas = [host.start(stack, *options) for host in self.hosts]
        addresses = [host.address for host in self.hosts]
        right = self.replicas[0].infer()
        self.clients = {kind: [Client(addresses, *kind, right) for _ in range(count)]
                        for kind, count in kinds.items()}
        self.replicas.pop().end()
        self.free = self.hosts.pop()

    def add(self):
        """A replica on the free host, once all clients are connected to it."""
        self.replicas.append(self.free.start(self.stack, *self.options))
        self.hosts.append(self.free)
        count = sum(map(len, self.clients.values()))
        until(lambda: sockets(self.replicas[-1]) > count, f'{count} clients do not connect')

    def remove(self, sent=signal.SIGTERM):
        """Ends the oldest replica, whose host is free then."""
        oldest, self.free = self.replicas.pop(0), self.hosts.pop(0)
        if sent == signal.SIGTERM:
            oldest.end()
        else:
            oldest.process.send_signal(sent)
            oldest.process.wait()

    def end(self):
        """The counts of outcomes that the clients of each kind have seen."""
        counts = {kind: collections.Counter() for kind in self.clients}
        for kind, clients in self.clients.items():
            for client in clients:
                client.stop()
                counts[kind] += client.counts
        return counts


def sockets(server):
    """The number of the server's connections, with the socket that listens."""
    count = 0
    for fd in os.listdir(f'/proc/{server.process.pid}/fd'):
        with contextlib.suppress(OSError):
            count += os.readlink(f'/proc/{server.process.pid}/fd/{fd}').startswith('socket:')
    return count


def pause_and_continue(server, seconds):
    """As a machine that stalls."""
    server.process.send_signal(signal.SIGSTOP)
    time.sleep(seconds)
    server.process.send_signal(signal.SIGCONT)
