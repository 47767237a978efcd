/* Shows which values the MPI library in a rank works with.

   The library is preloaded into every rank.  After MPI_Init, rank 0 writes all control variables
   of MPI_T with their values.  MPI_T of MPICH and its derivatives shows the default of a variable
   that holds text, whatever is in force (MPICH 4.0 to 5.0, Intel MPI 2021), and knows nothing of
   the variables of UCX and libfabric.  So this library also stands before getenv: of each variable
   that it was told to watch it writes what the asking library was given, and which library asked.

   Every process that has this library makes an empty file beside, with the suffix ".loaded", so that
   a program without MPI_Init can be told from one that cannot load it.

   Intel MPI says on standard output of its MPI_Init which values it ignores.  With the variable
   AUTOTUNE_STARTUP_OUTPUT that output goes to a file, and not between the lines of the program.

   There is no mpi.h here: MPICH, its derivatives and the ABI of MPI 5 have the calls below in
   common.  A handle is an int in the first, a pointer in the second; both pass through a long. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_VARIABLE "AUTOTUNE_CONTROL_VARIABLES"
#define WATCH_VARIABLE "AUTOTUNE_WATCHED_VARIABLES"
#define STARTUP_VARIABLE "AUTOTUNE_STARTUP_OUTPUT"
#define WAIT_VARIABLE "AUTOTUNE_WAIT_FOR_LOOK"
#define LOOKS 250 /* of 0.2 ms: the longest wait */
#define WATCHED 256
#define TEXT 1024
#define SUCCESS 0
#define THREAD_SINGLE 0

extern char **environ;

struct watched {
    const char *name;
    size_t length;
    char line[TEXT]; /* what was asked, before it is known whether this is rank 0 */
    int asked;
};

static struct watched watched[WATCHED];
static int count = -1;
static int file = -1; /* of rank 0, after MPI_Init */
static int output = -1; /* the program's standard output, during MPI_Init with a file for it */
static int inside;    /* depth of calls of MPI_Init: one name of it may call the other */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The value of a variable; getenv itself stands below. */
static char *value_of(const char *name)
{
    size_t length = strlen(name);
    for (char **entry = environ; entry && *entry; entry++)
        if (!strncmp(*entry, name, length) && (*entry)[length] == '=')
            return *entry + length + 1;
    return NULL;
}

static void begin(void)
{
    char *list = value_of(WATCH_VARIABLE);
    int found = 0;
    while (list && *list && found < WATCHED) {
        size_t length = strcspn(list, ":");
        watched[found].name = list;
        watched[found++].length = length;
        list += length + (list[length] == ':');
    }
    count = found;
}

