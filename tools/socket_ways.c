/*
 * What other ways to the kernel would cost (docs/evidence/wire.md, "What was tried"): datagrams of 4 KiB and our header over the loopback interface,
 * at most 128 under way, in goodput per second of CPU time of both ends.
 *
 *     cc -O2 -o socket_ways tools/socket_ways.c -luring -lpthread      (Debian: liburing-dev)
 *     for way in plain spray uring uring-spray raw gso gso-uring gso-zerocopy; do ./socket_ways $way 128; done      (raw: as root)
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <liburing.h>
#include <linux/errqueue.h>
#include <netinet/udp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { PAYLOAD = 4096, DATAGRAM = PAYLOAD + 56, UNDER_WAY = 128, MESSAGE = 1 << 20, LABELS = 8, AT_ONCE = 16, RUN = 15 };

static const char *way;
static long wanted;
static int receiving[LABELS], sending[LABELS];
static struct sockaddr_in to[LABELS], from[LABELS];
static double receiver_cpu;

static int is(const char *name) { return strcmp(way, name) == 0; }
static int by_uring(void) { return strstr(way, "uring") != NULL; }
static int run(void) { return strncmp(way, "gso", 3) == 0 ? RUN : 1; }
static int labels(void) { return is("spray") || is("raw") || is("uring-spray") ? LABELS : 1; }

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static double seconds(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec + time.tv_nsec / 1e9;
}

/* The receiver says what it has after sixteen datagrams. */
static void say(long got) {
  static long said;
  if (got - said < 16 && got < wanted) return;
  said = got;
  send(receiving[0], &got, sizeof got, 0);
}

static long datagrams(ssize_t bytes) { return (bytes + DATAGRAM - 1) / DATAGRAM; }

static void ask(struct io_uring *ring, int place, char *buffer) {
  struct io_uring_sqe *entry = io_uring_get_sqe(ring);
  io_uring_prep_recv(entry, receiving[place % labels()], buffer, 1 << 16, 0);
  entry->user_data = place;
}

static void *receiver(void *unused) {
  static char buffers[AT_ONCE][1 << 16];
  double before = seconds(CLOCK_THREAD_CPUTIME_ID);
  long got = 0;
  if (by_uring()) {
    struct io_uring ring;
    if (io_uring_queue_init(64, &ring, 0) < 0) fail("io_uring");
    for (int place = 0; place < AT_ONCE; place++) ask(&ring, place, buffers[place]);
    while (got < wanted) {
      struct io_uring_cqe *done;
      unsigned head, count = 0;
      io_uring_submit_and_wait(&ring, 1);
      io_uring_for_each_cqe(&ring, head, done) {
        count++;
        if (done->res > 0) got += datagrams(done->res);
        ask(&ring, done->user_data, buffers[done->user_data]);
      }
      io_uring_cq_advance(&ring, count);
      say(got);
    }
    io_uring_queue_exit(&ring);
  } else if (labels() > 1) {
    struct pollfd all[LABELS];
    for (int label = 0; label < LABELS; label++) all[label] = (struct pollfd){receiving[label], POLLIN, 0};
    while (got < wanted) {
      poll(all, LABELS, 5000);
      for (int label = 0; label < LABELS; label++)
        while (all[label].revents && recv(receiving[label], buffers[0], 1 << 16, MSG_DONTWAIT) > 0) say(++got);
    }
  } else {
    while (got < wanted) {
      ssize_t bytes = recv(receiving[0], buffers[0], 1 << 16, 0);
      if (bytes <= 0) fail("receiving");
      say(got += datagrams(bytes));
    }
  }
  receiver_cpu = seconds(CLOCK_THREAD_CPUTIME_ID) - before;
  return unused;
}

