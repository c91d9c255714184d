#!/bin/sh
# A stripped copy of the library has at most so many bytes: size.sh LIBRARY MOST.
set -eu
library=$1
most=$2
stripped=$(mktemp)
trap 'rm -f "$stripped"' EXIT
strip -o "$stripped" "$library"
bytes=$(wc -c <"$stripped")
echo "$bytes bytes, of at most $most"
[ "$bytes" -le "$most" ] || { echo "is it of make library? cargo build makes a larger one"; exit 1; }
