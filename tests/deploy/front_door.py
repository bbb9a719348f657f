# SPDX-License-Identifier: Apache-2.0
"""The front door in deploy/haproxy, run by Debian's haproxy before the real server: what it lets
through comes back bit for bit, and what hostile clients do ends at the door.

usage: front_door.py SERVER_BINARY MODEL_REPOSITORY [CHECK]
"""
import concurrent.futures
import contextlib
import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest

import grpc

from deaf_peer import DeafPeer, frame, literal
from real_server import (INFER, PATIENCE, PRIMITIVES, Server, digits_request, expect, run_checks,
                         until)

CONFIGURATION = pathlib.Path('deploy/haproxy/haproxy.cfg')
Code = grpc.StatusCode


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


class Door:
    """HAProxy before `servers`, with its configuration changed as `changes` say."""

    def __init__(self, folder, servers, changes):
        self.port, self.root = free_port(), pathlib.Path(folder, 'certificate.pem')
        both, file = pathlib.Path(folder, 'both.pem'), pathlib.Path(folder, 'haproxy.cfg')
        key = pathlib.Path(folder, 'key.pem')
        subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt',
                        'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj',
                        '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost', '-keyout', key,
                        '-out', self.root], check=True, capture_output=True)
        both.write_text(self.root.read_text() + key.read_text())
        lines = [f'server tilewire-{i} 127.0.0.1:{server.port}' for i, server in enumerate(servers)]
        text = CONFIGURATION.read_text()
        for old, new in {'bind :8443': f'bind 127.0.0.1:{self.port}',
                         # On a machine that stalls a server answers late, and serves all the same.
                         'default-server ': f'timeout check {PATIENCE}s\n    default-server ',
                         # Which would take more descriptors than a process may have everywhere.
                         'maxconn 4000': 'maxconn 300',
                         '/etc/haproxy/tilewire.pem': str(both),
                         'user haproxy\n': '', 'group haproxy\n': '',
                         'server tilewire-1 127.0.0.1:8001': '\n    '.join(lines),
                         **changes}.items():
            expect(text.count(old), 1)
            text = text.replace(old, new)
        file.write_text(text)
        checked = subprocess.run(['haproxy', '-c', '-f', file], check=False, stderr=subprocess.PIPE,
                                 text=True)
        expect((checked.returncode, checked.stderr), (0, ''))
        self.process = subprocess.Popen(['haproxy', '-db', '-f', file], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)

    def channel(self, compression=None):
        roots = grpc.ssl_channel_credentials(self.root.read_bytes())
        return grpc.secure_channel(f'localhost:{self.port}', roots,
                                   (('grpc.use_local_subchannel_pool', 1),
                                    ('grpc.enable_retries', 0)), compression)

    def secured(self, plain):
        context = ssl.create_default_context(cafile=self.root)
        context.set_alpn_protocols(['h2'])
        return context.wrap_socket(plain, server_hostname='localhost')

    def connect(self):
        """A connection with TLS, or None if the door does not take it."""
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            plain = socket.create_connection(('127.0.0.1', self.port), timeout=PATIENCE)
            return self.secured(plain)  # closes it if that fails
        return None


@contextlib.contextmanager
def door(*options, replicas=1, changes=()):
    """A door and the replicas before which it stands, once it answers as they do. `changes` are
    pieces of its configuration and what stands in their place."""
    if not shutil.which('haproxy'):
        raise unittest.SkipTest('haproxy is not installed')
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        servers = [stack.enter_context(Server(*options)) for _ in range(replicas)]
        stands = Door(folder, servers, dict(changes))
        stack.callback(stands.process.wait)
        stack.callback(stands.process.kill)
        right = servers[0].infer()
        until(lambda: infer(stands) == right, 'the door does not answer as the server does')
        yield stands, servers
        expect(infer(stands), right)
        expect(stands.process.poll(), None)


def ask(stands, channel, method, request=b'', timeout=PATIENCE):
    """The answer's bytes, or the code of the refusal."""
    try:
        return channel.unary_unary(method)(request, timeout=timeout)
    except grpc.RpcError as error:
        stands.refusal = error
        return error.code()


def infer(stands, channel=None):
    if channel:
        return ask(stands, channel, INFER + 'ModelInfer', digits_request())
    with stands.channel() as own:
        return infer(stands, own)


def expect_answer(stands, channel=None):
    answer = infer(stands, channel)
    assert isinstance(answer, bytes), (answer, stands.refusal.details())


def only_inference_passes():
    """Inference and health pass; primitives, compressed messages and plain text do not."""
    with door('--metrics_port=0') as (stands, servers), stands.channel() as channel:
        expect(ask(stands, channel, '/grpc.health.v1.Health/Check'), b'\x08\x01')
        expect(ask(stands, channel, PRIMITIVES + 'ListImplementations'), Code.UNIMPLEMENTED)
        expect(stands.refusal.details(), 'not served here')
        plain = Server.channel(type('', (), {'address': f'127.0.0.1:{stands.port}'}))
        expect(ask(stands, plain, INFER + 'ServerLive'), Code.UNAVAILABLE)
        plain.close()
        before = servers[0].told('tilewire_requests_total')
        bomb = digits_request(batch=1, repeated=b'\0' * 6000)  # 8.6 MB that travel as 8 KB

        def is_refused():
            """A door that answers before it has read all resets the request, whose client may read that first."""
            with stands.channel(grpc.Compression.Gzip) as compressing:
                answer = ask(stands, compressing, INFER + 'ModelInfer', bomb)
            assert answer in (Code.UNIMPLEMENTED, Code.CANCELLED), answer
            return answer == Code.UNIMPLEMENTED
        until(is_refused, 'every one is reset')
        expect(stands.refusal.details(), 'send messages without compression')
        time.sleep(0.3)  # a scrape is made anew four times a second at most
        expect(servers[0].told('tilewire_requests_total'), before)


