# What Doxygen reads of a file: in comments, names of the C header become links (a name that isn't there is an error then), and
# a per cent sign stays one; each slot of the function table gets the comment that its struct's has for all of them.
BEGIN {
  while ((getline line < "include/ring.h") > 0) {
    if (line ~ /^ *(\*|\/)/) continue
    while (match(line, /(ring|RING)_[A-Za-z0-9_]+/)) {
      declared[substr(line, RSTART, RLENGTH)] = 1
      line = substr(line, RSTART + RLENGTH)
    }
  }
}

function linked(line, result, before, name) {
  result = ""
  gsub(/%/, "\\%", line)
  while (match(line, /(ring|RING)_[A-Za-z0-9_]+/)) {
    before = RSTART > 1 ? substr(line, RSTART - 1, 1) : ""
    name = substr(line, RSTART, RLENGTH)
    result = result substr(line, 1, RSTART - 1) (name in declared && before !~ /[A-Za-z0-9_#"\/]/ ? "#" : "") name
    line = substr(line, RSTART + RLENGTH)
  }
  return result line
}

# Doxygen 1.9.4 trips over specialisations of std's templates that are written outside of it.
/^template <>$/ { held = 1; next }
held { held = 0; if (/^struct std::/) { print ""; print ""; next } print "template <>" }

FILENAME ~ /\.md$/ { print linked($0); next }
/^ *(\/\*\*|\*|\/\/\/)/ { print linked($0); commented = 1; next }
/^  [^ ].*\(\*[a-z_0-9]+\)\(/ {
  match($0, /\(\*[a-z_0-9]+/)
  slot = substr($0, RSTART + 2, RLENGTH - 2)
  if (!commented) print "  /** #ring_" slot " */"
}
{ commented = 0; print }
