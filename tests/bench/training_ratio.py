#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The time of an update (forward, cross entropy, backward, SGD with momentum) of `tilewire train` against torch's, in
turns, and the peak memory of both processes.

An update is what more updates take beyond one, as time of the process on its cores: files, plans and what else the
machine does are in neither side. torch: with channels_last and a malloc that keeps its memory, which is its best.

  bazel build //client:tilewire
  tests/bench/training_ratio.py resnet18 mobilenet_v2 --rounds=3
"""

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

KEEPS_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "1000000000000"}


def torch_updates(name, flags):
    """Milliseconds of a core for an update of torch, and the megabytes of this process."""
    import torch  # pylint: disable=import-outside-toplevel
    import training_gradients  # pylint: disable=import-outside-toplevel
    torch.set_num_threads(1)
    network = training_gradients.made(name).to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-4, momentum=0.9)
    images = torch.randn(flags.images, 3, 224, 224).to(memory_format=torch.channels_last)
    labels = torch.randint(0, 1000, (flags.images,))

    def update():
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(network(images), labels).backward()
        optimizer.step()

    update()
    begin = time.process_time()
    for _ in range(flags.updates):
        update()
    taken = (time.process_time() - begin) / flags.updates * 1000
    print(json.dumps({"ms": taken, "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


def child(command, environment=None):
    """Its output, its seconds of cores and its peak megabytes."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
    printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"{' '.join(map(str, command))} ended with {status}: {printed}")
    return printed, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def our_update(folder, flags):
    def run(count):
        return child([flags.tool, "train", folder / "model.onnx", f"--images={folder}/images{count}.npy",
                      f"--labels={folder}/labels{count}.npy", f"--batch={flags.images}", "--epochs=1", "--lr=0.0001",
                      "--momentum=0.9", "--threads=1", "--json", "-o", folder / "trained.onnx"])[1:]

    (one, _), (more, peak) = run(1), run(1 + flags.updates)
    return (more - one) / flags.updates * 1000, peak


def write_inputs(folder, name, flags):
    import numpy  # pylint: disable=import-outside-toplevel
    import torch  # pylint: disable=import-outside-toplevel
    import training_gradients  # pylint: disable=import-outside-toplevel
    training_gradients.write_model(training_gradients.made(name), torch.randn(2, 3, 224, 224),
                                   str(folder / "model.onnx"))
    random = numpy.random.default_rng(1)
    for count in (1, 1 + flags.updates):
        images = random.standard_normal((count * flags.images, 3, 224, 224), dtype=numpy.float32)
        numpy.save(folder / f"images{count}.npy", images)
        numpy.save(folder / f"labels{count}.npy", random.integers(0, 1000, count * flags.images))


def compare(name, flags):
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as there:
        folder = pathlib.Path(there)
        write_inputs(folder, name, flags)
        for _ in range(flags.rounds):
            ours.append(our_update(folder, flags))
            printed, _, _ = child([sys.executable, __file__, "--peer", name, f"--images={flags.images}",
                                   f"--updates={flags.updates}"], dict(os.environ, **KEEPS_MEMORY))
            peer = json.loads(printed.splitlines()[-1])
            theirs.append((peer["ms"], peer["mb"]))
    ratios = sorted(peer[0] / mine[0] for mine, peer in zip(ours, theirs))
    print(f"{name}: update of {flags.images} images {statistics.median(o[0] for o in ours):.0f} ms, torch "
          f"{statistics.median(t[0] for t in theirs):.0f} ms: torch's over ours {statistics.median(ratios):.2f} "
          f"({ratios[0]:.2f} to {ratios[-1]:.2f}); peak {max(o[1] for o in ours):.0f} MB, torch "
          f"{max(t[1] for t in theirs):.0f} MB", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="+", help="of torchvision.models")
    parser.add_argument("--images", type=int, default=8)
    parser.add_argument("--updates", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tool", default="bazel-bin/client/tilewire")
    parser.add_argument("--peer", action="store_true", help="time torch alone")
    flags = parser.parse_args()
    warnings.filterwarnings("ignore")
    for name in flags.networks:
        (torch_updates if flags.peer else compare)(name, flags)


if __name__ == "__main__":
    main()
