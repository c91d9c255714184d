# Hosts on one machine for a test. Sourced, with the path of tools/common in $common.
# Where hosts can't be made there is nothing to test, unless whoever runs the tests says that they can be.
skip() {
  if [ "${RING_TESTS_REQUIRE_NETNS:-0}" = 1 ]; then
    echo "$1, but RING_TESTS_REQUIRE_NETNS is 1"
    exit 1
  fi
  echo "skipped: $1"
  exit 77
}
. "$common/namespaces.sh"
