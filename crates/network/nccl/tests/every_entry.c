/* Loads the plugin as NCCL does and calls every entry of every version. The tables are declared here anew, from the facts
   of the binary interface alone, so that a mistake in the plugin's own types cannot hide. One process, one device: the loopback
   interface; sender and receiver are both ours. With ANABRANCH_TEST_RDMA it has an RDMA device, that of
   crates/network/wire/tests/fake_verbs.c. Ends with 0, or says which line failed. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stdarg.h>
#include <sys/wait.h>
#if defined(__x86_64__) && defined(__linux__)
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#define COUNTS_SYSTEM_CALLS 1
#endif
#include <time.h>
#include <unistd.h>

static char last[512];
static void logger(int level, unsigned long flags, const char *file, int line, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(last, sizeof last, format, args);
  va_end(args);
  if (level < 2 || level > 5) abort();
  if (flags != 16 || !file || line < 0) abort();
  if (getenv("ANABRANCH_TEST_LOUD")) fprintf(stderr, "%d %s\n", level, last);
}
#define MUST(x) do { if (!(x)) { fprintf(stderr, "line %d: %s; last line of the log: %s\n", __LINE__, #x, last); exit(1); } } while (0)

typedef struct { const char *name; void *entry[21]; } table; /* at most 176 bytes */
enum { INIT, DEVICES, PROPERTIES, LISTEN, CONNECT, ACCEPT, REGMR, REGDMABUF, DEREGMR, ISEND, IRECV, IFLUSH, TEST, CLOSESEND,
       CLOSERECV, CLOSELISTEN, GETDEVICEMR, IRECVCONSUMED, MAKEVDEVICE, FINALIZE, SETNETATTR };

static int version;
static table *net;
static void *context;

static int begin(void) {
  if (version <= 9) return ((int (*)(void *))net->entry[INIT])(logger);
  if (version == 10) return ((int (*)(void *, void *))net->entry[INIT])(logger, NULL);
  int config = -1;
  return ((int (*)(void **, uint64_t, void *, void *, void *))net->entry[INIT])(&context, 7, &config, logger, NULL);
}
static int do_listen(int dev, void *handle, void **comm) {
  if (version >= 11) return ((int (*)(void *, int, void *, void **))net->entry[LISTEN])(context, dev, handle, comm);
  return ((int (*)(int, void *, void **))net->entry[LISTEN])(dev, handle, comm);
}
static int do_connect(int dev, void *handle, void **comm) {
  void *device = (void *)1;
  int config = 3, code;
  if (version >= 11) code = ((int (*)(void *, int, void *, void **, void **))net->entry[CONNECT])(context, dev, handle, comm, &device);
  else if (version == 10) code = ((int (*)(int, void *, void *, void **, void **))net->entry[CONNECT])(dev, &config, handle, comm, &device);
  else code = ((int (*)(int, void *, void **, void **))net->entry[CONNECT])(dev, handle, comm, &device);
  if (code == 0) MUST(device == NULL);
  return code;
}
static int do_accept(void *listener, void **comm) {
  void *device = (void *)1;
  return ((int (*)(void *, void **, void **))net->entry[ACCEPT])(listener, comm, &device);
}
static int do_regmr(void *comm, void *data, size_t size, int type, void **mhandle) {
  return ((int (*)(void *, void *, size_t, int, void **))net->entry[REGMR])(comm, data, size, type, mhandle);
}
static int do_isend(void *comm, void *data, size_t size, int tag, void *mhandle, void **request) {
  if (version == 8) return ((int (*)(void *, void *, int, int, void *, void **))net->entry[ISEND])(comm, data, (int)size, tag, mhandle, request);
  if (version == 9) return ((int (*)(void *, void *, size_t, int, void *, void **))net->entry[ISEND])(comm, data, size, tag, mhandle, request);
  return ((int (*)(void *, void *, size_t, int, void *, void *, void **))net->entry[ISEND])(comm, data, size, tag, mhandle, NULL, request);
}
static int do_irecv(void *comm, int n, void **data, size_t *sizes, int *tags, void **mhandles, void **request) {
  if (version == 8) {
    int small[16];
    for (int i = 0; i < n && i < 16; i++) small[i] = (int)sizes[i];
    return ((int (*)(void *, int, void **, int *, int *, void **, void **))net->entry[IRECV])(comm, n, data, small, tags, mhandles, request);
  }
  if (version == 9) return ((int (*)(void *, int, void **, size_t *, int *, void **, void **))net->entry[IRECV])(comm, n, data, sizes, tags, mhandles, request);
  return ((int (*)(void *, int, void **, size_t *, int *, void **, void **, void **))net->entry[IRECV])(comm, n, data, sizes, tags, mhandles, NULL, request);
}
static int do_test(void *request, int *done, int *sizes) {
  return ((int (*)(void *, int *, int *))net->entry[TEST])(request, done, sizes);
}
static int do_close(int which, void *comm) { return ((int (*)(void *))net->entry[which])(comm); }

