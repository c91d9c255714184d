#!/bin/sh
# What has changed since the last release, by its tag: `since_tag.sh [TAG]`. The list of then is compared with that of now, and by abidiff,
# where it is installed, what the headers declare. Additions are fine; anything else fails, unless RING_ABI_VERSION has changed.
#
# abidiff reads debug information, which libraries as they are released don't have, and Rust's has the names of modules, which may
# change. So it is given libraries of empty C functions made from the headers; what the real ones export is in the lists.
set -eu
cd "$(dirname "$0")/.."

tag=${1:-$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null || true)}
[ -n "$tag" ] || { echo "skipped: there is no tag of a release"; exit 0; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/then"
git archive "$tag" include abi >"$work/then.tar" 2>"$work/log" || git archive "$tag" include >"$work/then.tar"
tar -xf "$work/then.tar" -C "$work/then"

number() { sed -n 's/^#define RING_ABI_VERSION //p' "$1/include/ring.h"; }
if [ "$(number "$work/then")" != "$(number .)" ]; then
  echo "another ABI than $tag's: nothing is promised"
  exit 0
fi

if [ -f "$work/then/abi/libring.abi" ]; then
  python3 abi/abi.py since "$work/then/abi/libring.abi" abi/libring.abi
fi
command -v abidiff >/dev/null || { echo "skipped: abidiff is missing"; exit 0; }

for header in then now; do
  case $header in then) folder=$work/then/include ;; now) folder=include ;; esac
  python3 abi/abi.py shim "$folder/ring.h" >"$work/$header.c"
  ${CC:-cc} -g -shared -fPIC "-I$folder" -o "$work/$header.so" "$work/$header.c"
done
python3 abi/abi.py longer "$work/then/include/ring.h" include/ring.h >"$work/longer.suppr"

# Bits: 1 and 2 of abidiff's own trouble, 4 a change, 8 one that breaks programs for sure. What is no addition is one too many.
status=0
abidiff --no-added-syms --suppressions "$work/longer.suppr" "$work/then.so" "$work/now.so" || status=$?
if [ $status -ne 0 ]; then
  echo "the ABI isn't what it was in $tag (abidiff's exit status: $status)"
  exit 1
fi
echo "nothing that $tag promised has changed"
