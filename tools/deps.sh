#!/bin/sh
# Installs the programs that the build and the tests need, where they are missing.
set -eu

missing=
need() { # need PROGRAM PACKAGE
  command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}
need cmake cmake
need cc gcc
need c++ g++
need clang clang
need pkg-config pkg-config
need nm binutils

command -v cargo >/dev/null 2>&1 || {
  echo "Rust is missing: install cargo and rustc 1.91 or later (rustup has them)." >&2
  exit 1
}
[ -n "$missing" ] || exit 0

if command -v apt-get >/dev/null 2>&1; then
  as_root=
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null 2>&1 || { echo "Please install:$missing" >&2; exit 1; }
    as_root=sudo
  fi
  echo "Installing$missing"
  $as_root apt-get update -q >/dev/null
  # gcc without recommended packages has no C library headers.
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing libc6-dev >/dev/null
elif command -v brew >/dev/null 2>&1; then
  echo "Please install:$missing (brew install cmake pkg-config llvm)" >&2
  exit 1
else
  echo "Please install:$missing" >&2
  exit 1
fi
