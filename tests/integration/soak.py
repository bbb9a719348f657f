# SPDX-License-Identifier: Apache-2.0
"""Mixed work for a long time against the real binary: is every answer right, and does anything grow?

usage: soak.py SERVER_BINARY MODEL_REPOSITORY [SECONDS]

Side by side, again and again: two models in many shapes and both layouts, a third one whose file is
replaced, requests that are cancelled or late, clients that connect anew or do not read, primitives,
plans, and bad requests. Each answer is compared with the first one of its kind, bit for bit.

After a warm-up of a third of the time, resident memory is taken each second; the slope is that of the
lowest values of 30 seconds each. When the clients have gone, there are no more descriptors than before
they came. Runs of ten minutes and more are judged by the slope and by the threads too, which are those
of the warm-up (give or take two of gRPC's, which start and end as it likes).
"""
import collections
import contextlib
import os
import pathlib
import shutil
import sys
import tempfile
import threading
import time

import grpc

from deaf_peer import DeafPeer
from real_server import (INFER, PATIENCE, PRIMITIVES, Server, digits_request, field, packed,
                         varint)
from replaced_models import ask_convolution, convolution_model, fields, rename_over, with_other_weights

MOST_SLOPE = 1.0  # MB per hour
JUDGED_FROM = 600  # seconds
WINDOW = 30  # seconds
BATCHES = (1, 2, 3, 5, 8, 16, 33, 64)
SIZES = (4, 7, 14, 28, 40)
Code = grpc.StatusCode


class Soak:
    """The state that the clients share: the server, the first answer of each kind, and what went
    wrong."""

    def __init__(self, server, folder):
        self.server, self.folder = server, folder
        self.first, self.counts, self.wrong = {}, collections.Counter(), []
        self.lock, self.stopped = threading.Lock(), threading.Event()

    def check(self, kind, answer, allowed=()):
        """An answer is as the first one of its kind; a refusal has one of the codes."""
        with self.lock:
            if isinstance(answer, Code):
                self.counts[answer.name] += 1
                right = answer in allowed
            else:
                self.counts['right'] += 1
                right = self.first.setdefault(kind, answer) == answer
            if not right:
                refused = isinstance(answer, Code)
                self.wrong.append((kind, answer, self.server.reasons.get(answer)) if refused
                                  else (kind, 'other bits'))

    def repeat(self, client, pause):
        """A client in a thread of its own, which makes `pause` seconds after each turn."""
        def turns():
            turn = 0
            while not self.stopped.is_set():
                try:
                    client(self, turn)
                except Exception as error:  # pylint: disable=broad-except
                    with self.lock:
                        self.wrong.append((client.__name__, repr(error)))
                    return
                turn += 1
                self.stopped.wait(pause)
        thread = threading.Thread(target=turns)
        thread.start()
        return thread


def channels_last(batch):
    layout = field(1, b'layout') + field(2, field(3, b'nhwc'))
    tensor = field(1, b'image') + field(2, b'FP32') + packed(3, [batch, 24, 20, 3])
    return (field(1, b'digits') + field(5, tensor + field(4, layout))
            + field(7, b'\0\0\x80\x3f' * (batch * 1440)))


def digits(soak, turn):
    batch = BATCHES[turn % len(BATCHES)]
    ask = channels_last if turn // len(BATCHES) % 2 else digits_request
    answer = soak.server.ask(INFER + 'ModelInfer', ask(batch), soak.channel)
    soak.check((ask.__name__, batch), answer)


def convolutions(soak, turn):
    size = SIZES[turn % len(SIZES)]
    soak.check(('open', size), ask_convolution(soak.server, size))


def cancels(soak, turn):
    """The request is given up after 0 to 15 ms."""
    batch = BATCHES[turn % len(BATCHES)]
    call = soak.channel.unary_unary(INFER + 'ModelInfer').future(digits_request(batch), timeout=60)
    time.sleep(turn % 16 / 1000)
    call.cancel()
    with contextlib.suppress(grpc.FutureCancelledError, grpc.RpcError):
        soak.check(('digits_request', batch), call.result())


