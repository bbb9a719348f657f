#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `tilewire train` as a user runs it, on the digits: no server is there.
set -uo pipefail

source tests/support/expect.sh
heldout=$TEST_TMPDIR/heldout
model=$TEST_TMPDIR/digits.onnx new=$TEST_TMPDIR/new.onnx
cp -L deploy/models/digits/1/model.onnx "$model"
mkdir "$heldout"
head -c $((100 * 3 * 24 * 20)) deploy/models/digits/heldout/images.u8 >"$heldout/images.u8"
head -c 100 deploy/models/digits/heldout/labels.u8 >"$heldout/labels.u8"
ln "$model" "$TEST_TMPDIR/same.onnx"
pictures=(--images="$heldout/images.u8" --labels="$heldout/labels.u8" --shape=3x24x20)
train=(train "$model" "${pictures[@]}")

expect 0 'tilewire train resnet50.onnx --folder' train --help

# Flags that are wrong or have no effect.
expect 2 'output.* is required|requires? .*output' "${train[@]}"
expect 2 '--images with --labels, or --folder is required' train "$model" -o "$new"
expect 2 'excludes' "${train[@]}" --folder="$heldout" -o "$new"
expect 2 'has no header: --shape=CxHxW of one example is required' \
  train "$model" "${pictures[@]:0:2}" -o "$new"
touch "$TEST_TMPDIR/x.npz"
expect 2 'x.npz is an archive: save one array' train "$model" --images="$TEST_TMPDIR/x.npz" "${pictures[1]}" -o "$new"
expect 2 'shape=3x0x20 is not a shape of numbers from 1' \
  train "$model" "${pictures[@]:0:2}" --shape=3x0x20 -o "$new"
expect 2 'is the model itself, which stays as it is: name another file' "${train[@]}" -o "$model"
expect 2 'is the model itself' "${train[@]}" -o "$TEST_TMPDIR/same.onnx"
expect 2 'html=.* is the model itself' "${train[@]}" -o "$new" --html="$model"
expect 2 '--output and --html name the same file' "${train[@]}" -o "$new" --html="$new"
expect 2 'there is no folder' "${train[@]}" -o "$TEST_TMPDIR/none/new.onnx"
expect 2 "output: a file's name is required" "${train[@]}" -o ''
mkfifo "$TEST_TMPDIR/pipe"
expect 2 'pipe is not a regular file, and would be replaced by one' "${train[@]}" -o "$TEST_TMPDIR/pipe"
expect 2 'cannot be written: File name too long' "${train[@]}" -o "$TEST_TMPDIR/$(printf 'x%.0s' {1..245})"
expect 2 'there is no folder .*no\?\[2J' "${train[@]}" -o "$TEST_TMPDIR/no"$'\e[2J'/new.onnx
for share in 1 -0.5 nan; do
  expect 2 "hold_out=$share is not a share from 0 to below 1" "${train[@]}" -o "$new" --hold_out=$share
done
expect 2 'hold_out=0.001 of 100 examples holds out 0' "${train[@]}" -o "$new" --hold_out=0.001
expect 2 'loss.*not in' "${train[@]}" -o "$new" --loss=hinge
for loss in logits cross_entropy:1 :mse:1 logits:mse logits:mse: logits:mse:0 logits:mse:-1 logits:mse:nan logits:hinge:1; do
  expect 2 "add_loss=$loss: (OUTPUT:LOSS:FACTOR is required|the factor '.*' is not a number above 0|'hinge' is not one)" \
    "${train[@]}" -o "$new" --add_loss="$loss"
done
expect 2 'gives classes, which --loss=cross_entropy takes and mse does not' \
  train "$model" --folder="$TEST_TMPDIR" --add_loss=logits:mse:1 -o "$new"
expect 2 'lr.*-1' "${train[@]}" -o "$new" --lr=-1
expect 2 'lr=0 changes no parameter: a rate above 0 is required' "${train[@]}" -o "$new" --lr=0
expect 2 'epochs.*0' "${train[@]}" -o "$new" --epochs=0
expect 2 "label_smoothing.*'1' is not a number from 0 to below 1" \
  "${train[@]}" -o "$new" --label_smoothing=1
