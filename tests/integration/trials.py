# SPDX-License-Identifier: Apache-2.0
"""Models that crash, hang or take memory when they are tried out, beside one that serves.

usage: trials.py SERVER_BINARY MODEL_REPOSITORY [CHECK...]

The binary is the real server, but for the names of models that its trials misbehave for
(tests/support/misbehaving_trial.h).
"""
import contextlib
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time

from real_server import (INFER, PATIENCE, Client, Server, digits_request, expect, field, relu_model, run_checks, until)

@contextlib.contextmanager
def serving(*options):
    """A server of the model digits, and its repository."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(pathlib.Path(sys.argv[2]) / 'digits', f'{folder}/digits')
        with Server(f'--model_repository={folder}', '--poll_seconds=0.05', *options) as server:
            yield server, pathlib.Path(folder)


def add(folder, name):
    os.makedirs(folder / name / '.1')
    (folder / name / '.1/model.onnx').write_bytes(relu_model(0, 10))
    os.rename(folder / name / '.1', folder / name / '1')


def index(server):
    """The answer of RepositoryIndex, as bytes."""
    return server.ask(INFER + 'RepositoryIndex')


def trials_of(server):
    """The processes that it has started."""
    pid = server.process.pid
    children = []
    for task in pathlib.Path(f'/proc/{pid}/task').iterdir():
        with contextlib.suppress(FileNotFoundError):
            children += (task / 'children').read_text().split()
    return [int(child) for child in children]


def add_bad(server, folder, reasons):
    """Each is unavailable with its reason; the answers of digits keep coming, with the same bits."""
    wanted = server.infer()
    assert isinstance(wanted, bytes)
    client = Client(server, digits_request(), lambda answer: answer == wanted)
    try:
        for name, reason in reasons.items():
            before, begin = client.answers, time.time()
            add(folder, name)
            until(lambda reason=reason: reason in index(server), f'{name} has not this reason')
            print(f'  {name}: {time.time() - begin:.1f} s, {client.answers - before} answers')
            expect(server.health('digits'), True)
            expect(server.health(name), False)
    finally:
        print(f'  {client.end()} answers in all')
    expect(trials_of(server), [])
    assert bytes(folder) not in index(server)


def bad_models_leave_the_others_alone():
    """Models that crash or take memory are unavailable with the reason; a good one is still loaded."""
    with serving() as (server, folder):
        add_bad(server, folder, {
            'crashes': b"its trial died of SIGSEGV (Segmentation fault), at: planning node 'conv1'",
            'takes_memory': b'a trial of its files may take ',
            'aborts': b'its trial died of SIGABRT (Aborted)',
            'is_killed': b'its trial was killed (SIGKILL), as the system does where memory is short'})
        add(folder, 'good')
        until(lambda: server.health('good') is True, 'it is not loaded')
        server.end()


def a_model_that_hangs_is_ended_after_its_time():
    """So that others are loaded."""
    with serving('--trial_seconds=3') as (server, folder):
        add(folder, 'hangs_first')
        until(lambda: b'hangs_first' in index(server), 'the index does not show what is tried out')
        expect(server.health(), True)
        until(lambda: b'--trial_seconds' in index(server), 'it is tried out without end')
        assert b'LOADING' not in index(server), index(server)
        shutil.rmtree(folder / 'hangs_first')
        until(lambda: b'hangs_first' not in index(server), 'it has not gone')
        add_bad(server, folder, {'hangs': b'its trial did not end within 3s (--trial_seconds), at: '})
        server.end()


def a_new_version_that_crashes_leaves_the_old():
    """The one that was loaded at the start, without a trial, serves on."""
    with tempfile.TemporaryDirectory() as folder:
        add(pathlib.Path(folder), 'crashes')
        with Server(f'--model_repository={folder}', '--poll_seconds=0.05') as server:
            shutil.copytree(f'{folder}/crashes/1', f'{folder}/crashes/2')
            until(lambda: b'SIGSEGV' in index(server), 'it is not tried out')
            expect(server.health('crashes'), True)
            expect(server.health(), True)
            server.end()


def by_request():
    """RepositoryModelLoad tells the reason."""
    with serving('--model_control=explicit', '--load_model=digits',
                 '--open_rights=repository') as (server, folder):
        add(folder, 'crashes')
        answer = server.ask(INFER + 'RepositoryModelLoad', field(2, b'crashes'))
        assert 'its trial died of SIGSEGV' in server.reasons[answer], server.reasons
        assert isinstance(server.infer(), bytes)
        server.end()


def starter_that_ignores_children():
    """A server whose starter ignores the end of children knows how its trials end nevertheless."""
    ignores = ('/usr/bin/python3', '-c', 'import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); '
               'os.execv(sys.argv[1], sys.argv[1:])')
    with tempfile.TemporaryDirectory() as folder:
        add(pathlib.Path(folder), 'good')
        with Server(f'--model_repository={folder}', '--poll_seconds=0.05', launcher=ignores) as server:
            add(pathlib.Path(folder), 'crashes')
            until(lambda: b'SIGSEGV' in index(server), 'the reason is not told')
            server.end()


def ended_meanwhile():
    """SIGTERM ends a trial that hangs; SIGKILL too, which the server cannot notice."""
    for sent in (signal.SIGTERM, signal.SIGKILL):
        with serving('--drain_timeout=5') as (server, folder):
            add(folder, 'hangs')
            until(lambda: trials_of(server), 'it is not tried out')
            trial = trials_of(server)[0]
            server.process.send_signal(sent)
            expect(server.process.wait(PATIENCE), 0 if sent == signal.SIGTERM else -sent)
            until(lambda: not pathlib.Path(f'/proc/{trial}/exe').exists(), 'the trial goes on')


def none():
    """With --trial=none nothing is tried out."""
    with serving('--trial=none') as (server, folder):
        add(folder, 'crashes')
        until(lambda: server.health('crashes') is True, 'it is not loaded')
        server.end()


CHECKS = (bad_models_leave_the_others_alone, a_model_that_hangs_is_ended_after_its_time,
          a_new_version_that_crashes_leaves_the_old, by_request, starter_that_ignores_children,
          ended_meanwhile, none)

if __name__ == '__main__':
    run_checks(CHECKS)
