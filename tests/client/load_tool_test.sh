#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `tilewire load` and `tilewire report` as a user runs them, against doubles of known behaviour.
set -uo pipefail

source tests/support/expect.sh
servers=()
trap 'kill "${servers[@]}"' EXIT

# start NAME FLAG...: a double, or what $double is; its address becomes the variable NAME.
start() {
  local log=$TEST_TMPDIR/$1
  "${double:-tests/client/double}" "${@:2}" >"$log" &
  servers+=($!)
  until grep -q listening "$log"; do sleep 0.05; done
  printf -v "$1" '%s' "$(grep -o '127.0.0.1:[0-9]*' "$log")"
}

start quick
start corrupt --corrupt_every=1000
start slow --service_us=5000
start fixed --batch=1
double=tests/client/bare_double start bare
start paused --service_us=100 --pause_every=300 --pause_ms=400

load=(load --model=tiny --server="$quick")
expect 0 'tilewire load --model=resnet50 --find_rate' load --help
expect 2 '--model or --mix is required' load
expect 2 'not a condition' "${load[@]}" --require='p99<20'
expect 2 'seed.*-1' "${load[@]}" --seed=-1
expect 2 'there is no folder' "${load[@]}" --json="$TEST_TMPDIR/none/a.json"
expect 2 '0ms is not a duration such as 20ms' "${load[@]}" --find_rate --p99=0ms
expect 2 'inf is not a duration such as 20ms' "${load[@]}" --find_rate --p99=inf
expect 2 'needs at least 100' "${load[@]}" --find_rate --p99=20ms --requests=99
expect 1 'no rate can hold: single requests' load --server="$slow" --model=tiny --find_rate --p99=1ms
expect 2 'not a condition' "${load[@]}" --require='p99<inf'
expect 2 'not a condition' "${load[@]}" --require='rate>=nan'
expect 2 'not a stage' "${load[@]}" --profile=100
expect 2 'not a stage' "${load[@]}" --profile=1e308:1s
expect 2 'needs|requires' "${load[@]}" --find_rate
expect 2 'excludes' "${load[@]}" --rate=10 --concurrency=2
expect 2 'NAME\[@BATCH\]' load --server="$quick" --mix=tiny:-1

# Flags without effect are refused, and so is a file that could not be written after the load.
expect 2 'p99 has no effect here: it is the bound of a search: add --find_rate' "${load[@]}" --p99=20ms
for flag in first_rate=10 precision=0.1; do
  expect 2 "--${flag%=*} has no effect here: .* add --find_rate" "${load[@]}" --"$flag"
done
for flag in arrivals=constant connections=2 max_waiting=5; do
  expect 2 "--${flag%=*} has no effect here: .* --rate, --profile or --find_rate" "${load[@]}" --"$flag"
done
expect 2 'duration has no effect here: --profile' "${load[@]}" --profile=10:1s --duration=2
expect 2 'duration has no effect here: --requests' "${load[@]}" --requests=10 --duration=2
expect 2 'batch has no effect here: --mix' load --server="$quick" --mix=tiny --batch=2
expect 2 'scale has no effect here: .* add --image' "${load[@]}" --scale=1
expect 2 'inputs has no effect here' "${load[@]}" --array="$TEST_TMPDIR/rows.npy" --inputs=2
expect 2 'seed has no effect here' "${load[@]}" --array="$TEST_TMPDIR/rows.npy" --seed=2
expect 2 'is a folder, not a file' "${load[@]}" --html="$TEST_TMPDIR"
expect 2 'is a folder, not a file' "${load[@]}" --record="$TEST_TMPDIR"
expect 2 'json and --csv name the same file' "${load[@]}" --json="$TEST_TMPDIR/x" --csv="$TEST_TMPDIR/x"
expect 1 "the model has no input 'z'; its inputs are 'x'" "${load[@]}" --array=z="$TEST_TMPDIR/rows.npy"
expect 1 "input 'x' has a file already" "${load[@]}" --array "$TEST_TMPDIR/rows.npy" x="$TEST_TMPDIR/rows.npy"

# A batch that the model fixes is not chosen, and not ignored.
for command in load\ --model=tiny explain\ tiny; do
  read -ra words <<<"$command"
  expect 1 "batch=8: model 'tiny' takes a batch of 1 only" "${words[@]}" --server="$fixed" --batch=8
done

# The files, and what is made of them.
expect 0 '^open loop of 200/s .* 0$' "${load[@]}" --rate=100,200 --duration=1.2 \
  --json="$TEST_TMPDIR/a.json" --csv="$TEST_TMPDIR/a.csv" --html="$TEST_TMPDIR/a.html"
