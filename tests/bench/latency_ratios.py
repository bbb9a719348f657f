#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The latency that other requests add to a request, at the client of a real server.

isolation: p99 of single images of the digits model while two callers send big batches to another
model, over its p99 alone, in the same seconds.
order: p99 over p50 of eight callers of one model.

"others" is what the rest of the machine took meanwhile, in cores: a ratio beside which it is much
above 0 says little.

  bazel build -c opt //service:tilewire-server //client:tilewire
  tests/bench/latency_ratios.py --repository=DIR --big=resnet18:32 --big=digits:8000
"""

import argparse
import os
import re
import resource
import statistics
import subprocess
import time

MILLISECONDS = {"ns": 1e-6, "us": 1e-3, "ms": 1, "s": 1e3}
SERVER, CLIENT = ("bazel-bin/" + path for path in ("service/tilewire-server", "client/tilewire"))


def start_server(binary, repository):
    """The server's process and port, once its models are ready."""
    server = subprocess.Popen([binary, f"--model_repository={repository}", "--host=127.0.0.1", "--port=0",
                               "--metrics_port=0", "--log_level=error"], stdout=subprocess.PIPE, text=True)
    lines = iter(server.stdout.readline, "")
    found = re.search(r":(\d+)$", next(lines, ""))
    if not found or not any("ready" in line for line in lines):
        server.kill()
        raise SystemExit("the server did not start")
    return server, found.group(1)


def load(flags, port, model, seconds, concurrency=1, batch=1):
    """A running load."""
    return subprocess.Popen([flags.client, "load", f"--port={port}", f"--model={model}",
                             f"--duration={seconds}", f"--concurrency={concurrency}",
                             f"--batch={batch}"], stdout=subprocess.PIPE, text=True)


def percentiles(running):
    """p50 and p99 in milliseconds; an error or a differing answer ends the bench."""
    report = running.communicate()[0]
    if running.returncode != 0:
        raise SystemExit(report)
    found = (re.search(rf"{name} ([0-9.]+) (ns|us|ms|s)\b", report) for name in ("p50", "p99"))
    return tuple(float(one.group(1)) * MILLISECONDS[one.group(2)] for one in found)


class Others:
    """The share of the cores that other processes take, counted from when it is made."""

    def __init__(self, server):
        self.server = server
        self.start = self.used_by_others(), time.time()

    def used_by_others(self):
        """Seconds of CPU, without this program's own, the server's and those of ended loads."""
        with open("/proc/stat", encoding="ascii") as stat:
            ticks = [int(number) for number in stat.readline().split()[1:9]]
        with open(f"/proc/{self.server.pid}/stat", encoding="ascii") as stat:
            served = stat.read().rsplit(")", 1)[1].split()[11:13]
        busy = sum(ticks) - ticks[3] - ticks[4] - sum(map(int, served))  # neither idle nor waiting
        own = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return busy / os.sysconf("SC_CLK_TCK") - sum(one.ru_utime + one.ru_stime for one in own)

    def __str__(self):
        used, start = self.start
        return f"others {(self.used_by_others() - used) / (time.time() - start):.2f}"


def isolation(flags, server, port, model, batch):
    alone, beside = [], []
    for _ in range(flags.rounds):
        others = Others(server)
        alone.append(percentiles(load(flags, port, flags.small, flags.seconds)))
        big = load(flags, port, model, flags.seconds + 2, concurrency=2, batch=batch)
        percentiles(load(flags, port, flags.small, 1))  # until the batches have come
        beside.append(percentiles(load(flags, port, flags.small, flags.seconds)))
        percentiles(big)
        ratio = beside[-1][1] / alone[-1][1]
        print(f"{flags.small} beside {model} x {batch}: alone p50 {alone[-1][0]:.2f} ms, "
              f"p99 {alone[-1][1]:.2f} ms; beside p50 {beside[-1][0]:.2f} ms, "
              f"p99 {beside[-1][1]:.2f} ms; p99 over p99 {ratio:.2f}; {others}", flush=True)
    return statistics.median(b[1] / a[1] for a, b in zip(alone, beside))


def order(flags, server, port, model):
    ratios = []
    for _ in range(flags.rounds):
        others = Others(server)
        p50, p99 = percentiles(load(flags, port, model, flags.seconds, concurrency=8))
        ratios.append(p99 / p50)
        print(f"eight callers of {model}: p50 {p50:.2f} ms, p99 {p99:.2f} ms; p99 over p50 "
              f"{ratios[-1]:.2f}; {others}", flush=True)
    return statistics.median(ratios)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repository", required=True, help="a model repository")
    parser.add_argument("--small", default="digits", help="the model that gets single images")
    parser.add_argument("--big", action="append", default=[], metavar="MODEL:BATCH")
    parser.add_argument("--order", action="append", default=[], metavar="MODEL")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--server", default=SERVER)
    parser.add_argument("--client", default=CLIENT)
    flags = parser.parse_args()
    server, port = start_server(flags.server, flags.repository)
    try:
        for big in flags.big:
            model, batch = big.split(":")
            print(f"median: {isolation(flags, server, port, model, int(batch)):.2f}")
        for model in flags.order:
            print(f"median: {order(flags, server, port, model):.2f}")
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
