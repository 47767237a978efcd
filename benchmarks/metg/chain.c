/* The chain as a shared library, for programs that call it through ctypes. */
#include "chain.h"

double chain(double x, long steps)
{
    return chain_of(x, steps);
}
