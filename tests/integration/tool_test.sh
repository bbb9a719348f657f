#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Every subcommand of `tilewire` against a real server: exit status and what it prints.
set -uo pipefail

source tests/integration/start_server.sh
source tests/support/expect.sh
digits=deploy/models/digits

primitive() { expect 0 "$1" primitive "${@:2}" --repeat=2; }

# The digits as a model that takes one picture without a batch, and names a file that is missing.
unbatched=$TEST_TMPDIR/unbatched
mkdir -p "$unbatched/one_picture/1"
cp -L "$digits/1/model.onnx" "$unbatched/one_picture/1/"
cp -L "$digits/labels.txt" "$unbatched/one_picture/names.txt"
cat >"$unbatched/one_picture/config.pbtxt" <<'CONFIG'
max_batch_size: 0
input { name: "image" dims: [ 3, 24, 20 ] reshape { shape: [ 1, 3, 24, 20 ] } }
output { name: "logits" dims: [ 10 ] reshape { shape: [ 1, 10 ] } label_filename: "names.txt" }
output { name: "features" label_filename: "nowhere.txt" }
CONFIG

start_server --model_repository="$unbatched"
export TILEWIRE_SERVER=$server_address

expect 0 '^tilewire [0-9]+\.[0-9]+' --version
expect 0 'tilewire load' --help
expect 2 'subcommand'
expect 2 "'unheard-of' is not a command; commands are models, infer" unheard-of
expect 0 'serves$' probe --timeout=60
expect 1 'tilewire: ' --tls probe --timeout=1    # this server answers in the clear
expect 0 'serves digits' probe --model=digits --timeout=60
expect 1 'NOT_FOUND' probe --model=nope --timeout=60
expect 1 'UNAVAILABLE.*127.0.0.1:1 ' probe --server=127.0.0.1:1 --timeout=0.2
expect 1 'UNAVAILABLE.*127.0.0.1:1 ' models --host=127.0.0.1 --port=1 --connect_timeout=0.2
expect 1 'UNAVAILABLE.*\[::1\]:1 ' models --host=::1 --port=1 --connect_timeout=0.2
expect 2 'not HOST:PORT' models --server=localhost --host=127.0.0.1
expect 0 'digits.* ready' models
expect 0 'image FP32 Nx3x24x20' models --model=digits
expect 0 '^  precision exact' models --model=digits
expect 1 'NOT_FOUND' models --model=nope

evaluate=(evaluate --model=digits --images="$digits/heldout/images.u8" --shape=3x24x20)
expect 0 'agree bit for bit' "${evaluate[@]}" --labels="$digits/heldout/labels.u8" --show=2 \
  --min_accuracy="$(cat "$digits/accuracy.txt")"
expect 1 'too low' "${evaluate[@]}" --labels="$digits/heldout/labels.u8" --min_accuracy=1
expect 2 '360 examples, and .* labels$' "${evaluate[@]}" --labels="$digits/labels.txt"
pictures=(--images="$digits/heldout/images.u8" --labels="$digits/heldout/labels.u8")
expect 0 'layouts     the one that the input is declared in, 3x24x20$' evaluate \
  --model=one_picture "${pictures[@]}" --shape=3x24x20 --min_accuracy="$(cat "$digits/accuracy.txt")"
expect 1 'is Nx3x24x20, which one picture of 3x20x24 does not fit' evaluate \
  --model=digits "${pictures[@]}" --shape=3x20x24

# The first held-out digit as a colour picture: planes to pixels.
picture=$TEST_TMPDIR/digit.ppm
/usr/bin/python3 - "$digits/heldout/images.u8" "$picture" <<'PYTHON'
import sys
planes = open(sys.argv[1], 'rb').read(3 * 480)
pixels = bytes(planes[c * 480 + i] for i in range(480) for c in range(3))
open(sys.argv[2], 'wb').write(b'P6 20 24 255\n' + pixels)
PYTHON
label=$(od -An -tu1 -N1 "$digits/heldout/labels.u8" | tr -d ' ')
for layout in nchw nhwc; do
  expect 0 " $label  $label\$" infer --model=digits --top=1 --layout=$layout "$picture"
done
expect 0 " $label  $label\$" infer --model=one_picture --top=1 "$picture"
expect 2 'is 3x24x20, which is sent as it is declared.* raw tensor files' \
  infer --model=one_picture --layout=nhwc "$picture"
