#include <math.h>
#include <stdint.h>
#ifdef NET_MAIN
#include <stdio.h>
#endif
