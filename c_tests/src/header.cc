/* The header compiles alone, and twice. */
#include "ring.h"
#include "ring.h"

extern int anchor;
int anchor = RING_STATUS_OK;