expect 2 'makes 3x224x224 of a picture, input .image. is 3x24x20$' \
  infer --model=one_picture --torchvision=resnet18 "$picture"
expect 0 'errors +0, .*: 0$' load --model=one_picture --image "$picture" --requests=5
for digit in 3 7 8; do
  expect 0 " $digit  $digit\$" infer --model=digits --top=1 "$digits/pictures/$digit.png"
done
expect 0 'features: FP32 1x40x6x5 nchw' infer --model=digits \
  --output=features="$TEST_TMPDIR/f.raw" "$picture"
expect 0 'features: FP32 1x40x6x5 nchw, from [-0-9.e]+ to [-0-9.e]+; these are not scores' \
  infer --model=digits --scores=features "$picture"
! grep -qE '^ +[-0-9.e]+ +[0-9]+ ' "$out" || {
  echo "FAILED: a map is ranked as if it held scores: $(<"$out")"
  failures=$((failures + 1))
}
[[ $(stat -c %s "$TEST_TMPDIR/f.raw") -eq 4800 ]] || {
  echo "FAILED: the features are not 1x40x6x5 floats"
  failures=$((failures + 1))
}
expect 2 'no preparation for .lenet.; there is one for alexnet' infer --model=digits \
  --torchvision=lenet "$picture"
expect 2 'makes 3x224x224 of a picture, input .image. is Nx3x24x20' infer --model=digits \
  --torchvision=resnet18 "$picture"
expect 2 'excludes' infer --model=digits --torchvision=resnet18 --scale=1 "$picture"
head -c 11520 /dev/zero >"$TEST_TMPDIR/zeros.raw"
expect 0 ' [0-9] ' infer --model=digits --raw --softmax --top=10 "$TEST_TMPDIR/zeros.raw"
expect 2 'not a PGM' infer --model=digits "$digits/labels.txt"
expect 1 'INVALID_ARGUMENT' infer --model=digits --raw "$digits/labels.txt"
truncate -s 69120000 "$TEST_TMPDIR/too_large.raw"
expect 1 'larger --max_message_mb' infer --model=digits --raw "$TEST_TMPDIR/too_large.raw"
expect 2 'does not exist' infer --model=digits missing.png
expect 2 'other than 0' infer --model=digits --std 0.2 0 0.2 -- "$picture"

expect 0 'errors +0, .*: 0$' load --model=digits --concurrency=2 --requests=40
expect 0 'rows/s' load --model=digits --duration=0.3 --batch=3 --layout=nhwc
expect 1 'NOT_FOUND' load --model=nope --requests=1

expect 0 'convolution/.* -> .*\+ .*relu' explain digits --wide
expect 0 '^median of 3 runs [0-9.]+ ms' explain digits --runs=3 --batch=2 --costliest=2
expect 0 'f32:5x3x24x20:nchw' explain digits --wide --model_version=1 --shape image=5x3x24x20
expect 0 'in products of matrices, precision exact' explain digits
expect 0 'convolution/avx[^ ]* .*\(estimated [0-9,]+ cycles\)' explain digits --wide
expect 0 'not convolution/avx[^ ]*: estimated [0-9,]+ cycles.*, convolution/' explain digits --wide
expect 1 'NOT_FOUND' explain nope
expect 1 'INVALID_ARGUMENT.*does not match' explain digits --shape image=1x3x20x24
expect 2 'image=1x3x224x224' explain digits --shape image=axb
expect 0 'f32:2x3x24x20' explain digits --json --batch=2 --free_size=48

# The requests above, as the server saw them.
expect 0 '^image=3x3x24x20: [0-9]+ runs, mean [0-9.]+ ms' explain digits --live
expect 0 '^ +[0-9.]+ ms +[0-9.]+ % +- +convolution/' explain digits --live --costliest=1
expect 0 '"later_stage": false' explain digits --live --json
expect 1 'NOT_FOUND' explain nope --live
expect 2 'excludes' explain digits --live --runs=3
expect 0 '^[0-9:]{8} +[0-9.]+ +[0-9.]+ +[0-9.]+ +[-0-9.]+  digits 1' slow
expect 0 '^ +.*[0-9.]+ ms (running|waiting|reading|until)' slow digits --minutes=30 --most=100
expect 0 '"queue_ns": "[0-9]+"' slow digits --json
expect 0 '  digits 1' slow --most=1000
! grep -qE '^[0-9:]{8}( +[-0-9.]+){4}  -( |$)' "$out" || {  # such as the one to a model that is unknown, above
  echo "FAILED: requests that belong to no model are told as slow: $(<"$out")"
  failures=$((failures + 1))
}
expect 0 '^no requests are known' slow digits --minutes=0.001
expect 1 'NOT_FOUND' slow nope
expect 2 'not a number' slow digits --minutes=yesterday
expect 0 '^READY  tilewire [0-9.]+ at ' top --interval=0.2
expect 0 '^digits +1 +[0-9.]+ .* [0-9.]+ +0 +0 +- +-$' top --interval=0.2 --model=digits
expect 0 '^[{].*"requests_per_s":' top --json --interval=0.2 --count=2
expect 0 '^cores [0-9.]+ of [0-9]+ busy  throttled ' top "$server_address" --interval=0.2 \
  --server=127.0.0.1:1
