/* A module map names headers beside itself, or by a whole path; ring.h is where pkg-config says. */
#include <ring.h>
