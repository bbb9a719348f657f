# SPDX-License-Identifier: Apache-2.0
"""HTTP that is sent to do harm to the monitoring port: it answers others all the same, and so does gRPC.

usage: hostile_http.py SERVER_BINARY MODEL_REPOSITORY [CHECK]
"""
import contextlib
import socket
import time

from real_server import PATIENCE, Server, expect, run_checks, until

ASKED_FOR = '--metrics_port=0'
HEAD = b' HTTP/1.1\r\nHost: localhost\r\n'
LAST = b'Connection: close\r\n\r\n'
BOUND = 10  # seconds that a request may take to arrive
CONNECTIONS = 64


def connect(server):
    connection = socket.create_connection(('127.0.0.1', int(server.monitoring.rsplit(':', 1)[1])))
    connection.settimeout(60)
    return connection


def read_all(connection):
    """Everything until the server closes it."""
    received = b''
    with contextlib.suppress(ConnectionResetError):
        while block := connection.recv(65536):
            received += block
    return received


def answer_to(server, request):
    with connect(server) as connection:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(request)
        return read_all(connection)


def status_of(server, request):
    return answer_to(server, request)[9:12]


def serves(server):
    """Both ports answer."""
    assert isinstance(server.infer(), bytes)
    expect(server.page('/healthz'), (200, 'live\n'))
    assert 'tilewire_requests_total' in server.page('/metrics')[1]


def refusals():
    """Bodies, other methods, large heads and what is not HTTP are refused, each at once."""
    with Server(ASKED_FOR) as server:
        for request, status in (
                (b'POST /metrics' + HEAD + b'Content-Length: 5\r\n\r\nhello', b'405'),
                (b'POST /metrics' + HEAD + b'Transfer-Encoding: chunked\r\n\r\nffffffff\r\n', b'405'),
                (b'POST /v2/models/digits/infer' + HEAD + b'Content-Length: 99999999999\r\n\r\n', b'405'),
                (b'DELETE /metrics' + HEAD + LAST, b'405'),
                (b'GET /metrics' + HEAD + b'Content-Length: 5\r\n\r\nhello', b'400'),
                (b'GET /metrics' + HEAD + b'Transfer-Encoding: chunked\r\n\r\n5\r\n', b'400'),
                (b'GET /' + b'a' * 100_000 + HEAD + LAST, b'414'),
                (b'GET /metrics' + HEAD + b'X: ' + b'a' * 100_000 + b'\r\n\r\n', b'431'),
                (b'GET /metrics' + HEAD + b'X: a\r\n' * 16_000 + b'\r\n', b'431'),
                (b'GET /metrics HTTP/1.1\r\nHost: rebound.example\r\n\r\n', b'403'),
                (b'GET /metrics' + HEAD + b'Origin: http://elsewhere.example\r\n\r\n', b'403'),
                (b'GET /../../etc/passwd' + HEAD + LAST, b'404'),
        ):
            got = status_of(server, request)  # not that of a request which does not arrive in its time
            # Unread bytes of a large request may end the connection before the answer is read.
            assert got == status or (len(request) > 50_000 and got == b''), (request[:40], got)
        for nonsense in (b'\x16\x03\x01\x02\x00\x01\x00' * 100, b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
                         b'\0' * 10_000, b'GET\r\n\r\n'):
            assert b' 200 ' not in answer_to(server, nonsense)[:20], nonsense[:20]
        serves(server)
        server.end()


def smuggling():
    """No bytes of a refused request's body are taken for a request."""
    inner = b'GET /readyz' + HEAD + LAST
    with Server(ASKED_FOR) as server:
        for head in (b'GET /healthz' + HEAD + b'Content-Length: %d\r\n' % len(inner),
                     b'POST /healthz' + HEAD + b'Content-Length: 0\r\nContent-Length: %d\r\n' % len(inner),
                     b'GET /healthz' + HEAD + b'Content-Length: 0\r\nTransfer-Encoding: chunked\r\n'):
            answers = answer_to(server, head + b'\r\n' + inner)
            expect(answers.count(b'HTTP/1.1 '), 1)
            assert b'ready' not in answers, answers
        server.end()


def pipelining():
    """Requests sent ahead are answered in order, and no more of them are held than the head's bound."""
    with Server(ASKED_FOR) as server:
        request = b'GET /healthz' + HEAD + b'\r\n'
        answers = answer_to(server, request * 500 + b'GET /readyz' + HEAD + LAST)
        expect(answers.count(b'live\n'), 500)
        assert answers.endswith(b'\r\n\r\nready\n')
        server.end()


def slow_heads():
    """Heads that arrive byte by byte or stop half way are ended, and hold up neither port."""
    with Server(ASKED_FOR) as server:
        half = [connect(server) for _ in range(20)]
        for connection in half:
            connection.sendall(b'GET /metrics HT')
        begin = time.time()
        drip = connect(server)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            while time.time() - begin < PATIENCE:
                drip.sendall(b'G')
                serves(server)
        assert BOUND - 1 < time.time() - begin < PATIENCE, time.time() - begin
        for connection in half:
            expect(read_all(connection), b'')
            connection.close()
        server.end()


def many_connections():
    """The newest of 200 silent connections are kept, and new ones are served at once."""
    with Server(ASKED_FOR) as server:
        before = server.told('process_open_fds')
        idle = [connect(server) for _ in range(200)]
        begin = time.time()
        serves(server)
        # Else 136 of them would end by their time first, in lots of 64.
        assert time.time() - begin < 2.5 * BOUND, 'it waited for them'
        assert server.told('process_open_fds') <= before + CONNECTIONS + 4
        expect(read_all(idle[0]), b'')
        for connection in idle:
            connection.close()
        until(lambda: server.told('process_open_fds') <= before + 3, 'descriptors are left')
        server.end()


def deaf_readers():
    """Clients that ask again and again and read nothing hold up no other; memory stays bounded."""
    with Server(ASKED_FOR) as server:
        before = server.resident_mb()
        deaf = [connect(server) for _ in range(30)]
        for connection in deaf:
            connection.setblocking(False)
            with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
                for _ in range(2000):
                    connection.send(b'GET /metrics' + HEAD + b'\r\n')
        serves(server)
        assert server.resident_mb() < before + 60, (before, server.resident_mb())
        for connection in deaf:
            connection.close()
        server.end()


CHECKS = (refusals, smuggling, pipelining, slow_heads, many_connections, deaf_readers)

if __name__ == '__main__':
    run_checks(CHECKS)