expect 1 'NOT_FOUND' top --model=nope
expect 1 'UNAVAILABLE.*127.0.0.1:1 ' top 127.0.0.1:1 --connect_timeout=0.2
expect 2 'not HOST:PORT' top localhost
expect 2 "'' is not HOST:PORT" top ''
expect 2 'several servers; top watches one' top "$server_address,$server_address"
expect 2 'not a number from 0.1' top --interval=0

# No server is asked.
expect 0 'loads +.*digits.*model.onnx +opset' check --server=127.0.0.1:1 "$digits"/1/model.onnx
expect 0 '"loads": true' check --json "$digits"/1/model.onnx
printf 'version https://git-lfs.github.com/spec/v1\n' >"$TEST_TMPDIR/pointer.onnx"
expect 1 'lacks +.*git lfs pull' check "$digits"/1/model.onnx "$TEST_TMPDIR/pointer.onnx"
expect 1 '1 of 2 files' check "$digits"/1/model.onnx "$TEST_TMPDIR/pointer.onnx"
expect 1 '"loads": false' check --json "$TEST_TMPDIR/pointer.onnx"
# Whether files could be trained, and what keeps them from it.
expect 0 '^  trains +[0-9]+ parameters of [0-9]+ elements' check --training "$digits"/1/model.onnx
expect 0 '"trains": true' check --training --json "$digits"/1/model.onnx
! grep -q trains <<<"$("$tilewire" check --json "$digits"/1/model.onnx)" || {
  echo 'FAILED: check tells of training unasked'
  failures=$((failures + 1))
}
expect 2 'is a folder; --training is of files' check --training "$digits"
# y = (x w mod x) mod x, where w would learn.
printf '%b' \
  '\x08\x07\x3a\x8b\x01\x0a\x11\x0a\x01x\x0a\x01w\x12\x01a\x1a\x01l\x22\x03Mul\x0a\x1e\x0a\x01a' \
  '\x0a\x01x\x12\x01b\x1a\x01m\x22\x03Mod\x2a\x0b\x0a\x04fmod\x18\x01\xa0\x01\x02\x0a\x1e\x0a' \
  '\x01b\x0a\x01x\x12\x01y\x1a\x01n\x22\x03Mod\x2a\x0b\x0a\x04fmod\x18\x01\xa0\x01\x02\x12\x01g' \
  '\x2a\x11\x08\x02\x10\x01B\x01wJ\x08\x00\x00\x80\x3f\x00\x00\x00\x40Z\x0f\x0a\x01x\x12\x0a' \
  '\x0a\x08\x08\x01\x12\x04\x0a\x02\x08\x02b\x0f\x0a\x01y\x12\x0a\x0a\x08\x08\x01\x12\x04\x0a' \
  '\x02\x08\x02B\x02\x10\x0d' \
  >"$TEST_TMPDIR/mod.onnx"
expect 1 '^  trains +no$' check --training "$TEST_TMPDIR/mod.onnx"
expect 1 "^           node 'n': mod has no gradient" check --training "$TEST_TMPDIR/mod.onnx"
expect 1 "^           node 'm': mod has no gradient" check --training "$TEST_TMPDIR/mod.onnx"
expect 1 '"trains": false' check --training --json "$TEST_TMPDIR/mod.onnx"
expect 0 '^loads ' check "$TEST_TMPDIR/mod.onnx"
expect 0 'serves   digits version 1 ' check deploy/models
expect 0 '1 of 1 models would be served' check "$digits"
expect 2 'a repository is checked alone' check deploy/models "$digits"/1/model.onnx
expect 0 "note +output 'features': label_filename 'nowhere.txt' is not in the model's folder" \
  check "$unbatched"