static void properties(int dev) {
  unsigned char block[256];
  memset(block, 0x5a, sizeof block);
  MUST(((int (*)(int, void *))net->entry[PROPERTIES])(dev, block) == 0);
  static const int sizes[] = {64, 104, 104, 112, 128};
  int size = sizes[version - 8];
  for (int i = size; i < (int)sizeof block; i++) MUST(block[i] == 0x5a); /* nothing beyond its end */
#define AT(type, offset) (*(type *)(block + (offset)))
  int rdma = getenv("ANABRANCH_TEST_RDMA") != NULL;
  MUST(strcmp(AT(const char *, 0), rdma ? "fake0" : "lo") == 0);
  if (rdma) MUST(AT(uint64_t, 16) == 0x0011223344556677);
  MUST(AT(const char *, 8) == NULL); /* virtual */
  MUST(AT(int, 24) == 1);            /* host pointers */
  int shift = version >= 9 ? 4 : 0;
  if (version >= 9) MUST(AT(int, 32) == 0);
  MUST(AT(int, 32 + shift) == (rdma ? 25000 : 100000) && AT(int, 36 + shift) == rdma);
  MUST(AT(int, 44 + shift) >= 1024);
  MUST(AT(int, 48 + shift) == 8);
  MUST(AT(int, 52 + shift) == 0 && AT(int, 56 + shift) == 0);
  if (version >= 9) {
    MUST(AT(int, 64) == 1 && AT(int, 68) == 0); /* also of a device that is made of the first */
    int bytes = version >= 12 ? 104 : 88;
    MUST(AT(size_t, bytes) == (size_t)1 << 40 && AT(size_t, bytes + 8) == (size_t)1 << 40);
  }
  if (version == 11) MUST(AT(int, 104) == 1);
  if (version == 12) MUST(AT(int, 120) == 1 && AT(int16_t, 124) == -1 && AT(int16_t, 126) == -1);
  MUST(((int (*)(int, void *))net->entry[PROPERTIES])(99, block) == 3);
}

static int devices(void) {
  int count = 0;
  MUST(((int (*)(int *))net->entry[DEVICES])(&count) == 0);
  return count;
}

/* Lists that cannot be are errors; one of a single member makes a device, as in NCCL's own network. */
static void fuse(void) {
  int (*make)(int *, void *) = (int (*)(int *, void *))net->entry[MAKEVDEVICE];
  int list[9] = {0}, device = -1, most = version >= 12 ? 8 : 4;
  MUST(make(&device, NULL) == 4 && make(&device, list) == 5 && strstr(last, "found 0 devices"));
  list[0] = most + 1;
  MUST(make(&device, list) == 5);
  list[0] = 2;
  MUST(make(NULL, list) == 4 && make(&device, list) == 5 && strstr(last, "listed twice"));
  list[2] = 1;
  MUST(make(&device, list) == 5 && strstr(last, "no device 1") && device == -1 && devices() == 1);
  list[0] = 1;
  MUST(make(&device, list) == 0 && device == 1 && devices() == 2);
  properties(1);
  list[1] = 1;
  MUST(make(&device, list) == 5 && strstr(last, "fused already"));
}

