#!/bin/sh
# `netns.sh ALGORITHM COMMAND...` runs a command in a network namespace of its own, where only loopback
# exists and TCP uses that congestion control. It is set by route: a namespace other than the first may choose
# by sysctl only among the algorithms that the host allows to everyone.
set -eu
algorithm=$1
shift
if [ "$(uname -s)" != Linux ] || [ "$(id -u)" -ne 0 ]; then
  echo "netns.sh: network namespaces need Linux and root" >&2
  exit 1
fi
exec unshare -n sh -c '
  set -eu
  ip link set lo up
  for destination in 127.0.0.0/8 127.0.0.1; do
    ip route replace local "$destination" dev lo table local src 127.0.0.1 congctl "$0"
  done
  exec "$@"' "$algorithm" "$@"