! grep -q "note.*names.txt" "$out" || {
  echo "FAILED: labels that are there are called missing: $(<"$out")"
  failures=$((failures + 1))
}
expect 0 "^ +\"output 'features': label_filename 'nowhere.txt'" check --json "$unbatched"
grep -q "'one_picture' version 1: output 'features': label_filename 'nowhere.txt'" "$server_log" || {
  echo "FAILED: the server does not say which labels are missing: $(<"$server_log")"
  failures=$((failures + 1))
}
# A file that is missing does not keep the others from being checked.
expect 1 'REFUSED  missing.onnx' check missing.onnx "$digits"/1/model.onnx
expect 1 'lacks +.*No such file' check missing.onnx "$digits"/1/model.onnx
expect 1 'loads +.*digits.*model.onnx +opset' check missing.onnx "$digits"/1/model.onnx
expect 1 '"lacks": ' check --json missing.onnx
expect 2 'required' check

primitive 'implementation +convolution/' \
  convolution --src=1x64x14x14 --weights=64x64x3x3 --padding=1 --relu
primitive 'GB/s, [0-9.]+ GFLOP/s' \
  convolution --src=1x64x14x14 --weights=64x64x3x3 --padding=1 --relu
primitive 'dst .*nChw(8|16)c' convolution --src=1x64x14x14 --weights=64x64x1x1 --dst=1x64x14x14
primitive 'cache hit' \
  convolution --src=1x64x14x14 --weights=64x64x3x3 --padding=1 --relu
primitive 'convolution/' convolution --src=2x16x9x9:nhwc --weights=32x4x3x3 \
  --groups=4 --strides=2 --bias --post_op sum
