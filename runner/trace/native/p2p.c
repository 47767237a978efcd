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

WRAP(Start, (MPI_Request *request), (request), OP_SEND, trace_start(mine, request, 1))
WRAP(Startall, (int count, MPI_Request requests[]), (count, requests), OP_SEND,
    trace_start(mine, requests, count))
FREE(Request_free, (MPI_Request *request), (request), trace_forget_request(*request))

WAITING(Wait, (MPI_Request *request, MPI_Status *status), (request, status), 1)
WAITING(Waitall, (int count, MPI_Request requests[], MPI_Status *statuses),
    (count, requests, statuses), count)
WAITING(Waitany, (int count, MPI_Request requests[], int *index, MPI_Status *status),
    (count, requests, index, status), count)
WAITING(Waitsome,
    (int count, MPI_Request requests[], int *done, int indices[], MPI_Status *statuses),
    (count, requests, done, indices, statuses), count)
WAITING(Test, (MPI_Request *request, int *flag, MPI_Status *status), (request, flag, status), 1)
WAITING(Testall, (int count, MPI_Request requests[], int *flag, MPI_Status *statuses),
    (count, requests, flag, statuses), count)
WAITING(Testany, (int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status),
    (count, requests, index, flag, status), count)
WAITING(Testsome,
    (int count, MPI_Request requests[], int *done, int indices[], MPI_Status *statuses),
    (count, requests, done, indices, statuses), count)
WAITING(Probe, (int from, int tag, MPI_Comm comm, MPI_Status *status), (from, tag, comm, status),
    0)
WAITING(Iprobe, (int from, int tag, MPI_Comm comm, int *flag, MPI_Status *status),
    (from, tag, comm, flag, status), 0)
WAITING(Mprobe, (int from, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status),
    (from, tag, comm, message, status), 0)
WAITING(Improbe,
    (int from, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status),
    (from, tag, comm, flag, message, status), 0)
