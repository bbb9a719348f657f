# SPDX-License-Identifier: Apache-2.0
"""Models that change on disk while the real binary serves them.

usage: replaced_models.py SERVER_BINARY MODEL_REPOSITORY [CHECK...]
"""
import array
import concurrent.futures
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import grpc

from real_server import (INFER, LONG_PATIENCE, PATIENCE, Server, digits_request, expect, field, packed,
                         run_checks, until, varint)

BATCHES = (1, 2, 3, 5, 8, 16, 33, 64, 200)
HEALTH = '/grpc.health.v1.Health/Check'
YES, NO = b'\x08\x01', b'\x08\x02'


def fields(message):
    """The length-delimited fields of a message: number, offset and length of each."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value
    while at < len(message):
        key = number()
        if key & 7 == 2:
            size = number()
            yield key >> 3, at, size
            at += size
        elif key & 7 == 0:
            number()
        else:
            at += 4 if key & 7 == 5 else 8


def with_other_weights(model):
    """The same model with the sign of its largest weights changed; as long as before."""
    largest = (0, 0)
    for graph, graph_at, graph_size in fields(model):
        if graph != 7:
            continue
        for node, tensor_at, tensor_size in fields(model[graph_at:graph_at + graph_size]):
            if node != 5:
                continue
            tensor_at += graph_at
            for raw, raw_at, raw_size in fields(model[tensor_at:tensor_at + tensor_size]):
                if raw == 9:
                    largest = max(largest, (raw_size, tensor_at + raw_at))
    size, begin = largest
    assert size > 65536, 'large weights stay in the file'
    changed = bytearray(model)
    for at in range(begin + 3, begin + size, 4):
        changed[at] ^= 0x80
    return bytes(changed)


@contextlib.contextmanager
def repository():
    """A repository of one model that may be changed, and the bytes of another model for it."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(pathlib.Path(sys.argv[2]) / 'digits', f'{folder}/digits',
                        copy_function=shutil.copyfile)
        os.chmod(f'{folder}/digits/1', 0o755)
        file = pathlib.Path(folder) / 'digits/1/model.onnx'
        yield pathlib.Path(folder), file, with_other_weights(file.read_bytes())


def bits_of(server):
    """The answer to each batch."""
    return {batch: server.ask(INFER + 'ModelInfer', digits_request(batch)) for batch in BATCHES}


def other_bits(other):
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(f'{folder}/digits/1')
        pathlib.Path(f'{folder}/digits/1/model.onnx').write_bytes(other)
        with Server(f'--model_repository={folder}') as server:
            return bits_of(server)


def overwrite(file, contents):
    """As `cp -p` does: the same inode, and the time of modification is kept."""
    before = os.stat(file)
    with open(file, 'r+b') as existing:  # not emptied first: that would be a change of its own
        existing.write(contents)
        existing.truncate()
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def rename_over(file, contents):
    """As `rsync` does."""
    copy = file.with_name('.copy')
    copy.write_bytes(contents)
    os.rename(copy, file)


def convolution_model(seed):
    """ONNX: a 3x3 convolution of 64 channels with a bias, over pictures of any size."""
    random = array.array('f', (((i * 2654435761 + seed * 97) >> 7) % 17 - 8
                               for i in range(64 * 64 * 9 + 64)))
    weights = b''.join(varint(1, dim) for dim in (64, 64, 3, 3)) + varint(2, 1)
    weights += field(8, b'w') + field(9, random[64:].tobytes())
    bias = varint(1, 64) + varint(2, 1) + field(8, b'b') + field(9, random[:64].tobytes())
    pads = field(1, b'pads') + b''.join(varint(8, 1) for _ in range(4)) + b'\xa0\x01\x07'
    node = field(1, b'image') + field(1, b'w') + field(1, b'b') + field(2, b'out')
    node += field(3, b'conv') + field(4, b'Conv') + field(5, pads)
    dims = (field(2, b'N'), varint(1, 64), field(2, b'H'), field(2, b'W'))
    shape = field(2, b''.join(field(1, dim) for dim in dims))
    tensor = field(2, field(1, varint(1, 1) + shape))
    graph = field(1, node) + field(2, b'graph') + field(5, weights) + field(5, bias)
    graph += field(11, field(1, b'image') + tensor) + field(12, field(1, b'out') + tensor)
    return varint(1, 8) + field(8, varint(2, 13)) + field(7, graph)


def ask_convolution(server, size):
    tensor = field(1, b'image') + field(2, b'FP32') + packed(3, [1, 64, size, size])
    request = field(1, b'open') + field(5, tensor) + field(7, b'\0\0\x80\x3f' * (64 * size * size))
    return server.ask(INFER + 'ModelInfer', request)


def index(server):
    """The answer of RepositoryIndex, as bytes."""
    return server.ask(INFER + 'RepositoryIndex')


