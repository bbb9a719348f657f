# SPDX-License-Identifier: Apache-2.0
"""Input from the wire or from the system that is not a request, against the real binary.

usage: hostile_transport.py SERVER_BINARY MODEL_REPOSITORY [CHECK...]

After each, a canary is answered with the same bits, and no more descriptors are open than before.
"""
import contextlib
import os
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import grpc

from deaf_peer import DeafPeer, frame
from real_server import (INFER, LONG_PATIENCE, PATIENCE, Server, digits_request, expect, field, run_checks,
                         until, varint)

PREFACE = b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
Code = grpc.StatusCode


def descriptors(server):
    return len(os.listdir(f'/proc/{server.process.pid}/fd'))


@contextlib.contextmanager
def canary(*options):
    """A server that, when the block ends, answers as before and holds no more descriptors."""
    with Server(*options) as server:
        bits = server.infer()
        time.sleep(0.2)
        before, memory = descriptors(server), server.resident_mb()
        yield server
        expect(server.infer(), bits)
        until(lambda: descriptors(server) <= before, f'more descriptors than {before}')
        assert server.resident_mb() < memory + 100, (memory, server.resident_mb())
        server.end()


def connect(server):
    peer = socket.create_connection(('127.0.0.1', server.port))
    peer.settimeout(PATIENCE)
    return peer


def hung_up(peer):
    """Whether the server ends the connection, after whatever it has to say."""
    try:
        while peer.recv(65536):
            pass
        return True
    except ConnectionResetError:
        return True


def message_over_the_limit():
    """A message that is too large is refused while it arrives."""
    with canary('--max_message_mb=1') as server:
        expect(server.ask(INFER + 'ModelInfer', digits_request(400)), Code.RESOURCE_EXHAUSTED)


def garbage():
    """Bytes that are not HTTP/2, and HTTP/1, end their connection alone."""
    with canary() as server:
        for text in (b'GET / HTTP/1.1\r\nHost: x\r\n\r\n', b'\0' * 5000, os.urandom(5000),
                     b'\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03' + os.urandom(300),
                     PREFACE + b'\xff' * 5000, PREFACE + frame(0, 0, 0, b'x' * 100),
                     PREFACE + frame(4, 0, 0, b'') + frame(1, 4, 1, b'\xff' * 100)):
            with connect(server) as peer:
                with contextlib.suppress(ConnectionError):
                    peer.sendall(text)
                assert hung_up(peer), text[:20]


def half_open():
    """Connections that stop in the middle of their first frames disturb no one."""
    with canary('--keepalive=1') as server:
        whole = PREFACE + frame(4, 0, 0, b'')
        peers = [connect(server) for _ in range(60)]
        for length, peer in enumerate(peers):
            peer.sendall(whole[:length % len(whole)])
        assert isinstance(server.infer(), bytes)
        for peer in peers:
            peer.close()


def streams_without_end():
    """Calls that are opened and never finished go with their connection."""
    with canary() as server:
        peers = [DeafPeer(server.port) for _ in range(5)]
        for peer in peers:
            for stream in range(1, 81, 2):
                assert peer.ask(stream, INFER + 'ModelInfer', digits_request(), left_out=100)
        assert isinstance(server.infer(), bytes)
        for peer in peers:
            peer.socket.close()


def cancels():
    """Thousands of calls are cancelled at every moment of their lives."""
    with canary() as server, server.channel() as channel:
        ask = channel.unary_unary(INFER + 'ModelInfer')
        requests = [digits_request(batch) for batch in (1, 8, 40)]
        for turn in range(3000):
            call = ask.future(requests[turn % 3])
            if turn % 5:
                time.sleep(turn % 5 * 3e-4)
            call.cancel()


def deadlines():
    """Calls whose deadline is a millisecond, or has passed, are not answered."""
    with canary() as server, server.channel() as channel:
        server.infer(channel=channel)
        big = digits_request(8000)
        for timeout in (0.001, 0.01, 0.02, 0, -1):
            expect(server.ask(INFER + 'ModelInfer', big, channel, timeout=timeout), Code.DEADLINE_EXCEEDED)


