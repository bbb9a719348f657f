#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often the range of `tilewire load --find_rate` contains the limit of a real server whose speed is noisy.

The server is tests/client:double, whose noise is that of the simulation in tests/client/noisy_service.h; so its limit is
known from loads of many hours in simulated time (rate_search_bench --limits). Each search has a double of its own, with
another seed; --at_once of them run beside each other, since all of them mostly wait. Every option after -- is the
double's.

  bazel build //client:tilewire //tests/client:double
  tests/bench/rate_search_repeats.py --limit=155.1 -- --service_us=5000 --jitter=0.2 --pause_every_s=20 --pause_ms=40
"""

import argparse
import concurrent.futures
import json
import pathlib
import statistics
import subprocess
import tempfile


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tilewire", default="bazel-bin/client/tilewire")
    parser.add_argument("--double", default="bazel-bin/tests/client/double")
    parser.add_argument("--limit", type=float, required=True, help="the double's, in requests/s")
    parser.add_argument("--p99", default="60ms")
    parser.add_argument("--arrivals", default="poisson")
    parser.add_argument("--search_time", default="0", help="seconds of a search; 0: as the tool chooses")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--at_once", type=int, default=5)
    parser.add_argument("double_options", nargs="*")
    return parser.parse_args()


def search(arguments, repeat, folder):
    """The record that the tool writes of one search."""
    double = subprocess.Popen(
        [arguments.double, "--port=0", f"--seed={repeat}", *arguments.double_options],
        stdout=subprocess.PIPE, text=True)
    try:
        address = double.stdout.readline().split()[-1]
        file = folder / f"{repeat}.json"
        subprocess.run(
            [arguments.tilewire, "load", f"--server={address}", "--model=tiny", "--find_rate",
             f"--p99={arguments.p99}", f"--arrivals={arguments.arrivals}", f"--seed={1000 * repeat}",
             f"--search_time={arguments.search_time}", f"--json={file}"],
            check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return json.loads(file.read_text())
    finally:
        double.terminate()
        double.wait()


def main():
    arguments = parse_arguments()
    inside, widths = 0, []
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(arguments.at_once) as pool:
        runs = [pool.submit(search, arguments, repeat, pathlib.Path(folder)) for repeat in range(arguments.repeats)]
        for run in runs:
            found = run.result()
            low, fails = found["low_per_s"], found["fails_per_s"]
            contains = found["holds_per_s"] > 0 and low <= arguments.limit <= fails
            inside += contains
            if low > 0 and fails > 0:
                widths.append(fails / low - 1)
            print(f"{low:8.4g} {fails:8.4g}  {'contains' if contains else 'misses'} {arguments.limit:g}", flush=True)
    width = f", median width {100 * statistics.median(widths):.1f} %" if widths else ""
    print(f"{inside} of {arguments.repeats} contain the limit{width}")


if __name__ == "__main__":
    main()
