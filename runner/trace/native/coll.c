/* Collectives and barriers. */

#include "wrap.h"

#include <stddef.h>

#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define AUTOTUNE_PERSISTENT_COLLECTIVES 1
#else
#define AUTOTUNE_PERSISTENT_COLLECTIVES 0
#endif

/* Bytes of a vector of blocks: of one type, or each of its own where types is given. */
#define SUM(COUNT) \
    static uint64_t JOIN(sum_, COUNT)( \
        const COUNT counts[], int blocks, MPI_Datatype type, const MPI_Datatype types[]) \
    { \
        uint64_t bytes = 0, size = types ? 0 : trace_bytes(1, type); \
        for (int at = 0; at < blocks; at++) \
            bytes += types ? trace_bytes(counts[at], types[at]) : (uint64_t)counts[at] * size; \
        return bytes; \
    }

SUM(int)
#define COUNT int
#define PLACE int
#define SIZED(name) name
#include "coll_sized.h"
#undef COUNT
#undef PLACE
#undef SIZED

#if MPI_VERSION >= 4
SUM(MPI_Count)
#define COUNT MPI_Count
#define PLACE MPI_Aint
#define SIZED(name) JOIN(name, _c)
#include "coll_sized.h"
#undef COUNT
#undef PLACE
#undef SIZED
#endif

WRAP(Barrier, (MPI_Comm comm), (comm), OP_BARRIER,
    trace_collective(mine, OP_BARRIER, comm, 0, 0))
WRAP(Ibarrier, (MPI_Comm comm, MPI_Request *request), (comm, request), OP_BARRIER,
    trace_collective(mine, OP_BARRIER, comm, 0, 1))
#if AUTOTUNE_PERSISTENT_COLLECTIVES
SET_UP(Barrier_init, (MPI_Comm comm, MPI_Info info, MPI_Request *request),
    (comm, info, request), trace_remember_collective(mine, *request, OP_BARRIER, comm, 0))
#endif