primitive 'inner_product/' inner_product --src=1x100 --weights=10x100 --bias
primitive 'inner_product/avx[0-9]+_f32_plain_weights' inner_product --src=16x300 --weights=40x300:io
primitive 'inner_product/reordered' inner_product --src=2x16x3x3:nhwc --weights=40x16x3x3:oihw
primitive 'convolution/reordered' convolution --src=1x64x28x28 --weights=64x64x3x3:oihw --padding=1
# Large enough that what else the machine does hides nothing: a second against a millisecond.
primitive 'named layouts +cost [0-9.]+ times' pooling --src=8x64x112x112:chwn --kernel=3 --strides=2
primitive 'pooling/' pooling --src=1x17x12x12:nhwc --kernel=3 --strides=2 --padding=1
primitive 'eltwise/' eltwise --src=1x17x5x5 --algorithm=tanh
primitive 'convolution/' convolution --src=1x36x5x5 --weights=40x36x3x3 --bias --precision=bf16
primitive 'inner_product/' inner_product --src=1x301 --weights=40x301 --precision=bf16
primitive 'softmax/' softmax --src=2x10 --axis=1
primitive 'sum/' sum --src 1x8x5x5 1x8x5x5 --scales 1 0.5
primitive 'concat/' concat --src 1x24x6x5 1x16x6x5 --axis=1
primitive 'shuffle/' shuffle --src=1x40x6x5 --group_size=10
primitive 'diff_src' shuffle --src=1x40x6x5 --group_size=10 --backward
primitive 'indices +s64:3x2' gather --src=2x9x4 --indices=s64:3x2 --axis=1
primitive 'dst +f32:2x9x9' gather --src=2x9x4:acb --indices=s32:9 --axis=2
primitive 'indices +s32:5' gather --src=u8:30x7 --indices=5 --axis=0
primitive 'gather/' gather --src=30x7 --indices=f32:5 --axis=0
primitive 'weights +f32:1x17x1x1:nhwc' prelu --src=2x17x5x5:nhwc --weights=1x17x1x1
primitive 'prelu/' prelu --src=2x17x5x5 --weights=1x1x1x1 --relu --prop=forward_training
# Gradients that each kind writes.
convolved=(convolution --src=2x16x9x9 --weights=32x16x3x3 --padding=1)
primitive 'diff_src +f32:2x16x9x9' "${convolved[@]}" --prop=backward_data
primitive 'not taken +[0-9]+ others?: does not run backward_data' "${convolved[@]}" --prop=backward_data
expect 1 'convolution runs --prop=.*, backward_data, backward_weights$' primitive "${convolved[@]}" --prop=backward
primitive 'src1 ' "${convolved[@]}" --prop=backward_data --post_op sum mask
primitive 'diff_weights +f32:32x16x3x3' "${convolved[@]}" --prop=backward_weights
primitive 'diff_bias +f32:32' "${convolved[@]}" --bias --prop=backward_weights
primitive 'diff_src' deconvolution --src=1x8x5x5 --weights=4x8x2x2 --prop=backward_data
primitive 'diff_weights' deconvolution --src=1x8x5x5 --weights=4x8x2x2 --prop=backward_weights
primitive 'diff_src' inner_product --src=3x100 --weights=10x100 --prop=backward_data
primitive 'diff_weights' inner_product --src=3x100 --weights=10x100 --prop=backward_weights
primitive 'diff_src' matmul --src=2x30x40 --weights=2x40x20 --prop=backward_data
primitive 'diff_weights' matmul --src=2x30x40 --weights=1x40x20 --prop=backward_weights
primitive 'workspace' pooling --src=1x17x12x12 --kernel=2 --strides=2 --prop=forward_training
primitive 'diff_src' pooling --src=1x17x12x12 --kernel=2 --strides=2 --prop=backward_data
primitive 'diff_src' pooling --src=1x17x12x12 --kernel=2 --algorithm=avg_exclude_padding --prop=backward_data
primitive 'diff_src' eltwise --src=1x17x5x5 --algorithm=gelu --prop=backward_data
primitive 'diff_src' softmax --src=2x10 --axis=1 --prop=backward_data
primitive 'diff_src' lrn --src=1x20x5x5 --local_size=5 --prop=backward_data
primitive 'diff_src1' binary --src 1x17x5x5 1x17x1x1 --algorithm=mul --prop=backward_data
primitive 'diff_src' resampling --src=1x17x5x5 --dst=1x17x9x9 --prop=backward_data
primitive 'diff_src' reduction --src=1x17x5x5 --dst=1x17x1x1 --algorithm=mean --prop=backward_data
primitive 'diff_weights' batch_normalization --src=2x17x5x5 --scale_shift --prop=backward
primitive 'diff_weights' layer_normalization --src=6x40 --scale_shift --prop=backward
primitive 'diff_src' layer_normalization --src=6x40 --prop=backward_data
primitive 'diff_weights +f32:30x7' gather --src=30x7 --indices=s64:2x40 --axis=0 --prop=backward_weights
primitive 'diff_weights +f32:1x17x1x1' prelu --src=2x17x5x5 --weights=1x17x1x1 --prop=backward
primitive 'diff_src +f32:2x17x5x5' prelu --src=2x17x5x5 --weights=2x17x5x5 --prop=backward_data
# A gradient whose dst has other sizes than a src in a layout with a name.
primitive 'diff_src' pooling --src=1x17x12x12:nhwc --kernel=2 --strides=2 --prop=backward_data
expect 1 'does not run backward_data' primitive gather --src=30x7 --indices=5 --axis=0 \
  --prop=backward_data --server="$server_address"
expect 1 'does not run backward_weights' primitive prelu --src=1x8 --weights=1x8 \
  --prop=backward_weights --server="$server_address"
expect 1 'cannot be broadcast to src' primitive prelu --src=1x8 --weights=8 --server="$server_address"
expect 1 'type s64 is for the indices of a gather alone' primitive eltwise --src=s64:1x8 \
  --server="$server_address"
expect 1 'indices of f32, s32 and s64 only' primitive gather --src=30x7 --indices=u8:5 --axis=0 \
  --server="$server_address"
expect 2 'gather needs --indices, for example' primitive gather --src=30x7
expect 2 "axis '2' is not in .0, 2." primitive gather --src=30x7 --indices=5 --axis=2
expect 2 'weights is missing, for example --weights=1x64x1x1' primitive prelu --src=30x7
expect 2 'binary does not take --indices' primitive binary --src 3x7 3x7 --indices=5
expect 1 'does not run backward_weights' primitive eltwise --src=1x8 \
  --prop=backward_weights --server="$server_address"
primitive 'dst .*nChw16c' reorder --src=1x17x5x5 --dst=1x17x5x5:nChw16c
expect 2 'which primitive' primitive --src=1x2

# Every help fits a terminal of 80 columns.
for command in '' models infer evaluate load report explain slow top check train tune primitive 'primitive bench' \
  'primitive convolution' implementations probe; do
  read -ra words <<<"$command"
  expect 0 'Usage: ' ${words[@]+"${words[@]}"} --help
  ! grep -E '^.{81}' "$out" || {
    echo "FAILED: the help of '$command' is wider than 80 columns"
    failures=$((failures + 1))
  }
