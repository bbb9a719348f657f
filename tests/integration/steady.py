# SPDX-License-Identifier: Apache-2.0
"""Everything that one client may do to a server, against the real binary; after each, the server
still serves.

usage: steady.py SERVER_BINARY MODEL_REPOSITORY

Each check starts a server of its own, so that it can choose its limits.
"""
import concurrent.futures
import contextlib
import os
import pathlib
import re
import resource
import signal
import socket
import tempfile
import threading
import time
import zlib

import grpc

from deaf_peer import DeafPeer
from real_server import (INFER, LONG_PATIENCE, PATIENCE, PRIMITIVES, Server, digits_request, expect, field,
                         infer_request, packed, relu_model, run_checks, until, varint)


def descriptors():
    """After the process ran out of descriptors the port accepts again."""
    with Server(launcher=('prlimit', '--nofile=96:96')) as server:
        bits = server.infer()
        with server.channel() as old:
            expect(server.infer(channel=old), bits)
            peers = [socket.create_connection(('127.0.0.1', server.port)) for _ in range(200)]
            expect(server.infer(channel=old), bits)
            for peer in peers:
                peer.close()
        waited = until(lambda: server.infer(timeout=10) == bits, 'the port stays deaf')
        print(f'  accepts again after {waited:.2f} s')
        server.end()


def connections_per_peer():
    """One address has the connections that it may have; other addresses are served."""
    def is_served(peer):
        """gRPC greets those that it takes."""
        try:
            return peer.recv(1) != b''
        except ConnectionResetError:
            return False

    def connect(source):
        peer = socket.create_connection(('127.0.0.1', server.port), PATIENCE, (source, 0))
        return peer, is_served(peer)
    with Server('--max_connections_per_peer=10') as server:
        peers = [connect('127.0.0.2') for _ in range(15)]
        expect([served for _, served in peers], [True] * 10 + [False] * 5)
        assert isinstance(server.infer(), bytes), 'another address is served'
        for peer, _ in peers:
            peer.close()
        until(lambda: connect('127.0.0.2')[1], 'what was closed still counts')
        server.end()
        assert 'a peer has as many as it may' in server.log


@contextlib.contextmanager
def grows_less(server, most_mb, what):
    """Expects that the block takes less than `most_mb` of the server's memory."""
    before = server.resident_mb()
    yield
    grown = server.resident_mb() - before
    print(f'  {what}: {grown} MB more')
    assert grown < most_mb, grown


def compression():
    """Compressed messages are inflated up to the bound of a message, and bombs are refused there."""
    with Server('--max_message_mb=16') as server:
        bits = server.infer()
        with server.channel(compression=grpc.Compression.Gzip) as channel:
            expect(server.infer(channel=channel), bits)
            expect(server.ask('/grpc.health.v1.Health/Check', b'', channel), b'\x08\x01')
            bomb = field(1, b'digits') + field(7, b'\0' * (256 << 20))
            with grows_less(server, 100, f'256 MB in {len(zlib.compress(bomb))} bytes'):
                for _ in range(4):
                    expect(server.ask(INFER + 'ModelInfer', bomb, channel),
                           grpc.StatusCode.RESOURCE_EXHAUSTED)
        expect(server.infer(), bits)
        server.end()


def names():
    """Requests that hold names are bounded before they are parsed."""
    with Server() as server:
        methods = [INFER + name for name in ('ServerLive', 'ServerReady', 'ModelReady',
                                             'ServerMetadata', 'ModelMetadata', 'RepositoryIndex')]
        methods += [PRIMITIVES + name for name in ('CacheStatistics', 'ListImplementations')]
        methods += ['/tilewire.v1.ModelService/Explain', '/grpc.health.v1.Health/Check']
        with grows_less(server, 120, '20 requests of 16 MB'):
            for method in methods:
                for unknown in (b'\x78\x01' * (8 << 20), field(15, b'x' * (16 << 20))):
                    expect(server.ask(method, unknown), grpc.StatusCode.INVALID_ARGUMENT)
        server.end()


def metadata():
    """Large headers are refused; small ones pass."""
    with Server() as server:
        bits = server.infer()
        expect(server.infer(metadata=[('x-small', 'x' * 1000)]), bits)
        refused = server.infer(metadata=[('x-large', 'x' * 20000)])
        assert refused in (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE), refused
        expect(server.infer(), bits)
        server.end()


