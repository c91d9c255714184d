# What every test of a silent loss does: cut the network while a ring is busy or idle, and look at what
# each rank says. Sourced.
. "$(dirname "$0")/hosts.sh"

# sever NET WHAT: "host:H" cuts a host off, "edge:A:B" both ways between two hosts, "way:A:B" the packets of
# A to B alone.
sever() {
  from=$(echo "$2" | cut -d : -f 2)
  to=$(echo "$2" | cut -d : -f 3)
  case $2 in
    host:*) cut_host "$1" "$from" ;;
    edge:*) cut_way "$1" "$from" "$to" && cut_way "$1" "$to" "$from" ;;
    way:*) cut_way "$1" "$from" "$to" ;;
  esac
}

# names TEXT RANK: whether the text speaks of the rank.
names() { echo "$1" | grep -Eq "(\b(ranks?|and|or)|,) $2\b"; }

# blames NET SIZE RANK WHAT: whether the rank's report blames what was cut. In a ring of two, and for a rank that
# is cut off itself, that is whatever makes an edge of its own: its only or either neighbour. Who names every
# rank blames none.
blames() {
  blamed=$(report "$1" "$3" failed | cut -d ' ' -f 3)
  text=$(report "$1" "$3" failed | cut -d ' ' -f 4-)
  from=$(echo "$4" | cut -d : -f 2)
  to=$(echo "$4" | cut -d : -f 3)
  case $2:$4 in
    2:*) { [ "$blamed" = $((1 - $3)) ] && names "$text" "$blamed"; } ||
      { [ "$blamed" = -1 ] && names "$text" 0 && names "$text" 1; } ;;
    *:host:"$3") names "$text" $((($3 + 1) % $2)) || names "$text" $((($3 + $2 - 1) % $2)) ;;
    *:host:*) [ "$blamed" = "$from" ] && names "$text" "$from" ;;
    *)
      for other in $(seq 0 $(($2 - 1))); do
        case $other in
          "$from" | "$to") names "$text" "$other" || return 1 ;;
          *) ! names "$text" "$other" || return 1 ;;
        esac
      done
      [ "$blamed" = -1 ]
      ;;
  esac
}

# lose NET SIZE WHAT STATUS SECONDS: makes the cut; then every rank has failed with the status (a pattern) within
# the time, and blames what was cut.
lose() {
  until_ready "$1" "$2"
  sleep 0.3
  cut_at=$(now)
  sever "$1" "$3"
  : >"$work/$1.cut"
  finish "$1" "$2"
  for rank in $(seq 0 $(($2 - 1))); do
    said=$(report "$1" "$rank" failed)
    took=$(awk "BEGIN { print ${said%% *} - $cut_at }")
    echo "$said" | grep -Eq "^[0-9.]+ ($4) " || fail "$1" "rank $rank hasn't failed with $4"
    less "$took" "$5" && less 0 "$took" || fail "$1" "rank $rank heard of it after $took s"
    blames "$1" "$2" "$rank" "$3" || fail "$1" "rank $rank doesn't blame $3"
  done
  echo "$1: $3, after $took s: $(report "$1" 0 failed | cut -d ' ' -f 2-)"
}

# The cuts for a ring of this size: a host, an edge both ways, and each way alone.
cuts() {
  case $1 in
    2) echo "host:1 edge:0:1 way:0:1 way:1:0" ;;
    3) echo "host:2 edge:1:2 way:1:2 way:2:1" ;;
    # The edge over which rank numbers begin anew.
    4) echo "host:1 edge:3:0 way:0:3 way:3:0" ;;
  esac
}
