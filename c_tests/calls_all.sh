#!/bin/sh
# Whether a program calls every function that a header declares: `calls_all.sh HEADER SOURCE...`.
set -eu
header=$1
shift
functions=$(grep -o 'ring_[a-z0-9_]*(' "$header" | sort -u)
[ "$(echo "$functions" | wc -l)" -gt 10 ] || { echo "$header declares too little: $functions" >&2; exit 1; }
status=0
for function in $functions; do
  grep -q "[^a-z_]$function" "$@" || { echo "nothing calls $function)" >&2; status=1; }
done
exit $status
