# SPDX-License-Identifier: Apache-2.0
"""The real binary as a process of its own, and messages written byte by byte."""
import concurrent.futures
import faulthandler
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
import unittest
import urllib.error
import urllib.request
import xml.etree.ElementTree as ElementTree

import grpc

INFER = '/inference.GRPCInferenceService/'
PRIMITIVES = '/tilewire.v1.PrimitiveService/'
PATIENCE = 120  # seconds, for what ends at once on a machine that does not stall
LONG_PATIENCE = 300  # for what takes seconds there
SIDE_BY_SIDE = 4
SKIPPED = 77  # exit status
# Shortly before Bazel ends a test, what still runs is shown and ended; checks have the end of the test they are of.
os.environ.setdefault('TEST_ENDS', str(time.time() + int(os.environ.get('TEST_TIMEOUT', '900')) - 120))
# Servers of these tests run side by side, and have one default port; a test that wants it says so.
os.environ.setdefault('TILEWIRE_METRICS_PORT', 'off')
# Where others take most of the machine, requests wait for longer than a server lets them by default.
os.environ.setdefault('TILEWIRE_MAX_QUEUE_MS', f'{PATIENCE}000')
# Programs that these tests start take Ctrl-C, also where a shell has started the tests in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)


def field(number, payload):
    """A length-delimited field."""
    size, head = len(payload), bytes([number << 3 | 2])
    while size > 127:
        head += bytes([size & 127 | 128])
        size >>= 7
    return head + bytes([size]) + payload


def varint(number, value):
    encoded = bytes([number << 3])
    while value > 127:
        encoded += bytes([value & 127 | 128])
        value >>= 7
    return encoded + bytes([value])


def packed(number, values):
    return field(number, b''.join(varint(0, value)[1:] for value in values))


def infer_request(name, tensor, dims, values, typed=False):
    """A ModelInfer of one tensor of f32; typed: its values are numbers of protobuf's, not raw bytes."""
    head = field(1, tensor) + field(2, b'FP32') + packed(3, dims)
    if typed:
        return field(1, name) + field(5, head + field(5, field(6, values)))
    return field(1, name) + field(5, head) + field(7, values)


def digits_request(batch=1, name=b'digits', repeated=b'\0\0\x80\x3f'):
    return infer_request(name, b'image', [batch, 3, 24, 20], repeated * (batch * 1440))


def relu_model(*dims):
    """y = Relu(x) of f32, as an ONNX file; a dim of 0 is open."""
    shape = b''.join(field(1, varint(1, dim) if dim else field(2, b'n')) for dim in dims)
    kind = field(2, field(1, varint(1, 1) + field(2, shape)))
    node = field(1, b'x') + field(2, b'y') + field(4, b'Relu')
    graph = (field(1, node) + field(2, b'g') + field(11, field(1, b'x') + kind)
             + field(12, field(1, b'y') + kind))
    return varint(1, 8) + field(7, graph) + field(8, varint(2, 13))


