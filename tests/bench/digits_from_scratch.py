#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The built-in model learned from random weights by `tilewire train`, once for each seed: accuracy on the held-out
pictures, as the server answers with the file that was written, beside the built-in model's own.

The pictures are drawn as deploy/models/digits/train.py draws them: each digit anew for each of --draws epochs. Needs
Debian's python3-torch, python3-sklearn and python3-onnx.

  bazel build //client:tilewire //service:tilewire-server
  tests/bench/digits_from_scratch.py --seeds 1 2 3
"""

import argparse
import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import warnings

import latency_ratios
import sklearn.datasets
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = ROOT / "deploy/models/digits"
BATCH = 48


def recipe():
    """The module of train.py."""
    spec = importlib.util.spec_from_file_location("recipe", DIGITS / "train.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_examples(folder, made, draws):
    generator = torch.Generator().manual_seed(made.SEED)
    source = sklearn.datasets.load_digits()
    order = torch.randperm(len(source.images), generator=generator)
    kept = order[made.HELD_OUT:]
    digits, labels = torch.tensor(source.images / 16.0, dtype=torch.float32)[kept], torch.tensor(source.target)[kept]
    with open(folder / "images.u8", "wb") as images, open(folder / "labels.u8", "wb") as classes:
        for _ in range(draws):
            images.write((made.draw(digits, generator) * 255).round().to(torch.uint8).numpy().tobytes())
            classes.write(labels.to(torch.uint8).numpy().tobytes())
    return draws * len(kept)


def train(flags, folder, made, seed, count):
    torch.manual_seed(seed)
    made.export(made.Digits().train(), folder / "random.onnx")
    target = folder / "models/digits/1/model.onnx"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    begin = time.monotonic()
    subprocess.run([flags.tool, "train", folder / "random.onnx", f"--images={folder}/images.u8",
                    f"--labels={folder}/labels.u8", "--shape=3x24x20", f"--batch={BATCH}", "--epochs=1",
                    f"--seed={seed}", f"--threads={flags.threads}", "--optimizer=adamw", "--decay=0.01",
                    "--lr=0.006", "--schedule=cosine", f"--warm_up={count // BATCH // 4}", "--label_smoothing=0.05",
                    f"--average={flags.average}", "-o", target], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begin


def accuracy(flags, folder):
    server, port = latency_ratios.start_server(flags.server, folder / "models")
    try:
        printed = subprocess.run([flags.tool, "evaluate", f"--server=127.0.0.1:{port}", "--model=digits",
                                  f"--images={DIGITS}/heldout/images.u8", f"--labels={DIGITS}/heldout/labels.u8",
                                  "--shape=3x24x20"], check=True, stdout=subprocess.PIPE, text=True).stdout
    finally:
        server.terminate()
        server.wait()
    return float(re.search(r"accuracy[^0-9]*([0-9.]+)", printed).group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--draws", type=int, default=128)
    parser.add_argument("--average", type=float, default=0, help="of parameters, as `tilewire train` takes it")
    parser.add_argument("--threads", type=int, default=0, help="of the training; 0: as many as cores")
    parser.add_argument("--tool", default="bazel-bin/client/tilewire")
    parser.add_argument("--server", default="bazel-bin/service/tilewire-server")
    flags = parser.parse_args()
    warnings.filterwarnings("ignore")
    made, goal = recipe(), float((DIGITS / "accuracy.txt").read_text())
    reached = []
    with tempfile.TemporaryDirectory() as there:
        folder = pathlib.Path(there)
        count = write_examples(folder, made, flags.draws)
        for seed in flags.seeds:
            seconds = train(flags, folder, made, seed, count)
            reached.append(accuracy(flags, folder))
            print(f"seed {seed}: {count // BATCH} updates of {BATCH} in {seconds:.0f} s, accuracy {reached[-1]:.4f}; "
                  f"the built-in model's {goal:.4f}", flush=True)
    sys.exit(0 if min(reached) >= goal else 1)


if __name__ == "__main__":
    main()
