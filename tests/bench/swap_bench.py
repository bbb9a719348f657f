#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The latency that swaps, loads and unloads of a large model add to the requests of others.

swaps: versions of --network replace each other while one client asks it and another the digits model;
p50, p99 and the longest of each, during the swaps and in phases as long between them (turns.py), and how
many answers were missing or had other bits.
rounds: resident memory after loads and unloads, when the server has rested: ten seconds after the last request it
gives back what runs have left for the next ones.
frees: the longest request of the digits model while --network is unloaded, and as long without that.
trials: latencies of the digits model while models are tried out that crash, abort, are killed, take memory and
hang, one after the other, and in between. The binary is //tests/integration:misbehaving_server.

  bazel build -c opt //service:tilewire-server
  tests/bench/swap_bench.py bazel-bin/service/tilewire-server deploy/models swaps --network=resnet50
"""

import argparse
import multiprocessing
import pathlib
import shutil
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integration"))

import image_networks  # noqa: E402
import swaps  # noqa: E402
import trials  # noqa: E402
import turns  # noqa: E402
from real_server import INFER, Server, digits_request, expect, field, varint  # noqa: E402

SIZE = 224
PAUSE = 0.005  # of a client, after each answer
POLL = 0.02  # between questions whether a version is ready, which come in all phases
SETTLES = 0.5  # seconds after a swap, in which the memory of the version before is given back
RESTS = 25  # seconds after the last request, in which a server gives back what it holds for the next ones


class Asked:
    """A server's address, as a client process needs it."""

    def __init__(self, server):
        self.address, self.reasons = server.address, {}

    channel, ask = Server.channel, Server.ask


def ask_on(server, request, right, stop, results):
    """Asks until it is stopped: begin and end of each request, and how many answers were wrong."""
    times, wrong = [], 0
    with server.channel() as channel:
        while not stop.is_set():
            begin = time.monotonic()
            answer = server.ask(INFER + "ModelInfer", request, channel)
            times.append((begin, time.monotonic()))
            if isinstance(answer, bytes) and answer.startswith(field(1, b"swapped")):
                answer = swaps.without_version(answer)
            wrong += answer not in right
            time.sleep(PAUSE)
    results.send((times, wrong))


class Client:
    def __init__(self, server, request, right):
        context = multiprocessing.get_context("spawn")
        self.stop, (self.results, there) = context.Event(), context.Pipe(False)
        self.process = context.Process(target=ask_on, args=(Asked(server), request, right, self.stop, there))
        self.process.start()

    def end(self):
        self.stop.set()
        times, wrong = self.results.recv()
        self.process.join()
        return times, wrong


def longest(times, spans):
    """The longest request that overlaps each span, in order."""
    return sorted(found.max(initial=0) for found in turns.latencies(times, spans))


