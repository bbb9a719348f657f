# SPDX-License-Identifier: Apache-2.0
"""Many clients with large messages against a server with little memory and default flags: it lives, it
still gives the same bits, and whatever it refuses says what to change.

usage: memory_matrix.py SERVER_BINARY MODEL_REPOSITORY [slice | LIMIT_MB,... KIND,... CLIENTS,... MB,... [SECONDS]]

LIMIT_MB is what is granted, and KIND says how:

  root     a control group that the process sees as the root, as in a container
  nested   a control group below others, as systemd's MemoryMax makes one
  mapped   RLIMIT_AS, as `ulimit -v` sets it

Each pair of these gets a server, which each pair of CLIENTS and MB (of a message) then asks for
SECONDS. All four in full, the default, take some ten minutes; `slice` is a quick part of them. Where no
control group can be made, those of its kinds are skipped, which is said. The clients' own memory is up
to CLIENTS x MB.
"""
import collections
import concurrent.futures
import contextlib
import errno
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import grpc

from real_server import (INFER, LONG_PATIENCE, SKIPPED, Server, digits_request, infer_request,
                         relu_model, until, write_report)

del os.environ['TILEWIRE_MAX_QUEUE_MS']  # flags are the default ones
FULL = ((256, 512, 1024, 2048), ('root', 'nested', 'mapped'), (1, 10, 40, 100), (1, 6, 38))
SLICE = ((256,), ('root', 'nested', 'mapped'), (24,), (6, 38))
BYTES_PER_IMAGE = 5760  # of the model digits
GROUPS = pathlib.Path('/sys/fs/cgroup')
Code = grpc.StatusCode

# A refusal that a client may read: a text of the server's that names the flag, or one of gRPC's own.
# Those begin with a capital letter, as no text of the server's does, and README explains the usual ones;
# which of them a client reads depends on the moment at which its connection ended. One begins with the
# name of a system call: a connection that gRPC closes, with GOAWAY, while bytes of the client's are unread
# is reset by the system, which drops what is not yet sent, be it GOAWAY or the rest of an answer. A client
# that writes then reads "Broken pipe", one that waits for bytes this.
NAMING = re.compile(r'--(max_work_mb|max_message_mb|max_queue|max_queue_per_model|max_queue_ms|transport_mb)\b')
OF_GRPC = (Code.UNAVAILABLE, Code.RESOURCE_EXHAUSTED)
RESET = (Code.UNAVAILABLE, f'recvmsg:{os.strerror(errno.ECONNRESET)}')


def parents():
    """(controller's file of the limit, folder) of the groups in which one may be made, own group first."""
    for line in pathlib.Path('/proc/self/cgroup').read_text().splitlines():
        _, controllers, name = line.split(':', 2)
        if controllers and 'memory' not in controllers.split(','):
            continue
        mount = GROUPS / 'memory' if controllers else GROUPS
        limit = 'memory.limit_in_bytes' if controllers else 'memory.max'
        own = mount / name.lstrip('/')
        for folder in (own, *own.parents):
            if folder == mount.parent:
                break
            yield mount, limit, folder


@contextlib.contextmanager
def control_group(limit_mb):
    """A group with this limit: where its hierarchy is mounted, and its folder."""
    reasons = set()
    for mount, limit, parent in parents():
        group = parent / f'tilewire_matrix_{os.getpid()}'
        try:
            group.mkdir()
        except OSError as error:
            reasons.add(f'{group}: {error.strerror}')
            continue
        try:
            (group / limit).write_text(str(limit_mb << 20))
        except OSError as error:
            reasons.add(f'{group / limit}: {error.strerror}')
            group.rmdir()
            continue
        try:
            yield mount, group
        finally:
            until(lambda: not (group / 'cgroup.procs').read_text(), 'processes stay in the group')
            group.rmdir()
        return
    raise unittest.SkipTest('no control groups can be made here: ' + '; '.join(sorted(reasons)))


@contextlib.contextmanager
def granted(limit_mb, kind):
    """The launcher of a process to which so much is granted, and what tells how much it took."""
    if kind == 'mapped':
        yield ('prlimit', f'--as={limit_mb << 20}'), None
        return
    with control_group(limit_mb) as (mount, group):
        join = f'echo $$ > {group}/cgroup.procs && '
        if kind == 'nested':
            yield ('sh', '-c', join + 'exec "$@"', 'sh'), group
        else:
            # The group's name stays the host's, as with Docker and control groups of version 1.
            hide = f'mount --bind {group} {mount} && '
            launcher = ('unshare', '--mount', 'sh', '-c', join + hide + 'exec "$@"', 'sh')
            if (tried := subprocess.run([*launcher, 'true'], capture_output=True, check=False)).returncode:
                raise unittest.SkipTest(f'nothing can be mounted here: {tried.stderr.decode().strip()}')
            yield launcher, group