static void *sender, *receiver;
static void pair(void) {
  char handle[128], damaged[128];
  void *listener = NULL;
  MUST(do_listen(0, handle, &listener) == 0 && listener);
  memcpy(damaged, handle, sizeof handle);
  damaged[20] ^= 1;
  MUST(do_connect(0, damaged, &sender) == 3);
  MUST(strstr(last, "damaged"));
  sender = receiver = NULL;
  for (int i = 0; i < 10000000 && !(sender && receiver); i++) {
    if (!sender) MUST(do_connect(0, handle, &sender) == 0);
    if (!receiver) MUST(do_accept(listener, &receiver) == 0);
  }
  MUST(sender && receiver);
  MUST(do_close(CLOSELISTEN, listener) == 0);
}

static int patience = 30; /* seconds */
static void finish(void *request, int *sizes) {
  int done = 0;
  time_t began = time(NULL);
  while (!done) {
    MUST(do_test(request, &done, sizes) == 0);
    MUST(time(NULL) - began < patience);
  }
}

static void transfer(size_t size) {
  char *from = malloc(size + 1), *to = malloc(size + 101);
  for (size_t i = 0; i < size; i++) from[i] = (char)(i * 31 + size);
  memset(to, 0, size + 101);
  void *send_mr = NULL, *receive_mr = NULL, *sending = NULL, *receiving = (void *)1; /* optional completion */
  MUST(do_regmr(sender, from, size, 1, &send_mr) == 0 && do_regmr(receiver, to, size, 1, &receive_mr) == 0);
  int tag = 5, sizes[8] = {-1};
  size_t room = size + 100;
  void *data = to;
  MUST(do_irecv(receiver, 1, &data, &room, &tag, &receive_mr, &receiving) == 0);
  MUST(receiving && receiving != (void *)1);
  time_t began = time(NULL);
  while (!sending) {
    MUST(do_isend(sender, from, size, 5, send_mr, &sending) == 0);
    MUST(time(NULL) - began < patience);
  }
  finish(receiving, sizes);
  MUST(sizes[0] == (int)size && memcmp(from, to, size) == 0 && to[size] == 0);
  finish(sending, NULL);
  int done, code;
  do code = do_test(sending, &done, NULL); /* not yet, where the plugin's thread is at work */
  while (code == 0 && !done);
  MUST(code == 3); /* it is gone */
  void *flush = (void *)1;
  int flushed = (int)size;
  MUST(((int (*)(void *, int, void **, int *, void **, void **))net->entry[IFLUSH])(receiver, 1, &data, &flushed, &receive_mr, &flush) == 0);
  MUST(flush == NULL);
  MUST(((int (*)(void *, void *))net->entry[DEREGMR])(sender, send_mr) == 0);
  MUST(((int (*)(void *, void *))net->entry[DEREGMR])(receiver, receive_mr) == 0);
  free(from);
  free(to);
}

static void grouped(void) {
  char from[3][10] = {"aaaaaaaaa", "bbbbbbbbb", "ccccccccc"}, to[3][10] = {{0}};
  void *data[3] = {to[0], to[1], to[2]}, *handles[3] = {0}, *receiving = NULL, *sending[3] = {0};
  size_t rooms[3] = {10, 10, 10};
  int tags[3] = {1, 2, 3}, sizes[3];
  MUST(do_irecv(receiver, 3, data, rooms, tags, handles, &receiving) == 0 && receiving);
  for (int i = 2; i >= 0; i--)
    while (!sending[i]) MUST(do_isend(sender, from[i], (size_t)(4 + i), tags[i], NULL, &sending[i]) == 0);
  finish(receiving, sizes);
  for (int i = 0; i < 3; i++) {
    MUST(sizes[i] == 4 + i && memcmp(from[i], to[i], (size_t)sizes[i]) == 0);
    finish(sending[i], NULL);
  }
}