def wait_asking(ask, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        ask()
        time.sleep(POLL)


def swap(server, channel, root, version):
    """Adds the version, and waits for the end of the one before; returns the seconds until it answers."""
    swaps.add_version(root, version, (version - 1) % 2)
    seconds = swaps.until(lambda: is_ready(server, channel, version), f"version {version}", 300)
    shutil.rmtree(root / f"models/swapped/{version - 1}")
    wait_asking(lambda: is_ready(server, channel, version), SETTLES)
    return seconds


def is_ready(server, channel, version):
    ready = field(1, b"swapped") + field(2, str(version).encode())
    return server.ask(INFER + "ModelReady", ready, channel) == varint(1, 1)


def swap_under_load(flags):
    network = getattr(image_networks, flags.network)
    files = [network(seed) for seed in (1, 2)]
    request = swaps.image_request(b"swapped", SIZE)
    right = swaps.answers_of(files, request)
    phases, seconds = turns.Phases(), []
    with (swaps.repository(files) as root,
          Server(f"--model_repository={root}/models", "--poll_seconds=0.05", f"--trial={flags.trial}") as server,
          server.channel() as channel):
        digits = server.infer()
        own, other = Client(server, request, right), Client(server, digits_request(), [digits])
        time.sleep(3)
        for version in range(2, flags.count + 2):
            seconds.append(phases.round(
                lambda version=version: swap(server, channel, root, version),
                lambda span, version=version: wait_asking(lambda: is_ready(server, channel, version), span)))
        (own_times, own_wrong), (other_times, other_wrong) = own.end(), other.end()
        server.end()
    print(f"{flags.count} swaps of {flags.network}, {min(seconds):.2f} to {max(seconds):.2f} s each, median "
          f"{sorted(seconds)[len(seconds) // 2]:.2f}: "
          f"{own_wrong + other_wrong} of {len(own_times) + len(other_times)} answers missing or wrong")
    turns.report("its own", own_times, phases)
    turns.report("another", other_times, phases)


def loading_server(root, flags):
    return Server(f"--model_repository={root}/models", "--model_control=explicit", "--load_model=digits",
                  "--open_rights=repository", f"--trial={flags.trial}")


def load_rounds(flags):
    file = getattr(image_networks, flags.network)(1)
    request = swaps.image_request(b"swapped", SIZE)
    with swaps.repository([file]) as root, loading_server(root, flags) as server:
        resident = swaps.load_and_unload(server, 1, request)
        first = rested(server)
        resident += swaps.load_and_unload(server, flags.count - 1, request)
        last = rested(server)
        server.end()
    print(f"{flags.count} loads and unloads of {flags.network}: resident {first:.1f} MB after the first and a rest, "
          f"{last:.1f} after the last and a rest ({last / first:.3f}); straight after the unloads "
          f"{min(resident):.1f} to {max(resident):.1f}")


def rested(server):
    """The resident megabytes once the server has had nothing to do for a while."""
    time.sleep(RESTS)
    return server.status("VmRSS") / 1024


def free_beside_requests(flags):
    file = getattr(image_networks, flags.network)(1)
    request = swaps.image_request(b"swapped", SIZE)
    with swaps.repository([file]) as root, loading_server(root, flags) as server:
        other = Client(server, digits_request(), [server.infer()])
        frees, others = [], []
        for _ in range(flags.count):
            expect(server.ask(INFER + "RepositoryModelLoad", field(2, b"swapped"), timeout=300), b"")
            assert isinstance(server.ask(INFER + "ModelInfer", request), bytes)
            time.sleep(1)
            begin = time.monotonic()
            expect(server.ask(INFER + "RepositoryModelUnload", field(2, b"swapped"), timeout=300), b"")
            end = time.monotonic()
            frees.append((begin, end))
            time.sleep(0.5 + end - begin)
            others.append((end + 0.5, end + 0.5 + end - begin))
        times, wrong = other.end()
        server.end()
    print(f"{flags.count} unloads of {flags.network}, {min(e - b for b, e in frees) * 1000:.0f} to "
          f"{max(e - b for b, e in frees) * 1000:.0f} ms each; {wrong} wrong answers")
    for name, spans in (("while it is freed", frees), ("without that", others)):
        found = longest(times, spans)
        print(f"longest request {name}: median {found[len(found) // 2]:.2f}, most {found[-1]:.2f} ms")


def bad_trials(flags):
    names = "crashes", "aborts", "is_killed", "takes_memory", "hangs"
    with trials.serving("--model_control=explicit", "--load_model=digits", "--open_rights=repository",
                        "--trial_seconds=2") as (server, folder):
        for name in names:
            trials.add(folder, name)
        other = Client(server, digits_request(), [server.infer()])
        time.sleep(3)
        phases = turns.Phases()

        def try_out(name):
            refused = server.ask(INFER + "RepositoryModelLoad", field(2, name.encode()), timeout=60)
            assert refused in server.reasons, f"{name} was loaded"

        for number in range(flags.count):
            phases.round(lambda name=names[number % len(names)]: try_out(name), time.sleep)
        times, wrong = other.end()
        server.end()
    print(f"{flags.count} trials that ended badly in {sum(e - b for b, e in phases.meanwhile):.1f} s: {wrong} of "
          f"{len(times)} answers missing or wrong")
    turns.report("another", times, phases)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("server")
    parser.add_argument("models")
    parser.add_argument("what", choices=("swaps", "rounds", "frees", "trials"))
    parser.add_argument("--network", default="resnet50", choices=("resnet50", "vgg16"))
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--trial", default="process", choices=("process", "none"))
    flags = parser.parse_args()
    print(turns.machine())
    {"swaps": swap_under_load, "rounds": load_rounds, "frees": free_beside_requests,
     "trials": bad_trials}[flags.what](flags)


if __name__ == "__main__":
    main()