expect 2 "beta2.*'1' is not a number from 0 to below 1" \
  "${train[@]}" -o "$new" --optimizer=adam --beta2=1
expect 2 'class_weights: all are 0' "${train[@]}" -o "$new" --class_weights=0,0
expect 2 "class_weights: '-1' is not a number from 0" "${train[@]}" -o "$new" --class_weights=1,-1
expect 2 "class_weights: 3 numbers for the 10 classes of output 'logits'" \
  "${train[@]}" -o "$new" --class_weights=1,2,0.5
for flag in beta1=0.5 epsilon=1e-6 delta=2 step_epochs=2 step_factor=0.5 power=2 least_lr=0.1; do
  expect 2 "--${flag%=*} has no effect here: it belongs to" "${train[@]}" -o "$new" --"$flag"
done
expect 2 'momentum has no effect here: it belongs to --optimizer=sgd' \
  "${train[@]}" -o "$new" --optimizer=adam --momentum=0.9
expect 2 'nesterov has no effect here: it needs a --momentum' "${train[@]}" -o "$new" --nesterov
expect 2 'least_lr=0.1 is above the learning rate, --lr=0.01' \
  "${train[@]}" -o "$new" --schedule=cosine --least_lr=0.1
expect 2 'recalibrate has no effect here: --frozen_statistics keeps' \
  "${train[@]}" -o "$new" --frozen_statistics --recalibrate
expect 2 "average.*'1' is not a number from 0 to below 1" "${train[@]}" -o "$new" --average=1
expect 2 'torchvision has no effect here' "${train[@]}" -o "$new" --torchvision=resnet50

# Examples that do not fit the model, or each other.
expect 2 'examples of 3x20x24 do not fit the input .image., which is Nx3x24x20' \
  train "$model" "${pictures[@]:0:2}" --shape=3x20x24 -o "$new"
expect 2 'images.u8 has 144000 bytes, not a multiple of 1001' \
  train "$model" "${pictures[@]:0:2}" --shape=7x11x13 -o "$new"
head -c 99 "$heldout/labels.u8" >"$TEST_TMPDIR/short.u8"
expect 2 'short.u8 is of shape 99; 100 examples need one label each' train "$model" \
  "${pictures[0]}" --shape=3x24x20 --labels="$TEST_TMPDIR/short.u8" -o "$new"
{ printf '\012'; tail -c 99 "$heldout/labels.u8"; } >"$TEST_TMPDIR/eleven.u8"
expect 2 'eleven.u8: 10 of example 0 is not one of the 10 classes 0 to 9 .output .logits.' \
  train "$model" "${pictures[0]}" --shape=3x24x20 --labels="$TEST_TMPDIR/eleven.u8" -o "$new"
expect 2 'labels.u8 is of shape 100; 100 examples need targets of 10 each' \
  "${train[@]}" --loss=mse -o "$new"
for flag in label_smoothing=0.1 ignore_index=3 class_weights=1,2; do
  expect 2 "--${flag%=*} has no effect here: it belongs to --loss=cross_entropy" \
    "${train[@]}" --loss=mse --"$flag" -o "$new"
done
expect 2 'nor --ignore_index=11 .output' \
  train "$model" "${pictures[0]}" --shape=3x24x20 --labels="$TEST_TMPDIR/eleven.u8" --ignore_index=11 -o "$new"
expect 2 "loss_output=nowhere: there is no output 'nowhere'; the model has 'logits'" \
  "${train[@]}" --loss_output=nowhere -o "$new"
expect 2 "add_loss=a:b:mse:1: there is no output 'a:b'; the model has 'logits'" \
  "${train[@]}" --add_loss=a:b:mse:1 -o "$new"
expect 2 'labels.u8 is of shape 100; 100 examples need targets of 10 each' \
  "${train[@]}" --add_loss=logits:mse:1 -o "$new"
expect 2 "only=nothing[*]: matches no parameter; there are 'stem" \
  "${train[@]}" --only='nothing*' -o "$new"
expect 2 'digits.onnx: all parameters of the model are frozen' "${train[@]}" --freeze='*' -o "$new"
expect 2 'labels.u8: not a model' train "$heldout/labels.u8" "${pictures[@]}" -o "$new"
expect 1 'FAILED_PRECONDITION: 10 updates in a row were skipped' "${train[@]}" --lr=1e30 -o "$new"
expect 1 '"failure": "FAILED_PRECONDITION: 10 updates in a row' \
  "${train[@]}" --lr=1e30 --json --html="$TEST_TMPDIR/failed.html" -o "$new"
