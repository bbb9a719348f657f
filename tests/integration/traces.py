# SPDX-License-Identifier: Apache-2.0
"""Traces of the real server: files in both forms, a collector that takes spans over OTLP, and what becomes of
requests, of the log and of the end where traces cannot be written.

usage: traces.py SERVER_BINARY MODEL_REPOSITORY [CHECK...]

The collector reads what it is sent by OTLP's field numbers alone, so that nothing here depends on this project's file
of the protocol.
"""
import concurrent.futures
import contextlib
import json
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

import grpc

from real_server import INFER, PATIENCE, Server, digits_request, expect, field, run_checks, until
from triton_calls import Fields, ask, entry, refused

EXPORT = '/opentelemetry.proto.collector.trace.v1.TraceService/Export'
TRACE, PARENT = '0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331'
SAMPLED = (('traceparent', f'00-{TRACE}-{PARENT}-01'),)
STAGES = ['decode', 'queue', 'plan', 'run', 'encode', 'write']
# Triton's trace_summary.py leaves out what lacks the first.
TRITON_STAMPS = ['GRPC_WAITREAD_START', 'GRPC_WAITREAD_END', 'REQUEST_START', 'QUEUE_START', 'COMPUTE_START',
                 'COMPUTE_INPUT_END', 'COMPUTE_OUTPUT_START', 'COMPUTE_END', 'REQUEST_END', 'GRPC_SEND_START',
                 'GRPC_SEND_END']
HOSTILE = 'a"}],\n<b>\x01\\'


def events_in(path):
    """The spans in a file of Chrome's form, without what names the process and its rows."""
    return [event for event in json.loads(pathlib.Path(path).read_text()) if event['ph'] != 'M']


def requests_in(path):
    """The number of requests that the file has."""
    return len([event for event in events_in(path) if event['name'] == 'request'])


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory() as name:
        yield pathlib.Path(name)


def named(request_id):
    return field(3, request_id.encode()) + digits_request()


def send(server, request_id='', metadata=None):
    assert isinstance(server.ask(INFER + 'ModelInfer', named(request_id), metadata=metadata), bytes)