@contextlib.contextmanager
def repository():
    """The model digits, whose activations take many times its messages, and one whose take as much."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(pathlib.Path(sys.argv[2]) / 'digits', f'{folder}/digits')
        os.makedirs(f'{folder}/relu/1')
        pathlib.Path(f'{folder}/relu/1/model.onnx').write_bytes(relu_model(0, 1000))
        yield folder


def messages(megabytes):
    """Messages of this size, for each model, raw and typed."""
    images, rows = megabytes * 1_000_000 // BYTES_PER_IMAGE, megabytes * 250
    values = b'\0\0\x80\x3f' * (rows * 1000)
    return (digits_request(images), infer_request(b'relu', b'x', [rows, 1000], values),
            infer_request(b'relu', b'x', [rows, 1000], values, typed=True))


def ask_for(server, clients, sent, seconds):
    """Counts what `clients` at once read, who send one message each: 'ok', or (code, text)."""
    end = time.time() + seconds

    def ask(channel, message):
        read = collections.Counter()
        while not read or time.time() < end:
            try:
                channel.unary_unary(INFER + 'ModelInfer')(message, timeout=LONG_PATIENCE)
                read['ok'] += 1
            except grpc.RpcError as error:
                read[error.code(), error.details()] += 1
                time.sleep(0.02)  # as a client that backs off
        return read
    channels = [server.channel(('grpc.max_send_message_length', -1)) for _ in range(clients)]
    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        counts = sum(pool.map(ask, channels, itertools.cycle(sent)), collections.Counter())
    for channel in channels:
        channel.close()
    return counts


def unnamed(counts):
    """Refusals that leave their reader alone."""
    return {read: count for read, count in counts.items()
            if read not in ('ok', RESET) and not NAMING.search(read[1])
            and not (read[0] in OF_GRPC and read[1][:1].isupper())}


def peak_mb(server, group):
    if group is None:
        return server.status('VmPeak') >> 10
    for name in ('memory.max_usage_in_bytes', 'memory.peak', 'memory.current'):
        if (group / name).exists():
            return int((group / name).read_text()) >> 20
    return 0


def summary(counts):
    """Codes and texts, without what differs from one to the next."""
    texts = collections.Counter()
    for read, count in counts.items():
        texts['ok' if read == 'ok' else f'{read[0].name}: ' + re.sub(r'\d+', '#', read[1])] += count
    return ''.join(f'\n      {count:6} {text:.150}' for text, count in texts.most_common())


def try_server(limit_mb, kind, clients, sizes, seconds):
    """Raises AssertionError where the server does not live through it."""
    with (repository() as models, granted(limit_mb, kind) as (launcher, group),
          Server(f'--model_repository={models}', launcher=launcher) as server):
        first = []  # which is refused where others hold the machine for longer than it may wait
        until(lambda: first.append(server.infer()) or isinstance(first[-1], bytes), 'one image is not answered')
        bits = first[-1]
        for count, megabytes in itertools.product(clients, sizes):
            begin = time.time()
            counts = ask_for(server, count, messages(megabytes), seconds)
            status = server.process.poll()
            print(f'  {limit_mb:5} MB {kind:6} {count:4} clients x {megabytes:2} MB: '
                  f'{"alive" if status is None else f"DEAD {status}"}, {counts["ok"]} answers in '
                  f'{time.time() - begin:.1f} s, peak {peak_mb(server, group) if status is None else "?"} MB'
                  f'{summary(counts)}', flush=True)
            assert status is None, f'the server ended with {status}'
            assert not unnamed(counts), unnamed(counts)
            until(lambda: server.infer(timeout=5) == bits, 'one image is no longer answered')
        server.end()


def main():
    chosen = sys.argv[3:]
    if chosen == ['slice']:
        limits, kinds, clients, sizes = SLICE
    else:
        limits, kinds, clients, sizes = (
            tuple(int(part) if part.isdigit() else part for part in chosen[i].split(','))
            if i < len(chosen) else full for i, full in enumerate(FULL))
    seconds = float(chosen[4]) if len(chosen) > 4 else 1
    runs = []
    for limit_mb, kind in itertools.product(limits, kinds):
        status, skipped, failed = 0, '', ''
        try:
            try_server(limit_mb, kind, clients, sizes, seconds)
        except unittest.SkipTest as reason:
            status, skipped = SKIPPED, str(reason)
            print(f'  {limit_mb:5} MB {kind:6} skipped: {skipped}')
        except AssertionError as error:
            status, failed = 1, f'{error!s:.500}'
        runs.append(subprocess.CompletedProcess([f'{limit_mb} MB {kind}'], status, skipped, failed))
    write_report(runs)
    failed = [f'{run.args[0]}: {run.stderr}' for run in runs if run.returncode == 1]
    assert not failed, '\n'.join(failed)


if __name__ == '__main__':
    main()