def endless_work():
    """Tensors of a few bytes that describe work without end are refused."""
    def tensor(*dims, strides=None):
        layout = field(4, packed(1, strides)) if strides else b''
        return packed(1, dims) + varint(2, 3) + layout

    def convolution(size, channels):
        source = tensor(1, channels, size, size)
        # All weights are one number in memory, which the reference alone takes.
        weights = tensor(channels, channels, 3, 3, strides=[0, 0, 0, 0])
        return field(5, field(3, source) + field(4, weights) + field(6, source)
                     + packed(9, [1, 1]) + packed(10, [1, 1]))

    with Server('--max_reference_operations=1e6') as server:
        bits = server.infer()
        for size, channels in ((2048, 1), (1 << 20, 1 << 20), (512, 512)):
            answer = server.ask(PRIMITIVES + 'Create', field(1, convolution(size, channels)))
            expect(answer, grpc.StatusCode.RESOURCE_EXHAUSTED)
        expect(server.infer(), bits)
        server.end()


def explain():
    """Plans are timed in the background: requests go on being answered."""
    with Server() as server, server.channel() as channel:
        bits = server.infer()
        request = field(1, b'digits') + varint(3, 2048) + varint(5, 1000)  # at least a minute, its limit
        runs = [channel.unary_unary('/tilewire.v1.ModelService/Explain').future(
            request, timeout=10 * LONG_PATIENCE) for _ in range(2)]
        server.await_work()
        start = time.time()
        for _ in range(5):
            expect(server.infer(), bits)
        print(f'  5 answers beside two Explain(batch 2048, runs 1000) in {time.time() - start:.1f} s')
        assert not any(run.done() for run in runs), 'the requests have waited for a plan'
        for run in runs:
            run.cancel()
        server.end()


def isolation():
    """Small requests, the first one too, are answered between batches that hold every thread. How long
    they take is printed only: what else runs on the machine decides about it."""
    with Server() as server, server.channel() as small, server.channel() as big:
        stop, batches, request = threading.Event(), [], [digits_request(1000)]

        def send_batch():
            batches.append(server.ask(INFER + 'ModelInfer', request[0], big, LONG_PATIENCE))
        send_batch()

        def send_batches():
            while not stop.is_set():
                send_batch()
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            callers = [pool.submit(send_batches) for _ in range(3)]
            try:
                server.await_work()
                begin, answered = time.time(), len(batches)
                bits = server.infer(channel=small)
                print(f'  the first of one image took {time.time() - begin:.3f} s, and '
                      f'{len(batches) - answered} batches were answered meanwhile')

                def several_between_two_batches():
                    """In a queue, each would wait for those that three callers have sent."""
                    before = len(batches)
                    for _ in range(3):
                        expect(server.infer(channel=small), bits)
                    tries.append(len(batches) - before)
                    if len(tries) % 5 == 0:  # this client has so little of the machine that they take as long
                        request[0] = digits_request(min(1000 + 200 * len(tries), 8000))
                    return tries[-1] == 0
                tries = []
                until(several_between_two_batches, 'small requests wait for batches', LONG_PATIENCE)
            finally:
                stop.set()
            for caller in callers:
                caller.result()
        assert isinstance(bits, bytes), bits
        assert set(map(type, batches)) == {bytes}, server.reasons
        server.end()


def compute_threads():
    """One stays on each core where there are as many as cores; fewer move freely."""
    def expect_cores(wanted, *options):
        def allowed():
            """By thread, once the threads have their names."""
            tasks = pathlib.Path(f'/proc/{server.process.pid}/task')
            threads = [int(task.name) for task in tasks.iterdir()
                       if (task / 'comm').read_text() == 'tw-compute\n']
            return sorted(sorted(os.sched_getaffinity(thread)) for thread in threads)
        with Server(*options) as server:
            until(lambda: allowed() == wanted, f'not {wanted}')
            server.end()

    mine = sorted(os.sched_getaffinity(0))
    expect_cores([[core] for core in mine], f'--threads={len(mine)}')
    expect_cores([mine] * len(mine), f'--threads={len(mine)}', '--pin_threads=false')
    expect_cores([mine] * (len(mine) + 1), f'--threads={len(mine) + 1}')