static void mistakes(void) {
  int done = 0;
  void *out = NULL;
  char handle[128] = {0}, byte = 0;
  MUST(do_connect(0, handle, &out) == 3 && strstr(last, "another network plugin"));
  MUST(do_listen(77, handle, &out) == 3);
  MUST(do_listen(0, NULL, &out) == 4);
  MUST(do_accept(sender, &out) == 3);
  MUST(do_isend(receiver, &byte, 1, 0, NULL, &out) == 3);
  MUST(do_isend((void *)0x12345678, &byte, 1, 0, NULL, &out) == 3);
  MUST(do_isend(sender, NULL, 1, 0, NULL, &out) == 4);
  MUST(do_isend(sender, &byte, 1, 0, NULL, NULL) == 4);
  /* the largest that there may be waits for room; nothing is read of it before */
  MUST(do_isend(sender, &byte, version == 8 ? ((size_t)1 << 31) - 1 : (size_t)1 << 40, 0, NULL, &out) == 0 && !out);
  if (version == 8) MUST(do_isend(sender, &byte, (size_t)-1, 0, NULL, &out) == 4);
  else MUST(do_isend(sender, &byte, ((size_t)1 << 40) + 1, 0, NULL, &out) == 4);
  void *data[9] = {0};
  size_t rooms[9] = {0};
  int tags[9] = {0};
  MUST(do_irecv(receiver, 9, data, rooms, tags, data, &out) == 3);
  MUST(do_irecv(receiver, 0, data, rooms, tags, data, &out) == 3);
  MUST(do_test(sender, &done, NULL) == 3);
  MUST(do_test(NULL, &done, NULL) == 3);
  MUST(do_test(NULL, NULL, NULL) == 4);
  MUST(do_regmr(sender, &byte, 1, 2, &out) == 3 && strstr(last, "memory of the host"));
  MUST(do_close(CLOSERECV, sender) == 3);
}

/* The paths of our connection, as a tuner inside the process sees them. */
struct path {
  uint32_t state, path, connection, device;
  unsigned char address[16];
  uint32_t port, reserved;
  uint64_t bytes, packets, retransmitted, answers, marks, losses, moves, rtt_least, rtt_mean, rtt_p99, window, used_at, reserved2;
};
static void tuner(void *library) {
  int64_t (*paths)(struct path *, size_t) = (int64_t (*)(struct path *, size_t))dlsym(library, "anabranchPaths");
  int (*set)(const char *) = (int (*)(const char *))dlsym(library, "anabranchSet");
  struct path all[8];
  MUST(paths && set && sizeof *all == 144);
  MUST(paths(NULL, 0) == 4 && paths(all, 3) == 4 && paths(all, 8) == 4); /* one sender, ANABRANCH_PATHS=4 */
  /* A message may be done before the answer of every path it used has been read: the plugin's thread does that soon. */
  for (int look = 0, known = 0; !known; look++) {
    MUST(look < 1000 && paths(all, 8) == 4);
    known = 1;
    for (int i = 0; i < 4; i++) known &= all[i].packets == 0 || all[i].answers > 0;
    if (!known) usleep(5000);
  }
  uint64_t bytes = 0;
  for (int i = 0; i < 4; i++) {
    MUST(all[i].state == 1 && all[i].path == (uint32_t)i && all[i].device == 0 && all[i].address[12] == 127 && all[i].port);
    MUST(all[i].packets == 0 || (all[i].rtt_least > 0 && all[i].rtt_least <= all[i].rtt_p99 && all[i].used_at));
    bytes += all[i].bytes;
  }
  MUST(bytes >= 8 + 1);
  MUST(set("load_balancer.scheme=hopper; load_balancer.hopper.th_cong=3") == 0);
  MUST(set("load_balancer.hopper.th_kong=3") == 5 && set(NULL) == 4);
}

