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

/* Calls without size and partners. */
#define OTHER(name, params, args) \
    WRAP(name, params, args, OP_OTHER, trace_plain(mine, OP_OTHER, 0, 0))
/* Calls that set up a persistent request, which `after` remembers. */
#define SET_UP(name, params, args, after) \
    WRAP(name, params, args, OP_OTHER, trace_plain(mine, OP_OTHER, 0, 0); after)
/* Calls that free what was remembered of a handle: before the call, because afterwards the handle
   may stand for something else. */
#define FREE(name, params, args, before) \
    WRAP_CALL(name, params, args, OP_OTHER, before, trace_plain(mine, OP_OTHER, 0, 0))
#define RECEIVE(name, params, args, nonblocking) \
    WRAP(name, params, args, OP_RECV, trace_plain(mine, OP_RECV, 0, nonblocking))
#define WAITING(name, params, args, requests) \
    WRAP(name, params, args, OP_WAIT, trace_plain(mine, OP_WAIT, (uint64_t)(requests), 0))

#endif