static void open_sockets(void) {
  int on = 1, big = 4 << 20, segment = DATAGRAM;
  for (int label = 0; label < LABELS; label++) {
    int *ends[2] = {&receiving[label], &sending[label]};
    struct sockaddr_in *at[2] = {&to[label], &from[label]};
    for (int end = 0; end < 2; end++) {
      struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
      struct timeval patience = {5, 0};
      socklen_t size = sizeof any;
      *ends[end] = socket(AF_INET, SOCK_DGRAM, 0);
      if (bind(*ends[end], (void *)&any, size) < 0) fail("bind");
      getsockname(*ends[end], (void *)at[end], &size);
      setsockopt(*ends[end], SOL_SOCKET, SO_RCVBUFFORCE, &big, sizeof big);
      setsockopt(*ends[end], SOL_SOCKET, SO_SNDBUFFORCE, &big, sizeof big);
      setsockopt(*ends[end], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    }
    connect(receiving[label], (void *)&from[label], sizeof from[label]);
    connect(sending[label], (void *)&to[label], sizeof to[label]);
    if (run() > 1) {
      setsockopt(receiving[label], SOL_UDP, 104 /* UDP_GRO */, &on, sizeof on);
      setsockopt(sending[label], SOL_UDP, 103 /* UDP_SEGMENT */, &segment, sizeof segment);
    }
    if (is("gso-zerocopy") && setsockopt(sending[label], SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on) < 0) fail("zero copy");
  }
}

static char *message;
/* So many bytes of the message, which is sent again and again. */
static char *next(size_t bytes) {
  static size_t at;
  if (at + bytes > MESSAGE) at = 0;
  at += bytes;
  return message + at - bytes;
}

/* Sixteen datagrams from any source ports by one call and one socket. */
static long send_raw(int raw, long sent, long most) {
  static struct udphdr headers[AT_ONCE];
  static struct iovec pieces[AT_ONCE][2];
  static struct mmsghdr all[AT_ONCE];
  static struct sockaddr_in there[AT_ONCE];
  int count = most < AT_ONCE ? most : AT_ONCE;
  for (int one = 0; one < count; one++) {
    int label = (sent + one) % LABELS;
    headers[one] = (struct udphdr){.source = from[label].sin_port, .dest = to[label].sin_port, .len = htons(DATAGRAM + 8)};
    pieces[one][0] = (struct iovec){&headers[one], sizeof headers[one]};
    pieces[one][1] = (struct iovec){next(DATAGRAM), DATAGRAM};
    there[one] = to[label];
    there[one].sin_port = 0;
    all[one].msg_hdr = (struct msghdr){.msg_name = &there[one], .msg_namelen = sizeof there[one], .msg_iov = pieces[one], .msg_iovlen = 2};
  }
  return sendmmsg(raw, all, count, 0);
}

/* Whether the kernel has copied after all, which it says with what it says of buffers that are free again. */
static int copied(int socket) {
  int any = 0;
  char control[128];
  struct msghdr said = {.msg_control = control, .msg_controllen = sizeof control};
  while (recvmsg(socket, &said, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0) {
    struct cmsghdr *first = CMSG_FIRSTHDR(&said);
    if (first) any |= ((struct sock_extended_err *)CMSG_DATA(first))->ee_code & SO_EE_CODE_ZEROCOPY_COPIED;
    said.msg_controllen = sizeof control;
  }
  return any;
}

int main(int count, char **words) {
  if (count != 3) return fprintf(stderr, "%s WAY MEBIBYTES\n", words[0]), 2;
  way = words[1];
  wanted = atol(words[2]) * (MESSAGE / PAYLOAD);
  open_sockets();
  int raw = is("raw") ? socket(AF_INET, SOCK_RAW, IPPROTO_UDP) : -1, any_copied = 0;
  if (is("raw") && raw < 0) fail("a raw socket");
  message = malloc(MESSAGE);
  memset(message, 7, MESSAGE);
  pthread_t thread;
  pthread_create(&thread, NULL, receiver, NULL);
  struct io_uring ring;
  if (by_uring() && io_uring_queue_init(64, &ring, 0) < 0) fail("io_uring");
  double cpu = seconds(CLOCK_THREAD_CPUTIME_ID), began = seconds(CLOCK_MONOTONIC);
  for (long sent = 0, got = 0; got < wanted;) {
    long left = wanted - sent, many = left < run() ? left : run(), room = UNDER_WAY - (sent - got);
    if (many == 0 || room < many) {
      if (recv(sending[0], &got, sizeof got, 0) != sizeof got) fail("what has come");
    } else if (by_uring()) {
      for (int queued = 0; queued < AT_ONCE && many > 0 && UNDER_WAY - (sent - got) >= many; queued++) {
        io_uring_prep_send(io_uring_get_sqe(&ring), sending[sent % labels()], next(many * DATAGRAM), many * DATAGRAM, 0);
        sent += many;
        many = wanted - sent < run() ? wanted - sent : run();
      }
      io_uring_submit(&ring);
      struct io_uring_cqe *done;
      unsigned head, seen = 0;
      io_uring_for_each_cqe(&ring, head, done) seen++;
      io_uring_cq_advance(&ring, seen);
    } else if (raw >= 0) {
      long went = send_raw(raw, sent, room < left ? room : left);
      if (went < 0) fail("sending");
      sent += went;
    } else {
      int zero_copy = is("gso-zerocopy"), socket = sending[sent % labels()];
      if (send(socket, next(many * DATAGRAM), many * DATAGRAM, zero_copy ? MSG_ZEROCOPY : 0) < 0) fail("sending");
      if (zero_copy) any_copied |= copied(socket);
      sent += many;
    }
  }
  cpu = seconds(CLOCK_THREAD_CPUTIME_ID) - cpu;
  double took = seconds(CLOCK_MONOTONIC) - began, gigabits = wanted * PAYLOAD * 8e-9;
  pthread_join(thread, NULL);
  printf("%s: %.2f Gbit per CPU second, %.2f Gbit/s%s\n", way, gigabits / (cpu + receiver_cpu), gigabits / took,
         any_copied ? ", copied after all" : "");
  return 0;
}