[[ $(grep -c '^run,' "$TEST_TMPDIR/a.csv") -eq 2 ]] || { echo "FAILED: two runs in CSV"; failures=1; }
grep -q '</html>' "$TEST_TMPDIR/a.html" || { echo "FAILED: the page is cut short"; failures=1; }
expect 0 '^open loop of 200/s' "${load[@]}" --rate=100,200 --duration=1.2 --json="$TEST_TMPDIR/b.json"
expect 0 'b.json: open loop of 200/s' report "$TEST_TMPDIR/a.json" "$TEST_TMPDIR/b.json"
answered() { grep -m1 -o '"answered": [0-9]*' "$1" | grep -o '[0-9]*$'; }
expect 0 '^open loop of 100/s' report --merge "$TEST_TMPDIR/a.json" "$TEST_TMPDIR/b.json" \
  --json="$TEST_TMPDIR/both.json"
sum=$(($(answered "$TEST_TMPDIR/a.json") + $(answered "$TEST_TMPDIR/b.json")))
[[ $(answered "$TEST_TMPDIR/both.json") -eq $sum ]] || { echo "FAILED: not $sum answers"; failures=1; }
# A load counts once, whatever its file is called.
cp "$TEST_TMPDIR/a.json" "$TEST_TMPDIR/copy.json"
for twin in a copy both; do
  expect 2 'report 2 is of a load that report 1 has too' report --merge "$TEST_TMPDIR/a.json" \
    "$TEST_TMPDIR/$twin.json"
done
expect 0 'met +p99<60s' report "$TEST_TMPDIR/a.json" --require='p99<60s,errors=0'
expect 1 'NOT MET +rate>1e5' report "$TEST_TMPDIR/a.json" --require='rate>1e5'
expect 2 'not a report' report "$TEST_TMPDIR/a.csv"
# A disk that is full: the old page as it was, and nothing beside it.
mkdir "$TEST_TMPDIR/full" && echo old >"$TEST_TMPDIR/full/page.html"
(ulimit -f 1 && "$tilewire" report "$TEST_TMPDIR/a.json" --html="$TEST_TMPDIR/full/page.html") >/dev/null 2>"$out" &&
  failed 'a page that could not be written is no error'
grep -q "cannot write '$TEST_TMPDIR/full/page.html'.*File too large" "$out" || failed "not told: $(cat "$out")"
[[ $(cat "$TEST_TMPDIR/full/"*) == old ]] || failed "left: $(ls "$TEST_TMPDIR/full")"
# Else it comes to its place, through a link and with the permissions of what was there.
ln -s page.html "$TEST_TMPDIR/full/link" && chmod 600 "$TEST_TMPDIR/full/page.html"
"$tilewire" report "$TEST_TMPDIR/a.json" --html="$TEST_TMPDIR/full/link" >/dev/null || failed 'no page'
[[ -L $TEST_TMPDIR/full/link && $(stat -c %a "$TEST_TMPDIR/full/page.html") == 600 ]] || failed 'another file'
grep -q '<html' "$TEST_TMPDIR/full/page.html" || failed 'no page in the place of the old one'
# A link to a file that is not there yet, from another folder; links that never end are an error.
mkdir "$TEST_TMPDIR/links" && cd "$TEST_TMPDIR/links" && ln -s ../full/new.html hop && ln -s hop page
ln -s none/new.html lost && ln -s round round && cd "$OLDPWD" || exit 1
expect 0 'p99' report "$TEST_TMPDIR/a.json" --html="$TEST_TMPDIR/links/page"
[[ -L $TEST_TMPDIR/links/page && -L $TEST_TMPDIR/links/hop ]] || failed 'a dangling link was replaced'
grep -qs '<html' "$TEST_TMPDIR/full/new.html" || failed 'no page where the link leads'
expect 2 'there is no folder' report "$TEST_TMPDIR/a.json" --html="$TEST_TMPDIR/links/lost"
expect 2 'Too many levels' report "$TEST_TMPDIR/a.json" --html="$TEST_TMPDIR/links/round"
[[ -L $TEST_TMPDIR/links/round ]] || failed 'a link to itself was replaced'
# A pipe that a link leads to, which has no name of its own.
"$tilewire" report "$TEST_TMPDIR/a.json" --html=/dev/stdout 2>"$out" | cat >"$TEST_TMPDIR/piped"
grep -q '</html>' "$TEST_TMPDIR/piped" || failed "no page in a pipe: $(cat "$out")"
# Files that a killed process of the same number left.
(
  touch "$TEST_TMPDIR/full/page.html.$BASHPID".{new,1.new,2.new}
  exec "$tilewire" report "$TEST_TMPDIR/a.json" --html="$TEST_TMPDIR/full/page.html"
) >/dev/null || failed 'a leftover blocks the page'
rm "$TEST_TMPDIR/full/"*.new

