# SPDX-License-Identifier: Apache-2.0
"""How the real binary starts, becomes ready, says what it is, and ends.

usage: life_cycle.py SERVER_BINARY MODEL_REPOSITORY

Each check starts a server of its own, so that it can choose its flags.
"""
import calendar
import concurrent.futures
import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import grpc

from deaf_peer import DeafPeer
from real_server import (INFER, LONG_PATIENCE, PATIENCE, PRIMITIVES, Server, digits_request, expect, field,
                         relu_model, run_checks, sum_of, until, varint)

HEALTH = '/grpc.health.v1.Health/Check'
YES, NO = b'\x08\x01', b'\x08\x02'


def signals():
    """Only those that ask for the end end the server, and they drain."""
    for last in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
        with Server() as server:
            bits = server.infer()
            for harmless in (signal.SIGPIPE, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
                server.process.send_signal(harmless)
                expect(server.infer(), bits)
            server.end(last)


def drain():
    """A drain answers what it has admitted, however long that takes, and ends watches."""
    with Server(f'--max_queue_ms={LONG_PATIENCE}000', f'--drain_timeout={LONG_PATIENCE}',
                '--metrics_port=0') as server:
        bits = server.infer()
        big = digits_request(1000)  # 5.8 MB
        with server.channel() as channel, concurrent.futures.ThreadPoolExecutor(8) as pool:
            watch = channel.unary_stream('/grpc.health.v1.Health/Watch')(b'')
            expect(next(watch), b'\x08\x01')
            channels = [server.channel() for _ in range(6)]
            for connected in channels:
                expect(server.infer(channel=connected), bits)
            futures = [pool.submit(server.ask, INFER + 'ModelInfer', big, connected, LONG_PATIENCE)
                       for connected in channels]
            others = 1 + len(channels)  # requests that were answered before

            def have_arrived():
                text = server.page('/metrics')[1]
                return sum_of(text, 'tilewire_waiting') + sum_of(text, 'tilewire_running') + sum_of(
                    text, 'tilewire_runs_total') >= others + len(futures)
            until(have_arrived, 'the requests do not arrive')
            time.sleep(0.3)  # one may have been told both as running and as run, and a scrape is kept a while
            until(have_arrived, 'the requests do not arrive')
            start = time.time()
            server.process.send_signal(signal.SIGTERM)
            answers = [future.result() for future in futures]
            server.ended(LONG_PATIENCE)
            print(f'  drained in {time.time() - start:.1f} s')
        assert all(isinstance(answer, bytes) for answer in answers), server.reasons
        assert all(len(answer) > 1000 * 40 for answer in answers), 'an answer was cut'
        assert bits


def drain_delay():
    """Between not being ready and the end, requests are served."""
    with Server('--drain_delay=3600') as server, server.channel() as channel:
        bits = server.infer(channel=channel)
        server.process.send_signal(signal.SIGTERM)
        server.await_line('draining')
        until(lambda: server.ask('/grpc.health.v1.Health/Check') == b'\x08\x02', 'it stays ready')
        expect(server.infer(), bits)
        server.process.send_signal(signal.SIGUSR1)
        server.await_line('requests so far: OK')
        server.process.send_signal(signal.SIGHUP)  # does nothing now
        expect(server.infer(channel=channel), bits)
    with Server('--drain_delay=1') as server:
        start = time.time()
        server.end()
        assert time.time() - start >= 1, 'it did not wait'


def second_signal():
    """It ends a drain at once, and the log says so."""
    with Server('--drain_delay=3600') as server:
        server.process.send_signal(signal.SIGTERM)
        server.await_line('draining')
        server.process.send_signal(signal.SIGINT)
        server.await_line('signal 2 while draining: ending at once')
        expect(server.process.wait(PATIENCE), 1)


def drain_timeout():
    """Work that does not end in time is cancelled, and the exit status is 0."""
    with Server('--drain_timeout=1') as server, server.channel() as channel:
        server.infer()
        request = field(1, b'digits') + varint(3, 2048) + varint(5, 1000)
        run = channel.unary_unary('/tilewire.v1.ModelService/Explain').future(request, timeout=LONG_PATIENCE)
        server.await_work()
        start = time.time()
        server.end()
        print(f'  ended after {time.time() - start:.1f} s')
        assert 'drained' in server.log, 'it was ended by its alarm'
        assert run.exception() is not None
        assert 'cancelled while draining: 1' in server.log, server.log


def answers_that_the_drain_cuts():
    """Answers that are still being written when the drain ends are counted and logged."""
    with Server('--drain_timeout=1') as server:
        peer = DeafPeer(server.port)
        assert peer.ask(1, INFER + 'ModelInfer', digits_request(200))
        assert peer.ask(3, INFER + 'ModelInfer', digits_request(200))
        while 'OK 2;' not in server.log:
            server.log = ''
            server.process.send_signal(signal.SIGUSR1)
            server.await_line('requests so far')
        server.end()
        expect(server.log.count('the server ended before the answer of'), 2)
        assert 'answers that were not read while draining: 2' in server.log, server.log
        peer.socket.close()


def readiness():
    """A model that does not load makes the server not ready, unless any model suffices."""
    with repository_with_a_broken_model() as repository:
        live, yes, no = b'\x08\x01', b'\x08\x01', b'\x08\x02'
        with Server(f'--model_repository={repository}', ready='not ready') as server:
            expect(server.ask(INFER + 'ServerLive'), live)
            expect(server.ask(INFER + 'ServerReady'), b'')
            expect(server.ask('/grpc.health.v1.Health/Check', b''), no)
            expect(server.ask('/grpc.health.v1.Health/Check', field(1, b'digits')), yes)
            expect(server.ask('/grpc.health.v1.Health/Check', field(1, b'broken')), no)
            assert isinstance(server.infer(), bytes)
            server.end()
        assert "holds 'net.onnx', but no 'model.onnx': rename it, or name it" in server.log, server.log
        with Server(f'--model_repository={repository}', '--ready=any') as server:
            expect(server.ask(INFER + 'ServerReady'), b'\x08\x01')
            expect(server.ask('/grpc.health.v1.Health/Check', b''), yes)
            server.end()


@contextlib.contextmanager
def repository_with_a_broken_model():
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(pathlib.Path(sys.argv[2]) / 'digits', f'{folder}/digits')
        os.makedirs(f'{folder}/broken/1')
        pathlib.Path(f'{folder}/broken/1/net.onnx').write_bytes(b'')
        os.makedirs(f'{folder}/.hidden/1')
        yield folder


def services():
    """Reflection, primitives and plans can be left out."""
    unknown = grpc.StatusCode.UNIMPLEMENTED
    with Server('--services=inference') as server:
        expect(server.ask(PRIMITIVES + 'CacheStatistics'), unknown)
        expect(server.ask('/tilewire.v1.ModelService/Explain'), unknown)
        reflection = '/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo'
        expect(server.ask(reflection), unknown)
        assert isinstance(server.infer(), bytes)
        server.end()


def refusals_at_the_start():
    """One line that says which and why; exit status 1 if another try may help, else 2."""
    with Server() as server:
        cases = ((f'--port={server.port}', 'the port is in use', (1,)),
                 ('--host=192.0.2.1', 'no such address', (1,)),
                 ('--host=no.such.host.invalid', 'listen', (1, 2)),  # 1: no name server answers
                 ('--model=/nowhere.onnx', 'does not exist', (1,)),
                 ('--model_repository=/nowhere', 'is not a directory', (1,)),
                 ('--services=nothing', '--services', (2,)),
                 ('--max_operations=nan', 'not a number', (2,)),
                 ('--max_operations=-1', 'not a number', (2,)))
        for option, text, statuses in cases:
            command = [sys.argv[1], '--host=127.0.0.1', '--port=0']
            if '--model' not in option:
                command.append(f'--model_repository={sys.argv[2]}')
            command = [part for part in command if part.split('=')[0] != option.split('=')[0]]
            run = subprocess.run(command + [option], capture_output=True, text=True,
                                 timeout=5 * PATIENCE, check=False)  # names may take their time
            assert run.returncode in statuses, (option, run.returncode)
            assert text in run.stderr, run.stderr


def too_few_descriptors():
    """A limit that leaves none for connections is refused, with what to raise."""
    for limit in (5, 8, 20, 63):
        run = subprocess.run(['prlimit', f'--nofile={limit}', sys.argv[1], '--port=0',
                              f'--model_repository={sys.argv[2]}'], capture_output=True, text=True,
                             timeout=PATIENCE, check=False)
        expect(run.returncode, 1)
        assert f'may have {limit} descriptors, and at least 64' in run.stderr, run.stderr
    with Server(launcher=('prlimit', '--nofile=64')) as server:
        assert isinstance(server.infer(), bytes)
        server.end()


def folders_that_are_no_versions():
    """Folders that are not served are named, each with the reason."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ('v2', '9223372036854775808'):
            shutil.copytree(pathlib.Path(sys.argv[2]) / 'digits/1', f'{folder}/digits/{name}')
        command = [sys.argv[1], '--port=0', f'--model_repository={folder}', '--model_control=none']
        run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        expect(run.returncode, 1)
        expect(run.stderr.count('the name of a version is a number'), 2)
        assert 'the log says why each of its folders was skipped' in run.stderr, run.stderr


def primitives_only():
    """Without models, where no service would ask for one."""
    command = (sys.argv[1], '--host=127.0.0.1', '--port=0', '--services=primitives')
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        lines = [process.stdout.readline(), process.stdout.readline()]
        expect(lines[1], 'tilewire-server ready: 0 of 0 model versions loaded\n')
        port = lines[0].rsplit(':', 1)[1].strip()
        with grpc.insecure_channel(f'127.0.0.1:{port}') as channel:
            ask = channel.unary_unary(PRIMITIVES + 'CacheStatistics')
            assert isinstance(ask(b'', timeout=PATIENCE), bytes)
        process.send_signal(signal.SIGTERM)
        expect(process.wait(PATIENCE), 0)


def a_new_version_that_does_not_load():
    """It makes the server not ready, unless any model or the old version suffices; the log says why, once."""
    with repository_with_a_broken_model() as repository:
        shutil.rmtree(f'{repository}/broken')
        for ready, versions, after in (('all', 'all', NO), ('any', 'all', YES),
                                       ('all', 'latest:1', YES)):
            with Server(f'--model_repository={repository}', f'--ready={ready}',
                        f'--versions={versions}') as server:
                os.makedirs(f'{repository}/digits/2')
                pathlib.Path(f'{repository}/digits/2/model.onnx').write_bytes(b'no model')
                expect(server.ask(HEALTH), YES)
                server.process.send_signal(signal.SIGHUP)
                server.await_line("'digits' version 2: ")
                server.await_line("'digits': version 1 serves on")
                until(lambda: server.ask(HEALTH) == after, 'readiness does not follow')
                assert isinstance(server.infer(), bytes), 'version 1 serves on'
                shutil.rmtree(f'{repository}/digits/2')
                server.process.send_signal(signal.SIGHUP)
                server.await_line("'digits' version 2: gone")
                until(lambda: server.ask(HEALTH) == YES, 'it does not become ready again')
                server.end()
                lines = [line for line in server.log.splitlines() if 'digits/2/model.onnx' in line]
                expect(len(lines), 1)


def a_model_that_does_not_load():
    """Where it is the only one, the reason is told once, in the log or in its place."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / 'broken.onnx'
        path.write_bytes(b'no model')
        command = [sys.argv[1], '--host=127.0.0.1', '--port=0', f'--model={path}']
        texts = []
        for level in ('info', 'off'):
            run = subprocess.run([*command, f'--log_level={level}'], capture_output=True, text=True,
                                 timeout=PATIENCE, check=False)
            expect(run.returncode, 2)
            texts.append(run.stderr)
        reason = texts[1].strip().removeprefix('tilewire-server: ')
        expect(texts[0].count(reason.replace('model.onnx', str(path))), 1)
        assert texts[0].endswith('no model could be loaded; the log says why\n'), texts[0]


def models_beyond_messages():
    """A model whose every request is refused is warned of, with the flag that helps."""
    with tempfile.TemporaryDirectory() as folder:
        for name, side in (('small', 100), ('large', 400)):
            os.makedirs(f'{folder}/{name}/1')
            pathlib.Path(f'{folder}/{name}/1/model.onnx').write_bytes(relu_model(1, 3, side, side))
        with Server(f'--model_repository={folder}', '--max_message_mb=1') as server:
            server.end()
        warned = [line for line in server.log.splitlines() if 'exceed a message' in line]
        expect(len(warned), 1)
        assert "model 'large' version 1: the inputs of" in warned[0], warned
        assert 'raise --max_message_mb' in warned[0], warned


def without_avx2():
    """One line says that all is slow, and one for each model of how many steps that is true."""
    with Server('--max_isa=baseline') as server:
        assert isinstance(server.infer(), bytes)
        server.end()
    expect(server.log.count('without AVX2'), 1)
    expect(server.log.count('steps run reference implementations'), 1)
    assert max(len(line) for line in server.log.splitlines()) < 250, server.log


def service_manager():
    """A manager such as systemd learns when the server has started, what it serves, and that it ends."""
    with tempfile.TemporaryDirectory() as folder, repository_with_a_broken_model() as repository:
        for address, variable in ((f'{folder}/notify', f'{folder}/notify'),
                                  (f'\0tilewire.{os.getpid()}', f'@tilewire.{os.getpid()}')):
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
                manager.settimeout(PATIENCE)
                manager.bind(address)
                with Server(f'--model_repository={repository}', ready='not ready',
                            launcher=('env', f'NOTIFY_SOCKET={variable}')) as server:
                    some = b'STATUS=not ready: 1 of 2 model versions loaded'
                    expect(manager.recv(1000), b'READY=1\n' + some)
                    shutil.move(f'{repository}/broken', folder)
                    server.process.send_signal(signal.SIGHUP)
                    expect(manager.recv(1000), b'STATUS=ready: 1 of 1 model versions loaded')
                    shutil.move(f'{folder}/broken', repository)
                    server.process.send_signal(signal.SIGHUP)
                    expect(manager.recv(1000), some)
                    server.end()
                    expect(manager.recv(1000), b'STOPPING=1\nSTATUS=draining')


def closed_descriptors():
    """No socket takes the number of a closed standard descriptor, and with it the log."""
    with Server(launcher=('sh', '-c', 'exec "$@" <&- 2>&-', 'sh')) as server:
        for number in (0, 2):
            expect(os.readlink(f'/proc/{server.process.pid}/fd/{number}'), '/dev/null')
        assert isinstance(server.infer(), bytes)
        server.end()


def what_it_is():
    """--version and the log name the build, which is the linker's note in the file."""
    run = subprocess.run([sys.argv[1], '--version'], capture_output=True, text=True, check=True)
    build = re.fullmatch(r'tilewire-server [0-9.]+ \(build ([0-9a-f]{40})\)\n', run.stdout).group(1)
    assert bytes.fromhex(build) in pathlib.Path(sys.argv[1]).read_bytes()
    with Server('--threads=1') as server:
        server.end()
    assert f'(build {build}): 1 thread, ' in server.log, server.log


def one_clock():
    """Every line of the log has its time in UTC, and says so."""
    begin = time.time()
    with Server('--verbose=2', launcher=('env', 'TZ=Asia/Tokyo')) as server:
        server.infer()
        server.end()
    times = []
    for line in server.log.splitlines():
        found = re.match(r'(?:\[|tilewire,)(\d+-\d+-\d+T\d+:\d+:\d+)\.\d+Z[],]', line)
        assert found, line
        times.append(time.strptime(found.group(1) + ' UTC', '%Y-%m-%dT%H:%M:%S %Z'))
    assert len({line.startswith('[') for line in server.log.splitlines()}) == 2, 'both kinds'
    seconds = [calendar.timegm(one) for one in times]
    assert begin - 2 < min(seconds) <= max(seconds) <= time.time(), (begin, seconds)


def closed_folders():
    """A folder that the server may not enter is named."""
    powerless = ('setpriv', '--bounding-set=-all', '--inh-caps=-all') if os.geteuid() == 0 else ()
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(f'{folder}/top/repo/m/1')
        os.chmod(f'{folder}/top', 0o000)
        for option in (f'--model_repository={folder}/top/repo', f'--model={folder}/top/repo/m',
                       f'--model={folder}/top/repo/m/1/model.onnx'):
            run = subprocess.run([*powerless, sys.argv[1], '--port=0', option], capture_output=True,
                                 text=True, timeout=PATIENCE, check=False)
            expect(run.returncode, 2)
            assert f"Permission denied: the user with the id {os.geteuid()} may not enter the folder " \
                f"'{folder}/top'" in run.stderr, run.stderr
        os.chmod(f'{folder}/top', 0o700)


# The longest ones first.
CHECKS = (drain, drain_delay, drain_timeout, answers_that_the_drain_cuts,
          a_new_version_that_does_not_load, service_manager, signals, readiness,
          models_beyond_messages, one_clock, second_signal, what_it_is, a_model_that_does_not_load,
          closed_folders, closed_descriptors, services, primitives_only, refusals_at_the_start,
          too_few_descriptors, folders_that_are_no_versions, without_avx2)


if __name__ == '__main__':
    run_checks(CHECKS)