grep -q 'class=bad>FAILED_PRECONDITION: 10 updates' "$TEST_TMPDIR/failed.html" ||
  failed 'the page does not tell of the failure'
mkdir -p "$TEST_TMPDIR/empty" "$TEST_TMPDIR/pictures/"{eight,three}
expect 2 'is empty; it must have a folder of pictures for each class' \
  train "$model" --folder="$TEST_TMPDIR/empty" -o "$new"
cp -L deploy/models/digits/pictures/8.png "$TEST_TMPDIR/pictures/eight"
expect 2 'the class folder .*/three. has no picture' \
  train "$model" --folder="$TEST_TMPDIR/pictures" -o "$new"
echo text >"$TEST_TMPDIR/pictures/three/text.png"
expect 2 'three/text.png: not a PGM .P5., PPM .P6., PNG or JPEG picture' \
  train "$model" --folder="$TEST_TMPDIR/pictures" -o "$new"
cp "$TEST_TMPDIR/pictures/three/text.png" "$TEST_TMPDIR/pictures/eight/words.jpg"
expect 2 '2 of 3 pictures are refused: .*eight/words.jpg: not a PGM.*; .*three/text.png: not a PGM' \
  train "$model" --folder="$TEST_TMPDIR/pictures" -o "$new"
rm "$TEST_TMPDIR/pictures/eight/words.jpg"
expect 1 'every update, 1 in all, was skipped' "${train[@]}" --epochs=1 --batch=100 --scale=1e38 -o "$new"
expect 1 'the last . updates of 5 were skipped, .*ruined the parameters; a smaller --lr' \
  "${train[@]}" --lr=1e30 --epochs=1 --batch=20 -o "$new"
expect 2 'examples of 1x24x20 do not fit the input' \
  train "$model" --folder="$TEST_TMPDIR/pictures" --shape=1x24x20 -o "$new"
! grep -q 'pictures read' "$out" || failed 'pictures were read before it was asked whether they fit'
[[ ! -e $new ]] || failed 'something was written by trainings that were refused'
expect 0 '^warning   the loss rose: ' "${train[@]}" --epochs=2 --lr=1e3 -o "$TEST_TMPDIR/worse.onnx"

# A training, its file and its page.
run=("${train[@]}" --epochs=2 --lr=0.01 --momentum=0.9 --batch=50 --hold_out=0.1)
expect 0 '^written +.*/new.onnx$' "${run[@]}" --threads=1 --html="$TEST_TMPDIR/page.html" -o "$new"
grep -qE '^epoch 2: loss .*, held out: loss .*, accuracy [01]\.' "$out" || failed 'no line of an epoch'
grep -qE '90 examples, 10 held out$' "$out" || failed 'no line of the examples'
grep -q '<polyline' "$TEST_TMPDIR/page.html" || failed 'no curve in the page'
expect 0 '^loads ' check "$new"
! cmp -s "$model" "$new" || failed 'the file that is written is the model as it was'
expect 0 '"written": ".*two.onnx"' "${run[@]}" --threads=2 --json -o "$TEST_TMPDIR/two.onnx"
cmp "$new" "$TEST_TMPDIR/two.onnx" || failed 'two threads wrote other bits'
expect 0 '^written' "${run[@]}" --seed=4 -o "$TEST_TMPDIR/other.onnx"
! cmp -s "$new" "$TEST_TMPDIR/other.onnx" || failed 'another seed wrote the same bits'
once=("${train[@]}" --epochs=2 --hold_out=0.1)
expect 0 '^written' "${once[@]}" --lr=0.03125 -o "$TEST_TMPDIR/other.onnx"
expect 0 '^written' "${once[@]}" --lr=0.0078125 --add_loss=logits:cross_entropy:1 \
  --add_loss=logits:cross_entropy:2 -o "$TEST_TMPDIR/two.onnx"
