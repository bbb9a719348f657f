#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Networks with real weights (picture_networks.py, and the built-in digits) as `tilewire tune` makes them: whether the
budget is kept on the pictures that were held out, seed by seed, and how the chosen layers compare with all layers
bf16 and all int8, in turns on one thread.

Of the first seed's QDQ file: onnx.checker, the bits of a server that loads it against those of the model with its
tilewire.tuning, and with --node_modules (of onnxruntime-node) the classes of 100 pictures in ONNX Runtime.

The status is 0 if every budget is kept, no class or bit differs and, with --judge_times, the chosen layers are at least
as fast as the exact model and all bf16 (2 % are noise) and take at most 1.1 times as long as all int8 where that keeps
the budget.
Needs what picture_networks.py needs.

  bazel build //client:tilewire //service:tilewire-server //tests/bench:model_bench
  tests/bench/tuning/tuning_accuracy.py --folder=DIR [--seeds=10] [resnet8] [mobilenet] [vit] [digits]
"""

import argparse
import collections
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy
import onnx

import picture_networks

ROOT = pathlib.Path(__file__).absolute().parents[3]
DIGITS = ROOT / "deploy/models/digits"
COMPARED = 100  # pictures of the QDQ file
NOISE = 1.02  # of a time beside another
RUNS = """
const runtime = require(process.argv[1] + "/onnxruntime-node");
const floats = require("fs").readFileSync(process.argv[3]);
const [name, ...dims] = JSON.parse(process.argv[4]);
runtime.InferenceSession.create(process.argv[2]).then(async session => {
  const numbers = new Float32Array(floats.buffer, floats.byteOffset, floats.length / 4);
  const outputs = await session.run({[name]: new runtime.Tensor("float32", numbers, dims)}, ["logits"]);
  process.stdout.write(JSON.stringify(Array.from(outputs.logits.data)));
});
"""


class Network:
    """A model in a folder of its own, and its pictures."""

    def __init__(self, name, flags, folder):
        self.name, self.folder = name, folder / name
        if name == "digits":
            self.model, self.accuracy = DIGITS / "1/model.onnx", (DIGITS / "accuracy.txt").read_text().strip()
            self.pictures = numpy.fromfile(DIGITS / "heldout/images.u8", numpy.uint8).astype("<f4") / numpy.float32(255)
            self.pictures = self.pictures.reshape(-1, 3, 24, 20)
        else:
            self.model = flags.folder / name / "1/model.onnx"
            if not self.model.exists():
                picture_networks.learn(name, flags.folder, flags.tool, flags.threads, *flags.learns)
            self.accuracy = (flags.folder / name / "accuracy.txt").read_text().strip()
            self.pictures = picture_networks.draw(flags.pictures, 3)[0].astype("<f4")
        self.folder.mkdir(parents=True, exist_ok=True)
        self.pictures.tofile(self.folder / "pictures.f32")
        self.shape = "x".join(map(str, self.pictures.shape[1:]))

    def tune(self, flags, seed, precisions, place):
        """The report, and the model in a new folder beside its tuning and its QDQ file."""
        place = self.folder / place
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        shutil.copyfile(self.model, place / "model.onnx")
        writes = ["--tuning"] if "bf16" in precisions else ["--tuning", f"--qdq={place}/qdq.onnx"]
        run = subprocess.run([flags.tool, "tune", place / "model.onnx", f"--array={self.folder}/pictures.f32",
                              f"--shape={self.shape}", f"--budget={flags.budget}", f"--seed={seed}", "--threads=1",
                              f"--precisions={precisions}", f"--time={flags.time}", "--json", *writes],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if run.returncode not in (0, 1):
            raise SystemExit(run.stderr)
        return json.loads(run.stdout), place / "model.onnx"


def times(flags, sides):
    """Milliseconds of each side, (file, precision): the least of medians in turns."""
    found = collections.defaultdict(list)
    for _ in range(flags.turns):
        for side, (model, precision) in sides.items():
            printed = subprocess.run([flags.bench, f"--model={model}", f"--precision={precision}", "--runs=200",
                                      "--no-steps"], check=True, stdout=subprocess.PIPE, text=True).stdout
            found[side].append(float(printed.split()[-2]))
    return {side: min(of_side) for side, of_side in found.items()}


def served(flags, model, tuning, pictures):
    """The logits that a server gives for pictures, each alone."""
    sys.path.insert(0, str(ROOT / "tests/bench"))
    import latency_ratios  # pylint: disable=import-outside-toplevel
    with tempfile.TemporaryDirectory() as there:
        version = pathlib.Path(there) / "repository/network/1"
        version.mkdir(parents=True)
        shutil.copyfile(model, version / "model.onnx")
        if tuning:
            shutil.copyfile(tuning, version / "tilewire.tuning")
        answer = pathlib.Path(there) / "logits.f32"
        pictures.tofile(pathlib.Path(there) / "pictures.raw")
        server, port = latency_ratios.start_server(flags.server, pathlib.Path(there) / "repository")
        try:
            subprocess.run([flags.tool, "infer", f"--server=127.0.0.1:{port}", "--model=network", "--raw",
                            f"--output=logits={answer}", pathlib.Path(there) / "pictures.raw"], check=True,
                           stdout=subprocess.DEVNULL)
        finally:
            server.terminate()
            server.wait()
        return numpy.fromfile(answer, "<f4").reshape(len(pictures), -1)


def check_file(flags, network, model):
    """Whether the QDQ file is well formed and gives what the tuned model gives."""
    qdq, pictures = model.parent / "qdq.onnx", network.pictures[:COMPARED]
    onnx.checker.check_model(onnx.load(qdq), full_check=True)
    tuned = served(flags, model, model.parent / "tilewire.tuning", pictures)
    is_same = tuned.tobytes() == served(flags, qdq, None, pictures).tobytes()
    print(f"  QDQ file: checked; bits in this server {'the same' if is_same else 'DIFFER'}", end="")
    if flags.node_modules:
        pictures.tofile(network.folder / "compared.f32")
        name = onnx.load(qdq).graph.input[0].name
        printed = subprocess.run(["node", "-e", RUNS, flags.node_modules.resolve(), qdq, network.folder / "compared.f32",
                                  json.dumps([name, *pictures.shape])], check=True, stdout=subprocess.PIPE).stdout
        classes = numpy.array(json.loads(printed)).reshape(len(pictures), -1).argmax(1)
        same = int((classes == tuned.argmax(1)).sum())
        print(f"; ONNX Runtime has the same class for {same} of {len(pictures)}", end="")
        is_same = is_same and same == len(pictures)
    print(flush=True)
    return is_same


def check_times(flags, network, model, int8_keeps):
    """Whether the chosen layers are as fast as they must be."""
    sides = {"exact": (network.model, "exact"), "bf16": (network.model, "bf16"), "chosen": (model, "exact")}
    if int8_keeps:
        sides["int8"] = (network.folder / "int8/model.onnx", "exact")
    found = times(flags, sides)
    print("  us on one thread: " + ", ".join(f"{side} {1000 * found[side]:.1f}" for side in sides), end="")
    most = NOISE * min(found["exact"], found["bf16"])
    is_fast = found["chosen"] <= most and (not int8_keeps or found["chosen"] <= 1.1 * found["int8"])
    print(f"; all int8 {'keeps' if int8_keeps else 'does not keep'} the budget{'' if is_fast else '; TOO SLOW'}",
          flush=True)
    return is_fast


def measure(flags, network):
    print(f"{network.name}: accuracy {network.accuracy}, {len(network.pictures)} pictures", flush=True)
    is_good = True
    for seed in range(1, flags.seeds + 1):
        report, model = network.tune(flags, seed, flags.precisions, "chosen")
        layers = collections.Counter(node["precision"] for node in report["nodes"])
        print(f"  seed {seed}: {'kept' if report['keeps_budget'] else 'NOT KEPT'}, "
              f"{100 * report['held_out']['value']:.2f} % of {report['held_out']['examples']} changed, "
              f"{dict(layers)}", flush=True)
        is_good = is_good and report["keeps_budget"]
        if not report["keeps_budget"] or not flags.turns:
            continue
        int8, _ = network.tune(flags, seed, "int8", "int8")
        is_fast = check_times(flags, network, model, int8["keeps_budget"])
        is_good = is_good and (is_fast or not flags.judge_times)
    report, model = network.tune(flags, 1, "exact,int8", "file")
    return report["keeps_budget"] and check_file(flags, network, model) and is_good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=[*picture_networks.NETWORKS, "digits"], metavar="NAME")
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="of the networks; those missing are learned")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--budget", default="top1_changed(logits)<=0.5%")
    parser.add_argument("--precisions", default="exact,bf16,int8")
    parser.add_argument("--pictures", type=int, default=4000, help="of which half are held out")
    parser.add_argument("--learns", type=int, nargs=2, default=[], metavar=("PICTURES", "ROUNDS"))
    parser.add_argument("--time", default="30s", help="of one choice")
    parser.add_argument("--turns", type=int, default=5, help="of timing; 0: times are not measured")
    parser.add_argument("--judge_times", action="store_true")
    parser.add_argument("--threads", type=int, default=0, help="of the training")
    parser.add_argument("--node_modules", type=pathlib.Path, help="a folder with onnxruntime-node")
    parser.add_argument("--tool", default="bazel-bin/client/tilewire")
    parser.add_argument("--server", default="bazel-bin/service/tilewire-server")
    parser.add_argument("--bench", default="bazel-bin/tests/bench/model_bench")
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as there:
        results = [measure(flags, Network(name, flags, pathlib.Path(there))) for name in flags.names]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
