#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does anything serialise requests? With one thread a request, the throughput of two clients over that of one is set
against what the machine itself gains from a second busy core, in the same minutes.

  bazel build //service:tilewire-server //client:tilewire //tests/bench:fma_peak
  tests/bench/concurrency_scaling.py --model=resnet50.onnx
"""

import argparse
import re
import statistics
import subprocess

SERVER, CLIENT, PEAK = ("bazel-bin/" + path for path in
                        ("service/tilewire-server", "client/tilewire", "tests/bench/fma_peak"))


def start_server(model):
    """The server's process and port."""
    server = subprocess.Popen([SERVER, f"--model={model}", "--host=127.0.0.1", "--port=0",
                               "--threads_per_request=1", "--log_level=error"], stdout=subprocess.PIPE, text=True)
    line = server.stdout.readline()
    found = re.search(r":(\d+)$", line)
    if not found:
        raise SystemExit(f"the server did not start: {line}")
    return server, found.group(1)


def served_name(port):
    listing = subprocess.run([CLIENT, "models", f"--port={port}"], check=True, capture_output=True, text=True).stdout
    return listing.split()[0]


def throughput(port, name, concurrency, seconds):
    """Requests a second; any error or differing answer ends the bench."""
    report = subprocess.run([CLIENT, "load", f"--port={port}", f"--model={name}", f"--concurrency={concurrency}",
                             f"--duration={seconds}"], check=True, capture_output=True, text=True).stdout
    return float(re.search(r"throughput +([0-9.]+)", report).group(1))


def peak(cores):
    running = [subprocess.Popen([PEAK], stdout=subprocess.PIPE, text=True) for _ in range(cores)]
    return sum(float(process.communicate()[0]) for process in running)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="an ONNX file")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4)
    flags = parser.parse_args()
    server, port = start_server(flags.model)
    shares = []
    try:
        name = served_name(port)
        throughput(port, name, 2, 1)
        print("round  requests/s at 1, at 2, gain   peak GFLOP/s of 1, of 2, gain   share")
        for number in range(1, flags.rounds + 1):
            one, two = (throughput(port, name, n, flags.seconds) for n in (1, 2))
            peak_one, peak_two = peak(1), peak(2)
            shares.append((two / one) / (peak_two / peak_one))
            print(f"{number:5}  {one:15.1f} {two:8.1f} {two / one:5.2f}   {peak_one:18.1f} {peak_two:8.1f} "
                  f"{peak_two / peak_one:5.2f}   {shares[-1]:5.2f}", flush=True)
    finally:
        server.terminate()
        server.wait()
    print(f"median share of the machine's own gain: {statistics.median(shares):.2f}")


if __name__ == "__main__":
    main()
