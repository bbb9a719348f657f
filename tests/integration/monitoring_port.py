# SPDX-License-Identifier: Apache-2.0
"""The monitoring port of the real server: where it listens, and what it says from start to end.

usage: monitoring_port.py SERVER_BINARY MODEL_REPOSITORY [CHECK]
"""
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile

from real_server import (PATIENCE, Server, digits_request, expect, relu_model, run_checks, until,
                         INFER)

ASKED_FOR = '--metrics_port=0'


def taken_port():
    """A port that is in use for as long as the socket lives."""
    listening = socket.socket()
    listening.bind(('127.0.0.1', 0))
    listening.listen()
    return listening, listening.getsockname()[1]


def refused(*options, **environment):
    """Exit status and standard error of a server that does not start."""
    command = [sys.argv[1], f'--model_repository={sys.argv[2]}', '--host=127.0.0.1', '--port=0']
    run = subprocess.run(['env', *(f'{key}={value}' for key, value in environment.items()), *command,
                          *options], capture_output=True, text=True, timeout=PATIENCE, check=False)
    return run.returncode, run.stderr


def ports():
    """A port that was asked for must be free; off opens none; the line says which was taken."""
    holder, port = taken_port()
    with holder:
        for status, reason in (refused(f'--metrics_port={port}'),
                               refused(TILEWIRE_METRICS_PORT=port)):
            expect(status, 2)
            assert f'monitoring: cannot listen on 127.0.0.1:{port}: the port is in use' in reason, reason
    for value in ('-1', '65536', 'on', ''):
        status, reason = refused(f'--metrics_port={value}')
        expect(status, 2)
        assert '--metrics_port' in reason, reason
    expect(refused('--metrics_host=no.such.host.invalid', ASKED_FOR)[0], 2)
    with Server('--metrics_port=off') as server:
        expect(server.monitoring, None)
        server.end()
    with Server(ASKED_FOR) as server:
        expect(server.page('/healthz'), (200, 'live\n'))
        server.end()


def default_port_in_use():
    """The default port may be another program's: a line in the log, and the server serves."""
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        holder.bind(('127.0.0.1', 8002))
        holder.listen()
    except OSError:
        pass  # another program has it, which will do
    with holder, Server(launcher=('env', '-u', 'TILEWIRE_METRICS_PORT')) as server:
        expect(server.monitoring, None)
        server.infer()
        server.await_line('monitoring: cannot listen on 127.0.0.1:8002: the port is in use')
        server.end()


def one_thread():
    """The port takes one thread, and none where it is off."""
    def threads(server):
        tasks = pathlib.Path(f'/proc/{server.process.pid}/task').iterdir()
        return [(task / 'comm').read_text().strip() for task in tasks].count('tw-http')
    with Server(ASKED_FOR) as server:
        until(lambda: threads(server) == 1, 'not one thread has the name')
        expect(server.page('/healthz'), (200, 'live\n'))
        expect(threads(server), 1)
        server.end()
    with Server() as server:
        expect(threads(server), 0)
        server.end()


def readiness():
    """Live and not ready while a model is missing, which it names; then ready."""
    with tempfile.TemporaryDirectory() as repository:
        version = pathlib.Path(repository) / 'held' / '1'
        version.mkdir(parents=True)
        (version / 'model.onnx').write_bytes(relu_model(1, 4))
        (version / '.loading').touch()
        with Server(ASKED_FOR, f'--model_repository={repository}', '--poll_seconds=0.1',
                    ready='not ready') as server:
            expect(server.page('/readyz')[0], 503)
            text = server.page('/readyz')[1]
            assert text.startswith("not ready\nmodel 'held' version 1: LOADING"), text
            expect(server.page('/healthz'), (200, 'live\n'))
            expect(server.told('tilewire_ready'), 0)
            (version / '.loading').unlink()
            until(lambda: server.page('/readyz') == (200, 'ready\n'), 'it does not become ready')
            until(lambda: server.told('tilewire_model_loads_total') == 1, 'no load is counted')
            server.end()


def drain():
    """Live and not ready while it drains."""
    with Server(ASKED_FOR, '--drain_delay=3600') as server:
        server.process.send_signal(signal.SIGTERM)
        until(lambda: server.page('/readyz') == (503, 'draining\n'), 'it does not say that it drains')
        expect(server.page('/healthz'), (200, 'live\n'))
        until(lambda: server.told('tilewire_ready') == 0, 'the scrape calls it ready')


def counts():
    """Requests are counted where they end, in the scrape and in ModelStatistics alike."""
    with Server(ASKED_FOR) as server:
        before = server.told('tilewire_runs_total')
        for _ in range(5):
            assert isinstance(server.infer(), bytes)
        server.ask(INFER + 'ModelInfer', digits_request(name=b'nobody'))
        until(lambda: server.told('tilewire_runs_total') == before + 5, 'runs are missing')
        text = server.page('/metrics')[1]
        unknown = r'tilewire_requests_total\{model="",version="",protocol="grpc",code="NOT_FOUND"\} 1\n'
        assert re.search(unknown, text), text
        assert 'nobody' not in text
        buckets = re.findall(r'tilewire_request_seconds_bucket\{[^}]*le="([^"]+)"\} (\d+)', text)
        expect(len(buckets), 17)
        expect(buckets[-1], ('+Inf', '5'))
        server.end()


def rendering_is_bounded():
    """However often it is asked, the scrape is made anew four times a second at most."""
    with Server(ASKED_FOR) as server:
        texts = set()
        seconds = until(lambda: texts.add(server.page('/metrics')[1]) or len(texts) > 8,
                        'the scrape never changes')
        assert seconds > 8 / 4 - 0.3, f'{len(texts)} texts in {seconds} s'
        server.end()


CHECKS = (ports, default_port_in_use, one_thread, readiness, drain, counts, rendering_is_bounded)

if __name__ == '__main__':
    run_checks(CHECKS)