def deadlines(soak, turn):
    batch = BATCHES[turn % len(BATCHES)]
    answer = soak.server.ask(INFER + 'ModelInfer', digits_request(batch), soak.channel,
                             timeout=0.001 * (1 + turn % 20))
    soak.check(('digits_request', batch), answer, (Code.DEADLINE_EXCEEDED, Code.UNAVAILABLE))


def new_connections(soak, turn):
    with soak.server.channel() as channel:
        batch = BATCHES[turn % 3]
        answer = soak.server.ask(INFER + 'ModelInfer', digits_request(batch), channel)
        soak.check(('digits_request', batch), answer)


def deaf_peers(soak, turn):
    """Four answers of 190 KB that are never read; the connection ends after a moment or is ended."""
    peer = DeafPeer(soak.server.port)
    with contextlib.suppress(OSError):  # the server may hang up
        for stream in range(1, 9, 2):
            peer.ask(stream, INFER + 'ModelInfer', digits_request(40))
        soak.stopped.wait(0.5 + turn % 2 * 3)
    peer.socket.close()


def primitives(soak, turn):
    """ReLU over a row, and a 3x3 convolution of one tensor of ones by another, of some sizes."""
    def tensor(*dims):
        return packed(1, dims) + varint(2, 3)

    def given(argument, elements, desc):
        return field(3, varint(1, argument) + field(2, desc)
                     + field(3, b'\0\0\x80\x3f' * elements))
    size = SIZES[turn % len(SIZES)]
    row, image, weights = tensor(1, 100 * size), tensor(1, 16, size, size), tensor(16, 16, 3, 3)
    relu = field(6, field(2, varint(1, 1)) + field(3, row) + field(4, row))
    convolution = field(5, field(3, image) + field(4, weights) + field(6, image)
                        + packed(9, [1, 1]) + packed(10, [1, 1]))
    requests = {'relu': field(2, relu) + given(1, 100 * size, row),
                'convolution': field(2, convolution) + given(1, 16 * size * size, image)
                               + given(33, 16 * 16 * 9, weights)}
    for name, request in requests.items():
        answer = soak.server.ask(PRIMITIVES + 'Execute', request, soak.channel)
        if isinstance(answer, bytes):  # besides the output it tells times
            answer = next(answer[at:at + size_] for number, at, size_ in fields(answer)
                          if number == 1)
        soak.check((name, size), answer)


def plans(soak, turn):
    request = field(1, b'digits') + varint(3, BATCHES[turn % len(BATCHES)]) + varint(5, 2)
    answer = soak.server.ask('/tilewire.v1.ModelService/Explain', request, soak.channel)
    soak.check('a plan', answer if isinstance(answer, Code) else 'told')


def bad_requests(soak, turn):
    method, request, code = (
        (INFER + 'ModelInfer', digits_request(name=b'nope'), Code.NOT_FOUND),
        (INFER + 'ModelInfer', b'\xff' * 100, Code.INVALID_ARGUMENT),
        (INFER + 'ModelInfer', digits_request()[:-4], Code.INVALID_ARGUMENT),
        (INFER + 'ServerLive', b'\x78\x01' * 100_000, Code.INVALID_ARGUMENT),
        (PRIMITIVES + 'Create', field(1, field(6, b'')), Code.INVALID_ARGUMENT),
        ('/no.such/Method', b'', Code.UNIMPLEMENTED))[turn % 6]
    answer = soak.server.ask(method, request, soak.channel)
    soak.check(('bad', turn % 6), answer, (code,))


