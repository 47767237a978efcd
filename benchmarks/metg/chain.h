/* The body of a task; the same operations in the same order as chain.py. */
#ifndef CHAIN_H
#define CHAIN_H

static inline double chain_of(double x, long steps)
{
    for (long i = 0; i < steps; i++)
        x = 3.9 * x * (1.0 - x);
    return x;
}

static inline double combined(double left, double own, double right)
{
    return 0.25 * left + 0.5 * own + 0.25 * right;
}

#endif
