#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Gradients of prelu, products and sums with a tensor that is broadcast: torch's time over ours, one thread, in turns.

The operations are those of layers.txt; ours are timed by families_bench, torch's by autograd from both sources, in the
faster of its layouts contiguous and channels last. torch's prelu has a slope per channel, or one.

  bazel build //tests/bench:families_bench
  OPENBLAS_NUM_THREADS=1 tests/bench/gradients/torch_sums.py --filter=prelu_gradient
"""
import argparse
import math
import pathlib
import statistics
import subprocess
import time

import torch

HERE = pathlib.Path(__file__).resolve().parent
FUNCTIONS = {"gradient_multiply": torch.mul, "gradient_add": torch.add}


def operations(needle):
    for line in (HERE / "layers.txt").read_text().splitlines():
        words = line.split()
        if not line.startswith("#") and "per=" in line and needle in f"{words[0]} {words[1]}":
            yield words[0], words[1], words[2], {k: int(v) for k, v in (word.split("=") for word in words[3:])}


def backward(kind, sizes, memory_format):
    """A function that computes both gradients once."""
    n, c, size, per = (sizes[key] for key in ("n", "c", "in", "per"))
    x = torch.randn(n, c, size, size).contiguous(memory_format=memory_format).requires_grad_()
    shared = (1, c if per & 1 else 1, size if per & 2 else 1, size if per & 2 else 1)
    if kind == "gradient_prelu":
        y = torch.randn(shared[1]).requires_grad_()
        result = torch.nn.functional.prelu(x, y)
    else:
        y = torch.randn(shared).requires_grad_()
        result = FUNCTIONS[kind](x, y)
    dy = torch.randn_like(result)
    return lambda: torch.autograd.grad(result, (x, y), dy, retain_graph=True)


def microseconds(run, seconds):
    run()
    times = []
    while not times or sum(times) < seconds:
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return 1e6 * statistics.median(times)


def ours(bench, name, family, seconds):
    command = [bench, f"--operations={HERE / 'layers.txt'}", f"--filter={family} {name}", f"--seconds={seconds}"]
    for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
        words = line.split()
        if words[:2] == [family, name]:
            return float(words[2])
    raise RuntimeError(f"no figure of {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", default=HERE.parents[2] / "bazel-bin/tests/bench/families_bench")
    parser.add_argument("--filter", default="")
    parser.add_argument("--seconds", type=float, default=0.05, help="for each side of a round")
    parser.add_argument("--rounds", type=int, default=3)
    flags = parser.parse_args()
    torch.set_num_threads(1)
    ratios = []
    print(f"{'operation':44} {'ours us':>9} {'torch us':>9} {'ratio':>7}")
    for family, name, kind, sizes in operations(flags.filter):
        if kind == "gradient_prelu" and sizes["per"] > 1:
            continue
        rounds = []
        for _ in range(flags.rounds):
            theirs = min(microseconds(backward(kind, sizes, layout), flags.seconds)
                         for layout in (torch.contiguous_format, torch.channels_last))
            rounds.append((ours(flags.bench, name, family, flags.seconds), theirs))
        mine, theirs = (statistics.median(times) for times in zip(*rounds))
        ratios.append(theirs / mine)
        print(f"{family + ' ' + name:44} {mine:9.1f} {theirs:9.1f} {ratios[-1]:7.2f}", flush=True)
    print(f"{len(ratios)} operations, geometric mean {math.exp(statistics.mean(map(math.log, ratios))):.2f}, "
          f"least {min(ratios):.2f}")


if __name__ == "__main__":
    main()