class Server:
    """`launcher` is a command that the server's is appended to; `log` is where standard error goes
    if not to await_line() and end(); `exactly`: with no options but these."""

    def __init__(self, *options, launcher=(), log=subprocess.PIPE, ready='ready', exactly=False):
        command = [*launcher, sys.argv[1], *options]
        if not exactly and not any('--host' in option for option in options):
            command.append('--host=127.0.0.1')
        if not exactly and not any('--port' in option for option in options):
            command.append('--port=0')
        if not exactly and not any('--model' in option for option in options):
            command.append(f'--model_repository={sys.argv[2]}')
        self.reasons = {}  # of the last refusal with each code
        self.log = ''
        self.process, line = listening(command, log)
        self.address = line.split()[-1]
        self.port = int(self.address.rsplit(':', 1)[1])
        self.state = self.process.stdout.readline().decode()
        self.monitoring = None  # the monitoring port's URL
        if self.state.startswith('tilewire-server monitoring on '):
            self.monitoring = self.state.split()[-1]
            self.state = self.process.stdout.readline().decode()
        assert self.state.startswith(f'tilewire-server {ready}'), self.state

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def channel(self, *options, compression=None):
        own = (('grpc.use_local_subchannel_pool', 1), ('grpc.max_receive_message_length', -1),
               ('grpc.min_reconnect_backoff_ms', PATIENCE * 1000))  # the time of an attempt to connect
        return grpc.insecure_channel(self.address, (*own, ('grpc.enable_retries', 0), *options),
                                     compression)

    def ask(self, method, request=b'', channel=None, timeout=PATIENCE, metadata=None):
        """The answer's bytes, or the code of the refusal."""
        call = (channel or self.channel()).unary_unary(method)
        try:
            return call(request, timeout=timeout, metadata=metadata)
        except grpc.RpcError as error:
            self.reasons[error.code()] = error.details()
            return error.code()

    def health(self, service=''):
        """True if it serves, False if it does not, or the code of the refusal."""
        answer = self.ask('/grpc.health.v1.Health/Check', field(1, service.encode()))
        return {b'\x08\x01': True, b'\x08\x02': False}.get(answer, answer)

    def infer(self, **options):
        return self.ask(INFER + 'ModelInfer', digits_request(), **options)

    def status(self, key):
        text = pathlib.Path(f'/proc/{self.process.pid}/status').read_text()
        return int(re.search(rf'^{key}:\s+(\d+)', text, re.MULTILINE).group(1))

    def page(self, path, patience=PATIENCE):
        """Status and text of a page of the monitoring port."""
        try:
            with urllib.request.urlopen(self.monitoring + path, timeout=patience) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def told(self, metric):
        """The sum of a metric's values over its labels, as the monitoring port tells them now."""
        return sum_of(self.page('/metrics')[1], metric)

    def resident_mb(self):
        return self.status('VmRSS') // 1024

    def await_line(self, text):
        """Returns when a line with this text has come to the log."""
        while text not in self.log:
            line = self.process.stderr.readline().decode()
            assert line, f'the log ends without "{text}": {self.log}'
            self.log += line

    def await_work(self):
        """Returns when it has computed for a while."""
        def ticks():
            user, system = pathlib.Path(f'/proc/{self.process.pid}/stat').read_text().split()[13:15]
            return int(user) + int(system)
        before = ticks()
        until(lambda: ticks() > before + 30, 'it computes nothing')

    def end(self, sent=signal.SIGTERM):
        self.process.send_signal(sent)
        self.ended()

    def ended(self, patience=PATIENCE):
        """After what ends it, it ends with exit status 0."""
        status = self.process.wait(patience)
        if self.process.stderr:
            self.log += self.process.stderr.read().decode()
        assert status == 0, (status, self.log)


def sum_of(text, metric):
    """The sum of a metric's values over its labels, as a scrape tells them."""
    values = [float(line.split()[-1]) for line in text.splitlines() if re.match(rf'{metric}[ {{]', line)]
    assert values, f'{metric} is not told'
    return sum(values)


class Client(threading.Thread):
    """Asks all the time, and judges each answer."""

    def __init__(self, server, request, is_right):
        super().__init__()
        self.server, self.request, self.is_right = server, request, is_right
        self.stopped, self.answers, self.wrong = False, 0, []
        self.start()

    def run(self):
        with self.server.channel() as channel:
            while not self.stopped:
                answer = self.server.ask(INFER + 'ModelInfer', self.request, channel)
                self.answers += 1
                if not isinstance(answer, bytes) or not self.is_right(answer):
                    self.wrong.append(answer)

    def end(self):
        self.stopped = True
        self.join()
        assert not self.wrong, f'{len(self.wrong)} of {self.answers}: {self.wrong[0]!s:.200}'
        assert self.answers, 'it has asked nothing'
        return self.answers


def listening(command, log):
    """The process, and the line in which it says where it listens. A port that is asked for by number
    may be taken by another program's connection for a while."""
    begin = time.time()
    while True:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)
        line = process.stdout.readline().decode()
        if 'listening on' in line:
            return process, line
        process.wait()
        text = process.stderr.read().decode() if process.stderr else ''
        assert 'the port is in use' in text and time.time() - begin < PATIENCE, (line, text)
        time.sleep(0.5)