cmp "$TEST_TMPDIR/other.onnx" "$TEST_TMPDIR/two.onnx" || failed 'a loss that is added four times is not four times the loss'
# A label that is ignored does what a weight of 0 does to its class, and the same to a class of its own.
expect 0 '^held out .* accuracy [^;]* of 8[0-9]*\)' "${train[@]}" --epochs=2 --hold_out=0.9 --batch=5 --ignore_index=3 \
  -o "$TEST_TMPDIR/other.onnx"
expect 0 '^held out .* accuracy [^;]* of 90\)' "${train[@]}" --epochs=2 --hold_out=0.9 --batch=5 --class_weights=1,1,1,0,1,1,1,1,1,1 \
  -o "$TEST_TMPDIR/two.onnx"
cmp "$TEST_TMPDIR/other.onnx" "$TEST_TMPDIR/two.onnx" || failed 'an ignored label is not one of weight 0'
expect 0 '^written' train "$model" "${pictures[0]}" --shape=3x24x20 --labels="$TEST_TMPDIR/eleven.u8" \
  --ignore_index=10 --epochs=1 -o "$TEST_TMPDIR/two.onnx"
for flags in --average=0.9 --recalibrate; do
  expect 0 '^written' "${run[@]}" "$flags" -o "$TEST_TMPDIR/other.onnx"
  ! cmp -s "$new" "$TEST_TMPDIR/other.onnx" || failed "$flags changed nothing"
done
expect 0 '^written' "${train[@]}" --epochs=1 --lr=0 --recalibrate -o "$TEST_TMPDIR/other.onnx"
! cmp -s "$model" "$TEST_TMPDIR/other.onnx" || failed 'statistics were not taken anew'
cp -L deploy/models/digits/pictures/3.png "$TEST_TMPDIR/pictures/three/text.png"
expect 0 'has 2 class folders; no example is of the other 8 of 10' \
  train "$model" --folder="$TEST_TMPDIR/pictures" --epochs=1 -o "$new"
expect 0 '^note: --warm_up=2 is all of the training, which has 1 update: the rate only rises' \
  train "$model" --folder="$TEST_TMPDIR/pictures" --epochs=1 --warm_up=2 -o "$new"
expect 0 '^note: every update has one example' \
  train "$model" --folder="$TEST_TMPDIR/pictures" --epochs=1 --batch=1 -o "$new"
expect 0 '"three"' train "$model" --folder="$TEST_TMPDIR/pictures" --epochs=1 --json \
  --html="$TEST_TMPDIR/classes.html" -o "$new"