def idle_connections():
    """Thousands of idle connections cost descriptors only."""
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if max(soft, most) < 4096 and resource.RLIM_INFINITY not in (soft, most):
        raise unittest.SkipTest(f'a process may have {most} descriptors; this takes 4096')
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, most))
    with canary('--max_connections_per_peer=0') as server:
        peers = [connect(server) for _ in range(2000)]
        assert isinstance(server.infer(), bytes)
        for peer in peers:
            peer.close()


def open_and_close():
    """Connections that are opened and closed at once, by the thousand."""
    with canary() as server:
        for turn in range(3000):
            with connect(server) as peer:
                if turn % 3 == 1:
                    peer.sendall(PREFACE)
                if turn % 3 == 2:  # a reset instead of an orderly end
                    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b'\1\0\0\0\0\0\0\0')


def second_sigterm():
    """The second SIGTERM ends a drain at once, with exit status 1."""
    with Server() as server, server.channel() as channel:
        server.infer(channel=channel)
        endless = field(1, b'digits') + varint(3, 4096) + varint(5, 1000)
        run = channel.unary_unary('/tilewire.v1.ModelService/Explain').future(endless, timeout=LONG_PATIENCE)
        server.await_work()
        server.process.send_signal(signal.SIGTERM)
        server.await_line('draining')
        assert not run.done(), 'it waits for what runs'
        server.process.send_signal(signal.SIGTERM)
        expect(server.process.wait(PATIENCE), 1)  # a drain that has ended by itself gives 0
        assert run.exception() is not None


def killed():
    """After kill -9 a server takes the same port at once, and answers with the same bits."""
    with Server() as server:
        bits = server.infer()
        channel = server.channel()
        expect(server.infer(channel=channel), bits)
        server.process.kill()
        server.process.wait()
        with Server(f'--port={server.port}') as again:
            expect(again.infer(), bits)
            again.end()


def stopped_for_a_while():
    """SIGSTOP for as long as a client waits: what was sent meanwhile is answered afterwards."""
    with canary() as server, server.channel() as channel:
        bits = server.infer(channel=channel)
        ask = channel.unary_unary(INFER + 'ModelInfer')
        server.process.send_signal(signal.SIGSTOP)
        os.waitpid(server.process.pid, os.WUNTRACED)  # its threads stop some time after the signal
        late = ask.future(digits_request(), timeout=3)
        patient = ask.future(digits_request(), timeout=PATIENCE)
        expect(late.code(), Code.DEADLINE_EXCEEDED)
        server.process.send_signal(signal.SIGCONT)
        expect(patient.result(), bits)


def full_disk_for_logs():
    """Lines that cannot be written are lost; requests are not."""
    if not os.path.exists('/dev/full'):
        raise unittest.SkipTest('there is no /dev/full')
    with open('/dev/full', 'wb', buffering=0) as full, Server(
            '--log_level=trace', log=full) as server, server.channel() as channel:
        bits = server.infer(channel=channel)
        for _ in range(50):
            expect(server.ask(INFER + 'ModelInfer', digits_request(name=b'nope'), channel),
                   Code.NOT_FOUND)
        expect(server.infer(channel=channel), bits)
        server.end()


def unread_log():
    """Standard error is a pipe that nothing reads: lines are lost, requests are not, and SIGTERM ends."""
    for flags in (), ('--verbose=2',):
        serve_with_an_unread_log(*flags)


def serve_with_an_unread_log(*flags):
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)

    def fill():
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(writing, b'.' * 4096)
    with Server(*flags, log=writing) as server, server.channel() as channel:
        bits = server.infer(channel=channel)
        fill()
        os.set_blocking(writing, True)
        for _ in range(3000):
            expect(server.ask(INFER + 'ModelInfer', digits_request(name=b'nope'), channel),
                   Code.NOT_FOUND)
            server.process.send_signal(signal.SIGUSR1)  # which writes a line
        expect(server.infer(channel=channel), bits)

        def lost():
            server.process.send_signal(signal.SIGUSR1)
            with contextlib.suppress(BlockingIOError):
                server.log += os.read(reading, 1 << 20).decode()
            return 'log lines were lost' in server.log
        until(lost, 'nothing is said of the lines that were lost')
        os.set_blocking(writing, False)
        fill()
        os.set_blocking(writing, True)
        expect(server.infer(channel=channel), bits)
        server.end()
    os.close(reading)
    os.close(writing)