done

# Options that a kind would ignore are refused, before a server is asked.
no_server=(--server=127.0.0.1:1)
deconvolution=(deconvolution --src=1x8x5x5 --weights=4x8x2x2)
expect 2 'deconvolution does not take --precision' primitive "${deconvolution[@]}" \
  --precision=bf16 "${no_server[@]}"
expect 2 'pooling does not take --weights' primitive pooling --src=1x2x3x4 --kernel=2 \
  --weights=1x2x3x4 "${no_server[@]}"
expect 2 'softmax does not take --relu' primitive softmax --src=1x9 --relu "${no_server[@]}"
expect 2 'matmul does not take --strides' primitive matmul --src=2x3 --weights=3x4 --strides=2 \
  "${no_server[@]}"
expect 1 'UNAVAILABLE' primitive "${deconvolution[@]}" --relu --connect_timeout=0.2 "${no_server[@]}"
expect 0 'weights' primitive deconvolution --help
! grep -q -- --precision "$out" || {
  echo "FAILED: the help of deconvolution has an option that it ignores"
  failures=$((failures + 1))
}

# The help of each kind has its own options only, and an example that runs.
expect 0 '^  kind \{convolution,deconvolution,' primitive --help
IFS=, read -ra kinds <<<"$(tr -d ' \n' <"$out" | sed 's/.*kind{\([^}]*\)}.*/\1/')"
for kind in "${kinds[@]}"; do
  expect 0 "^Usage: tilewire primitive $kind " primitive "$kind" --help
  read -ra example <<<"$(sed -e ':a;/\\$/{N;s/ *\\\n */ /;ba}' "$out" |
    sed -n "s/^  tilewire primitive \($kind .*\)/\1/p")"
  primitive "^implementation +$kind/" "${example[@]}"
done
expect 0 '^  --axis INT \[1\] +counted from 0$' primitive softmax --help
! grep -q -- --kernel "$out" || {
  echo "FAILED: the help of softmax has options of pooling"
  failures=$((failures + 1))
}
layers=$TEST_TMPDIR/layers.txt
printf '%s\n' '# the first' 'eltwise --src=1x16x9x9 --algorithm=tanh  # of two' '' \
  'convolution --src=1x16x9x9 --weights=16x16x3x3' >"$layers"
expect 0 '^ +[0-9.]+ .s +[0-9.]+ +[0-9.]+ +[0-9.]+  convolution/' primitive bench "$layers"
expect 0 'medians of 3 runs; highest peak [0-9.]+ GFLOP/s' primitive bench "$layers" --repeat=3
echo 'pooling --src=1x2x3x4' >>"$layers"
expect 2 'layers.txt:5: .*kernel' primitive bench "$layers"
echo 'eltwise --source=1' >"$layers"
expect 2 'layers.txt:1: ' primitive bench "$layers"
echo 'eltwise --src=1x2 --padding=1' >"$layers"
expect 2 'layers.txt:1: eltwise does not take --padding' primitive bench "$layers"
expect 2 'file' primitive bench
# A line that the server refuses does not keep the others from being timed.
printf '%s\n' 'convolution --src=1x64x9x9 --weights=64x64x3x3 --algorithm=winograd --strides=2' \
  'eltwise --src=1x16x9x9' 'gather --src=9x4 --indices=s64:3 --axis=0 --prop=backward_weights' \
  'prelu --src=1x16x9x9 --weights=1x16x1x1 --prop=backward' >"$layers"
expect 1 '^ +failed +convolution' primitive bench "$layers"
expect 1 'no implementation takes this descriptor; .*winograd.*strid' primitive bench "$layers"
expect 1 'eltwise/' primitive bench "$layers"
expect 1 'gather/slice_sum' primitive bench "$layers"
expect 1 'prelu/' primitive bench "$layers"
expect 1 "'bogus'; of rank 4 there are .*nchw, .*nChw16c" primitive reorder --src=1x2x3x4 --dst=1x2x3x4:bogus
expect 1 'primitive KIND --help' primitive convolution --src=1x64x28x28 --weights=64x63x3x3
expect 2 'kernel' primitive pooling --src=1x2x3x4

