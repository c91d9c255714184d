#!/bin/sh
# ring-perf --links on this host: every edge of a ring once. On a busy host an edge may well be slow: then the exit
# status says so, too. The argument is the program.
set -u
. "$(dirname "$0")/checks.sh"

run_links() {
  "$perf" --links "$@" >"$work/out" 2>"$work/err"
  got=$?
  [ ! -s "$work/err" ] || fail "ring-perf --links $*:"
}

if command -v python3 >/dev/null; then
  cat >"$work/links.py" <<'END'
import json, sys
size, addresses, status = (int(argument) for argument in sys.argv[1:])
document = json.load(sys.stdin)
assert document["test"] == "links" and document["ranks"] == size and len(document["hosts"]) == size
links = document["links"]
edges = size if size > 2 else size - 1
wanted = [[rank, (rank + 1) % size] for rank in range(edges) for _ in range(addresses)]
assert [link["ranks"] for link in links] == wanted, links
assert len({link["address"] for link in links}) == edges * addresses, links
for link in links:
    assert link["inside_host"] and 0 < link["least_us"] <= link["median_us"] <= link["p99_us"] <= link["max_us"], link
    assert all(link[key] > 0 for key in link if key.endswith("gb_s")) and len([key for key in link if key.endswith("gb_s")]) == 4
slow = sum(link["slow"] != [] for link in links)
assert document["slow"] == slow and status == (1 if slow else 0), (slow, status)
END
  for ranks in 1 2 3 4 5; do
    run_links --ranks $ranks --json
    python3 "$work/links.py" $ranks 1 $got <"$work/out" || fail "the links of $ranks ranks aren't right:"
  done

  # Where there is no hostfile there are no addresses to name.
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  export RING_RENDEZVOUS=127.0.0.1:$port RING_SIZE=2
  RING_RANK=1 "$perf" --links >/dev/null 2>&1 &
  RING_RANK=0 run_links --json
  wait $!
  [ $? -eq $got ] || fail "ranks that met don't agree:"
  has '"ranks": \[0, 1\], "address": null' out
  unset RING_RENDEZVOUS RING_SIZE

  # Two addresses a rank, each a ring of its own.
  hosts='[["127.0.0.1:%d","127.0.0.1:%d"],["127.0.0.1:%d","127.0.0.1:%d"],["127.0.0.1:%d","127.0.0.1:%d"]]'
  python3 - "$hosts" >"$work/hosts" <<'END'
import socket, sys
sockets = [socket.socket() for _ in range(6)]
for each in sockets:
    each.bind(("127.0.0.1", 0))
print(sys.argv[1] % tuple(each.getsockname()[1] for each in sockets))
END
  ranks=
  for rank in 1 2; do
    RING_RANK=$rank RING_HOSTFILE=$work/hosts TMPDIR=$work "$perf" --links --json >"$work/out$rank" 2>&1 &
    ranks="$ranks $!"
  done
  RING_RANK=0 RING_HOSTFILE=$work/hosts TMPDIR=$work run_links --json
  python3 "$work/links.py" 3 2 $got <"$work/out" || fail "the links at two addresses aren't right:"
  for rank in $ranks; do
    wait $rank
    [ $? -eq $got ] || fail "ranks don't agree on whether an edge is slow:"
  done
  [ ! -s "$work/out1" ] && [ ! -s "$work/out2" ] || fail "other ranks print, too:"

  # Rank 0 reaches rank 1 through one that hands on all bytes 5 ms late.
  cat >"$work/late.py" <<'END'
import json, queue, socket, sys, threading, time

def hand_on(source, target):
    late = queue.Queue()
    def send():
        for due, data in iter(late.get, None):
            time.sleep(max(0, due - time.monotonic()))
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    threading.Thread(target=send, daemon=True).start()
    while data := source.recv(1 << 20):
        late.put((time.monotonic() + 0.005, data))
    late.put(None)

hosts = json.load(open(sys.argv[1]))
real = hosts[1].rsplit(":", 1)
listener = socket.create_server(("127.0.0.1", 0))
hosts[1] = "127.0.0.1:%d" % listener.getsockname()[1]
with open(sys.argv[1] + ".0", "w") as file:
    json.dump(hosts, file)
print("ready", flush=True)
while True:
    taken, _ = listener.accept()
    try:
        there = socket.create_connection((real[0], int(real[1])))
    except OSError:
        taken.close()
        continue
    for each in taken, there:
        each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for way in (taken, there), (there, taken):
        threading.Thread(target=hand_on, args=way, daemon=True).start()
END
  python3 -c 'import json, sys; print(json.dumps([entry[0] for entry in json.load(sys.stdin)]))' <"$work/hosts" >"$work/three"
  python3 "$work/late.py" "$work/three" >"$work/ready" 2>/dev/null &
  late=$!
  trap 'kill $late; rm -rf "$work"' EXIT
  tries=0
  until grep -q ready "$work/ready"; do
    tries=$((tries + 1))
    [ $tries -le 100 ] || fail "nobody hands on bytes:"
    sleep 0.1
  done
  ranks=
  for rank in 1 2; do
    RING_RANK=$rank RING_HOSTFILE=$work/three "$perf" --links >/dev/null 2>&1 &
    ranks="$ranks $!"
  done
  RING_RANK=0 RING_HOSTFILE=$work/three.0 expect 1 --links --json
  python3 -c 'import json, sys
links = json.load(sys.stdin)["links"]
assert ["round_trip" in link["slow"] for link in links] == [True, False, False], links
assert links[0]["least_us"] > 10000, links' <"$work/out" || fail "the long round trip isn't found:"
  wait $ranks

  ! ls "$work"/ring-perf-* >/dev/null 2>&1 || fail "a hostfile of one address is left:"
fi
if [ -c /dev/full ]; then
  ! "$perf" --links --ranks 1 >/dev/full 2>/dev/null || fail "a report that is lost is a success:"
fi
! "$perf" --links --ranks 2 2>"$work/err" >&- || fail "a report without stdout is a success:"
grep -q "writing to stdout" "$work/err" || fail "a report went elsewhere than to stdout:"

run_links --ranks 3
[ "$(grep -cv '^#' "$work/out")" -eq 3 ] || fail "not three edges:"
has "^# All ranks are on one host: verdicts depend on what else it does.$" out
has "^# Median: least round trip" out
run_links --ranks 2
[ "$(grep -cv '^#' "$work/out")" -eq 1 ] || fail "not one edge:"
expect 0 --ranks 1 --links
has "there is nothing to test" out
expect 2 --links --model 1,1
expect 2 --links --ranks 2 -b 8
has "no other options" err
(unset RING_RANK MLX_RANK && expect 1 --links && has "RING_RANK" err && has "for ranks on this host: ring-perf --links --ranks 4" err) || exit 1
exit 0
