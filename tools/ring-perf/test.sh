#!/bin/sh
# ring-perf's numbers, formats and failures. The argument is the program.
set -u
. "$(dirname "$0")/checks.sh"

# Every dtype and reduction is right on four ranks, small and large.
for dtype in bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 float32 float64 bfloat16 complex64; do
  for op in sum max min prod mean band bor bxor; do
    case $dtype-$op in
      bool-mean | *int*-mean) continue ;;
      *float*-b* | complex64-b*) continue ;;
    esac
    expect 0 --ranks 4 -b 1K -e 256K -f 256 -n 1 -w 0 -d "$dtype" -o "$op"
    has "Out of bounds values : 0 OK" out
  done
done

# Rings of one to eight, more connections than one.
for ranks in 1 2 3 5 8; do
  expect 0 --ranks $ranks --connections 2 -b 8 -e 128K -f 128 -n 2 -w 1
  has "Out of bounds values : 0 OK" out
  [ "$(grep -c "Pid" "$work/out")" -eq $ranks ] || fail "not $ranks ranks:"
  [ "$(grep -cv '^#' "$work/out")" -eq 3 ] || fail "not three sizes:"
done

# Every collective is right, on small and awkward sizes.
for ranks in 2 4; do
  for collective in all_reduce reduce_scatter all_gather broadcast reduce gather scatter all_to_all all_gather_v \
    reduce_scatter_v all_to_all_v all_reduce_custom reduce_scatter_v_custom send_recv barrier; do
    expect 0 --ranks $ranks --collective $collective -b 8 -e 100001 -f 111 -n 2 -w 1
    has "ring_$collective\(\$\|,\)" out
    has "Out of bounds values : 0 OK" out
    sizes=3
    [ $collective != barrier ] || sizes=1
    [ "$(grep -cv '^#' "$work/out")" -eq $sizes ] || fail "not $sizes sizes:"
  done
done
for collective in reduce_scatter all_gather_v all_to_all; do
  expect 0 --ranks 3 --collective $collective -d int8 --split even -b 1 -e 1000 -f 1000 -n 1 -w 0
  has "Out of bounds values : 0 OK" out
done

# What nccl-tests calls the size and the bus bandwidth: COLLECTIVE SIZE COUNT BUSBW/ALGBW, of 4 ranks and 1000 bytes.
while read -r collective form size count busbw; do
  expect 0 --ranks 4 --collective $collective -b 1000 -e 1000 -n 2 "--$form" --json
  awk -F'[:,}]' -v size=$size -v count=$count -v busbw=$busbw '/"bytes"/ {
    for (i = 1; i < NF; i++) { if ($i ~ /algbw/) alg = $(i + 1); if ($i ~ /busbw/) bus = $(i + 1) }
    ok = $2 + 0 == size && $4 + 0 == count && bus / alg > busbw - 0.01 && bus / alg < busbw + 0.01
  } END { exit !ok }' "$work/out" || fail "$collective is not of $size bytes, $count elements, busbw $busbw:"
  has "\"collective\": \"$collective\"" out
done <<END
all_reduce in-place 1000 250 1.5
all_reduce_custom out-of-place 1000 250 1.5
reduce_scatter in-place 992 62 0.75
all_gather out-of-place 992 62 0.75
gather in-place 992 62 0.75
scatter in-place 992 62 0.75
all_to_all out-of-place 992 62 0.75
all_gather_v in-place 1000 250 0.75
all_to_all_v out-of-place 1000 250 0.75
reduce_scatter_v out-of-place 1000 250 0.75
broadcast in-place 1000 250 1
reduce in-place 1000 250 1
send_recv out-of-place 1000 250 1
END

# The bus bandwidth of four ranks is 1.5 times the algorithm's.
expect 0 --ranks 4 -b 1M -e 1M -n 2 --in-place --json
awk -F'[:,}]' '/"bytes"/ {
  for (i = 1; i < NF; i++) { if ($i ~ /algbw/) alg = $(i + 1); if ($i ~ /busbw/) bus = $(i + 1) }
  ok = $0 ~ /"bytes": 1048576, "count": 262144, "out_of_place": null/ && bus / alg > 1.49 && bus / alg < 1.51
} END { exit !ok }' "$work/out" || fail "the numbers don't fit together:"
awk -F'[:,}]' '/"bytes"/ {
  for (i = 1; i < NF; i++) {
    if ($i ~ /median_us/) median = $(i + 1)
    if ($i ~ /p99_us/) p99 = $(i + 1)
    if ($i ~ /cpu_us/) cpu = $(i + 1)
  }
  ok = median > 0 && p99 >= median && cpu > 0
} END { exit !ok }' "$work/out" || fail "the times of single calls don't fit together:"
has '"version": "[0-9]*\.[0-9]*\.[0-9]*"' out
has '"ranks": 4, "connections": 1, "dtype": "float32", "op": "sum"' out
if command -v python3 >/dev/null; then
  python3 -m json.tool <"$work/out" >/dev/null || fail "not JSON:"