# is_kept MODE COMMAND...: `COMMAND... tilewire` writes the page in a folder of this mode; whether it
# is the same file as before.
is_kept() {
  local folder=$TEST_TMPDIR/held page=$TEST_TMPDIR/held/page.html before
  mkdir -p "$folder" && echo 'old page' >"$page" && before=$(stat -c %i "$page") && chmod "$1" "$folder"
  "${@:2}" "$tilewire" report "$TEST_TMPDIR/a.json" --html="$page" >"$out" 2>&1 || failed "$*: $(cat "$out")"
  chmod 755 "$folder"
  [[ $(ls "$folder") == page.html ]] || failed "$*: left $(ls "$folder")"
  grep -q '</html>' "$page" && ! grep -q 'old page' "$page" || failed "$*: not the new page alone"
  [[ $(stat -c %i "$page") == "$before" ]]
}
is_kept 755 env && failed 'a page was not written anew where it could be'
# A page in a folder that takes no files, and one in a folder that cannot be listed. Root needs no
# permission unless it lets go of those powers.
as_user=(env)
[[ $(id -u) -ne 0 ]] || as_user=(setpriv --bounding-set=-dac_override,-dac_read_search,-fowner)
if "${as_user[@]}" true; then
  is_kept 555 "${as_user[@]}" || failed 'a file came into a folder that takes none'
  mkdir -m 333 "$TEST_TMPDIR/unlisted"
  "${as_user[@]}" "$tilewire" report "$TEST_TMPDIR/a.json" --html="$TEST_TMPDIR/unlisted/page.html" \
    >"$out" 2>&1 || failed "a folder that cannot be listed: $(cat "$out")"
else
  echo 'SKIPPED: folders that take no files; root may write everywhere'
fi
# A page that is a mount point, as containers have them.
mounted=(unshare --mount bash -c 'mount --bind "$0/page.html" "$0/page.html" && "$@"' "$TEST_TMPDIR/held")
if "${mounted[@]}" true 2>/dev/null; then
  is_kept 755 "${mounted[@]}" || failed 'a mount point was replaced'
else
  echo 'SKIPPED: a page that is a mount point; only root may mount'
fi

# Callers that think: 4 of them with 20 ms each cannot send more than 200/s.
expect 0 '^tiny.* 4 callers, think time 20.0 ms \(exponential\)' "${load[@]}" --concurrency=4 \
  --think=20ms --duration=1 --json="$TEST_TMPDIR/think.json" --html="$TEST_TMPDIR/think.html"
expect 0 'met +rate<400' report "$TEST_TMPDIR/think.json" --require='rate<400'
grep -q '"think_ns": 20000000,' "$TEST_TMPDIR/think.json" &&
  grep -q 'think time 20.0 ms (exponential)' "$TEST_TMPDIR/think.html" || {
  echo "FAILED: the reports do not tell of thinking"
  failures=$((failures + 1))
}
expect 0 'think time 5.00 ms \(constant\)' "${load[@]}" --think=5ms --think_times=constant --requests=20
expect 2 'excludes' "${load[@]}" --rate=10 --think=20ms
expect 2 '20 is not a duration such as 20ms' "${load[@]}" --think=20
expect 2 'requires' "${load[@]}" --think_times=constant

# Exit status by conditions; wrong answers are counted exactly and never pass.
expect 0 'met +errors=0' "${load[@]}" --requests=100 --require='errors=0,p99<60s'
expect 1 'NOT MET +p50<1ns' "${load[@]}" --requests=100 --require='p50<1ns'
expect 1 'differ from what was expected: 5$' load --model=tiny --server="$corrupt" --requests=5000 \
  --require='errors=0'

# A server that no gRPC library is in.
expect 0 'answers that differ from what was expected: 0$' load --model=tiny --server="$bare" \
  --concurrency=20 --requests=20000 --require='errors=0'
expect 0 'met +errors=0' load --model=tiny --server="$bare" --rate=500 --duration=1 --require='errors=0'

# Callers take turns among replicas, of which the second one has wrong answers.
expect 1 'differ from what was expected: [1-9]' load --model=tiny --server="$quick,$corrupt" \
  --concurrency=2 --requests=6000

expect 0 'recorded +4 answers' "${load[@]}" --requests=40 --record="$TEST_TMPDIR/golden"
expect 0 'expected: 0$' "${load[@]}" --requests=40 --golden="$TEST_TMPDIR/golden"
expect 1 'NOT_FOUND.*was recorded' "${load[@]}" --requests=40 --seed=9 --golden="$TEST_TMPDIR/golden"
expect 2 'not a file of recorded answers' "${load[@]}" --golden="$TEST_TMPDIR/a.csv"