class Collector:
    """An OpenTelemetry collector's port: keeps the requests that it takes."""

    def __init__(self):
        self.requests = []
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
        handler = grpc.unary_unary_rpc_method_handler(self.export)
        service, method = EXPORT[1:].split('/')
        self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {method: handler}),))
        self.address = f'127.0.0.1:{self.server.add_insecure_port("127.0.0.1:0")}'
        self.server.start()

    def export(self, request, _):
        self.requests.append(Fields(request))
        return b''

    def spans(self):
        return [span for request in list(self.requests) for of_server in request.messages(1)
                for scope in of_server.messages(2) for span in scope.messages(2)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.stop(0)


def attributes(fields, number):
    """Texts and numbers by key."""
    found = {}
    for one in fields.messages(number):
        value = one.message(2)
        found[one.one(1).decode()] = value.one(1).decode() if value.all(1) else value.one(3)
    return found


def number_of(text):
    return struct.unpack('<Q', text)[0]


def a_file_for_chrome():
    """An array of complete events: each request with its ids, its stages within it, and its longest steps."""
    with folder() as place:
        path = place / 'trace.json'
        with Server(f'--trace_file={path}', '--trace_rate=1') as server:
            send(server, HOSTILE, SAMPLED)
            send(server, 'plain')
            server.end()
        names = [(event['name'], event['args']['name']) for event in json.loads(path.read_text())
                 if event['ph'] == 'M']
        expect(names, [('process_name', 'tilewire-server'), ('thread_name', 'requests, row 1')])
        events = events_in(path)
        assert all(event['ph'] == 'X' and event['dur'] >= 0 and event['ts'] >= 0 for event in events), events
        first, second = (event for event in events if event['name'] == 'request')
        expect(first['args']['id'], HOSTILE)
        expect((first['args']['trace_id'], first['args']['parent_id']), (TRACE, PARENT))
        expect((first['args']['model'], first['args']['version'], first['args']['code']), ('digits', 1, 'OK'))
        assert second['args']['trace_id'] != TRACE and 'parent_id' not in second['args'], second
        stages = [event for event in events if event['name'] != 'request'][:len(STAGES)]
        expect([stage['name'] for stage in stages], STAGES)
        run = stages[STAGES.index('run')]
        steps = events[1 + len(STAGES):events.index(second)]
        assert 2 <= len(steps) <= 5, steps
        for step in steps:
            assert step['name'] and step['name'] not in STAGES, step
            assert run['ts'] - 0.01 <= step['ts'] and step['ts'] + step['dur'] <= run['ts'] + run['dur'] + 0.01, step
        assert steps == sorted(steps, key=lambda step: step['ts']), steps
        end = first['ts'] + first['dur'] + 0.01
        assert all(first['ts'] <= stage['ts'] and stage['ts'] + stage['dur'] <= end for stage in stages), events
        expect({event['tid'] for event in events}, {1})


def a_file_for_triton():
    """Triton's elements: the request, and its timestamps under the same number, in their order."""
    with folder() as place:
        path = place / 'trace.json'
        with Server(f'--trace_file={path}', '--trace_format=triton', '--trace_rate=1') as server:
            for request_id in ('first', HOSTILE):
                send(server, request_id, SAMPLED)
            server.end()
        elements = json.loads(path.read_text())
        requests = [one for one in elements if 'model_name' in one]
        expect([one['request_id'] for one in requests], ['first', HOSTILE])
        for one in requests:
            expect((one['model_name'], one['model_version'], one['trace_id']), ('digits', 1, TRACE))
            stamps, = (other['timestamps'] for other in elements
                       if other['id'] == one['id'] and 'timestamps' in other)
            expect([stamp['name'] for stamp in stamps], TRITON_STAMPS)
            times = [stamp['ns'] for stamp in stamps]
            expect(times, sorted(times))


def a_killed_server_leaves_a_whole_file():
    """The file is an array of JSON at any time, and the next server keeps it as PATH.1."""
    with folder() as place:
        path = place / 'trace.json'
        with Server(f'--trace_file={path}', '--trace_rate=1') as server:
            expect(json.loads(path.read_text()), [])
            send(server, 'one')
            until(lambda: requests_in(path) == 1, 'nothing is written')
            server.process.send_signal(signal.SIGKILL)
            server.process.wait()
        for _ in range(3):  # the second and third find a file without traces, which replaces none
            with Server(f'--trace_file={path}') as server:
                server.end()
            expect(json.loads(path.read_text()), [])
            expect(requests_in(f'{path}.1'), 1)


def start_in_vain(*options, status):
    """The last line of a server that does not start."""
    run = subprocess.run([sys.argv[1], '--host=127.0.0.1', f'--model_repository={sys.argv[2]}', *options],
                         capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert run.returncode in status and not run.stdout, (options, run)
    return run.stderr.splitlines()[-1]


def a_server_that_does_not_start_leaves_the_file():
    """Neither the file of a server that runs, nor that of one that has ended, is rotated."""
    with folder() as place:
        path, old = place / 'trace.json', place / 'old.json'
        with Server(f'--trace_file={old}', '--trace_rate=1') as server:
            send(server, 'old')
            server.end()
        with Server(f'--trace_file={path}', '--trace_rate=1') as server:
            send(server, 'one')
            until(lambda: requests_in(path) == 1, 'nothing is written')
            for file in (path, old):
                line = start_in_vain(f'--trace_file={file}', f'--port={server.port}', status=[1])
                assert 'the port is in use' in line, line
                expect(requests_in(file), 1)
            line = start_in_vain(f'--trace_file={path}', '--port=0', status=[1])
            assert f'--trace_file: {path.resolve()} is in use' in line, line
            send(server, 'two')
            server.end()
        expect(requests_in(path), 2)
        expect(sorted(file.name for file in place.iterdir()), ['old.json', 'trace.json'])


def a_collector_takes_spans():
    """OTLP: the client's ids, a span for the request, one within it for each stage, and the longest steps."""
    with Collector() as collector:
        with Server(f'--otlp_endpoint={collector.address}', '--trace_rate=1000000') as server:
            send(server)  # the first of a million
            send(server, HOSTILE, SAMPLED)
            # The end waits for a second only.
            until(lambda: sum(span.one(6) == 2 for span in collector.spans()) == 2, 'spans do not come')
            server.end()
        told = attributes(collector.requests[0].messages(1)[0].message(1), 1)
        expect(told['service.name'], 'tilewire-server')
        spans = [span for span in collector.spans() if span.one(1).hex() == TRACE]
        expect([span.one(5).decode() for span in spans[:1 + len(STAGES)]], [INFER[1:] + 'ModelInfer', *STAGES])
        request, run = spans[0], spans[1 + STAGES.index('run')]
        steps = spans[1 + len(STAGES):]
        assert 2 <= len(steps) <= 5, len(steps)
        expect((request.one(4).hex(), request.one(6)), (PARENT, 2))
        told = attributes(request, 9)
        expect((told['tilewire.model'], told['tilewire.request_id']), ('digits', HOSTILE))
        begin, end = number_of(request.one(7)), number_of(request.one(8))
        assert abs(begin / 1e9 - time.time()) < PATIENCE, begin
        for span in spans[1:]:
            expect(span.one(4), run.one(2) if span in steps else request.one(2))
            assert begin <= number_of(span.one(7)) <= number_of(span.one(8)) <= end
        ids = [span.one(2) for span in collector.spans()]
        expect(len(set(ids)), len(ids))


def a_file_and_a_collector_get_the_same():
    """Both, where both are asked for."""
    with folder() as place, Collector() as collector:
        path = place / 'trace.json'
        options = f'--trace_file={path}', f'--otlp_endpoint={collector.address}', '--trace_rate=1'
        with Server(*options) as server:
            for _ in range(5):
                send(server)
            until(lambda: sum(span.one(6) == 2 for span in collector.spans()) == 5, 'spans do not come')
            server.end()
        in_file = {event['args']['span_id'] for event in events_in(path) if 'args' in event}
        expect(in_file, {span.one(2).hex() for span in collector.spans() if span.one(6) == 2})
        expect(len(in_file), 5)


def a_collector_that_is_away():
    """It is told once and counted; requests are answered, and the end waits a second at most."""
    with socket.socket() as taken:  # refuses connections: nothing listens
        taken.bind(('127.0.0.1', 0))
        options = f'--otlp_endpoint=127.0.0.1:{taken.getsockname()[1]}', '--trace_rate=1', '--metrics_port=0'
        with Server(*options) as server:
            for _ in range(3):
                before = server.told('tilewire_traces_dropped_total')
                send(server)
                until(lambda: server.told('tilewire_traces_dropped_total') > before, 'nothing is counted')
            expect(server.told('tilewire_traces_dropped_total'), 3)
            send(server)
            begin = time.time()
            server.end()
            taken_seconds = time.time() - begin
        expect(server.log.count('traces are lost'), 1)
        expect(server.log.count('traces that were lost since the start: 4 (collector 4)'), 1)
        assert 'tilewire_traces_dropped_total' in server.log
        print(f'  ended in {taken_seconds:.1f} s')
        assert taken_seconds < PATIENCE, taken_seconds


def a_collector_that_says_nothing():
    """A port that takes connections and answers nothing holds up neither requests nor the end."""
    with socket.create_server(('127.0.0.1', 0)) as silent:
        options = f'--otlp_endpoint=127.0.0.1:{silent.getsockname()[1]}', '--trace_rate=1'
        with Server(*options) as server:
            for _ in range(20):
                send(server)
            begin = time.time()
            server.end()
            assert time.time() - begin < PATIENCE, time.time() - begin
        expect(server.log.count('traces are lost'), 1)
        expect(server.log.count('traces that were lost since the start: 20 (collector 20)'), 1)


def a_full_disk():
    """No file may grow: requests are answered, the loss is told once and counted, the file stays whole."""
    with folder() as place:
        path = place / 'trace.json'
        options = f'--trace_file={path}', '--trace_rate=1', '--metrics_port=0'
        with Server(*options, launcher=('prlimit', '--fsize=20000')) as server:
            bits = server.infer()
            # Before more come: the writer may take all that wait for it in one piece, which has no room.
            until(lambda: len(events_in(path)) >= 7, 'the first is not written')
            while not server.told('tilewire_traces_dropped_total'):
                expect(server.infer(), bits)
            for _ in range(20):
                expect(server.infer(), bits)
            server.end()
        expect(server.log.count('traces are lost'), 1)
        assert 'File too large' in server.log, server.log
        assert 7 <= len(events_in(path)) < 20000 // 60


def a_full_disk_at_the_start():
    """The same: the server starts, tells it once, counts what is lost, and serves."""
    with folder() as place:
        options = f'--trace_file={place}/trace.json', '--trace_rate=1', '--metrics_port=0'
        with Server(*options, launcher=('prlimit', '--fsize=2')) as server:
            for _ in range(3):
                send(server)
            until(lambda: server.told('tilewire_traces_dropped_total') == 3, 'nothing is counted')
            server.end()
        expect(server.log.count('traces are lost'), 1)
        assert 'File too large' in server.log, server.log


def settings():
    """Triton's clients change what is traced, where --open_rights lets them."""
    with folder() as place:
        path = place / 'trace.json'
        options = f'--trace_file={path}', '--trace_rate=1', '--trace_count=0', '--open_rights=settings'

        def change(name, *values):
            setting = b''.join(field(1, value) for value in values)
            return ask(server, 'TraceSetting', entry(1, name, setting)).entries(1)
        with Server(*options) as server:
            told = ask(server, 'TraceSetting').entries(1)
            expect(told['trace_level'].one(1), b'TIMESTAMPS')
            expect(told['trace_count'].one(1), b'0')
            expect(told['trace_file'].one(1), str(path).encode())
            expect(told['trace_mode'].one(1), b'chrome')
            for name in told:  # a client that sends back what it has read changes nothing
                expect(change(name.encode(), told[name].one(1))[name].one(1), told[name].one(1))
            send(server, 'none is left')
            expect(change(b'trace_count', b'1')['trace_count'].one(1), b'1')
            for request_id in ('traced', 'none is left again'):
                send(server, request_id)
            expect(change(b'trace_level', b'OFF')['trace_level'].one(1), b'OFF')
            change(b'trace_count', b'-1')
            send(server, 'off', SAMPLED)
            change(b'trace_level', b'TIMESTAMPS')
            send(server, 'on')
            for name, value in ((b'trace_level', b'TENSORS'), (b'trace_file', b'/tmp/x'), (b'trace_rate', b'0')):
                refused(server, 'TraceSetting', entry(1, name, field(1, value)),
                        grpc.StatusCode.INVALID_ARGUMENT, name.decode())
            of_model = entry(1, b'trace_rate', field(1, b'2')) + field(2, b'digits')
            refused(server, 'TraceSetting', of_model, grpc.StatusCode.INVALID_ARGUMENT, 'all models')
            server.end()
        ids = [event['args']['id'] for event in events_in(path) if 'args' in event]
        expect(ids, ['traced', 'on'])


def flags_without_sense():
    """Each is refused at the start, in a line that names the flag and what is allowed."""
    with folder() as place:
        taken = place / 'taken'
        taken.mkdir()
        precious = place / 'precious.txt'
        precious.write_text('precious\n')
        for options, text in (
                (['--trace_rate=0', f'--trace_file={place}/a'], '--trace_rate'),
                (['--trace_rate=often', f'--trace_file={place}/a'], '--trace_rate'),
                (['--trace_count=-2', f'--trace_file={place}/a'], '--trace_count'),
                (['--trace_format=xml', f'--trace_file={place}/a'], '--trace_format'),
                (['--trace_format=triton'], '--trace_format=triton needs --trace_file'),
                (['--trace_rate=10'], '--trace_rate=10 needs --trace_file'),
                (['--trace_count=10'], '--trace_count=10 needs --trace_file'),
                ([f'--trace_file={taken}'], 'is a folder'),
                ([f'--trace_file={place}/absent/a'], '--trace_file: cannot open'),
                (['--trace_file=/dev/null'], 'is below /dev'),
                (['--trace_file=/dev/stdout'], 'is below /dev'),
                ([f'--trace_file={precious}'], f'{precious.resolve()} holds something else'),
                (['--otlp_endpoint=localhost'], 'is not HOST:PORT'),
                (['--otlp_endpoint=http://localhost:4317'], 'is not HOST:PORT'),
                (['--otlp_endpoint=localhost:0'], 'is not HOST:PORT')):
            line = start_in_vain('--port=0', *options, status=[1, 2])
            assert text in line, (options, line)
        expect(precious.read_text(), 'precious\n')


if __name__ == '__main__':
    run_checks((a_file_for_chrome, a_file_for_triton, a_killed_server_leaves_a_whole_file,
                a_server_that_does_not_start_leaves_the_file, a_collector_takes_spans,
                a_file_and_a_collector_get_the_same, a_collector_that_is_away, a_collector_that_says_nothing,
                a_full_disk, a_full_disk_at_the_start, settings, flags_without_sense))
