#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The time of an update (forward, cross entropy, backward, SGD with momentum) of `tilewire train` against torch's, in
turns, and the peak memory of both processes; and the time of an update with more threads than one, whose bits must be
those of one.

An update is what more updates take beyond one, as time of the process on its cores, between numbers of threads as time
of the clock: files and plans are in neither side. torch: with channels_last and a malloc that keeps its memory, which
is its best. Built with the reference BLAS instead of OpenBLAS (as Debian's is, unless that is installed), it does 1x1
convolutions of small batches so slowly that ratios of networks of them say nothing.
Exit status 1 if bits depend on the number of threads.

  bazel build //client:tilewire
  tests/bench/training_ratio.py resnet18 mobilenet_v2 --rounds=3
  tests/bench/training_ratio.py resnet18 --threads=2 --without_torch
"""

import argparse
import hashlib
import json
import multiprocessing
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
    """Its output, its seconds of cores and of the clock, and its peak megabytes."""
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
    printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"{' '.join(map(str, command))} ended with {status}: {printed}")
    return printed, usage.ru_utime + usage.ru_stime, time.monotonic() - begin, usage.ru_maxrss / 1024


def our_update(folder, flags, threads=1):
    """Milliseconds of cores and of the clock for an update, peak megabytes, and the bits of the trained file."""
    trained = folder / "trained.onnx"

    def run(count):
        return child([flags.tool, "train", folder / "model.onnx", f"--images={folder}/images{count}.npy",
                      f"--labels={folder}/labels{count}.npy", f"--batch={flags.images}", "--epochs=1", "--lr=0.0001",
                      "--momentum=0.9", f"--threads={threads}", "--json", "-o", trained])[1:]

    (one, one_clock, _), (more, more_clock, peak) = run(1), run(1 + flags.updates)
    bits = hashlib.sha256(trained.read_bytes()).hexdigest()
    return (more - one) / flags.updates * 1000, (more_clock - one_clock) / flags.updates * 1000, peak, bits


def write_inputs(folder, name, flags):
    """In a process of its own: the peak of a child begins with the memory of the process that starts it."""
    warnings.filterwarnings("ignore")
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


def compare_threads(name, folder, flags):
    """The same updates with one thread and with more, in turns; whether all left the same bits."""
    rounds = [(our_update(folder, flags), our_update(folder, flags, flags.threads)) for _ in range(flags.rounds)]
    ratios = sorted(one[1] / more[1] for one, more in rounds)
    same = len({side[3] for turn in rounds for side in turn}) == 1
    print(f"{name}: update of {flags.images} images with 1 thread {statistics.median(one[1] for one, _ in rounds):.0f} "
          f"ms, with {flags.threads} {statistics.median(more[1] for _, more in rounds):.0f} ms: "
          f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}); "
          f"{'the same bits' if same else 'OTHER BITS'}; peak {max(more[2] for _, more in rounds):.0f} MB", flush=True)
    return same


def compare_torch(name, folder, flags):
    ours, theirs = [], []
    for _ in range(flags.rounds):
        ours.append(our_update(folder, flags))
        printed, _, _, _ = child([sys.executable, __file__, "--peer", name, f"--images={flags.images}",
                                  f"--updates={flags.updates}"], dict(os.environ, **KEEPS_MEMORY))
        peer = json.loads(printed.splitlines()[-1])
        theirs.append((peer["ms"], peer["mb"]))
    ratios = sorted(peer[0] / mine[0] for mine, peer in zip(ours, theirs))
    print(f"{name}: update of {flags.images} images {statistics.median(o[0] for o in ours):.0f} ms, torch "
          f"{statistics.median(t[0] for t in theirs):.0f} ms: torch's over ours {statistics.median(ratios):.2f} "
          f"({ratios[0]:.2f} to {ratios[-1]:.2f}); peak {max(o[2] for o in ours):.0f} MB, torch "
          f"{max(t[1] for t in theirs):.0f} MB", flush=True)


def compare(name, flags):
    with tempfile.TemporaryDirectory() as there:
        folder = pathlib.Path(there)
        writer = multiprocessing.get_context("spawn").Process(target=write_inputs, args=(folder, name, flags))
        writer.start()
        writer.join()
        if writer.exitcode != 0:
            raise SystemExit(f"{name}: no inputs were written")
        if not flags.without_torch:
            compare_torch(name, folder, flags)
        return flags.threads == 1 or compare_threads(name, folder, flags)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="+", help="of torchvision.models")
    parser.add_argument("--images", type=int, default=8)
    parser.add_argument("--updates", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1, help="compare so many with one, too")
    parser.add_argument("--without_torch", action="store_true", help="time our side alone")
    parser.add_argument("--tool", default="bazel-bin/client/tilewire")
    parser.add_argument("--peer", action="store_true", help="time torch alone")
    flags = parser.parse_args()
    warnings.filterwarnings("ignore")
    if flags.peer:
        torch_updates(flags.networks[0], flags)
    elif not all([compare(name, flags) for name in flags.networks]):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
