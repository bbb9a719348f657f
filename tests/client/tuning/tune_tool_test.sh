#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `tilewire tune` as a user runs it, on the digits; what it writes is served.
set -uo pipefail

source tests/support/expect.sh
source tests/integration/start_server.sh
digits=deploy/models/digits
model=$TEST_TMPDIR/digits.onnx new=$TEST_TMPDIR/digits_int8.onnx
cp -L "$digits/1/model.onnx" "$model"
images=$digits/heldout/images.u8 labels=$digits/heldout/labels.u8
array=(--array="$images" --shape=3x24x20)
budget=(--budget='top1_changed<=1%')
# One thread: with several, each run waits until the machine has a core for all of them.
tune=(tune "$model" "${array[@]}" "${budget[@]}" --threads=1)

expect 0 'tilewire tune models/resnet50/1/model.onnx --images' tune --help

# Flags that are wrong or have no effect, files that do not fit.
expect 2 'budget or --goal is required: the error' tune "$model" "${array[@]}" --qdq="$new"
expect 2 'tuning or --qdq is required' "${tune[@]}"
expect 2 "budget: 'l3' is not a measure; a budget is top1_changed<=0.5%" \
  tune "$model" "${array[@]}" --budget='l3<=1' --qdq="$new"
expect 2 "budget: 'l2>=1': l2 is compared by <=" tune "$model" "${array[@]}" --budget='l2>=1' --qdq="$new"
expect 2 'time=5 is not a time above 0, such as 90s' "${tune[@]}" --qdq="$new" --time=5
expect 2 'is the model itself, which stays as it is' "${tune[@]}" --qdq="$model"
cp "$images" "$TEST_TMPDIR/own.u8"
expect 2 'is a file of --array, which stays as it is' tune "$model" --array="$TEST_TMPDIR/own.u8" \
  --shape=3x24x20 "${budget[@]}" --qdq="$TEST_TMPDIR/own.u8"
expect 2 '--qdq and --html name the same file' "${tune[@]}" --qdq="$new" --html="$new"
expect 2 'there is no folder' "${tune[@]}" --qdq="$TEST_TMPDIR/none/new.onnx"
mkfifo "$TEST_TMPDIR/pipe"
expect 2 'pipe is not a regular file, and would be replaced by one' "${tune[@]}" --qdq="$TEST_TMPDIR/pipe"
expect 2 'hold_out.*1.5' "${tune[@]}" --qdq="$new" --hold_out=1.5
expect 2 'precisions.*fp8' "${tune[@]}" --qdq="$new" --precisions=fp8
expect 2 'a QDQ file has no products of bf16; --tuning keeps them' \
  "${tune[@]}" --qdq="$new" --precisions=exact,bf16
expect 2 'rows has no effect here: a QDQ file has no rows' "${tune[@]}" --qdq="$new" --rows
expect 2 'precisions=exact: nothing would change without --rows' \
  "${tune[@]}" --qdq="$new" --precisions=exact
expect 2 'torchvision has no effect here' "${tune[@]}" --qdq="$new" --torchvision=resnet50
expect 2 'made_up has no effect here: inputs are given' "${tune[@]}" --qdq="$new" --made_up=9
expect 2 'shape has no effect here' tune "$model" "${budget[@]}" --qdq="$new" --shape=3x24x20
expect 2 'has no header: --shape=CxHxW of one example is required' \
  tune "$model" --array="$images" "${budget[@]}" --qdq="$new"
expect 2 "array=mask=$images names none of the model's inputs, which are 'image'" \
  tune "$model" --array="mask=$images" --shape=3x24x20 "${budget[@]}" --qdq="$new"
expect 2 'do not fit the input .image.' tune "$model" --array="$images" --shape=3x20x24 "${budget[@]}" --qdq="$new"
head -c 1440 "$images" >"$TEST_TMPDIR/one.u8"
expect 2 '1 example: at least 2 are needed' \
  tune "$model" --array="$TEST_TMPDIR/one.u8" --shape=3x24x20 "${budget[@]}" --qdq="$new"
