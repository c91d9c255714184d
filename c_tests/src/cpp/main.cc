// Tests of ring.hpp: SUBJECT RANKS.
#include "tests.hpp"

int main(int argc, char **argv) {
  CHECK(argc == 3, "SUBJECT RANKS");
  const std::string subject = argv[1];
  const int size = std::atoi(argv[2]);
  if (subject == "types") types();
  else if (subject == "calls") calls(size);
  else if (subject == "futures") futures(size);
  else if (subject == "reductions") reductions(size);
  else if (subject == "failures") failures(size);
  else if (subject == "faults") faults(size);
  else CHECK(false, "no such subject");
}
