/*
 * What the kernel alone takes for a word there and back (docs/evidence/nccl.md, "Speed"): the system calls that the plugin makes for it, with
 * nothing in between, over the loopback interface, two threads that look and let others have their turn.
 *
 *     cc -O2 -o socket_ping tools/socket_ping.c -lpthread
 *     for steps in 0 1 2 3 4; do ./socket_ping $steps; done
 *
 * 0: connected sockets, as the bench has them beside the plugin. 1: our header, an address and a traffic class with every datagram, as
 * many peers share a socket. 2: epoll and recvmmsg, with stamps and marks. 3: eight sockets, one per path. 4: acknowledgements.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/udp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>

enum { ROUNDS = 20000, PATHS = 8, HEADER = 56, WORD = 40, BARE = 8, AT_ONCE = 8, ROOM = 1 << 16 };

struct end {
  int paths, poll, sockets[PATHS];
  struct sockaddr_in at[PATHS], to[PATHS];
  char room[AT_ONCE][ROOM];
};

static int steps;
static struct end ends[2];
static double times[ROUNDS];

static double microseconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1e6 + time.tv_nsec / 1e3;
}

static void on(int socket, int level, int option) {
  int yes = 1;
  if (setsockopt(socket, level, option, &yes, sizeof yes)) perror("setsockopt");
}

static void begin(struct end *end) {
  end->paths = steps >= 3 ? PATHS : 1;
  end->poll = epoll_create1(0);
  for (int path = 0; path < end->paths; path++) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int of = end->sockets[path] = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    if (of < 0 || bind(of, (void *)&at, size) || getsockname(of, (void *)&end->at[path], &size)) {
      perror("socket");
      exit(1);
    }
    if (steps >= 2) {
      on(of, IPPROTO_IP, IP_RECVTOS);
      on(of, IPPROTO_IP, IP_PKTINFO);
      on(of, SOL_SOCKET, SO_TIMESTAMPNS);
      on(of, IPPROTO_UDP, UDP_GRO);
      struct epoll_event event = {.events = EPOLLIN, .data.u32 = path};
      epoll_ctl(end->poll, EPOLL_CTL_ADD, of, &event);
    }
  }
}

static void say(struct end *end, int number, int bytes) {
  char head[HEADER] = {0}, word[WORD] = {0}, room[CMSG_SPACE(sizeof(int))] = {0};
  int path = number % end->paths, class = 2;
  if (steps == 0) {
    send(end->sockets[path], word, bytes, 0);
    return;
  }
  struct iovec parts[2] = {{head, HEADER}, {word, bytes}};
  struct msghdr message = {
    .msg_name = &end->to[path], .msg_namelen = sizeof end->to[path], .msg_iov = parts, .msg_iovlen = bytes ? 2 : 1,
    .msg_control = room, .msg_controllen = sizeof room,
  };
  struct cmsghdr *control = CMSG_FIRSTHDR(&message);
  *control = (struct cmsghdr){.cmsg_level = IPPROTO_IP, .cmsg_type = IP_TOS, .cmsg_len = CMSG_LEN(sizeof class)};
  memcpy(CMSG_DATA(control), &class, sizeof class);
  sendmsg(end->sockets[path], &message, 0);
}

/* Words that have come; acknowledgements are shorter. */
static int words(struct end *end) {
  const unsigned size = steps ? HEADER + WORD : BARE;
  if (steps < 2) return recv(end->sockets[0], end->room[0], ROOM, 0) == (ssize_t)size;
  struct epoll_event events[PATHS];
  struct timespec none = {0};
  int count = 0, ready = epoll_pwait2(end->poll, events, PATHS, &none, NULL);
  for (int event = 0; event < ready; event++) {
    struct mmsghdr messages[AT_ONCE];
    struct iovec parts[AT_ONCE];
    struct sockaddr_storage from[AT_ONCE];
    char control[AT_ONCE][256];
    for (int at = 0; at < AT_ONCE; at++) {
      parts[at] = (struct iovec){end->room[at], ROOM};
      messages[at].msg_hdr = (struct msghdr){
        .msg_name = &from[at], .msg_namelen = sizeof from[at], .msg_iov = &parts[at], .msg_iovlen = 1,
        .msg_control = control[at], .msg_controllen = sizeof control[at],
      };
    }
    int got = recvmmsg(end->sockets[events[event].data.u32], messages, AT_ONCE, 0, NULL);
    for (int at = 0; at < got; at++) count += messages[at].msg_len == size;
  }
  return count;
}

static void hear(struct end *end, int *heard, int wanted) {
  while (*heard < wanted) {
    int more = words(end);
    if (more > 0)
      *heard += more;
    else
      sched_yield();
  }
}

static void *answer(void *unused) {
  for (int round = 0, heard = 0; round < ROUNDS; round++) {
    hear(&ends[1], &heard, round + 1);
    say(&ends[1], round, steps ? WORD : BARE);
    if (steps >= 4) say(&ends[1], round + 3, 0);
  }
  return unused;
}

static int order(const void *a, const void *b) {
  double more = *(const double *)a - *(const double *)b;
  return (more > 0) - (more < 0);
}

int main(int count, char **words_of) {
  steps = count > 1 ? atoi(words_of[1]) : 0;
  begin(&ends[0]);
  begin(&ends[1]);
  for (int path = 0; path < ends[0].paths; path++) {
    ends[0].to[path] = ends[1].at[path];
    ends[1].to[path] = ends[0].at[path];
  }
  for (int end = 0; steps == 0 && end < 2; end++)
    connect(ends[end].sockets[0], (void *)&ends[end].to[0], sizeof ends[end].to[0]);
  pthread_t other;
  pthread_create(&other, NULL, answer, NULL);
  for (int round = 0, heard = 0; round < ROUNDS; round++) {
    double began = microseconds();
    say(&ends[0], round, steps ? WORD : BARE);
    if (steps >= 4 && round) say(&ends[0], round + 5, 0);
    hear(&ends[0], &heard, round + 1);
    times[round] = microseconds() - began;
  }
  pthread_join(other, NULL);
  qsort(times, ROUNDS, sizeof *times, order);
  printf("%d: %.2f us\n", steps, times[ROUNDS / 2]);
}
