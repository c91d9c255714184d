#!/bin/sh
# The program that loads the library, as a ring of two; and with libraries that it can't use, which it says. Arguments: the
# program, the library, a C compiler, the folder of ring.h.
set -eu
plugin=$1
library=$2
cc=$3
include=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
case $(uname -s) in
  Darwin) name=libring.0.dylib ;;
  *) name=libring.so.0 ;;
esac
# A folder each, since it is found by its name.
mkdir "$work/ours"
ln -s "$library" "$work/ours/$name"
# Runs the program with the library of a folder.
with() {
  LD_LIBRARY_PATH="$work/$1" DYLD_LIBRARY_PATH="$work/$1" "$plugin"
}

# Ports below the range of outgoing connections, elsewhere for each run.
port=$((10000 + ($$ * 7 + 3) % 19990))
export RING_HOSTFILE="$work/hosts.json" RING_CONNECT_TIMEOUT_MS=20000
echo "[\"127.0.0.1:$port\", \"127.0.0.1:$((port + 1))\"]" >"$RING_HOSTFILE"
RING_RANK=1 with ours >"$work/1" 2>&1 &
other=$!
RING_RANK=0 with ours >"$work/0" 2>&1 || { cat "$work/0"; exit 1; }
wait $other || { cat "$work/1"; exit 1; }
for rank in 0 1; do
  grep -q "^rank $rank of 2, libring [0-9.]*: 1 2$" "$work/$rank" || { cat "$work/$rank"; exit 1; }
done

# A rank that fails has the text of its failure.
if RING_RANK=7 with ours >"$work/out" 2>&1; then echo "there is no rank 7"; exit 1; fi
grep -q "RING_RANK" "$work/out" || { cat "$work/out"; exit 1; }

# A library of another kind is refused with this text: refuses KIND TEXT, its source on standard input.
refuses() {
  mkdir "$work/$1"
  { echo '#include <ring.h>'; cat; } >"$work/$1/ring.c"
  "$cc" -shared -fPIC "-I$include" "$work/$1/ring.c" -o "$work/$1/$name"
  if with "$1" >"$work/out" 2>&1; then echo "a library was used that is $1"; exit 1; fi
  grep -q "^no ring: .*$2" "$work/out" || { cat "$work/out"; exit 1; }
}
refuses nameless "ring_get_api_v1" <<'END'
uint32_t ring_version(void) { return RING_VERSION; }
END
refuses foreign "another ABI" <<'END'
static const ring_api_v1_t API = {sizeof API, RING_ABI_VERSION + 1};
const ring_api_v1_t *ring_get_api_v1(void) { return &API; }
END
refuses old "too old" <<'END'
static const ring_api_v1_t API = {offsetof(ring_api_v1_t, all_reduce), RING_ABI_VERSION};
const ring_api_v1_t *ring_get_api_v1(void) { return &API; }
END
mkdir "$work/broken"
: >"$work/broken/$name"
if with broken >"$work/out" 2>&1; then echo "a library was used that is empty"; exit 1; fi
grep -q "^no ring: .*$name" "$work/out" || { cat "$work/out"; exit 1; }
