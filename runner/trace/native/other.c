/* Start and end, the timed part, communicators, and one-sided communication. */

#include "wrap.h"

int MPI_Init(int *argc, char ***argv)
{
    static int (*real)(int *, char ***);
    real = (int (*)(int *, char ***))trace_real("PMPI_Init");
    int code = real(argc, argv);
    trace_begin();
    return code;
}
int PMPI_Init(int *argc, char ***argv) __attribute__((alias("MPI_Init")));

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    static int (*real)(int *, char ***, int, int *);
    real = (int (*)(int *, char ***, int, int *))trace_real("PMPI_Init_thread");
    int code = real(argc, argv, required, provided);
    trace_begin();
    return code;
}
int PMPI_Init_thread(int *argc, char ***argv, int required, int *provided)
    __attribute__((alias("MPI_Init_thread")));

int MPI_Finalize(void)
{
    static int (*real)(void);
    real = (int (*)(void))trace_real("PMPI_Finalize");
    trace_end();
    return real();
}
int PMPI_Finalize(void) __attribute__((alias("MPI_Finalize")));

int MPI_Pcontrol(const int level, ...)
{
    static int (*real)(const int, ...);
    real = (int (*)(const int, ...))trace_real("PMPI_Pcontrol");
    trace_mark(level);
    return real(level);
}
int PMPI_Pcontrol(const int level, ...) __attribute__((alias("MPI_Pcontrol")));

/* Operations of the user: whether their order matters.  Open MPI's and MPICH's Fortran bindings call
   PMPI_Op_create; other bindings may not, so their names stand here, too. */
int MPI_Op_create(MPI_User_function *function, int commute, MPI_Op *made)
{
    static int (*real)(MPI_User_function *, int, MPI_Op *);
    real = (int (*)(MPI_User_function *, int, MPI_Op *))trace_real("PMPI_Op_create");
    trace_operation(commute);
    return real(function, commute, made);
}
int PMPI_Op_create(MPI_User_function *function, int commute, MPI_Op *made)
    __attribute__((alias("MPI_Op_create")));

#if MPI_VERSION >= 4
int MPI_Op_create_c(MPI_User_function_c *function, int commute, MPI_Op *made)
{
    static int (*real)(MPI_User_function_c *, int, MPI_Op *);
    real = (int (*)(MPI_User_function_c *, int, MPI_Op *))trace_real("PMPI_Op_create_c");
    trace_operation(commute);
    return real(function, commute, made);
}
int PMPI_Op_create_c(MPI_User_function_c *function, int commute, MPI_Op *made)
    __attribute__((alias("MPI_Op_create_c")));
#endif

#define OF_FORTRAN(name) \
    void name(void *function, int *commute, void *made, int *error); \
    void name(void *function, int *commute, void *made, int *error) \
    { \
        static void (*real)(void *, int *, void *, int *); \
        real = (void (*)(void *, int *, void *, int *))trace_real(#name); \
        trace_operation(*commute); \
        real(function, commute, made, error); \
    }
OF_FORTRAN(mpi_op_create_)
OF_FORTRAN(pmpi_op_create_)
OF_FORTRAN(mpi_op_create_f08_)
OF_FORTRAN(mpi_op_create)
OF_FORTRAN(mpi_op_create__)

/* What other processes do with operations of their own is not seen. */
int MPI_Comm_spawn(const char *command, char *argv[], int most, MPI_Info info, int root,
    MPI_Comm comm, MPI_Comm *made, int codes[])
{
    static int (*real)(
        const char *, char *[], int, MPI_Info, int, MPI_Comm, MPI_Comm *, int[]);
    real = (int (*)(const char *, char *[], int, MPI_Info, int, MPI_Comm, MPI_Comm *,
        int[]))trace_real("PMPI_Comm_spawn");
    trace_spawn();
    return real(command, argv, most, info, root, comm, made, codes);
}
int PMPI_Comm_spawn(const char *command, char *argv[], int most, MPI_Info info, int root,
    MPI_Comm comm, MPI_Comm *made, int codes[]) __attribute__((alias("MPI_Comm_spawn")));

int MPI_Comm_spawn_multiple(int count, char *commands[], char **argvs[], const int most[],
    const MPI_Info infos[], int root, MPI_Comm comm, MPI_Comm *made, int codes[])
{
    static int (*real)(int, char *[], char **[], const int[], const MPI_Info[], int, MPI_Comm,
        MPI_Comm *, int[]);
    real = (int (*)(int, char *[], char **[], const int[], const MPI_Info[], int, MPI_Comm,
        MPI_Comm *, int[]))trace_real("PMPI_Comm_spawn_multiple");
    trace_spawn();
    return real(count, commands, argvs, most, infos, root, comm, made, codes);
}
int PMPI_Comm_spawn_multiple(int count, char *commands[], char **argvs[], const int most[],
    const MPI_Info infos[], int root, MPI_Comm comm, MPI_Comm *made, int codes[])
    __attribute__((alias("MPI_Comm_spawn_multiple")));

OTHER(Comm_dup, (MPI_Comm comm, MPI_Comm *made), (comm, made))
OTHER(Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *made), (comm, info, made))
OTHER(Comm_idup, (MPI_Comm comm, MPI_Comm *made, MPI_Request *request), (comm, made, request))
OTHER(Comm_split, (MPI_Comm comm, int colour, int key, MPI_Comm *made), (comm, colour, key, made))
OTHER(Comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made),
    (comm, type, key, info, made))
