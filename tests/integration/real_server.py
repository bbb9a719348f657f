# SPDX-License-Identifier: Apache-2.0
"""The real binary as a process of its own, and messages written byte by byte."""
import concurrent.futures
import pathlib
import re
import signal
import subprocess
import sys
import time

import grpc

INFER = '/inference.GRPCInferenceService/'
PRIMITIVES = '/tilewire.v1.PrimitiveService/'
PATIENCE = 60
SIDE_BY_SIDE = 4


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


def digits_request(batch=1, name=b'digits', repeated=b'\0\0\x80\x3f'):
    tensor = field(1, b'image') + field(2, b'FP32') + packed(3, [batch, 3, 24, 20])
    return field(1, name) + field(5, tensor) + field(7, repeated * (batch * 1440))


class Server:
    def __init__(self, *options, descriptors=None, ready='ready'):
        command = [sys.argv[1], '--host=127.0.0.1', *options]
        if not any('--port' in option for option in options):
            command.append('--port=0')
        if not any('--model' in option for option in options):
            command.append(f'--model_repository={sys.argv[2]}')
        if descriptors:
            command = ['prlimit', f'--nofile={descriptors}:{descriptors}', *command]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        line = self.process.stdout.readline().decode()
        assert 'listening on' in line, (line, self.process.stderr.read())
        self.address = line.split()[-1]
        self.port = int(self.address.rsplit(':', 1)[1])
        line = self.process.stdout.readline().decode()
        assert line.startswith(f'tilewire-server {ready}:'), line

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def channel(self, *options, compression=None):
        own = (('grpc.use_local_subchannel_pool', 1), ('grpc.max_receive_message_length', -1))
        return grpc.insecure_channel(self.address, (*own, ('grpc.enable_retries', 0), *options),
                                     compression)

    def ask(self, method, request=b'', channel=None, timeout=PATIENCE, metadata=None):
        """The answer's bytes, or the code of the refusal."""
        call = (channel or self.channel()).unary_unary(method)
        try:
            return call(request, timeout=timeout, metadata=metadata)
        except grpc.RpcError as error:
            return error.code()

    def infer(self, **options):
        return self.ask(INFER + 'ModelInfer', digits_request(), **options)

    def status(self, key):
        text = pathlib.Path(f'/proc/{self.process.pid}/status').read_text()
        return int(re.search(rf'^{key}:\s+(\d+)', text, re.MULTILINE).group(1))

    def resident_mb(self):
        return self.status('VmRSS') // 1024

    def end(self, sent=signal.SIGTERM, patience=PATIENCE):
        self.process.send_signal(sent)
        status = self.process.wait(patience)
        assert status == 0, (status, self.process.stderr.read())


def expect(got, wanted):
    assert got == wanted, f'{got!s:.200} where {wanted!s:.200} was expected'


def run_checks(checks, alone=()):
    """Runs those that the command line names after the binary and the models, or all of them: those
    `alone` one after the other, as they judge times; then the rest side by side, as most of them wait.
    """
    wanted = sys.argv[3:]
    if len(wanted) == 1:
        check = next(check for check in checks if check.__name__ == wanted[0])
        print(f'{check.__name__}: {check.__doc__.splitlines()[0]}', flush=True)
        check()
        return
    chosen = [check for check in checks if not wanted or check.__name__ in wanted]
    beside = [check for check in chosen if check not in alone]
    failed = [check.__name__ for check in alone if check in chosen and not run_apart(check)]
    with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        failed += [check.__name__ for check, ok in zip(beside, pool.map(run_apart, beside)) if not ok]
    assert not failed, f'failed: {" ".join(failed)}'


def run_apart(check):
    """Runs it in a process of its own, and says whether it passed."""
    begin = time.time()
    run = subprocess.run([sys.executable, *sys.argv[:3], check.__name__], capture_output=True,
                         text=True, check=False)
    print(f'{run.stdout}{run.stderr}  {check.__name__}: {time.time() - begin:.1f} s', flush=True)
    return run.returncode == 0