fi

# The model's numbers: a flood of 8 bytes on 4 ranks is 2 steps, 24 bytes out and 24 reduced; 1 MiB is 6 steps,
# 1.5 MiB out, of which half to each side, and 0.75 MiB reduced.
model_of_four() {
  expect 0 --model "$1" --ranks 4 -b 8 -e 1M -f 131072
  [ "$(awk '/^ / {printf "%s %s %s %s ", $5, $6, $7, $8}' "$work/out")" = "4 flood 2 $2 4 ring 6 $3 " ] ||
    fail "with $1 not $2 and $3 us:"
}
model_of_four 10,0.001 44.00 1572924.00
model_of_four 10,0.001,0.001 68.00 2359356.00
model_of_four 10,0.001,0,2 44.00 786492.00
expect 0 --model 1,1 -b 8 -e 8M -f 1024
[ "$(grep -cv '^#' "$work/out")" -eq 30 ] || fail "not three sizes of ten rings:"
expect 0 --model 1,1,1 --ranks 3 -b 8 -e 8M --json
has '{"ranks": 3, "bytes": 8, "count": 2, "algorithm": "flood", "steps": 1, "sent_right": 8, "sent_left": 8' out
if command -v python3 >/dev/null; then
  python3 -m json.tool <"$work/out" >/dev/null || fail "not JSON:"
fi
for model in 1 1, 1,0 ,1 nan,1 1,-1 1,1,x 1,1,1,3 1,1,1,1,1 1,1,1,; do expect 2 --model "$model"; done
expect 2 --model 1,1 --ranks 1
expect 2 --model 1,1 --ranks 1025
expect 2 --ranks 257

# A ring that was measured fits some model; one size doesn't.
expect 0 --ranks 2 -b 8 -e 8M -f 1024 -n 2
has "Model (alpha,beta)   : [0-9]" out
expect 0 --ranks 2 -b 8 -e 8 -n 2
! grep -q "Model" "$work/out" || fail "a model of one size:"
expect 0 --ranks 2 --collective all_gather -b 8 -e 8M -f 1024 -n 2
! grep -q "Model" "$work/out" || fail "a model of another collective than all_reduce:"

# What can't be understood, and what the library refuses.
expect 2 --ranks 0
expect 2 -b 0
expect 2 -b 8 -e 4
expect 2 -d float
has "bfloat16" err
expect 2 surplus
expect 2 --collective all-reduce
has "one of all_reduce reduce_scatter" err
expect 2 --collective broadcast --out-of-place
expect 2 --collective all_to_all --in-place
expect 2 --collective all_reduce_custom -d float64
expect 2 --collective all_gather_v --split odd
expect 2 --collective reduce --model 1,1
has "not all_reduce, the one that --model predicts" err
expect 1 --ranks 2 -d int32 -o mean
has "RING_STATUS_UNSUPPORTED" err
(unset RING_RANK MLX_RANK && expect 1 && has "RING_RANK" err && has "for ranks on this host: ring-perf --ranks 4" err) || exit 1

# A rank that dies: the others are told, and so is whoever started them.
"$perf" --ranks 4 -b 16M -e 16M -n 1000000 >"$work/out" 2>"$work/err" &
launched=$!
victim=
tries=0
while [ -z "$victim" ]; do
  victim=$(awk '/Rank  2 Pid/ {print $5}' "$work/out")
  tries=$((tries + 1))
  [ $tries -le 200 ] || fail "the ranks did not start:"
  sleep 0.1
done
kill -9 "$victim"
wait $launched
[ $? -eq 1 ] || fail "a rank's death is no failure:"
has "rank 2 (pid $victim) was ended by signal 9" err
for rank in 0 1 3; do has "rank $rank: RING_STATUS_PEER_LOST: .*rank 2" err; done
exit 0