# Inputs from files, a mix, a profile.
python3 - "$TEST_TMPDIR/rows.npy" <<'PYTHON'
import sys
header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (6, 4), }"
open(sys.argv[1], 'wb').write(b'\x93NUMPY\x01\x00' + len(header).to_bytes(2, 'little') + header +
                              bytes(96))
PYTHON
expect 0 'batch 3' "${load[@]}" --array="$TEST_TMPDIR/rows.npy" --batch=3 --requests=10
expect 1 'takes .*7 rows per request' "${load[@]}" --array=x="$TEST_TMPDIR/rows.npy" --batch=7
expect 0 '  tiny@8: [0-9]+ answers, 0 errors' load --server="$quick" --mix=tiny:3,tiny@8 \
  --profile=100:0.5s,100-300:0.5s

# The double's pause: an open loop shows it, a closed one says that it does not.
expect 0 'note +callers that wait send nothing' load --server="$paused" --model=tiny --requests=299
expect 0 'p99 ([3-9][0-9]{2} ms|[0-9.]+ s)' load --server="$paused" --model=tiny --rate=300 --duration=2

# A signal ends a load: what it has measured is printed and written, and its status is not that of
# a load that took its time.
ended_by() {  # SIGNAL STATUS SECONDS FLAG...
  local load_pid
  client/tilewire --connect_timeout=60 "${load[@]}" --duration=600 --json="$TEST_TMPDIR/$1.json" "${@:4}" \
    >"$TEST_TMPDIR/ended" 2>&1 &
  load_pid=$!
  sleep "$3"
  kill "-$1" "$load_pid"
  wait "$load_pid"
  [[ $? -eq $2 ]] && grep -q 'note        the load was ended early' "$TEST_TMPDIR/ended" &&
    grep -qE 'latency     p50 .*[0-9] [mn]?s' "$TEST_TMPDIR/ended" &&
    grep -q '"ended_early": true' "$TEST_TMPDIR/$1.json"
}
# On a busy machine the load may not have begun after a second.
for ending in 'INT 130' 'TERM 143'; do
  read -r signal status <<<"$ending"
  ended_by "$signal" "$status" 1 --rate=50 --require=errors=0 || ended_by "$signal" "$status" 10 ||
    ended_by "$signal" "$status" 60 || {
    echo "FAILED: $signal loses what was measured, or not status $status: $(<"$TEST_TMPDIR/ended")"
    failures=$((failures + 1))
  }
done

# 200 requests/s are what 5 ms each leave room for; in a load of 410 requests at 216/s none waits longer than
# 150 ms. A busy machine takes a part of it, and one that stalls all of it: then the tool says so.
find_rate=(load --connect_timeout=60 --server="$slow" --model=tiny --find_rate --p99=150ms --arrivals=constant --requests=100
           --search_time=15 --first_rate=100)
for _ in 1 2 3; do
  "$tilewire" "${find_rate[@]}" >"$out" 2>&1
  found=$?
  [[ $found -ne 0 ]] || break
done
none='holds at no rate that was tried|no long run confirmed a rate|holds was not found out|no rate can hold: single'
if [[ $found -eq 0 ]]; then
  grep -qE 'p99 <= 150 ms holds at ([0-9]{1,2}(\.[0-9]+)?|1[0-9]{2}|20[0-9]|21[0-6])/s: .* in a last run of' "$out" ||
    failed "not a rate that 5 ms leave room for: $(cat "$out")"
elif [[ $found -eq 1 ]] && grep -qE "$none" "$out"; then
  echo "SKIPPED: a rate that holds; the machine stalls: $(cat "$out")"
else
  failed "no rate was found: $(cat "$out")"
fi
# Before anything is sent: nothing listens there.
expect 2 '^tilewire: --search_time=5: at 10/s a run of 300 requests takes 33.0 s, and a search 12 of them: at least 396 s$' \
  load --server=127.0.0.1:1 --model=tiny --find_rate --p99=60ms --first_rate=10 --search_time=5
expect 2 '^tilewire: --search_time=15: at any rate a run takes at least 2.20 s, and a search 12 of them: at least 26.4 s$' \
  load --server=127.0.0.1:1 --model=tiny --find_rate --p99=60ms --search_time=15
expect 1 'no rate can hold: single requests, one after the other, take' \
  load --server="$slow" --model=tiny --find_rate --p99=1ms --first_rate=10

[[ $failures -eq 0 ]] || { echo "$failures failures"; exit 1; }
