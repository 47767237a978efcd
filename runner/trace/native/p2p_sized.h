/* Point-to-point calls that take counts.  Included once with int and once with MPI_Count: the
   includer defines COUNT, and SIZED, which adds the ending of the name. */

#define MESSAGE \
    (const void *buffer, COUNT count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
#define MESSAGE_ARGS (buffer, count, type, to, tag, comm)

#define SEND(name) \
    WRAP(SIZED(name), MESSAGE, MESSAGE_ARGS, OP_SEND, \
        trace_message(mine, comm, to, trace_bytes(count, type), 0))
#define ISEND(name) \
    WRAP(SIZED(name), (BARE MESSAGE, MPI_Request *request), (BARE MESSAGE_ARGS, request), OP_SEND, \
        trace_message(mine, comm, to, trace_bytes(count, type), 1))
#define SEND_INIT(name) \
    SET_UP(SIZED(name), (BARE MESSAGE, MPI_Request *request), (BARE MESSAGE_ARGS, request), \
        trace_remember_message(mine, *request, comm, to, trace_bytes(count, type)))

SEND(Send)
SEND(Bsend)
SEND(Ssend)
SEND(Rsend)
ISEND(Isend)
ISEND(Ibsend)
ISEND(Issend)
ISEND(Irsend)
SEND_INIT(Send_init)
SEND_INIT(Bsend_init)
SEND_INIT(Ssend_init)
SEND_INIT(Rsend_init)

RECEIVE(SIZED(Recv),
    (void *buffer, COUNT count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
        MPI_Status *status),
    (buffer, count, type, from, tag, comm, status), 0)
RECEIVE(SIZED(Irecv),
    (void *buffer, COUNT count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
        MPI_Request *request),
    (buffer, count, type, from, tag, comm, request), 1)
RECEIVE(SIZED(Mrecv),
    (void *buffer, COUNT count, MPI_Datatype type, MPI_Message *message, MPI_Status *status),
    (buffer, count, type, message, status), 0)
RECEIVE(SIZED(Imrecv),
    (void *buffer, COUNT count, MPI_Datatype type, MPI_Message *message, MPI_Request *request),
    (buffer, count, type, message, request), 1)

WRAP(SIZED(Sendrecv),
    (const void *sent, COUNT count, MPI_Datatype type, int to, int tag, void *buffer,
        COUNT recvcount, MPI_Datatype recvtype, int from, int recvtag, MPI_Comm comm,
        MPI_Status *status),
    (sent, count, type, to, tag, buffer, recvcount, recvtype, from, recvtag, comm, status),
    OP_SEND, trace_message(mine, comm, to, trace_bytes(count, type), 0);
    rounds_waited(&mine->rounds, trace_timed))
WRAP(SIZED(Sendrecv_replace),
    (void *buffer, COUNT count, MPI_Datatype type, int to, int tag, int from, int recvtag,
        MPI_Comm comm, MPI_Status *status),
    (buffer, count, type, to, tag, from, recvtag, comm, status), OP_SEND,
    trace_message(mine, comm, to, trace_bytes(count, type), 0);
    rounds_waited(&mine->rounds, trace_timed))

#undef MESSAGE
#undef MESSAGE_ARGS
#undef SEND
#undef ISEND
#undef SEND_INIT
