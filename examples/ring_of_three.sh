# A ring of three processes that the environment describes, for the tests of the smallest programs. Sourced. What rank R prints is in
# $work/R; everything is gone when the script ends.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Ports below the range of outgoing connections, elsewhere for each run.
port=$((10000 + $$ * 7 % 19990))
export RING_HOSTFILE="$work/hosts.json" RING_CONNECT_TIMEOUT_MS=20000
echo "[[\"127.0.0.1:$port\"], [\"127.0.0.1:$((port + 1))\"], [\"127.0.0.1:$((port + 2))\"]]" >"$RING_HOSTFILE"

# ring_of_three COMMAND...: each rank runs it; all must succeed.
ring_of_three() {
  ranks=
  for rank in 0 1 2; do
    RING_RANK=$rank "$@" >"$work/$rank" 2>&1 &
    ranks="$ranks $!"
  done
  for pid in $ranks; do wait "$pid" || { cat "$work"/[0-2]; exit 1; }; done
}

# expect_sums ARRAY: what each rank has printed, as the language writes arrays.
expect_sums() {
  for rank in 0 1 2; do
    got=$(cat "$work/$rank")
    wanted="rank $rank of 3: $1"
    [ "$got" = "$wanted" ] || { echo "rank $rank printed \"$got\", not \"$wanted\""; exit 1; }
  done
}