expect 2 'example 0: element 0 of input .image. is not finite' "${tune[@]}" --scale=3e38 --std=1e-38 --qdq="$new"
expect 2 "the model has no output 'scores'; it has 'logits', 'features'" \
  tune "$model" "${array[@]}" --budget='l2(scores)<=1' --qdq="$new"
expect 2 'labels.u8: not a model' tune "$labels" "${array[@]}" "${budget[@]}" --qdq="$new"
mkdir "$TEST_TMPDIR/empty"
expect 2 'images=.*/empty has no picture' tune "$model" --images="$TEST_TMPDIR/empty" "${budget[@]}" --qdq="$new"
mkdir "$TEST_TMPDIR/broken" && cp -L "$digits"/pictures/* "$TEST_TMPDIR/broken"
echo text >"$TEST_TMPDIR/broken/labels.txt" && head -c 60 "$digits/pictures/3.png" >"$TEST_TMPDIR/broken/cut.png"
expect 2 '2 of 5 pictures are refused: .*cut.png: PNG: .*; .*labels.txt: not a PGM' \
  tune "$model" --images="$TEST_TMPDIR/broken" "${budget[@]}" --qdq="$new"
rm "$TEST_TMPDIR/broken/labels.txt" "$TEST_TMPDIR/broken/cut.png"
expect 2 'tilewire: INVALID_ARGUMENT: --torchvision=resnet50 makes 3x224x224 of a picture, input .*' \
  tune "$model" --images="$TEST_TMPDIR/broken" --torchvision=resnet50 "${budget[@]}" --qdq="$new"
expect 2 "budget: '1' is all answers" tune "$model" "${array[@]}" --budget='top1_changed<=1' --qdq="$new"

# Goals and labels.
expect 2 'budget=accuracy_drop<=1% needs the right classes: --labels=FILE, or pictures in a folder' \
  tune "$model" "${array[@]}" --budget='accuracy_drop<=1%' --qdq="$new"
expect 2 'goal=fast is not a speed above 1, up to 100, such as 2x' "${tune[@]}" --qdq="$new" --goal=fast
expect 2 'goal=1x is not a speed above 1' "${tune[@]}" --qdq="$new" --goal=1x
expect 2 'labels has no effect here: inputs that are made up' \
  tune "$model" "${budget[@]}" --qdq="$new" --labels="$labels"
expect 2 'labels=.*one.u8 has 1440 labels for 360 examples' \
  "${tune[@]}" --qdq="$new" --labels="$TEST_TMPDIR/one.u8"
expect 2 'labels excludes --folder|folder excludes --labels' \
  tune "$model" "${budget[@]}" --qdq="$new" --labels="$labels" --folder="$digits/pictures"
mkdir -p "$TEST_TMPDIR/classes/a" "$TEST_TMPDIR/classes/b"
pictures=("$digits"/pictures/*)
cp -L "${pictures[0]}" "$TEST_TMPDIR/classes/a" && cp -L "${pictures[1]}" "$TEST_TMPDIR/classes/b"
expect 2 'folder has 2 folders, and the output .logits. 10 classes: each class needs its folder' \
  tune "$model" "${budget[@]}" --qdq="$new" --folder="$TEST_TMPDIR/classes"
for class in c d e f g h i j; do
  mkdir "$TEST_TMPDIR/classes/$class" && cp -L "${pictures[2]}" "$TEST_TMPDIR/classes/$class"
done
expect 0 'accuracy .* of 5 held out' tune "$model" --budget='l2<=1' --precisions=int8 --threads=1 \
  --folder="$TEST_TMPDIR/classes" --qdq="$TEST_TMPDIR/of_folder.onnx"
expect 1 'nothing was found that is 100x as fast as the exact model' tune "$model" "${array[@]}" --goal=100x \
  --threads=1 --time=120s --qdq="$TEST_TMPDIR/of_goal.onnx"
grep -q 'tuned: .*x, 100x wanted' "$out" || failed 'the nearest to the goal is not told'
[[ ! -e $TEST_TMPDIR/of_goal.onnx ]] || failed 'what misses the goal was written'

# A disk that is full: nothing half written, the old file as it was, and the report all the same.
full=(tune "$model" --array="$images" --shape=3x24x20 --budget='l2<=1' --precisions=int8 --threads=1 --hold_out=0.9)
mkdir "$TEST_TMPDIR/full" && cp "$model" "$TEST_TMPDIR/full/model.onnx" && echo old >"$TEST_TMPDIR/full/tilewire.tuning"
(ulimit -f 1 && "$tilewire" tune "$TEST_TMPDIR/full/model.onnx" "${full[@]:2}" --tuning) >"$out" 2>"$TEST_TMPDIR/told"
got=$?
[[ $got -eq 1 ]] || failed "status $got on a full disk: $(cat "$TEST_TMPDIR/told")"
[[ $(ls "$TEST_TMPDIR/full") == $'model.onnx\ntilewire.tuning' ]] || failed "left: $(ls "$TEST_TMPDIR/full")"
[[ $(cat "$TEST_TMPDIR/full/tilewire.tuning") == old ]] || failed 'the old tuning is gone'
expect 1 "cannot write '/dev/full'" "${full[@]}" --qdq="$TEST_TMPDIR/whole.onnx" --html=/dev/full
expect 0 '^loads ' check "$TEST_TMPDIR/whole.onnx"

# A budget that nothing keeps: the nearest is told, and nothing is written.
small=(tune "$model" --images="$digits/pictures" --hold_out=0.3 --threads=1)
expect 1 'held out +the nearest: ' "${small[@]}" --budget='l2<=1e-9' --qdq="$new"
[[ ! -e $new ]] || failed 'something was written'
expect 0 'warning: no --images, no --folder and no --array: 4 inputs are made up' \
  tune "$model" --made_up=4 --threads=1 --budget='l2<=1' --precisions=int8 --qdq="$TEST_TMPDIR/made_up.onnx"

# The whole: tuned, loaded, served, and as right as before.
expect 0 'of 11 layers int8, written to .*digits_int8.onnx$' \
  tune "$model" "${array[@]}" --budget='accuracy_drop<=1%' --labels="$labels" --threads=1 --qdq="$new"
grep -qE '^held out   -?[0-9.]+ % of 180 examples, between -?[0-9.]+ % and' "$out" || failed 'no drop with its interval'
grep -qE '^in turns   exact [0-9.]+ ms.*, all int8 [0-9.]+ ms' "$out" || failed 'no comparison of whole models'
# The file that is served below has integers, whether they are faster here or not.
expect 0 '11 of 11 layers int8, written to .*digits_int8.onnx$' "${tune[@]}" --precisions=int8 --qdq="$new" \
  --html="$TEST_TMPDIR/page.html" --labels="$labels"
grep -qE '^accuracy   9[0-9.]+ % exact \(between .* % tuned .*, of 180 held out' "$out" || failed 'no accuracy'
grep -qE '^answers    [0-9]+ of 180 changed: ' "$out" || failed 'no count of changed answers'
grep -qE '^memory     [0-9.]+ [kM]B exact, ' "$out" || failed 'no memory'
grep -qE '^held out   [0-9.]+ % of 180 examples, between' "$out" || failed 'no error with its interval'
grep -q 'Tuning of ' "$TEST_TMPDIR/page.html" || failed 'no page'
expect 0 '^loads ' check "$new"
expect 2 'the model is quantized already' tune "$new" "${array[@]}" "${budget[@]}" --qdq="$TEST_TMPDIR/twice.onnx"
start_server --model=digits_int8="$new"
expect 0 'all outputs agree bit for bit' evaluate --server="$server_address" --model=digits_int8 \
  --images="$images" --labels="$labels" --shape=3x24x20 --min_accuracy=0.97
expect 0 '_QuantizeLinear$' explain digits_int8 --server="$server_address"
stop_server

# A tuning beside the model: the same bits as the QDQ file, told of in the metadata, and refused
# where it does not fit.
mkdir -p "$TEST_TMPDIR/repository/tuned/1"
cp "$model" "$TEST_TMPDIR/repository/tuned/1/model.onnx"
served=(tune "$TEST_TMPDIR/repository/tuned/1/model.onnx" "${array[@]}" "${budget[@]}" --threads=1)
expect 0 'of 11 layers int8, written to .*tilewire.tuning$' "${served[@]}" --precisions=int8 --tuning
start_server --model_repository="$TEST_TMPDIR/repository"
expect 0 'precision tuned to top1_changed<=1%: 11 layers int8, 0 bf16, 0 exact; measured: [0-9.]+ % of 180' models --server="$server_address" --model=tuned
expect 0 'all outputs agree bit for bit' evaluate --server="$server_address" --model=tuned \
  --images="$images" --labels="$labels" --shape=3x24x20 --min_accuracy=0.97
expect 0 '_QuantizeLinear$' explain tuned --server="$server_address"
# Which tuning it is, and the precision of each step.
expect 0 '^tuned by tilewire.tuning, to top1_changed<=1%: 11 layers int8, 0 bf16, 0 exact; measured: ' \
  explain tuned --server="$server_address"
expect 0 'B +int8  (convolution|inner_product)/' explain tuned --server="$server_address"
expect 0 '"precision": "int8"' explain tuned --server="$server_address" --json
expect 0 'tuned by tilewire.tuning, to ' explain tuned --server="$server_address" --live
stop_server
# Checked without a server, as a file and in its repository; each fault with its line.
tuned=$TEST_TMPDIR/repository/tuned/1
expect 0 '^  tuning   tilewire.tuning, to top1_changed<=1%: 11 layers int8' check "$tuned/model.onnx"
expect 0 '^  note       tuned by tilewire.tuning, to ' check "$TEST_TMPDIR/repository"
cp "$tuned/tilewire.tuning" "$TEST_TMPDIR/right.tuning"
refuse() {  # the message, and what sed makes of the tuning
  sed "$2" "$TEST_TMPDIR/right.tuning" >"$tuned/tilewire.tuning"
  expect 1 "^  tuning   tilewire.tuning: line [0-9]+:.*$1" check "$tuned/model.onnx"
  expect 1 "^  kept out   tilewire.tuning: line [0-9]+:.*$1" check "$TEST_TMPDIR/repository"
}
refuse "it is of another file: of 'model.onnx'" 's/^hash: .*/hash: 12/'
refuse "layer 'cats': the model has no layer" '0,/node: .*/s//node: "cats"/'
refuse 'the range from nan to .* is not finite' '0,/low: .*/s//low: nan/'
refuse 'no field named "layers"' 's/^layer {/layers {/'
cp "$TEST_TMPDIR/right.tuning" "$tuned/tilewire.tuning"
# A tuning of another file: refused, with the reason.
cp "$new" "$TEST_TMPDIR/repository/tuned/1/model.onnx"
service/tilewire-server --model_repository="$TEST_TMPDIR/repository" --host=127.0.0.1 --port=0 >"$server_log" 2>&1 &
server_pid=$!
until grep -q 'not ready' "$server_log" || ! kill -0 $server_pid 2>/dev/null; do read -rt 0.02 <>"$TEST_TMPDIR/pipe"; done
stop_server
grep -q "model 'tuned' version 1: .*tilewire.tuning: line [0-9]*: it is of another file" "$server_log" ||
  failed "no reason: $(cat "$server_log")"

# Ctrl-C: the best that was found by then is checked and written.
mkdir "$TEST_TMPDIR/scratch"
TMPDIR=$TEST_TMPDIR/scratch "$tilewire" "${tune[@]}" --time=1h --qdq="$TEST_TMPDIR/stopped.onnx" \
  >"$out" 2>"$TEST_TMPDIR/told" &
tuner=$!
until [[ -n $(ls "$TEST_TMPDIR/scratch") ]] || ! kill -0 $tuner 2>/dev/null; do read -rt 0.02 <>"$TEST_TMPDIR/pipe"; done
kill -INT $tuner
wait $tuner
got=$?
[[ $got -eq 130 ]] || failed "status $got after Ctrl-C"
grep -qi 'a signal ended the' "$TEST_TMPDIR/told" || failed "Ctrl-C was not told of: $(cat "$TEST_TMPDIR/told")"
[[ -z $(ls "$TEST_TMPDIR/scratch") ]] || failed 'files of trials are left'
! ls "$TEST_TMPDIR"/*.new 2>/dev/null || failed 'a trial file is left'

exit $((failures > 0))
