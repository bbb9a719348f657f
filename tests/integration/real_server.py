# SPDX-License-Identifier: Apache-2.0
"""The real binary as a process of its own, and messages written byte by byte."""
import pathlib
import re
import resource
import signal
import subprocess
import sys

import grpc

INFER = '/inference.GRPCInferenceService/'
PRIMITIVES = '/tilewire.v1.PrimitiveService/'
PATIENCE = 60


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
        def limit():
            if descriptors:
                resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
        command = [sys.argv[1], '--host=127.0.0.1', *options]
        if not any('--port' in option for option in options):
            command.append('--port=0')
        if not any('--model' in option for option in options):
            command.append(f'--model_repository={sys.argv[2]}')
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        preexec_fn=limit)
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


def run_checks(checks):
    """Runs those that the command line names after the binary and the models, or all of them."""
    wanted = sys.argv[3:]
    for check in checks:
        if wanted and check.__name__ not in wanted:
            continue
        print(f'{check.__name__}: {check.__doc__.splitlines()[0]}', flush=True)
        check()
