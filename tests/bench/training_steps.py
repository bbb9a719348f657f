#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Where the steps of an update of `tilewire train` lose with more threads than one: the time of each kind of step, and
of the steps that lose most, with 1 thread and with --threads, in turns.

Times are those of TILEWIRE_VERBOSE=1; a step's figure is the median over updates of all rounds, without the first
update of each process, which touches memory for the first time. "lost" is what the step takes beyond its time with one
thread divided by the number of threads. Executions inside another primitive's are left out; what lies between steps
(the optimizer, and the lines of the log themselves) is the rest of an update.

  bazel build //client:tilewire
  tests/bench/training_steps.py resnet50 --rounds=2
"""

import argparse
import collections
import datetime
import multiprocessing
import os
import pathlib
import statistics
import subprocess
import tempfile

import training_ratio

KINDS = ("forward_training", "backward", "backward_data", "backward_weights")


def executions(lines):
    """(description, milliseconds, end) of each line of the log that is a step of its own."""
    for line in lines:
        fields = line.rstrip().split(",")
        if len(fields) < 6 or fields[0] != "tilewire" or fields[2] != "execute":
            continue
        inside = fields[3].startswith("convolution/") and fields[4] not in KINDS
        if not inside:
            end = datetime.datetime.strptime(fields[1], "%Y-%m-%dT%H:%M:%S.%fZ").timestamp() * 1000
            yield ",".join(fields[3:-1]), float(fields[-1].split()[0]), end


def updates(lines):
    """Executions of each update; its first is the one that occurs first with the kind of forward training."""
    all_of_them, first = [], None
    for execution in executions(lines):
        description = execution[0]
        if first is None and ",forward_training," in description:
            first = description
        if description == first:
            all_of_them.append([])
        if all_of_them:
            all_of_them[-1].append(execution)
    steps = len(all_of_them[0])
    return [update[:steps] for update in all_of_them]


def train(folder, flags, threads):
    command = [flags.tool, "train", folder / "model.onnx", f"--images={folder}/images{1 + flags.updates}.npy",
               f"--labels={folder}/labels{1 + flags.updates}.npy", f"--batch={flags.images}", "--epochs=1",
               "--lr=0.0001", "--momentum=0.9", f"--threads={threads}", "-o", folder / "trained.onnx"]
    done = subprocess.run(command, env=dict(os.environ, TILEWIRE_VERBOSE="1"), text=True, check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return updates(done.stdout.splitlines())[1:]


def medians(rounds):
    """Milliseconds of each step, and of a whole update."""
    steps = zip(*(update for one in rounds for update in one))
    whole = [later[0][2] - earlier[0][2] for one in rounds for earlier, later in zip(one, one[1:])]
    return [(step[0][0], statistics.median(time for _, time, _ in step)) for step in steps], statistics.median(whole)


def print_losses(one, more, threads, group, most):
    """`group` names what a step belongs to."""
    sums = collections.defaultdict(lambda: [0, 0.0, 0.0])
    for (description, alone), (_, shared) in zip(one, more):
        entry = sums[group(description)]
        for i, value in enumerate((1, alone, shared)):
            entry[i] += value
    lost = sorted(sums.items(), key=lambda item: item[1][1] / threads - item[1][2])
    print(f"{'1 thread':>9} {f'{threads} threads':>10} {'ratio':>6} {'lost':>6}  ms of steps")
    for name, (count, alone, shared) in lost[:most]:
        print(f"{alone:9.2f} {shared:10.2f} {alone / max(shared, 1e-3):6.2f} {shared - alone / threads:6.2f}  "
              f"{count} x {name}")


def kind_of(description):
    row, kind = description.split(",")[:2]
    return f"{row} {kind}"


def compare(name, folder, flags):
    rounds = {threads: [] for threads in (1, flags.threads)}
    for _ in range(flags.rounds):
        for threads, of_threads in rounds.items():
            of_threads.append(train(folder, flags, threads))
    (one, one_ms), (more, more_ms) = (medians(rounds[threads]) for threads in rounds)
    steps = [sum(time for _, time in side) for side in (one, more)]
    print(f"{name}: steps of an update of {flags.images} images {steps[0]:.0f} and {steps[1]:.0f} ms with 1 and "
          f"{flags.threads} threads: {steps[0] / steps[1]:.2f}; whole updates {one_ms:.0f} and {more_ms:.0f} ms: "
          f"{one_ms / more_ms:.2f}")
    print_losses(one, more, flags.threads, kind_of, flags.most)
    print_losses(one, more, flags.threads, lambda description: description.split(",scratchpad")[0], flags.most)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="+", help="of torchvision.models")
    parser.add_argument("--images", type=int, default=8)
    parser.add_argument("--updates", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--most", type=int, default=20, help="kinds, and steps, to print")
    parser.add_argument("--tool", default="bazel-bin/client/tilewire")
    flags = parser.parse_args()
    for name in flags.networks:
        with tempfile.TemporaryDirectory() as there:
            folder = pathlib.Path(there)
            writer = multiprocessing.get_context("spawn").Process(target=training_ratio.write_inputs,
                                                                  args=(folder, name, flags))
            writer.start()
            writer.join()
            if writer.exitcode != 0:
                raise SystemExit(f"{name}: no inputs were written")
            compare(name, folder, flags)


if __name__ == "__main__":
    main()