expect 0 '^[* ] avx2 +pooling/avx2_f32 +f32' implementations --primitive=pooling
expect 0 '^\* baseline +reorder/reference +f32 bf16 f16 s32 s8 u8' implementations
for kind in batch_normalization binary convolution deconvolution eltwise gather inner_product \
  layer_normalization lrn matmul pooling prelu reduction resampling softmax; do
  grep -qE "baseline +$kind/reference_backward" "$out" || {
    echo "FAILED: the implementations have no backward of $kind"
    failures=$((failures + 1))
  }
done

# Values that no option takes, each named.
expect 2 "'nan' is not a number from 0.01" load --model=digits --duration=nan
expect 2 "'nan' is not a number" infer --model=digits --mean=nan "$0"
expect 2 'not in range .*1' infer --model=digits --top=0 "$0"
expect 1 'takes .* MB; a message holds 2 GB' load --model=digits --batch=2000000000
expect 2 "'foo' is none of .*convolution" implementations --primitive=foo
expect 2 'is not HOST:PORT' --server=127.0.0.1:99999 probe
expect 2 "is a URL, not HOST:PORT: leave 'https://' out" --server=https://127.0.0.1:8001 probe
expect 2 '--model= has no value' load --model= --port=1
expect 2 'is empty' infer --model=digits /dev/null
expect 1 "NOT_FOUND: no model 'nope'" probe --model=nope --timeout=60

# Instruction sets of the CPU beyond those that any implementation needs are not reported as used.
listed=$(service/tilewire-server --list_implementations --max_isa=avx2)
[[ $listed == *'allowed: avx2, needed at most: avx2;'* ]] || {
  echo "FAILED: the instruction set that is needed: ${listed%%$'\n'*}"
  failures=$((failures + 1))
}

# Matrix tiles are in the list, without the mark of what a lower limit allows.
unmarked=$'\n  convolution +amx +convolution/amx_u8s8_direct'
[[ $listed =~ $unmarked ]] || {
  echo "FAILED: the implementations on matrix tiles: ${listed%%$'\n'*}"
  failures=$((failures + 1))
}

ends() {  # STATUS PATTERN SERVER_OPTION...
  local status=$1 pattern=$2 refused
  shift 2
  refused=$(service/tilewire-server "$@" 2>&1)
  [[ $? -eq $status && $refused =~ $pattern ]] && return
  echo "FAILED: $*: not status $status and '$pattern': $refused"
  failures=$((failures + 1))
}
refuse() { ends 2 "$@"; }
# A repository without a model, where none may come later, serves nothing and says what one looks like.
mkdir -p "$TEST_TMPDIR/empty/digits"
ends 1 'digits.*skipped.*<model>/<version>/model.onnx' --model_repository="$TEST_TMPDIR/empty" \
  --model_control=none
digits=deploy/models/digits
refuse 'half not in .*exact,fast,bf16' --model="$digits" --precision=half
refuse 'exclude each other' --model="$digits" --model_repository=deploy/models
refuse "two models are version 1 of 'digits'" --model="$digits" --model="$digits/1/model.onnx"
refuse '^tilewire-server: --transport_mb=16 has no room .*--max_message_mb=9: .* least 18 .* most 8$' \
  --model="$digits" --transport_mb=16 --max_message_mb=9
# A server to which too little is granted does not start, and says how much would do.
too_little=$(ulimit -v 125000 && service/tilewire-server --model="$digits" --port=0 --threads=1 2>&1)
[[ $? -eq 1 && $too_little =~ '122 MB that RLIMIT_AS (ulimit -v) grants'.*'at least '[0-9]+' MB' ]] || {
  echo "FAILED: without memory not status 1 and what is needed: $too_little"
  failures=$((failures + 1))
}
refuse "'latest:0' is neither 'all' nor 'latest:N'" --model="$digits" --versions=latest:0
refuse 'needs --model_control=explicit' --model="$digits" --load_model=digits
refuse "model 'digits' lies in two model repositories" --model_repository=deploy/models \
  --model_repository=deploy/models/../models
ends 1 '--load_model=cats: no such model' --model="$digits" --model_control=explicit --load_model=cats
ends 1 '--load_model=cats: no such model' --model_repository="$TEST_TMPDIR/empty" \
  --model_control=explicit --load_model=cats
ends 1 "model 'missing.onnx' does not exist" --model=missing.onnx --model_control=explicit
refuse 'is the name of one --model' --model="a=$digits" --model="b=$digits" --model_name=c
refuse 'has a name besides' --model="a=$digits" --model_name=c
refuse 'has no name before' "--model==$digits"
TILEWIRE_PROT=9 ends 1 'variable TILEWIRE_PROT is unknown and ignored; is TILEWIRE_PORT meant' \
  --model=missing