def watch(server, old, new, allowed):
    """Asks until every batch is answered by the new file; each answer is all old or all new."""
    channel = server.channel()
    seen, begin = {'old': 0, 'new': 0, 'refused': 0}, time.time()
    while True:
        answers = {batch: server.ask(INFER + 'ModelInfer', digits_request(batch), channel)
                   for batch in BATCHES}
        for batch, answer in answers.items():
            if isinstance(answer, grpc.StatusCode):
                assert answer in allowed, (batch, answer)
                seen['refused'] += 1
            else:
                assert answer in (old[batch], new[batch]), f'a wrong answer to a batch of {batch}'
                seen['old' if answer == old[batch] else 'new'] += 1
        if answers == new:
            return seen
        assert time.time() - begin < PATIENCE, seen


def overwritten():
    """A file that is overwritten, its time kept, gives no wrong answer and is loaded again."""
    with repository() as (folder, file, other):
        new, original = other_bits(other), file.read_bytes()
        with Server(f'--model_repository={folder}') as server:
            first = server.ask(INFER + 'ModelInfer', digits_request(1))
            overwrite(file, other)
            old = other_bits(original)
            expect(first, old[1])
            seen = watch(server, old, new, (grpc.StatusCode.UNAVAILABLE,))
            print(f'  answers: {seen}')
            expect(server.ask(HEALTH, field(1, b'digits')), YES)
            server.end()


def overwritten_before_it_is_needed():
    """Weights that are read only when a shape needs them are never taken from another file."""
    sizes = (4, 14, 28, 56, 7)
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / 'open/1/model.onnx'
        file.parent.mkdir(parents=True)
        answers = []
        for seed in (2, 1):
            file.write_bytes(convolution_model(seed))
            with Server(f'--model_repository={folder}') as server:
                answers.append([ask_convolution(server, size) for size in sizes])
                assert all(isinstance(answer, bytes) for answer in answers[-1]), answers[-1]
        new, old = answers
        with Server(f'--model_repository={folder}') as server:
            expect(ask_convolution(server, sizes[0]), old[0])
            overwrite(file, convolution_model(2))
            got = []
            until(lambda: got.append([ask_convolution(server, size) for size in sizes])
                  or got[-1] == new, 'it is not loaded again')
            for answers in got:
                for size, answer, *right in zip(sizes, answers, old, new):
                    assert answer in (*right, grpc.StatusCode.UNAVAILABLE), f'wrong for {size}'
            server.end()


def overwritten_by_what_does_not_load():
    """The model is unavailable with the reason, and serves again when the file is mended."""
    with repository() as (folder, file, _):
        original = file.read_bytes()
        with Server(f'--model_repository={folder}') as server:
            bits = bits_of(server)
            overwrite(file, original[:5000])
            until(lambda: b'failed to load' in index(server), 'no reason in the index')
            assert b'UNAVAILABLE' in index(server) and bytes(folder) not in index(server)
            expect(server.ask(HEALTH, field(1, b'digits')), NO)
            expect(server.infer(), grpc.StatusCode.FAILED_PRECONDITION)
            overwrite(file, original)
            waited = until(lambda: bits_of(server) == bits, 'it does not serve again')
            print(f'  serves again after {waited:.1f} s')
            expect(server.ask(HEALTH, field(1, b'digits')), YES)
            server.end()


def renamed_over():
    """A file that is renamed over the served one is loaded beside it: nothing is refused."""
    with repository() as (folder, file, other):
        new = other_bits(other)
        with Server(f'--model_repository={folder}') as server:
            old = bits_of(server)
            rename_over(file, other)
            print(f'  answers: {watch(server, old, new, ())}')
            server.end()


def renamed_over_by_what_does_not_load():
    """The old version serves on, with the reason."""
    with repository() as (folder, file, other):
        new = other_bits(other)
        with Server(f'--model_repository={folder}') as server:
            old = bits_of(server)
            rename_over(file, b'\x08\x07broken')
            until(lambda: b'failed to load' in index(server), 'no reason in the index')
            assert b'READY' in index(server), index(server)
            expect(bits_of(server), old)
            expect(server.ask(HEALTH, b''), YES)
            rename_over(file, other)
            watch(server, old, new, ())
            assert b'failed to load' not in index(server), index(server)
            server.end()


def touched():
    """A file whose contents stay the same stays ready, also while it is loaded again."""
    with repository() as (folder, file, _):
        with Server(f'--model_repository={folder}') as server:
            bits, loaded = bits_of(server), "model 'digits' version 1: loaded in "
            server.await_line(loaded)
            server.log = ''
            os.utime(file)
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                again = pool.submit(server.await_line, loaded)
                while not again.done():
                    expect(server.ask(HEALTH, field(1, b'digits')), YES)
                    expect(bits_of(server), bits)
            again.result()
            expect(bits_of(server), bits)
            server.end()


