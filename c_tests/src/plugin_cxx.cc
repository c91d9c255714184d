// The same host in C++.
#include "plugin.c"
