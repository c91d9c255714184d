#!/bin/sh
# Runs a program that marks stretches of what its ranks do, and that counts its calls of libc's functions, in strace:
# `traced.sh PROGRAM [ARGUMENT...]`. Between the marks a rank makes those system calls and no others. Exit status 77:
# strace is missing, or may not look.
set -eu
skip() {
  if [ "${RING_TESTS_REQUIRE_STRACE:-0}" = 1 ]; then
    echo "$1, but RING_TESTS_REQUIRE_STRACE is 1"
    exit 1
  fi
  echo "skipped: $1"
  exit 77
}
command -v strace >/dev/null || skip "strace is missing"
strace -o /dev/null true 2>/dev/null || skip "strace may not trace here"

traces=$(mktemp -d)
trap 'rm -rf "$traces"' EXIT
# Each thread has a trace of its own.
strace -ff -qq -o "$traces/thread" "$@"

# The marks are files that aren't there: "/no such file, begin NAME", and "end NAME: CALL COUNT CALL COUNT...".
# Futex calls are few: a lock that meets another thread makes them. Some machines' clocks are read by system calls, and
# libc's poll is the system's ppoll on some processors.
awk -v "most_futexes=${MOST_FUTEXES:-20}" '
  /"\/no such file, begin / { inside = 1; split("", seen); next }
  /"\/no such file, end / {
    inside = 0
    stretches++
    split($0, quoted, "\"")
    words = split(substr(quoted[2], index(quoted[2], ":") + 1), word, " ")
    for (i = 1; i < words; i += 2) {
      few = word[i] == "clock_gettime" && seen[word[i]] + 0 < word[i + 1]
      if (!few && seen[word[i]] + 0 != word[i + 1]) complain(word[i] " " seen[word[i]] + 0 " times")
      delete seen[word[i]]
    }
    if (seen["futex"] > most_futexes) complain("futex " seen["futex"] " times")
    delete seen["futex"]
    for (name in seen) complain(name " " seen[name] " times")
  }
  inside && /^[a-z_0-9]+\(/ {
    name = substr($0, 1, index($0, "(") - 1)
    seen[name == "ppoll" ? "poll" : name]++
  }
  function complain(what) { print "unexpected: " what " in: " quoted[2]; status = 1 }
  END {
    if (!stretches) { print "no stretch was marked"; status = 1 }
    print stretches " stretches traced"
    exit status
  }' "$traces"/thread.*