def until(holds, why, patience=PATIENCE):
    """Returns the seconds until it holds."""
    begin = time.time()
    while not holds():
        assert time.time() - begin < patience, why
        time.sleep(0.02)
    return time.time() - begin


def expect(got, wanted):
    assert got == wanted, f'{got!s:.200} where {wanted!s:.200} was expected'


def run_checks(checks):
    """Runs those that the command line names after the binary and the models, or all of them, side by
    side, as most of them wait. A check that the machine has not what it takes for raises
    unittest.SkipTest with the reason.
    """
    wanted = sys.argv[3:]
    if len(wanted) == 1:
        run_one(next(check for check in checks if check.__name__ == wanted[0]))
    chosen = of_this_shard([check for check in checks if not wanted or check.__name__ in wanted])
    with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        runs = list(pool.map(run_apart, chosen))
    write_report(runs)
    failed = [run.args[-1] for run in runs if run.returncode not in (0, SKIPPED)]
    assert not failed, f'failed: {" ".join(failed)}'


def of_this_shard(checks):
    """Bazel runs the shards of a test (`shard_count`) side by side."""
    if 'TEST_SHARD_STATUS_FILE' in os.environ:
        pathlib.Path(os.environ['TEST_SHARD_STATUS_FILE']).touch()
    shard, shards = (int(os.environ.get(name, default)) for name, default in
                     (('TEST_SHARD_INDEX', 0), ('TEST_TOTAL_SHARDS', 1)))
    return checks[shard::shards]


def run_one(check):
    print(f'{check.__name__}: {check.__doc__.splitlines()[0]}', flush=True)
    watch = threading.Timer(max(1, float(os.environ['TEST_ENDS']) - time.time()), give_up)
    watch.daemon = True
    watch.start()
    try:
        check()
    except unittest.SkipTest as reason:
        print(f'skipped: {reason}')
        sys.exit(SKIPPED)
    sys.exit()


def give_up():
    """Shows where this process and the servers that it has started stand, and ends them."""
    try:
        sys.stdout.flush()
        print('has not ended', file=sys.stderr, flush=True)
        faulthandler.dump_traceback(all_threads=True)
        for file in pathlib.Path('/proc/self/task').glob('*/children'):
            for child in told(file).split():
                for thread in pathlib.Path(f'/proc/{child}/task').glob('*'):
                    print(child, *(told(thread / name) for name in ('comm', 'wchan', 'syscall')), file=sys.stderr,
                          flush=True)
                subprocess.run(['kill', '-KILL', child], check=False)
    finally:
        os._exit(1)  # sys.exit() would wait for the threads that do not end


def told(file):
    """The text of a file of a process, or ? where it has ended or may not be asked."""
    try:
        return file.read_text().strip()
    except OSError:
        return '?'


def run_apart(check):
    """Runs it in a process of its own."""
    begin = time.time()
    run = subprocess.run([sys.executable, *sys.argv[:3], check.__name__], capture_output=True,
                         text=True, check=False)
    print(f'{run.stdout}{run.stderr}  {check.__name__}: {time.time() - begin:.1f} s', flush=True)
    return run


def write_report(runs):
    """Where Bazel looks for it: each check as a case."""
    if 'XML_OUTPUT_FILE' not in os.environ:
        return
    suite = ElementTree.Element('testsuite', name=pathlib.Path(sys.argv[0]).stem)
    for run in runs:
        case = ElementTree.SubElement(suite, 'testcase', name=run.args[-1])
        if run.returncode == SKIPPED:
            ElementTree.SubElement(case, 'skipped', message=run.stdout.splitlines()[-1])
        elif run.returncode:
            ElementTree.SubElement(case, 'failure', message=(run.stderr.splitlines() or ['?'])[-1])
    ElementTree.ElementTree(suite).write(os.environ['XML_OUTPUT_FILE'])