#ifdef COUNTS_SYSTEM_CALLS
static volatile unsigned long calls;
static volatile int64_t first_at, last_at; /* of a call of `test` */
static int64_t nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now); /* no system call: a page of the kernel's */
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}
static void trapped(int signal, siginfo_t *info, void *context_of) {
  (void)signal;
  calls++;
  int which = info->si_syscall;
  int waits = which == SYS_poll || which == SYS_ppoll || which == SYS_epoll_wait || which == SYS_epoll_pwait || which == 441 /* epoll_pwait2 */;
  ((ucontext_t *)context_of)->uc_mcontext.gregs[REG_RAX] = waits ? 0 : -EAGAIN; /* nothing is there */
  last_at = nanoseconds();
  if (!first_at) first_at = last_at;
}
/* `test` on a receive that waits, in a thread whose system calls all trap: between the last one of a call that works and the
   first one of the next that does there is a microsecond at least. 77 where there can be no such thread. */
static int quiet_looks(void) {
  struct sigaction action = {0};
  action.sa_sigaction = trapped;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSYS, &action, NULL);
  struct sock_filter filter[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 4, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 3, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 1, 0),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  char byte;
  void *data = &byte, *handle = NULL, *request = NULL;
  size_t room = 1;
  int tag = 0, done = 0;
  MUST(do_irecv(receiver, 1, &data, &room, &tag, &handle, &request) == 0 && request);
  /* of this thread alone: the plugin's own goes on */
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 77;
  unsigned long looks = 0, works = 0;
  int64_t worked_at = 0;
  /* until there are enough of both, but not for ever */
  int64_t begin = nanoseconds();
  while (nanoseconds() - begin < (looks > 100 && works > 10 ? 300 : 20000) * 1000000LL) {
    first_at = 0;
    MUST(do_test(request, &done, NULL) == 0 && !done);
    if (first_at) {
      MUST(first_at - worked_at >= 1000);
      worked_at = last_at;
      works++;
    } else looks++;
  }
  fprintf(stderr, "%lu calls without a system call, %lu that worked, %lu system calls\n", looks, works, calls);
  MUST(looks > 100 && works > 10);
  return 0;
}
#endif

/* A child that was forked may not use what its parent has loaded, and takes nothing from it when it ends. */
static int pages(void);
static void forked(void) {
  int before = pages(), status = -1;
  pid_t child = fork();
  if (child == 0) {
    void *out = NULL;
    char handle[128];
    MUST(do_listen(0, handle, &out) == 2 && strstr(last, "forked"));
    exit(0);
  }
  MUST(waitpid(child, &status, 0) == child && status == 0);
  MUST(pages() == before);
}

/* Loads, runs, unloads; with some traffic only where that has been looked at before. */
static void once(const char *path, int again) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) fprintf(stderr, "%s\n", dlerror());
  MUST(library);
  char symbol[64];
  snprintf(symbol, sizeof symbol, "ncclNetPlugin_v%d", version);
  net = dlsym(library, symbol);
  MUST(net && strcmp(net->name, "Anabranch") == 0);
  MUST(!net->entry[REGDMABUF] && !net->entry[GETDEVICEMR] && !net->entry[IRECVCONSUMED]);
  char early[128];
  void *out = NULL;
  context = NULL;
  MUST(do_listen(0, early, &out) == 3); /* before init */
  MUST(begin() == 0);
  MUST(devices() == 1);
  properties(0);
  if (version >= 9) fuse();
  if (version >= 11) {
    unsigned char attributes[44] = {0};
    MUST(((int (*)(void *, void *))net->entry[SETNETATTR])(context, attributes) == 0);
    void *first = context; /* a further communicator of NCCL's */
    MUST(begin() == 0 && context != first);
    MUST(do_close(FINALIZE, first) == 0 && do_close(FINALIZE, first) == 3);
  }
  pair();