for program in client/tilewire service/tilewire-server; do
  "$program" --help >/dev/full 2>"$TEST_TMPDIR/full.txt" || {
    grep -q 'standard output' "$TEST_TMPDIR/full.txt" && continue
  }
  echo "FAILED: $program --help does not notice a full disk: $(<"$TEST_TMPDIR/full.txt")"
  failures=$((failures + 1))
done

# Answers of many megabytes do not hold up the end until the drain's time is over (30 s).
for attempt in 1 2 3; do
  expect 0 'answers that differ .*: 0' load --model=digits --batch=3000 --requests=2
  stopped_at=$SECONDS
  stop_server
  took=$((SECONDS - stopped_at))
  expect 1 'UNAVAILABLE' probe --timeout=0.2
  [[ $took -lt 25 ]] && break
  echo "attempt $attempt: the end took $took s"
  start_server
  export TILEWIRE_SERVER=$server_address
done
[[ $took -lt 25 ]] || failures=$((failures + 1))

# Every step of a plan, and every primitive, names the files that its code was dumped to.
mkdir "$TEST_TMPDIR/code"
/usr/bin/python3 - "$TEST_TMPDIR/argmax.onnx" <<'PYTHON'
import sys
from onnx import TensorProto, helper, save
x = helper.make_tensor_value_info('x', TensorProto.INT64, ['N', 4])
y = helper.make_tensor_value_info('y', TensorProto.INT64, ['N', 1])
node = helper.make_node('ArgMax', ['x'], ['y'], axis=1)
graph = helper.make_graph([node], 'argmax', [x], [y])
save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid('', 13)]),
     sys.argv[1])
PYTHON
start_server --dump_jit="$TEST_TMPDIR/code" --model=deploy/models/digits \
  --model="$TEST_TMPDIR/argmax.onnx"
export TILEWIRE_SERVER=$server_address
expect 0 'code convolution_.*[.][0-9]+[.]bin' explain digits --wide

# Outputs of integers are shown and written as they are.
printf '\0%.0s' {1..48} >"$TEST_TMPDIR/rows.raw"
printf '\7' | dd of="$TEST_TMPDIR/rows.raw" bs=1 seek=56 conv=notrunc status=none
truncate -s 64 "$TEST_TMPDIR/rows.raw"  # two rows of INT64, the largest of the second is its last
expect 0 '^  y: INT64 2x1$' infer --model=argmax --raw --output=y="$TEST_TMPDIR/y.raw" \
  "$TEST_TMPDIR/rows.raw"
expect 0 '^  3 ' infer --model=argmax --raw "$TEST_TMPDIR/rows.raw"
[[ $(od -An -td8 "$TEST_TMPDIR/y.raw" | tr -s ' ') == ' 0 3' ]] || {
  echo "FAILED: the written integers are $(od -An -td8 "$TEST_TMPDIR/y.raw")"
  failures=$((failures + 1))
}
expect 0 'code dumped     eltwise_.*[.]bin' primitive eltwise --src=1x64x9x9 --algorithm=tanh --repeat=1
client/tilewire --connect_timeout=60 explain digits --json >"$TEST_TMPDIR/plan.json"
/usr/bin/python3 - "$TEST_TMPDIR/plan.json" "$TEST_TMPDIR/code" <<'PYTHON' || failures=$((failures + 1))
import json, os, sys
steps = json.load(open(sys.argv[1]))['steps']
convolutions = [step for step in steps if step['implementation'].startswith('convolution/')]
assert convolutions and all(step['dumps'] for step in convolutions), steps
for step in steps:
    for dump in step['dumps']:
        assert os.path.getsize(os.path.join(sys.argv[2], dump)) > 0, dump
PYTHON
stop_server

# Versions that are not served are listed, and not asked about.
start_server --model_control=explicit
export TILEWIRE_SERVER=$server_address
expect 0 '^digits +version 1 +not ready' models
! grep -q 'ModelMetadata' "$server_log" || {
  echo "FAILED: the list of models asks about those that are not ready: $(<"$server_log")"
  failures=$((failures + 1))
}
stop_server

# Several models by name, of which one is a folder.
start_server --model="cats=$digits" --model="$digits/1/model.onnx"
export TILEWIRE_SERVER=$server_address
expect 0 '^cats ' models
expect 0 '^digits ' models
stop_server
[[ $failures -eq 0 ]] || { echo "$failures failures"; exit 1; }
