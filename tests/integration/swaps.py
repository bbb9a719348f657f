# SPDX-License-Identifier: Apache-2.0
"""Versions that replace each other under load, and models that are loaded and unloaded again and again.

usage: [SWAPS=100] swaps.py SERVER_BINARY MODEL_REPOSITORY [CHECK...]

tests/bench/swap_bench.py does the same with large models, and measures.
"""
import concurrent.futures
import contextlib
import os
import pathlib
import shutil
import sys
import tempfile

import numpy

import image_networks
import triton_calls
from real_server import (INFER, LONG_PATIENCE, Client, Server, digits_request, expect, field, infer_request,
                         run_checks, until, varint)

SWAPS, ROUNDS = int(os.environ.get('SWAPS', '6')), 10
SIZE = 64  # of the images of the model that is swapped


def small_network(seed):
    return image_networks.resnet50(seed, width=16, size=SIZE, classes=10)


def image_request(name, size, batch=1):
    values = numpy.linspace(-1, 1, batch * 3 * size * size, dtype='<f4')
    return infer_request(name, b'image', [batch, 3, size, size], values.tobytes())


@contextlib.contextmanager
def repository(files):
    """A repository of the model digits and of `swapped`, version 1; and a folder of the files of others."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        shutil.copytree(pathlib.Path(sys.argv[2]) / 'digits', root / 'models/digits')
        for number, file in enumerate(files):
            (root / f'{number}.onnx').write_bytes(file)
        add_version(root, 1, 0)
        yield root


def add_version(root, version, number):
    """Version `version` of the model, with file `number`, appears at once."""
    folder = root / 'models/swapped'
    (folder / f'.{version}').mkdir(parents=True)
    os.link(root / f'{number}.onnx', folder / f'.{version}/model.onnx')
    os.rename(folder / f'.{version}', folder / str(version))


def answers_of(files, request):
    """The answer of each file."""
    answers = []
    for number in range(len(files)):
        with repository(files[number:number + 1]) as root, Server(f'--model_repository={root}/models') as server:
            answers.append(without_version(server.ask(INFER + 'ModelInfer', request)))
            server.end()
    return answers


def without_version(answer):
    """An answer, but for the version that gave it."""
    assert isinstance(answer, bytes), answer
    name = field(1, b'swapped')
    assert answer.startswith(name) and answer[len(name)] == 0x12, answer[:30]
    return answer[len(name) + 2 + answer[len(name) + 1]:]


def swap(server, root, version, number, patience=LONG_PATIENCE):
    """Adds the version; returns the seconds until it answers alone."""
    add_version(root, version, number)
    ready = field(1, b'swapped') + field(2, str(version).encode())
    seconds = until(lambda: server.ask(INFER + 'ModelReady', ready) == varint(1, 1), f'version {version}', patience)
    shutil.rmtree(root / f'models/swapped/{version - 1}')
    return seconds


def swapped_under_load():
    """Each answer is all of one version, none is missing, and the other model does not notice."""
    files = [small_network(seed) for seed in (1, 2)]
    request = image_request(b'swapped', SIZE)
    right = answers_of(files, request)
    assert right[0] != right[1]
    with repository(files) as root, Server(f'--model_repository={root}/models', '--poll_seconds=0.05') as server:
        digits = server.infer()
        own = Client(server, request, lambda answer: without_version(answer) in right)
        other = Client(server, digits_request(), lambda answer: answer == digits)
        try:
            seconds = [swap(server, root, version, (version - 1) % 2) for version in range(2, SWAPS + 2)]
            last = without_version(server.ask(INFER + 'ModelInfer', request))
        finally:
            print(f'  {SWAPS} swaps beside {own.end()} and {other.end()} answers')
        print(f'  each took {min(seconds):.2f} to {max(seconds):.2f} s')
        expect(last, right[SWAPS % 2])
        server.end()


def calls_beside_swaps():
    """The calls of Triton's clients are answered as ever while another model is swapped."""
    with (repository([small_network(seed) for seed in (1, 2)]) as root,
          Server(f'--model_repository={root}/models', '--poll_seconds=0.05') as server,
          concurrent.futures.ThreadPoolExecutor(1) as pool):
        swaps = pool.submit(lambda: [swap(server, root, version, (version - 1) % 2)
                                     for version in range(2, SWAPS + 2)])
        rounds = 0
        while rounds == 0 or not swaps.done():
            for check in (*triton_calls.CALLS, triton_calls.windows):
                check(server)
            rounds += 1
        print(f'  {rounds} times all calls beside {len(swaps.result())} swaps')
        server.end()


def rolled_back_under_load():
    """The folder of the newest version goes: it answers until the one before it does."""
    files = [small_network(seed) for seed in (1, 2)]
    request = image_request(b'swapped', SIZE)
    right = answers_of(files, request)
    with repository(files) as root:
        add_version(root, 2, 1)
        with Server(f'--model_repository={root}/models', '--poll_seconds=0.2') as server:
            expect(without_version(server.ask(INFER + 'ModelInfer', request)), right[1])
            client = Client(server, request, lambda answer: without_version(answer) in right)
            try:
                shutil.rmtree(root / 'models/swapped/2')
                old = field(1, b'swapped') + field(2, b'1')
                until(lambda: server.ask(INFER + 'ModelReady', old) == varint(1, 1), 'version 1', LONG_PATIENCE)
                until(lambda: server.ask(INFER + 'ModelReady', field(1, b'swapped') + field(2, b'2')) != varint(1, 1),
                      'version 2 serves on', LONG_PATIENCE)
            finally:
                print(f'  rolled back beside {client.end()} answers')
            expect(without_version(server.ask(INFER + 'ModelInfer', request)), right[0])
            server.end()


def loaded_again_and_again():
    """Each unload gives the memory back."""
    with (repository([small_network(1)]) as root,
          Server(f'--model_repository={root}/models', '--model_control=explicit', '--load_model=digits',
                 '--open_rights=repository') as server):
        resident = load_and_unload(server, ROUNDS)
        print(f'  resident after unloads, MB: {[round(one, 1) for one in resident]}')
        # Pages of the allocator, which a large model does not notice, are a part of a small one.
        assert resident[-1] <= 1.05 * resident[0] + 2, resident
        server.end()


def load_and_unload(server, rounds, request=None):
    """The resident megabytes after each round."""
    resident = []
    request = request or image_request(b'swapped', SIZE)
    for _ in range(rounds):
        expect(server.ask(INFER + 'RepositoryModelLoad', field(2, b'swapped'), timeout=LONG_PATIENCE), b'')
        assert isinstance(server.ask(INFER + 'ModelInfer', request), bytes), server.reasons
        expect(server.ask(INFER + 'RepositoryModelUnload', field(2, b'swapped'), timeout=LONG_PATIENCE), b'')
        resident.append(server.status('VmRSS') / 1024)
    return resident


CHECKS = (swapped_under_load, calls_beside_swaps, rolled_back_under_load, loaded_again_and_again)

if __name__ == '__main__':
    run_checks(CHECKS)