#ifdef COUNTS_SYSTEM_CALLS
  if (getenv("ANABRANCH_TEST_QUIET")) _exit(quiet_looks());
#endif
  static const size_t sizes[] = {0, 1, 8, 4096, 262144, 262145, 3000000};
  for (int i = 0; i < (again ? 3 : (int)(sizeof sizes / sizeof *sizes)); i++) transfer(sizes[i]);
  if (getenv("ANABRANCH_TEST_LARGE")) { /* one message of a gibibyte */
    patience = 300;
    transfer((size_t)1 << 30);
  }
  grouped();
  tuner(library);
  transfer(100000); /* over another scheme */
  if (!again) {
    mistakes();
    if (!getenv("ANABRANCH_TEST_SLOW")) forked(); /* valgrind looks at children too */
    transfer(5000);
  }
  MUST(do_close(CLOSESEND, sender) == 0 && do_close(CLOSESEND, sender) == 3);
  MUST(do_close(CLOSERECV, receiver) == 0);
  if (version >= 11) {
    MUST(do_close(FINALIZE, context) == 0);
    /* NCCL keeps the numbers of devices as long as it keeps the library; each warns of a page that there is not */
    if (!getenv("ANABRANCH_STATS")) MUST(begin() == 0 && devices() == 2 && do_close(FINALIZE, context) == 0);
  }
  MUST(dlclose(library) == 0);
}

static int entries_of(const char *folder) {
  DIR *dir = opendir(folder);
  int count = 0;
  while (readdir(dir)) count++;
  closedir(dir);
  return count;
}

/* Statistics pages of this process. */
static int pages(void) {
  const char *folder = getenv("ANABRANCH_STATS");
  char name[64];
  snprintf(name, sizeof name, "anabranch-%d-", (int)getpid());
  DIR *dir = opendir(folder ? folder : "/dev/shm");
  int count = 0;
  for (struct dirent *entry; dir && (entry = readdir(dir));) count += strncmp(entry->d_name, name, strlen(name)) == 0;
  if (dir) closedir(dir);
  return count;
}

/* Threads, descriptors, mappings of the plugin or of shared memory, what there is of an RDMA device. */
static void left(int *counts) {
  counts[3] = 0;
  if (getenv("ANABRANCH_TEST_RDMA")) {
    void *verbs = dlopen("libibverbs.so.1", RTLD_NOW);
    MUST(verbs && dlsym(verbs, "fake_left"));
    counts[3] = ((int (*)(void))dlsym(verbs, "fake_left"))();
  }
  counts[0] = entries_of("/proc/self/task");
  counts[1] = entries_of("/proc/self/fd");
  counts[2] = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[1024];
  while (fgets(line, sizeof line, maps)) {
    if (strstr(line, "anabranch.so") || strstr(line, "/dev/shm")) {
      counts[2]++;
      fprintf(stderr, "still there: %s", line);
    }
  }
  fclose(maps);
}

int main(int argc, char **argv) {
  MUST(argc == 4);
  version = atoi(argv[2]);
  if (getenv("ANABRANCH_TEST_SLOW")) patience = 300;
  int before[4], after[4];
  /* libibverbs stays, with what it has begun */
  if (getenv("ANABRANCH_TEST_RDMA")) once(argv[1], 1);
  left(before);
  for (int i = 0; i < atoi(argv[3]); i++) once(argv[1], i);
  left(after);
  MUST(after[2] == 0 && pages() == 0);
  MUST(before[0] == after[0] && before[1] == after[1] && after[3] == 0);
  return 0;
}