OTHER(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm *made), (comm, group, made))
OTHER(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *made),
    (comm, group, tag, made))
OTHER(Cart_create,
    (MPI_Comm comm, int dims, const int extent[], const int periodic[], int reorder,
        MPI_Comm *made),
    (comm, dims, extent, periodic, reorder, made))
OTHER(Cart_sub, (MPI_Comm comm, const int keep[], MPI_Comm *made), (comm, keep, made))
OTHER(Graph_create,
    (MPI_Comm comm, int nodes, const int index[], const int edges[], int reorder, MPI_Comm *made),
    (comm, nodes, index, edges, reorder, made))
OTHER(Dist_graph_create,
    (MPI_Comm comm, int count, const int sources[], const int degrees[], const int to[],
        const int weights[], MPI_Info info, int reorder, MPI_Comm *made),
    (comm, count, sources, degrees, to, weights, info, reorder, made))
OTHER(Dist_graph_create_adjacent,
    (MPI_Comm comm, int in, const int from[], const int inweights[], int out, const int to[],
        const int outweights[], MPI_Info info, int reorder, MPI_Comm *made),
    (comm, in, from, inweights, out, to, outweights, info, reorder, made))
OTHER(Intercomm_create,
    (MPI_Comm local, int leader, MPI_Comm peer, int remote, int tag, MPI_Comm *made),
    (local, leader, peer, remote, tag, made))
OTHER(Intercomm_merge, (MPI_Comm comm, int high, MPI_Comm *made), (comm, high, made))
FREE(Comm_free, (MPI_Comm *comm), (comm), trace_forget_comm(*comm))
FREE(Comm_disconnect, (MPI_Comm *comm), (comm), trace_forget_comm(*comm))

#define TRANSFER(name, params, args) \
    WRAP(name, params, args, OP_RMA, trace_transfer(mine, trace_bytes(count, type)))
#define ORIGIN void *origin, int count, MPI_Datatype type
#define CONST_ORIGIN const ORIGIN
#define RESULT void *result, int rcount, MPI_Datatype rtype
#define THERE int to, MPI_Aint place, int tcount, MPI_Datatype ttype
#define THERE_ARGS to, place, tcount, ttype

TRANSFER(Put, (CONST_ORIGIN, THERE, MPI_Win win), (origin, count, type, THERE_ARGS, win))
TRANSFER(Get, (ORIGIN, THERE, MPI_Win win), (origin, count, type, THERE_ARGS, win))
TRANSFER(Accumulate, (CONST_ORIGIN, THERE, MPI_Op operation, MPI_Win win),
    (origin, count, type, THERE_ARGS, operation, win))
TRANSFER(Get_accumulate, (CONST_ORIGIN, RESULT, THERE, MPI_Op operation, MPI_Win win),
    (origin, count, type, result, rcount, rtype, THERE_ARGS, operation, win))
TRANSFER(Rput, (CONST_ORIGIN, THERE, MPI_Win win, MPI_Request *request),
    (origin, count, type, THERE_ARGS, win, request))
TRANSFER(Rget, (ORIGIN, THERE, MPI_Win win, MPI_Request *request),
    (origin, count, type, THERE_ARGS, win, request))
TRANSFER(Raccumulate, (CONST_ORIGIN, THERE, MPI_Op operation, MPI_Win win, MPI_Request *request),
    (origin, count, type, THERE_ARGS, operation, win, request))
TRANSFER(Rget_accumulate,
    (CONST_ORIGIN, RESULT, THERE, MPI_Op operation, MPI_Win win, MPI_Request *request),
    (origin, count, type, result, rcount, rtype, THERE_ARGS, operation, win, request))
WRAP(Fetch_and_op,
    (const void *origin, void *result, MPI_Datatype type, int to, MPI_Aint place,
        MPI_Op operation, MPI_Win win),
    (origin, result, type, to, place, operation, win), OP_RMA,
    trace_transfer(mine, trace_bytes(1, type)))
WRAP(Compare_and_swap,
    (const void *origin, const void *expected, void *result, MPI_Datatype type, int to,
        MPI_Aint place, MPI_Win win),
    (origin, expected, result, type, to, place, win), OP_RMA,
    trace_transfer(mine, trace_bytes(1, type)))

OTHER(Win_fence, (int mode, MPI_Win win), (mode, win))
OTHER(Win_lock, (int type, int rank, int mode, MPI_Win win), (type, rank, mode, win))
OTHER(Win_lock_all, (int mode, MPI_Win win), (mode, win))
OTHER(Win_unlock, (int rank, MPI_Win win), (rank, win))
OTHER(Win_unlock_all, (MPI_Win win), (win))
OTHER(Win_flush, (int rank, MPI_Win win), (rank, win))
OTHER(Win_flush_all, (MPI_Win win), (win))
OTHER(Win_flush_local, (int rank, MPI_Win win), (rank, win))
OTHER(Win_flush_local_all, (MPI_Win win), (win))
OTHER(Win_post, (MPI_Group group, int mode, MPI_Win win), (group, mode, win))
OTHER(Win_start, (MPI_Group group, int mode, MPI_Win win), (group, mode, win))
OTHER(Win_complete, (MPI_Win win), (win))
OTHER(Win_wait, (MPI_Win win), (win))
OTHER(Win_free, (MPI_Win *win), (win))
