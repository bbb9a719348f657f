# SPDX-License-Identifier: Apache-2.0
"""Models whose files clients send, in the real server.

usage: uploads.py SERVER_BINARY MODEL_REPOSITORY [CHECK...]
"""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

import grpc

from real_server import INFER, Server, expect, field, infer_request, relu_model, run_checks

ASKED = infer_request(b'sent', b'x', [1, 10], b'\0\0\x80\xbf' * 5 + b'\0\0\x80\x3f' * 5)


def load_request(name, files, config='{}'):
    """A RepositoryModelLoad that brings files, by parameter."""
    request = field(2, name)
    if config is not None:
        request += field(3, field(1, b'config') + field(2, field(3, config.encode())))
    for parameter, contents in files.items():
        request += field(3, field(1, parameter.encode()) + field(2, field(4, contents)))
    return request


def serving(folder, *options, **how):
    """A server that takes files."""
    return Server(f'--model_repository={sys.argv[2]}', '--model_control=explicit', '--open_rights=repository',
                  f'--upload_dir={folder}', *options, **how)


def files_in(folder):
    return [path for path in pathlib.Path(folder).rglob('*') if path.is_file()]


def load(server, files, **options):
    return server.ask(INFER + 'RepositoryModelLoad', load_request(b'sent', files, **options))


def sent_and_unloaded():
    """A model is served from the files that came along, and they go with it."""
    with tempfile.TemporaryDirectory() as folder, serving(folder) as server:
        expect(load(server, {'file:3/model.onnx': relu_model(0, 10)}), b'')
        answer = server.ask(INFER + 'ModelInfer', ASKED)
        assert answer.endswith(b'\0' * 20 + b'\0\0\x80\x3f' * 5), (answer, server.reasons)
        stored = files_in(folder)
        expect(len(stored), 1)
        expect(stored[0].read_bytes(), relu_model(0, 10))
        assert folder.encode() not in server.ask(INFER + 'RepositoryIndex')
        expect(server.ask(INFER + 'RepositoryModelUnload', field(2, b'sent')), b'')
        expect(files_in(folder), [])
        server.end()
        expect(os.listdir(folder), [])


def refused():
    """Files that do not load, lead elsewhere or are too large leave nothing, and the server serves."""
    code = grpc.StatusCode
    with tempfile.TemporaryDirectory() as folder, serving(folder, '--max_upload_mb=1') as server:
        model = relu_model(0, 10)
        for files, wanted, text in (
                ({'file:1/model.onnx': b'broken'}, code.FAILED_PRECONDITION, 'failed to load'),
                ({'file:1/../../model.onnx': model}, code.INVALID_ARGUMENT, 'a file is'),
                ({'file:/tmp/model.onnx': model}, code.INVALID_ARGUMENT, 'a file is'),
                ({'file:1/model.onnx': model, 'file:1/weights': bytes(1 << 20)}, code.RESOURCE_EXHAUSTED,
                 '--max_upload_mb'),
                ({f'file:{version}/weights': b'x' for version in range(300)}, code.FAILED_PRECONDITION,
                 "no 'model.onnx'")):
            expect(load(server, files), wanted)
            assert text in server.reasons[wanted], server.reasons[wanted]
            assert folder not in server.reasons[wanted], server.reasons[wanted]
            expect(files_in(folder), [])
        expect(load(server, {'file:1/model.onnx': model}, config=None), code.INVALID_ARGUMENT)
        expect(load(server, {'file:1/model.onnx': model}), b'')
        server.end()


def nothing_survives_a_restart():
    """The next server removes all that one which was killed has left."""
    with tempfile.TemporaryDirectory() as folder:
        with serving(folder) as server:
            expect(load(server, {'file:1/model.onnx': relu_model(0, 10)}), b'')
            server.process.send_signal(signal.SIGKILL)
            server.process.wait()
        expect(len(files_in(folder)), 1)
        with serving(folder) as server:
            expect(files_in(folder), [])
            expect(server.ask(INFER + 'ModelInfer', ASKED), grpc.StatusCode.NOT_FOUND)
            server.end()


def disk_full():
    """A full disk refuses an upload; the server and what it serves go on."""
    with tempfile.TemporaryDirectory() as folder:
        launcher = ('unshare', '--mount', 'sh', '-c',
                    f'mount -t tmpfs -o size=64k tmpfs {folder} && exec "$@"', 'sh')
        if subprocess.run([*launcher, 'true'], capture_output=True, check=False).returncode:
            launcher = ('prlimit', '--fsize=65536')  # the same to the server, where nothing can be mounted
        with serving(folder, '--load_model=digits', launcher=launcher) as server:
            digits = server.infer()
            expect(load(server, {'file:1/model.onnx': relu_model(0, 10), 'file:1/weights': bytes(1 << 20)}),
                   grpc.StatusCode.RESOURCE_EXHAUSTED)
            reason = server.reasons[grpc.StatusCode.RESOURCE_EXHAUSTED]
            assert 'file 1/weights cannot be stored' in reason, reason
            expect(load(server, {'file:1/model.onnx': relu_model(0, 10)}), b'')
            expect(server.infer(), digits)
            server.end()


def folders_that_are_none():
    """A link, a file and nothing are refused at the start."""
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(f'{folder}/real')
        os.symlink('real', f'{folder}/link')
        pathlib.Path(f'{folder}/file').write_bytes(b'')
        for name, status, text in (('link', 2, 'is a link'), ('link/', 2, 'is a link'), ('file', 1, 'is not a folder'),
                                   ('none', 1, 'No such file')):
            run = subprocess.run([sys.argv[1], f'--model_repository={sys.argv[2]}', '--host=127.0.0.1', '--port=0',
                                  '--model_control=explicit', f'--upload_dir={folder}/{name}'],
                                 capture_output=True, text=True, check=False)
            expect(run.returncode, status)
            assert text in run.stderr, run.stderr
        run = subprocess.run([sys.argv[1], f'--model_repository={sys.argv[2]}', '--port=0',
                              f'--upload_dir={folder}/real'], capture_output=True, text=True, check=False)
        expect(run.returncode, 2)
        assert 'needs --model_control=explicit' in run.stderr, run.stderr


CHECKS = (sent_and_unloaded, refused, nothing_survives_a_restart, disk_full, folders_that_are_none)

if __name__ == '__main__':
    run_checks(CHECKS)