def asked_to_scan():
    """SIGHUP: new models and versions are served, those that have gone are not."""
    with repository() as (folder, file, other):
        new = other_bits(other)
        with Server(f'--model_repository={folder}', '--model_control=none',
                    '--versions=all') as server:
            old = bits_of(server)
            shutil.copytree(folder / 'digits', folder / 'second')
            os.makedirs(folder / 'digits/2')
            (folder / 'digits/2/model.onnx').write_bytes(other)
            expect(server.ask(INFER + 'ModelInfer', digits_request(name=b'second')),
                   grpc.StatusCode.NOT_FOUND)
            server.process.send_signal(signal.SIGHUP)
            until(lambda: index(server).count(b'READY') == 3, 'three versions are to be ready')
            expect(bits_of(server)[1], without_version(new[1], b'2'))
            second = server.ask(INFER + 'ModelInfer', digits_request(name=b'second'))
            assert second.endswith(old[1][-40:]), 'the copy answers as its original'
            shutil.rmtree(folder / 'second')
            shutil.rmtree(folder / 'digits/2')
            server.process.send_signal(signal.SIGHUP)
            until(lambda: index(server).count(b'READY') == 1, 'one version is to be left')
            expect(bits_of(server), old)
            expect(server.ask(INFER + 'ModelInfer', digits_request(name=b'second')),
                   grpc.StatusCode.NOT_FOUND)
            shutil.rmtree(folder / 'digits')
            server.process.send_signal(signal.SIGHUP)
            server.await_line('what was loaded before serves on')
            expect(bits_of(server), old)  # an empty repository is taken for a mistake
            server.end()


def polled():
    """A new version takes the place of the old one by itself, unless its folder is held back."""
    with repository() as (folder, file, other):
        new = other_bits(other)
        with Server(f'--model_repository={folder}', '--poll_seconds=0.1') as server:
            old = bits_of(server)
            for version in (2, 3):
                os.makedirs(folder / f'digits/{version}')
            (folder / 'digits/3/.loading').touch()
            (folder / 'digits/3/model.onnx').write_bytes(b'half')
            shutil.copytree(file.parent, folder / 'second/1')
            until(lambda: isinstance(server.ask(INFER + 'ModelInfer', digits_request(name=b'second')), bytes),
                  'not found')
            expect(bits_of(server), old)  # version 2 is empty, and 3 is held back
            (folder / 'digits/3/model.onnx').write_bytes(other)
            (folder / 'digits/3/.loading').unlink()
            until(lambda: b'unloaded' in index(server), 'version 1 is to be retired')
            expect(bits_of(server)[1], without_version(new[1], b'3'))
            (folder / 'digits/4').mkdir()
            (folder / 'digits/4/model.onnx').write_bytes(b'broken')
            until(lambda: b'failed to load' in index(server), 'no reason in the index')
            expect(bits_of(server)[1], without_version(new[1], b'3'))
            expect(server.ask(HEALTH, b''), YES)
            server.end()


def without_version(answer, version):
    """The answer with the version that it names replaced by another of the same length."""
    return answer.replace(field(2, b'1'), field(2, version), 1)


def empty_at_the_start():
    """A repository may be empty where models may come later: the server is ready, and serves what comes."""
    for ready in ('all', 'any'):
        with tempfile.TemporaryDirectory() as folder, \
                Server(f'--model_repository={folder}', f'--ready={ready}') as server:
            expect(server.ask(INFER + 'ServerReady'), YES)
            expect(server.ask(HEALTH), YES)
            shutil.copytree(pathlib.Path(sys.argv[2]) / 'digits', f'{folder}/digits')
            until(lambda server=server: isinstance(server.infer(), bytes), 'it is not loaded')
            server.end()
            assert 'what was loaded before' not in server.log, server.log
    with tempfile.TemporaryDirectory() as folder:
        for options in (['--model_control=none'], ['--model_repository=' + folder + '/none']):
            run = subprocess.run([sys.argv[1], f'--model_repository={folder}', '--port=0', *options],
                                 capture_output=True, text=True, check=False)
            assert run.returncode == 1 and folder in run.stderr, (run.returncode, run.stderr)


def swapped_under_load():
    """Runs hold what they began with: under load every answer is all old or all new."""
    with repository() as (folder, file, other):
        original = file.read_bytes()
        new = other_bits(other)
        with Server(f'--model_repository={folder}') as server:
            old = bits_of(server)
            stop = threading.Event()

            def client(batch):
                answered = 0
                with server.channel() as channel:
                    while not stop.is_set():
                        answer = server.ask(INFER + 'ModelInfer', digits_request(batch), channel)
                        assert answer in (old[batch], new[batch]), answer
                        answered += 1
                return answered
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                clients = [pool.submit(client, batch) for batch in (1, 3, 8, 64)]
                try:
                    for turn in range(4):
                        rename_over(file, original if turn % 2 else other)
                        expected = (old if turn % 2 else new)[1]
                        until(lambda expected=expected: server.infer() == expected, 'not loaded', LONG_PATIENCE)
                finally:
                    stop.set()
                print(f'  4 swaps beside {sum(client.result() for client in clients)} answers')
            server.end()


CHECKS = (overwritten, overwritten_before_it_is_needed, overwritten_by_what_does_not_load,
          renamed_over, renamed_over_by_what_does_not_load, touched, asked_to_scan, polled,
          empty_at_the_start, swapped_under_load)


if __name__ == '__main__':
    run_checks(CHECKS)
