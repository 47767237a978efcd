/* One definition makes MPI_X and PMPI_X: pass on, take the time, then count. */

#ifndef AUTOTUNE_WRAP_H
#define AUTOTUNE_WRAP_H

#include "trace.h"

#define JOINED(a, b) a##b
#define JOIN(a, b) JOINED(a, b)
#define QUOTED(text) #text
#define QUOTE(text) QUOTED(text)
#define BARE(...) __VA_ARGS__

/* before: statements on the arguments; after: statements that count, with `mine` at hand. */
#define WRAP_CALL(name, params, args, op, before, after) \
    int JOIN(MPI_, name) params; \
    int JOIN(PMPI_, name) params; \
    int JOIN(MPI_, name) params \
    { \
        static int(*real) params; \
        if (!real) \
            real = (int(*) params)trace_real(QUOTE(JOIN(PMPI_, name))); \
        struct counts *mine = trace_enter(); \
        before; \
        if (!mine) \
            return real args; \
        uint64_t began = trace_now(); \
        int code = real args; \
        trace_leave(mine, op, began); \
        after; \
        return code; \
    } \
    int JOIN(PMPI_, name) params __attribute__((alias(QUOTE(JOIN(MPI_, name)))));

#define WRAP(name, params, args, op, after) WRAP_CALL(name, params, args, op, , after)

/* Calls that are timed, with nothing else to count. */
#define TIMED(name, params, args, op) WRAP_CALL(name, params, args, op, , )

#endif
