#!/bin/sh
# The smallest program in Swift as ranks of a ring that the environment describes. Argument: the program.
set -eu
. "$(dirname "$0")/../ring_of_three.sh"

ring_of_three "$1"
expect_sums "[4.5, 7.5, 10.5, 13.5]"