/* The file with a suffix, open to append to; -1 if none is asked for. */
static int open_file(const char *suffix)
{
    char *path = value_of(FILE_VARIABLE), whole[4096];
    if (!path || !*path || snprintf(whole, sizeof whole, "%s%s", path, suffix) >= (int)sizeof whole)
        return -1;
    return open(whole, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

__attribute__((constructor)) static void loaded(void)
{
    int made = open_file(".loaded");
    if (made >= 0)
        close(made);
}

static void put(const char *text)
{
    size_t length = strlen(text);
    if (file >= 0 && write(file, text, length) != (ssize_t)length)
        file = -1;
}

/* A value on one line: line ends and backslashes are written as \n and \\. */
static void escape(char *into, size_t room, const char *text)
{
    size_t at = 0;
    for (; text && *text && at + 3 < room; text++) {
        if (*text == '\n' || *text == '\\') {
            into[at++] = '\\';
            into[at++] = *text == '\n' ? 'n' : '\\';
        } else
            into[at++] = *text;
    }
    into[at] = 0;
}

static void asked(struct watched *one, const char *value, void *from)
{
    Dl_info who = {0};
    char text[TEXT / 2];
    if (!dladdr(from, &who) || !who.dli_fname)
        who.dli_fname = "?";
    const char *base = strrchr(who.dli_fname, '/');
    escape(text, sizeof text, value);
    pthread_mutex_lock(&lock);
    if (!one->asked) {
        one->asked = 1;
        snprintf(one->line, sizeof one->line, "asked %.*s %s%s%s\n", (int)one->length, one->name,
            base ? base + 1 : who.dli_fname, value ? "=" : "", value ? text : "");
        put(one->line);
    }
    pthread_mutex_unlock(&lock);
}

static char *look_up(const char *name, void *from)
{
    char *value = value_of(name);
    if (count < 0)
        begin();
    if (count > 0) {
        size_t length = strlen(name);
        for (int i = 0; i < count; i++)
            if (!watched[i].asked && watched[i].length == length
                && !memcmp(watched[i].name, name, length))
                asked(&watched[i], value, from);
    }
    return value;
}

char *getenv(const char *name)
{
    return look_up(name, __builtin_return_address(0));
}

char *secure_getenv(const char *name)
{
    return look_up(name, __builtin_return_address(0));
}

/* The library behind MPI_Init: the next one in order, else the one that is loaded on its own. */
static int is_mpi(struct dl_phdr_info *info, size_t size, void *found)
{
    const char *base = strrchr(info->dlpi_name, '/');
    (void)size;
    if (!base || (strncmp(base, "/libmpi.so", 10) && strncmp(base, "/libmpich.so", 12)
                     && strncmp(base, "/libmpi_abi.so", 14)))
        return 0;
    *(const char **)found = info->dlpi_name;
    return 1;
}

static void *next(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    const char *path = NULL;
    if (!found && dl_iterate_phdr(is_mpi, &path) && path) {
        void *library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
        found = library ? dlsym(library, name) : NULL;
    }
    if (!found) {
        fprintf(stderr, "autotune: no MPI library behind %s\n", name);
        _exit(86);
    }
    return found;
}

#define CALL(name) ((int (*)())next(name))

/* The constants for MPI_COMM_WORLD. */
#define WORLD_MPICH 0x44000000L
#define WORLD_ABI 0x101L

static void write_variables(void)
{
    int number = 0, provided;
    int (*info)(int, char *, int *, int *, int64_t *, int64_t *, char *, int *, int *, int *);
    int (*type_name)(int64_t, char *, int *);
    if (CALL("MPI_T_init_thread")(THREAD_SINGLE, &provided) != SUCCESS)
        return;
    info = next("MPI_T_cvar_get_info");
    type_name = next("PMPI_Type_get_name");
    CALL("MPI_T_cvar_get_num")(&number);
    for (int i = 0; i < number; i++) {
        static union {
            char text[1 << 14];
            int number[2];
            long long wide;
            double real;
        } value;
        char name[256], type[512] = "", text[TEXT], line[2 * TEXT];
        int length = sizeof name, verbosity, binding, scope, elements = 0;
        int64_t handle_type = 0, kinds = 0;
        void *handle = NULL;
        if (info(i, name, &length, &verbosity, &handle_type, &kinds, NULL, NULL, &binding, &scope)
                != SUCCESS
            || CALL("MPI_T_cvar_handle_alloc")(i, NULL, &handle, &elements) != SUCCESS)
            continue;
        memset(&value, 0, sizeof value);
        type_name(handle_type, type, &length);
        if (elements > 0 && (size_t)elements < sizeof value / 16
            && CALL("MPI_T_cvar_read")(handle, &value) == SUCCESS) {
            if (!strcmp(type, "MPI_CHAR"))
                escape(text, sizeof text, value.text);
            else if (!strcmp(type, "MPI_DOUBLE"))
                snprintf(text, sizeof text, "%.17g", value.real);
            else if (strcmp(type, "MPI_INT") && strcmp(type, "MPI_UNSIGNED"))
                snprintf(text, sizeof text, "%lld", value.wide);
            else if (elements == 2)
                snprintf(text, sizeof text, "%d:%d", value.number[0], value.number[1]);
            else
                snprintf(text, sizeof text, "%d", value.number[0]);
            snprintf(line, sizeof line, "%s %s=%s\n", type, name, text);
            put(line);
        }
        CALL("MPI_T_cvar_handle_free")(&handle);
    }
    /* No MPI_T_finalize: after the last one MPICH 4.0 has no variables any more, and a program that
       uses MPI_T itself would crash. */
}

/* The report is there and all ranks run: whoever started them looks at them now and then makes a
   file with the suffix ".seen".  A program may be over in less time than the look takes. */
static void wait_for_look(void)
{
    char *path = value_of(FILE_VARIABLE), whole[4096];
    if (!value_of(WAIT_VARIABLE)
        || snprintf(whole, sizeof whole, "%s.seen", path) >= (int)sizeof whole)
        return;
    for (int i = 0; i < LOOKS && access(whole, F_OK); i++)
        usleep(200);
}

/* The first line of what the library says of its version. */
static void write_version(void)
{
    char text[8192] = "", line[TEXT];
    int length = sizeof text;
    CALL("MPI_Get_library_version")(text, &length);
    text[strcspn(text, "\n")] = 0;
    snprintf(line, sizeof line, "version %.900s\n", text);
    put(line);
}

/* After MPI_Init: rank 0 writes the file. */
static void write_file(void)
{
    char line[TEXT];
    int rank = -1, size = 0, made;
    Dl_info who = {0};
    void *other = dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world");
    long world = other ? (long)other : WORLD_MPICH;
    if (!value_of(FILE_VARIABLE))
        return;
    if (dladdr(next("MPI_Init"), &who) && who.dli_fname && strstr(who.dli_fname, "libmpi_abi"))
        world = WORLD_ABI;
    CALL("PMPI_Comm_rank")(world, &rank);
    CALL("PMPI_Comm_size")(world, &size);
    if (rank != 0 || (made = open_file("")) < 0)
        return;
    pthread_mutex_lock(&lock);
    file = made;
    snprintf(line, sizeof line, "world %d\nlibrary %.900s\n", size,
        who.dli_fname ? who.dli_fname : "?");
    put(line);
    write_version();
    if (!other)
        write_variables();
    for (int i = 0; i < count; i++)
        if (watched[i].asked)
            put(watched[i].line);
    put("initialised\n");
    /* The closing of the file is what is waited for; what a library asks for later is appended. */
    close(made);
    file = open_file("");
    pthread_mutex_unlock(&lock);
    wait_for_look();
}

/* Standard output goes to the file of the startup until MPI_Init ends; without the file, nowhere. */
static void begin_startup(void)
{
    char *path = value_of(STARTUP_VARIABLE);
    if (inside++ || !path || !*path)
        return;
    fflush(stdout);
    int made = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (made < 0)
        made = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (made < 0)
        return;
    output = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (output >= 0)
        dup2(made, STDOUT_FILENO);
    close(made);
}

static void end_startup(void)
{
    if (output < 0)
        return;
    fflush(stdout);
    dup2(output, STDOUT_FILENO);
    close(output);
    output = -1;
}

static int initialise(int code)
{
    if (--inside == 0) {
        end_startup();
        if (code == SUCCESS)
            write_file();
    }
    return code;
}

int MPI_Init(int *argc, char ***argv)
{
    begin_startup();
    return initialise(CALL("MPI_Init")(argc, argv));
}

int PMPI_Init(int *argc, char ***argv)
{
    begin_startup();
    return initialise(CALL("PMPI_Init")(argc, argv));
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    begin_startup();
    return initialise(CALL("MPI_Init_thread")(argc, argv, required, provided));
}

int PMPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    begin_startup();
    return initialise(CALL("PMPI_Init_thread")(argc, argv, required, provided));
}