def replaced(soak, turn):
    """The third model's file is replaced; what answers meanwhile is the one file or the other."""
    rename_over(soak.folder / 'third/1/model.onnx', soak.files[turn % 2])
    end = time.time() + 4
    while time.time() < end and not soak.stopped.is_set():
        answer = soak.server.ask(INFER + 'ModelInfer', digits_request(name=b'third'), soak.channel)
        if isinstance(answer, bytes) and answer not in soak.thirds:
            soak.thirds.append(answer)
        soak.check(('third', answer), answer)
        soak.stopped.wait(0.05)


CLIENTS = ((digits, 0.01), (digits, 0.02), (convolutions, 0.02), (cancels, 0.01), (deadlines, 0.01),
           (new_connections, 0.05), (deaf_peers, 0.2), (primitives, 0.01), (plans, 0.2),
           (bad_requests, 0.02), (replaced, 0))


def descriptors(server):
    return len(os.listdir(f'/proc/{server.process.pid}/fd'))


def slope(samples):
    """MB per hour of (seconds, KB), over the lowest value of each window."""
    windows = collections.defaultdict(list)
    for seconds, size in samples:
        windows[int(seconds // WINDOW)].append(size / 1024)
    points = [(window * WINDOW / 3600, min(sizes)) for window, sizes in sorted(windows.items())]
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0


def watch(server, seconds):
    """The samples of memory after the warm-up, and the most threads in it and after it."""
    samples, threads, begin = [], [0, 0], time.time()
    while (now := time.time() - begin) < seconds or not samples:
        warm = now >= seconds / 3
        threads[warm] = max(threads[warm], server.status('Threads'))
        if warm:
            samples.append((now, server.status('VmRSS')))
        if int(now) % 60 == 0:
            print(f'  {now:.0f} s: {server.resident_mb()} MB, {descriptors(server)} descriptors, '
                  f'{server.status("Threads")} threads', flush=True)
        time.sleep(1)
    return samples, threads


def main():
    seconds = int(sys.argv[3]) if len(sys.argv) > 3 else 1800
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for copy in ('digits', 'third'):
            shutil.copytree(pathlib.Path(sys.argv[2]) / 'digits', folder / copy,
                            copy_function=shutil.copyfile)
            os.chmod(folder / copy / '1', 0o755)
        (folder / 'open/1').mkdir(parents=True)
        (folder / 'open/1/model.onnx').write_bytes(convolution_model(1))
        # On a machine that stalls answers are read late.
        with Server(f'--model_repository={folder}', '--write_timeout=20') as server:
            soak = Soak(server, folder)
            first = (folder / 'third/1/model.onnx').read_bytes()
            soak.files, soak.thirds = (with_other_weights(first), first), []
            good = run(soak, seconds)
            server.end()
    return 0 if good else 1


def run(soak, seconds):
    server = soak.server
    server.infer()
    time.sleep(1)
    before = descriptors(server)
    with server.channel() as soak.channel:
        threads = [soak.repeat(client, pause) for client, pause in CLIENTS]
        samples, most_threads = watch(server, seconds)
        soak.stopped.set()
        for thread in threads:
            thread.join()
    begin = time.time()
    while descriptors(server) > before and time.time() - begin < PATIENCE:
        time.sleep(0.1)
    grown = slope(samples)
    print(f'{seconds} s: {dict(soak.counts)}; wrong: {soak.wrong[:5]}\n'
          f'memory {samples[0][1] >> 10} MB -> {samples[-1][1] >> 10} MB, {grown:+.2f} MB/h; '
          f'descriptors {before} -> {descriptors(server)}; most threads {most_threads[0]} in the '
          f'warm-up, {most_threads[1]} after it; files of the third model seen: {len(soak.thirds)}')
    steady = grown <= MOST_SLOPE and most_threads[1] <= most_threads[0] + 2
    return (not soak.wrong and soak.counts['right'] > 5 * seconds and len(soak.thirds) <= 2
            and descriptors(server) <= before and (seconds < JUDGED_FROM or steady))


if __name__ == '__main__':
    sys.exit(main())