grep -q '<td>1<td>three' "$TEST_TMPDIR/classes.html" || failed 'no table of classes in the page'
ln -s "$new" "$TEST_TMPDIR/link.onnx"
expect 0 '^class 1: three$' train "$model" --folder="$TEST_TMPDIR/pictures" --epochs=1 -o "$TEST_TMPDIR/link.onnx"
[[ -L $TEST_TMPDIR/link.onnx ]] || failed 'a symbolic link was replaced'
mkdir "$TEST_TMPDIR/linked" && ln -s linked/new.onnx "$TEST_TMPDIR/early.onnx"
expect 0 '^class 1: three$' train "$model" --folder="$TEST_TMPDIR/pictures" --epochs=1 -o "$TEST_TMPDIR/early.onnx"
[[ -L $TEST_TMPDIR/early.onnx && -s $TEST_TMPDIR/linked/new.onnx ]] || failed 'a link to no file yet was replaced'
! ls "$TEST_TMPDIR"/*.new 2>/dev/null || failed 'a trial file is left'

# Whether a file could be trained: what is said of serving is said once.
# y = Dropout(x w + z), which drops when it is served.
printf '%b' \
  '\x08\x08\x3a\x8c\x01\x0a\x0e\x0a\x01x\x0a\x01w\x12\x01a\x22\x03Mul\x0a\x0e\x0a\x01a\x0a' \
  '\x01z\x12\x01b\x22\x03Add\x0a\x17\x0a\x01b\x0a\x00\x0a\x01t\x12\x01y\x1a\x01d\x22\x07Dro' \
  'pout\x12\x01g\x2a\x11\x08\x02\x10\x01B\x01wJ\x08\x00\x00\x80\x3f\x00\x00\x00\x40\x2a\x08' \
  '\x10\x09B\x01tJ\x01\x01Z\x0f\x0a\x01x\x12\x0a\x0a\x08\x08\x01\x12\x04\x0a\x02\x08\x02Z' \
  '\x0f\x0a\x01z\x12\x0a\x0a\x08\x08\x01\x12\x04\x0a\x02\x08\x02b\x0f\x0a\x01y\x12\x0a\x0a' \
  '\x08\x08\x01\x12\x04\x0a\x02\x08\x02B\x04\x0a\x00\x10\x0d' \
  >"$TEST_TMPDIR/drops.onnx"
expect 0 'opset 13, 3 nodes' check --training "$TEST_TMPDIR/drops.onnx"
expect 0 'it has 2 inputs: `tilewire train` takes models with one' check --training "$TEST_TMPDIR/drops.onnx"
[[ $(grep -c 'training_mode is true' "$out") == 1 ]] || failed 'a note is told twice'

# Ctrl-C: what was learned by then is written.
mkfifo "$TEST_TMPDIR/lines"
"$tilewire" "${train[@]}" --epochs=100000 -o "$TEST_TMPDIR/stopped.onnx" \
  >"$out" 2>"$TEST_TMPDIR/lines" &
while read -r line; do
  [[ $line != 'epoch 1:'* ]] || kill -INT $!
  echo "$line"
done <"$TEST_TMPDIR/lines" >"$TEST_TMPDIR/told"
wait $!
[[ $? -eq 130 ]] || failed 'Ctrl-C did not end it with 130'
grep -q 'a signal ended the training after update .*stopped.onnx has what was learned by then' \
  "$TEST_TMPDIR/told" || failed "Ctrl-C was not told of: $(cat "$TEST_TMPDIR/told")"
expect 0 '^loads ' check "$TEST_TMPDIR/stopped.onnx"

# A terminal that is closed, too, unless nohup has it ignored.
env --default-signal=HUP "$tilewire" "${train[@]}" --epochs=100000 -o "$TEST_TMPDIR/closed.onnx" \
  >"$out" 2>"$TEST_TMPDIR/lines" &
while read -r line; do
  [[ $line != 'epoch 1:'* ]] || kill -HUP $!
done <"$TEST_TMPDIR/lines"
wait $!
[[ $? -eq 129 ]] || failed 'SIGHUP did not end it with 129'
expect 0 '^loads ' check "$TEST_TMPDIR/closed.onnx"
(
  trap '' HUP
  exec "$tilewire" "${train[@]}" --epochs=3 -o "$TEST_TMPDIR/closed.onnx" 2>"$TEST_TMPDIR/lines" >"$out"
) &
while read -r line; do
  [[ $line != 'epoch 1:'* ]] || kill -HUP $!
done <"$TEST_TMPDIR/lines"
wait $! || failed 'SIGHUP ended what ignores it'

# A disk without room is told of before the first update.
(
  ulimit -f 100
  expect 1 'output=.*/large.onnx: .*File too large' "${train[@]}" --epochs=100000 -o "$TEST_TMPDIR/large.onnx"
  exit $((failures > 0))
) || failures=$((failures + 1))
[[ ! -e $TEST_TMPDIR/large.onnx ]] || failed 'a part of a file is left'

# The parameters are kept where the place of the file is lost meanwhile.
mkdir "$TEST_TMPDIR/gone" "$TEST_TMPDIR/temporary"
TMPDIR=$TEST_TMPDIR/temporary "$tilewire" "${train[@]}" --epochs=100000 -o "$TEST_TMPDIR/gone/kept.onnx" \
  >"$out" 2>"$TEST_TMPDIR/lines" &
while read -r line; do
  [[ $line != 'epoch 1:'* ]] || { rm -r "$TEST_TMPDIR/gone" && kill -INT $!; }
  echo "$line"
done <"$TEST_TMPDIR/lines" >"$TEST_TMPDIR/told"
wait $!
[[ $? -eq 1 ]] || failed 'a file that could not be written did not end it with 1'
kept=$(sed -n 's/^What was learned is in //p' "$TEST_TMPDIR/told")
[[ $kept == "$TEST_TMPDIR"/temporary/tilewire-*/kept.onnx ]] ||
  failed "it is not told where the parameters are: $(cat "$TEST_TMPDIR/told")"
expect 0 '^loads ' check "$kept"

exit $((failures > 0))
