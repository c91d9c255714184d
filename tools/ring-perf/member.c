#include "member.h"

#include <string.h>
#include <unistd.h>

ring_status_t gather_members(ring_group_t *group, member_t *members) {
  member_t *own = &members[ring_group_rank(group)];
  own->pid = getpid();
  if (gethostname(own->host, sizeof own->host - 1) != 0) strcpy(own->host, "unknown");
  return ring_all_gather(group, own, members, sizeof *own, RING_DTYPE_UINT8);
}