def connections_of_one_address_are_bounded():
    """The 51st connection is refused; those that stand are served, and room that is made is used."""
    with door() as (stands, _), stands.channel() as channel:
        expect_answer(stands, channel)
        with contextlib.ExitStack() as stack:
            taken = [stands.connect() for _ in range(60)]
            for peer in filter(None, taken):
                stack.enter_context(peer)
            count = sum(peer is not None for peer in taken)
            assert 40 < count < 50, f'{count} connections'  # the door may still count closed ones
            expect_answer(stands, channel)
        until(lambda: type(infer(stands)) is bytes, 'no room after the others have gone')


def requests_of_one_address_are_bounded():
    """Too many requests are refused with a code and a time to come back that clients heed."""
    fewer = {'http_req_rate gt 5000': 'http_req_rate gt 10', 'http_req_rate(10s)': 'http_req_rate(2s)'}
    with door(changes=fewer) as (stands, _), stands.channel() as channel:
        answers = []

        def too_many():
            """Side by side: one after the other they are too few per second on a busy machine."""
            with concurrent.futures.ThreadPoolExecutor(20) as pool:
                answers.extend(pool.map(lambda _: infer(stands, channel), range(60)))
            return answers[-1] == Code.RESOURCE_EXHAUSTED
        until(too_many, 'none is refused')
        expect(answers[-1], Code.RESOURCE_EXHAUSTED)
        expect(dict(stands.refusal.trailing_metadata())['grpc-retry-pushback-ms'], '1000')
        assert bytes in map(type, answers)

        def after_the_pushback():
            time.sleep(1)
            return type(infer(stands, channel)) is bytes
        until(after_the_pushback, 'refused for ever')


def closed(peer):
    """Whether the door ends the connection, after whatever it has to say."""
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while peer.recv(65536):
            pass
    return True


def floods_of_headers_end_at_the_door():
    """8 MB of headers end their connection; they cost the server nothing."""
    with door() as (stands, servers):
        def ticks():
            return sum(map(int, pathlib.Path(f'/proc/{servers[0].process.pid}/stat').read_text()
                           .split()[13:15]))
        before = ticks()
        for _ in range(3):
            with stands.connect() as peer, contextlib.suppress(ConnectionError, ssl.SSLError):
                peer.sendall(b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' + frame(4, 0, 0, b'')
                             + frame(1, 0, 1, b'\x83\x86' + literal(b':path', b'/x')))
                part = b''.join(literal(b'x%03d' % i, b'v' * 120) for i in range(100))
                for _ in range(620):
                    peer.sendall(frame(9, 0, 1, part))
                assert closed(peer)
        assert ticks() - before < 50, 'the flood has reached the server'


def deaf_peer(stands):
    """A client that asks for more than the door's buffers hold, and takes nothing of it."""
    peer = DeafPeer(stands.port, PATIENCE, stands.secured)
    for stream in (1, 3, 5):
        peer.ask(stream, INFER + 'ModelInfer', digits_request(batch=20))
    return peer


def deaf_clients_hold_up_none():
    """Answers that are not taken stay in the way of their own client alone."""
    with door() as (stands, _), contextlib.ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(deaf_peer(stands).socket)
        for _ in range(20):
            expect_answer(stands)


def slow_clients_end():
    """Who does not finish headers, or takes no answer, is disconnected; the others are served."""
    shorter = {f'timeout {what} {seconds}s': f'timeout {what} 2s' for what, seconds in
               (('http-request', 10), ('client', 60), ('http-keep-alive', 300))}
    with door(changes=shorter) as (stands, servers):
        # On a machine that stalls they are ended while they connect or ask.
        ended = contextlib.suppress(ConnectionError, ssl.SSLError)
        with contextlib.ExitStack() as stack:
            slow = stands.connect()
            if slow is not None:
                stack.enter_context(slow)
                with ended:
                    slow.sendall(b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' + frame(4, 0, 0, b'')
                                 + frame(1, 0, 1, b'\x83\x86'))
            deaf = []
            for _ in range(3):
                with ended:
                    deaf.append(stack.enter_context(deaf_peer(stands).socket))
            for peer in (slow, *deaf):
                assert peer is None or closed(peer)
        expect(servers[0].health(), True)


def a_replica_that_drains_is_left():
    """Requests go to the other replica before the port of the one that drains closes."""
    with door('--drain_delay=20', replicas=2) as (stands, servers), stands.channel() as channel:
        ended = threading.Thread(target=servers[1].end)
        ended.start()
        answers = []
        while ended.is_alive():
            answers.append(infer(stands, channel))
            time.sleep(0.01)
        ended.join()
        expect(set(answers), {servers[0].infer()})


if __name__ == '__main__':
    os.environ.setdefault('no_proxy', 'localhost')
    run_checks([only_inference_passes, connections_of_one_address_are_bounded,
                requests_of_one_address_are_bounded, floods_of_headers_end_at_the_door,
                deaf_clients_hold_up_none, slow_clients_end, a_replica_that_drains_is_left])
