/* Messages, starts of persistent requests, waiting and testing. */

#include "wrap.h"

#define COUNT int
#define SIZED(name) name
#include "p2p_sized.h"
#undef COUNT
#undef SIZED

#if MPI_VERSION >= 4
#define COUNT MPI_Count
#define SIZED(name) JOIN(name, _c)
#include "p2p_sized.h"
#undef COUNT
#undef SIZED
#endif

WRAP(Start, (MPI_Request *request), (request), OP_SEND, trace_start(mine, *request))
WRAP(Startall, (int count, MPI_Request requests[]), (count, requests), OP_SEND,
    for (int at = 0; at < count; at++) trace_start(mine, requests[at]))
WRAP_CALL(Request_free, (MPI_Request *request), (request), OP_OTHER,
    trace_forget_request(*request), )

TIMED(Wait, (MPI_Request *request, MPI_Status *status), (request, status), OP_WAIT)
TIMED(Waitall, (int count, MPI_Request requests[], MPI_Status *statuses),
    (count, requests, statuses), OP_WAIT)
TIMED(Waitany, (int count, MPI_Request requests[], int *index, MPI_Status *status),
    (count, requests, index, status), OP_WAIT)
TIMED(Waitsome, (int count, MPI_Request requests[], int *done, int indices[], MPI_Status *statuses),
    (count, requests, done, indices, statuses), OP_WAIT)
TIMED(Test, (MPI_Request *request, int *flag, MPI_Status *status), (request, flag, status), OP_WAIT)
TIMED(Testall, (int count, MPI_Request requests[], int *flag, MPI_Status *statuses),
    (count, requests, flag, statuses), OP_WAIT)
TIMED(Testany, (int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status),
    (count, requests, index, flag, status), OP_WAIT)
TIMED(Testsome, (int count, MPI_Request requests[], int *done, int indices[], MPI_Status *statuses),
    (count, requests, done, indices, statuses), OP_WAIT)
TIMED(Probe, (int from, int tag, MPI_Comm comm, MPI_Status *status), (from, tag, comm, status),
    OP_WAIT)
TIMED(Iprobe, (int from, int tag, MPI_Comm comm, int *flag, MPI_Status *status),
    (from, tag, comm, flag, status), OP_WAIT)
TIMED(Mprobe, (int from, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status),
    (from, tag, comm, message, status), OP_WAIT)
TIMED(Improbe,
    (int from, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status),
    (from, tag, comm, flag, message, status), OP_WAIT)