DENY = """
import ctypes, os, sys
if ctypes.CDLL(None).prctl(65, 1, 0, 0, 0) != 0:  # PR_SET_MDWE
    sys.exit(1)
os.execv(sys.argv[1], sys.argv[1:])
"""


def no_code_pages():
    """A kernel that refuses pages to run code from: the model says so, and nothing else breaks."""
    deny = (sys.executable, '-c', DENY)
    if subprocess.run([*deny, '/bin/true'], check=False).returncode:
        raise unittest.SkipTest('the kernel cannot deny pages to run code from (PR_SET_MDWE)')
    with Server(launcher=deny, ready='not ready') as server:
        expect(server.ask(INFER + 'ServerLive'), b'\x08\x01')
        expect(server.infer(), Code.FAILED_PRECONDITION)
        print(f'  {server.state.strip()}; {server.reasons}')
        server.end()


CANNOT_LINK = 'error while loading shared libraries'
TOO_LITTLE = 'the system refuses', 'but no model: at least'


def little_memory():
    """Under a limit of memory with which it cannot start the server says so, with a little more it
    starts; no signal ends it."""
    started = []
    for megabytes in range(30, 250, 8):
        process = subprocess.Popen(['prlimit', f'--as={megabytes << 20}', sys.argv[1],
                                    f'--model_repository={sys.argv[2]}', '--port=0'],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while (line := process.stdout.readline()) and 'ready: ' not in line:
            pass
        process.terminate()
        words = process.communicate(timeout=PATIENCE)[1]
        print(f'  {megabytes} MB: exit status {process.returncode}, {words.splitlines()[-1:]}')
        started.append(bool(line))
        refused = process.returncode == 1 and any(why in words for why in TOO_LITTLE)
        assert process.returncode == 0 if line else refused or CANNOT_LINK in words, words
    assert started[-1] and not started[0], started


CLOCK = r"""
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec* now) {
  static volatile long* seconds;
  if (!seconds) seconds = mmap(0, 8, PROT_READ, MAP_SHARED, open(getenv("CLOCK_FILE"), O_RDONLY), 0);
  int result = syscall(SYS_clock_gettime, id, now);
  if (id == CLOCK_REALTIME) now->tv_sec += *seconds;
  return result;
}
"""


def clock_jumps():
    """The time of day jumps by an hour, forth and back: requests of that moment may end as late ones,
    later ones are answered."""
    if not shutil.which('cc'):
        raise unittest.SkipTest('there is no C compiler')
    with tempfile.TemporaryDirectory() as folder:
        library, offset = f'{folder}/clock.so', f'{folder}/offset'
        subprocess.run(['cc', '-shared', '-fPIC', '-xc', '-o', library, '-'], input=CLOCK.encode(),
                       check=True)
        with open(offset, 'wb') as file:
            file.write(struct.pack('<q', 0))
        os.environ.update(LD_PRELOAD=library, CLOCK_FILE=offset)
        try:
            server = Server()
        finally:
            del os.environ['LD_PRELOAD']
        with server, server.channel() as channel:
            bits = server.infer(channel=channel)
            ask = channel.unary_unary(INFER + 'ModelInfer')
            for seconds in (3600, 0, -3600, 0):
                calls = [ask.future(digits_request(1000), timeout=PATIENCE) for _ in range(4)]
                time.sleep(0.05)
                with open(offset, 'r+b') as file:
                    file.write(struct.pack('<q', seconds))
                for call in calls:
                    late = call.code() == Code.UNAVAILABLE and re.search(' wait|in its time', call.details())
                    assert late or call.code() in (Code.OK, Code.DEADLINE_EXCEEDED), call
                until(lambda: server.infer(channel=channel, timeout=5) == bits,
                      'requests after the jump fail', PATIENCE / 2)
            server.end()


CHECKS = (stopped_for_a_while, cancels, idle_connections, clock_jumps, open_and_close, deadlines,
          half_open, streams_without_end, garbage, message_over_the_limit, second_sigterm, killed,
          full_disk_for_logs, unread_log, no_code_pages, little_memory)


if __name__ == '__main__':
    run_checks(CHECKS)