def deaf_peers():
    """Memory of answers that no client reads is bounded and comes back."""
    def hold(*options, patience, judge):
        # A queue that takes all of them: requests that it refuses would hold no memory. A peer whose turn has
        # not come answers no pings.
        with Server('--max_streams=100', '--max_queue=1000', '--max_queue_per_model=1000', '--metrics_port=0',
                    f'--keepalive={10 * PATIENCE}', *options) as server:
            bits = server.infer()
            before = server.resident_mb()
            peers = [DeafPeer(server.port, patience) for _ in range(9)]
            sent, seen = 0, []
            for peer in peers:
                with contextlib.suppress(OSError):  # the server may stop reading
                    for stream in range(1, 140, 2):
                        sent += peer.ask(stream, INFER + 'ModelInfer', digits_request(40))
                seen.append(server.told('tilewire_work_bytes'))
            assert sent >= 90, f'{sent} requests were read: too few to hold much'
            held = judge(lambda: server.told('tilewire_work_bytes'), seen)
            grown = server.resident_mb() - before
            waited = until(lambda: server.infer() == bits, 'what deaf peers hold does not come back')
            print(f'  {sent} answers of 190 KB to 9 deaf peers, {" ".join(options)}: {held / 1e6:.1f} MB held, '
                  f'{grown} MB more resident; serves others after {waited:.1f} s')
            for peer in peers:
                peer.socket.close()
            until(lambda: server.told('tilewire_work_bytes') == 0, 'it is held when they have gone')
            server.end()
            return grown

    def bounded(held, seen):
        seen += [held() for _ in range(50)]
        assert max(seen) <= 8 << 20, seen
        return max(seen)

    def unbounded(held, _):
        until(lambda: held() > 16 << 20, 'without the bound they hold no more either')
        return held()
    grown = hold('--max_work_mb=8', '--write_timeout=2', patience=3, judge=bounded)
    assert grown < 200, grown
    hold('--max_work_mb=4000', '--write_timeout=1000', patience=PATIENCE, judge=unbounded)


def slow_readers():
    """Where memory is short, unread answers make way for others; their clients are told."""
    def request(rows):
        return infer_request(b'relu', b'x', [rows, 1000], bytes(4000 * rows))

    def hold_an_answer(port):
        peer = DeafPeer(port)
        peer.ask(1, INFER + 'ModelInfer', request(500))
        while not peer.headers:
            peer.read()
        return peer

    def is_told(peer, status):
        peer.socket.settimeout(0.01)
        with contextlib.suppress(TimeoutError):
            peer.read()
        return b'grpc-status\x01' + status in peer.headers and b'was not read within' in peer.headers

    def check(status, why, *options):
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder, 'relu.onnx')
            model.write_bytes(relu_model(0, 1000))
            with Server(f'--model={model}', '--max_work_mb=16', *options) as server:
                peers = [hold_an_answer(server.port) for _ in range(12)]

                def is_served():
                    return isinstance(server.ask(INFER + 'ModelInfer', request(900)), bytes)
                until(lambda: is_served() and any([is_told(peer, status) for peer in peers]),
                      'unread answers hold all memory, or none of their clients is told why')
                for peer in peers:
                    peer.socket.close()
                server.process.send_signal(signal.SIGUSR1)
                server.await_line('requests so far')
                server.end()
                assert re.search(f'ModelInfer relu id \\S+ from ipv4:127.0.0.1:.*2000... bytes.*{why}', server.log)
                assert re.search('answers not read [1-9]', server.log)
    check(b'8', 'max_work_mb', '--write_timeout=1000')
    check(b'4', 'write_timeout', '--write_timeout=1')


def stalled_uploads():
    """Memory of requests whose last bytes never come is bounded, and others are served."""
    with Server('--transport_mb=128', '--max_message_mb=64') as server:
        bits = server.infer()
        before = server.resident_mb()
        peers = [DeafPeer(server.port, patience=3) for _ in range(12)]

        def upload(peer):
            with contextlib.suppress(OSError):  # the server may stop reading, or hang up
                return peer.ask(1, INFER + 'ModelInfer', digits_request(8000), left_out=1000)
            return False
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            sent = sum(pool.map(upload, peers))
        grown = server.resident_mb() - before
        waited = until(lambda: server.infer(timeout=5) == bits,
                       'stalled uploads keep others from being served')
        print(f'  12 uploads of 46 MB, {sent} of them stalled at their end: {grown} MB more; '
              f'serves others after {waited:.1f} s')
        assert grown < 250, grown
        for peer in peers:
            peer.socket.close()
        until(lambda: server.resident_mb() <= 1.2 * before, 'memory is kept', 3 * PATIENCE)
        server.end()


def memory_after_a_peak():
    """Some time after a peak the server holds little more than before, though a request comes now and
    then."""
    with Server() as server:
        bits = server.infer()
        before = server.resident_mb()
        batch = digits_request(8000)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: server.ask(INFER + 'ModelInfer', batch), range(4)))
        peak = server.status('VmHWM') // 1024

        def holds_little():
            expect(server.infer(channel=channel), bits)
            time.sleep(1)
            return server.resident_mb() <= 1.2 * before
        with server.channel() as channel:
            waited = until(holds_little, f'of {peak} MB too many are kept', 3 * PATIENCE)
        print(f'  {before} MB before, {peak} MB at the peak, {server.resident_mb()} MB '
              f'{waited:.0f} s after it')
        assert peak > 1.5 * before, 'this was no peak'
        server.end()


