/* What this machine allows, with no library in the way: `limits [tcp] [unix] [shm]`, tcp unless told. Prints lines (tabs):
 *   limit NAME RANKS VALUE UNIT */
#include <stdbool.h>
#include <string.h>

#include "memory.h"
#include "sockets.h"

int main(int argc, char **argv) {
  bool tcp = argc == 1, local = false, memory = false;
  for (int i = 1; i < argc; i++) {
    tcp |= strcmp(argv[i], "tcp") == 0;
    local |= strcmp(argv[i], "unix") == 0;
    memory |= strcmp(argv[i], "shm") == 0;
  }
  measure_memory();
  if (tcp) measure_sockets(TCP);
  if (local) measure_sockets(UNIX);
  if (memory) measure_memory_rings();
  return 0;
}
