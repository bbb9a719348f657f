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
  tests/bench/training_ratio.py resnet50 mobilenet_v2 --head
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

# A malloc that keeps its memory, and products on the thread that asks for them.
PEERS_BEST = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "1000000000000", "OPENBLAS_NUM_THREADS": "1"}


def last_linear(network):
    """Name and module of the classifier."""
    import torch  # pylint: disable=import-outside-toplevel
    return [(name, module) for name, module in network.named_modules() if isinstance(module, torch.nn.Linear)][-1]


def torch_updates(name, flags):
    """Milliseconds of a core for an update of torch, and the megabytes of this process."""
    import torch  # pylint: disable=import-outside-toplevel
    import training_gradients  # pylint: disable=import-outside-toplevel
    torch.set_num_threads(1)
    layout = torch.contiguous_format if flags.plain else torch.channels_last
    network = training_gradients.made(name).to(memory_format=layout)
    if flags.head:
        network.train(flags.plain).requires_grad_(False)
        last_linear(network)[1].requires_grad_(True)
    optimizer = torch.optim.SGD((tensor for tensor in network.parameters() if tensor.requires_grad), lr=1e-4,
                                momentum=0.9)
    images = torch.randn(flags.images, 3, 224, 224).to(memory_format=layout)
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


def only_the_head(folder, flags):
    return [f"--only={(folder / 'head').read_text()}.*"] if flags.head else []


def trained(folder, flags, updates, threads):
    """Seconds of cores and of the clock, peak megabytes, and the bits of the file after so many updates."""
    written = folder / "trained.onnx"
    measured = child([flags.tool, "train", folder / "model.onnx", f"--images={folder}/images{updates}.npy",
                      f"--labels={folder}/labels{updates}.npy", f"--batch={flags.images}", "--epochs=1", "--lr=0.0001",
                      "--momentum=0.9", f"--threads={threads}", "--json", "-o", written,
                      *only_the_head(folder, flags)])[1:]
    return *measured, hashlib.sha256(written.read_bytes()).hexdigest()


class Side:
    """Updates with so many threads: processes of one update, of which the fastest is what a process takes besides
    (first touches of memory vary by a second where the memory of the machine is in use), and of more."""

    def __init__(self, folder, flags, threads):
        self.folder, self.flags, self.threads, self.ones, self.mores = folder, flags, threads, [], []

    def run(self):
        for _ in range(2):  # the first touches memory that the peer has just given back
            self.ones.append(trained(self.folder, self.flags, 1, self.threads))
        self.mores.append(trained(self.folder, self.flags, 1 + self.flags.updates, self.threads))

    def update(self, clock):
        """Milliseconds of an update in each round: of the clock, or else of the cores."""
        besides = min(one[clock] for one in self.ones)
        return [(more[clock] - besides) / self.flags.updates * 1000 for more in self.mores]

    def peak(self):
        return max(more[2] for more in self.mores)

    def bits(self):
        return {more[3] for more in self.mores}


def write_inputs(folder, name, flags):
    """In a process of its own: the peak of a child begins with the memory of the process that starts it."""
    warnings.filterwarnings("ignore")
    import numpy  # pylint: disable=import-outside-toplevel
    import torch  # pylint: disable=import-outside-toplevel
    import training_gradients  # pylint: disable=import-outside-toplevel
    network = training_gradients.made(name)
    (folder / "head").write_text(last_linear(network)[0])
    training_gradients.write_model(network, torch.randn(2, 3, 224, 224), str(folder / "model.onnx"))
    random = numpy.random.default_rng(1)
    for count in (1, 1 + flags.updates):
        images = random.standard_normal((count * flags.images, 3, 224, 224), dtype=numpy.float32)
        numpy.save(folder / f"images{count}.npy", images)
        numpy.save(folder / f"labels{count}.npy", random.integers(0, 1000, count * flags.images))


def compare_threads(name, folder, flags):
    """The same updates with one thread and with more, in turns; whether all left the same bits."""
    one, more = (Side(folder, flags, threads) for threads in (1, flags.threads))
    for _ in range(flags.rounds):
        one.run()
        more.run()
    one_ms, more_ms = one.update(clock=True), more.update(clock=True)
    ratios = sorted(alone / shared for alone, shared in zip(one_ms, more_ms))
    same = len(one.bits() | more.bits()) == 1
    print(f"{name}: update of {flags.images} images with 1 thread {statistics.median(one_ms):.0f} ms, with "
          f"{flags.threads} {statistics.median(more_ms):.0f} ms: {statistics.median(ratios):.2f} ({ratios[0]:.2f} to "
          f"{ratios[-1]:.2f}), of the fastest {min(one_ms) / min(more_ms):.2f}; "
          f"{'the same bits' if same else 'OTHER BITS'}; peak {more.peak():.0f} MB", flush=True)
    return same


def compare_torch(name, folder, flags):
    ours, theirs = Side(folder, flags, threads=1), []
    for _ in range(flags.rounds):
        ours.run()
        printed, _, _, _ = child([sys.executable, __file__, "--peer", name, f"--images={flags.images}",
                                  f"--updates={flags.updates}", *["--head"] * flags.head, *["--plain"] * flags.plain],
                                 dict(os.environ, **({} if flags.plain else PEERS_BEST)))
        peer = json.loads(printed.splitlines()[-1])
        theirs.append((peer["ms"], peer["mb"]))
    our_ms, their_ms = ours.update(clock=False), [peer[0] for peer in theirs]
    ratios = sorted(theirs / ours for ours, theirs in zip(our_ms, their_ms))
    print(f"{name}: update of {flags.images} images {statistics.median(our_ms):.0f} ms, torch "
          f"{statistics.median(their_ms):.0f} ms: torch's over ours {statistics.median(ratios):.2f} ({ratios[0]:.2f} to "
          f"{ratios[-1]:.2f}), of the fastest {min(their_ms) / min(our_ms):.2f}; peak {ours.peak():.0f} MB, torch "
          f"{max(peer[1] for peer in theirs):.0f} MB", flush=True)


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
    parser.add_argument("networks", nargs="+", help="of torchvision.models, unet or autoencoder")
    parser.add_argument("--images", type=int, default=8)
    parser.add_argument("--updates", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1, help="compare so many with one, too")
    parser.add_argument("--head", action="store_true", help="train the classifier alone; the rest only infers (with "
                        "--plain torch's normalizes by the batch)")
    parser.add_argument("--plain", action="store_true", help="torch as one finds it instead of at its best")
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