def refused_watches():
    """Watches of health that are refused and cancelled at once do no harm."""
    with Server() as server, server.channel() as channel:
        bits = server.infer()
        watch = channel.unary_stream('/grpc.health.v1.Health/Watch')
        for turn in range(3000):
            call = watch(b'\xff' * 100)
            time.sleep(turn % 7 * 1e-4)
            call.cancel()
        expect(server.infer(), bits)
        server.end()


def memory_limit():
    """Work that the system has no memory for is refused; the server lives on."""
    with Server() as server, server.channel() as channel:
        bits = server.infer(channel=channel)
        limit = (server.status('VmSize') << 10) + (96 << 20)
        resource.prlimit(server.process.pid, resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
        plan = field(1, b'digits') + varint(3, 4096) + varint(5, 1)
        for _ in range(5):
            expect(server.ask('/tilewire.v1.ModelService/Explain', plan, channel),
                   grpc.StatusCode.RESOURCE_EXHAUSTED)
            expect(server.infer(channel=channel), bits)
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(server.process.pid, resource.RLIMIT_AS, unlimited)
        # It may take a minute, which it exceeds where others hold the machine.
        until(lambda: isinstance(server.ask('/tilewire.v1.ModelService/Explain', plan, channel), bytes),
              'it does not recover', LONG_PATIENCE)
        server.end()


def reflection_threads():
    """Streams of reflection hold no threads."""
    with Server('--reflection') as server, server.channel() as channel:
        bits = server.infer()
        before, stop = server.status('Threads'), threading.Event()

        def questions():
            yield b'\x3a\x01*'
            stop.wait()
        reflect = channel.stream_stream(
            '/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo')
        calls = [reflect(questions(), timeout=PATIENCE) for _ in range(100)]
        for call in calls:
            next(call)
        more = server.status('Threads') - before
        print(f'  100 streams of reflection: {more} threads more')
        assert more < len(calls) / 4, more  # gRPC starts some of its own where it is held up
        expect(server.infer(), bits)
        stop.set()
        for call in calls:
            call.cancel()
        server.end()


def streams():
    """Floods, readers that never read, clients that leave and streams that idle are all bounded."""
    bounds = ('--max_work_mb=64', '--transport_mb=128', '--write_timeout=2')
    with Server(*bounds) as server, server.channel() as channel:
        bits = server.infer()
        threads = server.status('Threads')
        call = channel.stream_stream(INFER + 'ModelStreamInfer')
        request = digits_request(200)

        def flood():
            while not stop.is_set():
                offered.append(request)
                yield request

        def idle():
            yield digits_request()
            stop.wait()
        stop, offered = threading.Event(), []
        with grows_less(server, 2 * (64 + 128), '20 floods that nobody reads and 100 idle streams'):
            idlers = [call(idle(), timeout=PATIENCE) for _ in range(100)]
            for one in idlers:
                next(one)
            calls = [call(flood(), timeout=PATIENCE) for _ in range(20)]
            more = server.status('Threads') - threads
            assert more < len(idlers) / 4, more  # gRPC starts some of its own where it is held up
            until(lambda: server.infer() == bits, 'others are not served')
            # More than a gigabyte, unless the server has reset them all: of those whose answers it gives up,
            # their library drops the rest.
            until(lambda: len(offered) > 1000 or all(one.done() for one in calls), 'no flood is ended')
        stop.set()
        for one in (*calls, *idlers):
            one.cancel()
        until(lambda: server.infer() == bits, 'others are not served')
        server.end()


def evidence():
    """A refused request leaves a line; many leave few."""
    with Server() as server, server.channel() as channel:
        start = time.time()
        for _ in range(300):
            server.ask(INFER + 'ModelInfer', digits_request(name=b'nope'), channel)
        seconds = time.time() - start
        server.end()
        lines = [line for line in server.log.splitlines()
                 if 'ModelInfer' in line and 'NOT_FOUND' in line]
        assert 1 <= len(lines) <= 10 * (seconds + 2), (seconds, lines)


# The longest ones first.
CHECKS = (memory_after_a_peak, isolation, explain, stalled_uploads, memory_limit, deaf_peers,
          slow_readers, refused_watches, reflection_threads, streams, names, descriptors, connections_per_peer,
          compression, metadata, endless_work, compute_threads, evidence)


if __name__ == '__main__':
    run_checks(CHECKS)
