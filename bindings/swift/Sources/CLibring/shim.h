/* A module map names headers beside itself, or by a whole path; ring.h is where pkg-config says. There it is the module CRing, by
 * the map that is installed with it: this module has another name, as two of one name shadow each other, and hands on the other's. */
#include <ring.h>
