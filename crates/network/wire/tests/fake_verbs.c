// A libibverbs of the tests' own: queue pairs between whoever has loaded it in a process, with a rate per flow label. Built against
// the real header, so that it holds our bindings to its layout. One label turns slow or dead under way (FAKE_FAULT=slow, dead): the
// one that carries a write when FAULT_AT bytes have gone. FAKE_FAULT=lossy loses every LOSTth message of unreliable queue pairs.
// Messages of unreliable queue pairs go to other processes too, where FAKE_NETWORK is the same word in all of them. FAKE_DEVICES
// says how many devices there are (1), FAKE_CLASS which traffic class address vectors must have, FAKE_LOCKED how many bytes may be registered at once.
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#undef ibv_query_port
#undef ibv_reg_mr

#define QPS 4096 // of a process; the upper twelve bits of their numbers are its own
#define POSTS 4096
#define ENTRIES 8192
#define FAULT_AT 8000000
#define NS_PER_BYTE 40
#define DELAY 50000
#define GIVE_UP 100000000
#define LOST 53
#define RECEIVES 256
#define LONGEST 20000
#define MOST_DEVICES 4
#define PATIENCE 1000000

static void must(int holds, const char *what) {
    if (!holds) {
        fprintf(stderr, "fake verbs: %s\n", what);
        abort();
    }
}

struct cq { struct ibv_cq cq; struct ibv_wc wc[ENTRIES]; unsigned head, tail; int armed; };
struct receive { uint64_t number; struct ibv_sge sge; };
// Receives of a reliable queue pair have no memory and are counted; those of an unreliable one wait in order.
struct qp { struct ibv_qp qp; int state, receives, outstanding; uint32_t dest, rq_psn, sq_psn, label; struct receive ready[RECEIVES]; unsigned first; };
struct post { int used; struct qp *qp; struct ibv_send_wr wr; struct ibv_sge sge; uint64_t due; int dead; };
// A message to another process, and what follows it.
struct message { uint32_t to, from, psn; };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t posted = PTHREAD_COND_INITIALIZER;
static struct qp *qps[QPS];
static struct ibv_mr *mrs[QPS];
static struct post posts[POSTS];
static uint64_t free_at[1 << 20], gone;
static uint32_t next_qp = 17, next_key = 1, faulty;
static int devices[MOST_DEVICES], started, top, left, network = -1;
static uint32_t own;

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void tell(struct ibv_cq *to, struct ibv_wc wc) {
    struct cq *cq = (struct cq *)to;
    must(cq->tail - cq->head < ENTRIES, "a completion queue runs over");
    cq->wc[cq->tail++ % ENTRIES] = wc;
    if (cq->armed && to->channel) {
        uint64_t one = 1;
        cq->armed = 0;
        must(write(to->channel->fd, &one, 8) == 8, "an event");
    }
}

static struct qp *find(uint32_t number) {
    return number / QPS == own ? qps[number % QPS] : NULL;
}

// A message arrives: where a receive is ready that it fits into.
static void arrive_message(struct message m, void *bytes, uint32_t length) {
    static unsigned sent;
    const char *fault = getenv("FAKE_FAULT");
    struct qp *at = find(m.to);
    if (!at || at->state < IBV_QPS_RTR || at->state == IBV_QPS_ERR || at->dest != m.from || at->rq_psn != m.psn) return;
    if (!at->receives || (fault && !strcmp(fault, "lossy") && ++sent % LOST == 0)) return;
    struct receive *r = &at->ready[at->first];
    must(length <= r->sge.length, "a message longer than its receive");
    at->first = (at->first + 1) % RECEIVES;
    at->receives--;
    memcpy((void *)r->sge.addr, bytes, length);
    tell(at->qp.recv_cq, (struct ibv_wc){.wr_id = r->number, .opcode = IBV_WC_RECV, .byte_len = length, .qp_num = at->qp.qp_num});
}

// The socket of a process: a name that is gone with it.
static socklen_t name_of(uint32_t process, struct sockaddr_un *to) {
    *to = (struct sockaddr_un){.sun_family = AF_UNIX};
    int length = snprintf(to->sun_path + 1, sizeof to->sun_path - 1, "fake-verbs-%s-%u", getenv("FAKE_NETWORK"), process);
    return offsetof(struct sockaddr_un, sun_path) + 1 + length;
}

static void *hear(void *unused) {
    static char packet[sizeof(struct message) + LONGEST];
    for (;;) {
        ssize_t got = recv(network, packet, sizeof packet, 0);
        if (got < (ssize_t)sizeof(struct message)) continue;
        struct message m;
        memcpy(&m, packet, sizeof m);
        pthread_mutex_lock(&lock);
        arrive_message(m, packet + sizeof m, got - sizeof m);
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

// Sends a message; 0: not yet.
static int send_message(struct post *p) {
    struct message m = {p->qp->dest, p->qp->qp.qp_num, p->qp->sq_psn};
    if (m.to / QPS == own) {
        arrive_message(m, (void *)p->sge.addr, p->sge.length);
        return 1;
    }
    struct sockaddr_un to;
    struct iovec parts[2] = {{&m, sizeof m}, {(void *)p->sge.addr, p->sge.length}};
    struct msghdr whole = {.msg_name = &to, .msg_namelen = name_of(m.to / QPS, &to), .msg_iov = parts, .msg_iovlen = 2};
    // Messages that no process receives are lost.
    return network < 0 || sendmsg(network, &whole, MSG_DONTWAIT) >= 0 || errno != EAGAIN || now() - p->due > PATIENCE;
}

// Memory that a device may use: registered with this key in the same protection domain.
static void owned(struct qp *qp, struct ibv_sge *sge) {
    struct ibv_mr *mr = mrs[(sge->lkey + 1) % QPS];
    must(mr && mr->lkey == sge->lkey && mr->pd == qp->qp.pd && sge->addr >= (uint64_t)mr->addr && sge->addr + sge->length <= (uint64_t)mr->addr + mr->length, "memory that is not registered");
}

// A write arrives: into registered memory alone, at a connected queue pair, using up a receive where it has a notice.
static int arrive(struct post *p) {
    struct qp *at = find(p->qp->dest);
    if (!at || at->state < IBV_QPS_RTR || at->state == IBV_QPS_ERR || at->dest != p->qp->qp.qp_num || at->rq_psn != p->qp->sq_psn)
        return 0;
    struct ibv_mr *mr = mrs[p->wr.wr.rdma.rkey % QPS];
    uint64_t to = p->wr.wr.rdma.remote_addr;
    must(mr && mr->rkey == p->wr.wr.rdma.rkey && mr->pd == at->qp.pd, "a key that is none");
    must(to >= (uint64_t)mr->addr && to + p->sge.length <= (uint64_t)mr->addr + mr->length, "a write beyond the memory");
    memcpy((void *)to, (void *)p->sge.addr, p->sge.length);
    if (p->wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
        must(at->receives-- > 0, "no receive is ready");
        tell(at->qp.recv_cq, (struct ibv_wc){.wr_id = 0, .opcode = IBV_WC_RECV_RDMA_WITH_IMM, .byte_len = p->sge.length,
             .imm_data = p->wr.imm_data, .qp_num = at->qp.qp_num, .wc_flags = IBV_WC_WITH_IMM});
    }
    return 1;
}

static void done_with(struct post *p) {
    p->used = 0;
    while (top > 0 && !posts[top - 1].used) top--;
}

static void *wire(void *unused) {
    pthread_mutex_lock(&lock);
    for (;;) {
        // The earliest.
        struct post *p = NULL;
        for (int i = 0; i < top; i++)
            if (posts[i].used && (!p || posts[i].due < p->due)) p = &posts[i];
        if (!p) {
            pthread_cond_wait(&posted, &lock);
            continue;
        }
        struct qp *qp = p->qp;
        int flushed = qp->state == IBV_QPS_ERR, unreliable = qp->qp.qp_type == IBV_QPT_UC;
        if (p->due > now() || (unreliable && !flushed && !p->dead && !send_message(p))) {
            pthread_mutex_unlock(&lock);
            usleep(20);
            pthread_mutex_lock(&lock);
            continue;
        }
        int done = !flushed && (unreliable || (!p->dead && arrive(p)));
        if (!done) qp->state = IBV_QPS_ERR;
        int status = done ? IBV_WC_SUCCESS : flushed ? IBV_WC_WR_FLUSH_ERR : IBV_WC_RETRY_EXC_ERR;
        qp->outstanding--;
        uint64_t number = p->wr.wr_id;
        done_with(p);
        tell(qp->qp.send_cq, (struct ibv_wc){.wr_id = number, .status = status,
             .opcode = !done ? 0x55 : unreliable ? IBV_WC_SEND : IBV_WC_RDMA_WRITE, .qp_num = qp->qp.qp_num});
        if (!done)
            for (int i = 0; i < top; i++)
                if (posts[i].used && posts[i].qp == qp) posts[i].due = now();
    }
    return unused;
}

static int post_send(struct ibv_qp *q, struct ibv_send_wr *wr, struct ibv_send_wr **bad) {
    struct qp *qp = (struct qp *)q;
    const char *fault = getenv("FAKE_FAULT");
    pthread_mutex_lock(&lock);
    must(wr->next == NULL && wr->num_sge == 1 && wr->send_flags == IBV_SEND_SIGNALED, "a write is not as it should be");
    must((wr->opcode == IBV_WR_SEND) == (q->qp_type == IBV_QPT_UC), "an operation of another service");
    owned(qp, wr->sg_list);
    must(qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_ERR, "a write before the queue pair is ready");
    int at = 0;
    while (at < POSTS && posts[at].used) at++;
    must(at < POSTS && wr->sg_list->length <= LONGEST * (q->qp_type == IBV_QPT_UC ? 1 : 1000), "too many writes, or too long ones");
    if (at >= top) top = at + 1;
    gone += wr->sg_list->length;
    int data = wr->sg_list->length > (q->qp_type == IBV_QPT_UC ? 900 : 50000), strikes = fault && (*fault == 's' || *fault == 'd');
    if (gone > FAULT_AT && !faulty && strikes && data) faulty = qp->label;
    int struck = faulty && qp->label == faulty, dead = struck && fault[0] == 'd';
    uint64_t took = wr->sg_list->length * NS_PER_BYTE * (struck ? 20 : 1), start = now();
    if (start < free_at[qp->label]) start = free_at[qp->label];
    free_at[qp->label] = start + took;
    posts[at] = (struct post){1, qp, *wr, *wr->sg_list, dead ? now() + GIVE_UP : start + took + DELAY, dead};
    qp->outstanding++;
    *bad = NULL;
    pthread_cond_signal(&posted);
    pthread_mutex_unlock(&lock);
    return 0;
}

static int post_recv(struct ibv_qp *q, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
    pthread_mutex_lock(&lock);
    struct qp *qp = (struct qp *)q;
    int unreliable = q->qp_type == IBV_QPT_UC;
    must(wr->num_sge == unreliable && wr->next == NULL && (wr->wr_id == 0) == !unreliable, "a receive is not as it should be");
    must(qp->state != IBV_QPS_RESET, "a receive before INIT");
    int full = qp->receives >= (unreliable ? RECEIVES : 64);
    if (unreliable && !full) {
        owned(qp, wr->sg_list);
        qp->ready[(qp->first + qp->receives) % RECEIVES] = (struct receive){wr->wr_id, *wr->sg_list};
    }
    if (!full) qp->receives++;
    *bad = full ? wr : NULL;
    pthread_mutex_unlock(&lock);
    return full ? ENOMEM : 0;
}

static int poll_cq(struct ibv_cq *c, int most, struct ibv_wc *wc) {
    struct cq *cq = (struct cq *)c;
    pthread_mutex_lock(&lock);
    int n = 0;
    while (n < most && cq->head != cq->tail) wc[n++] = cq->wc[cq->head++ % ENTRIES];
    pthread_mutex_unlock(&lock);
    return n;
}

static int req_notify_cq(struct ibv_cq *c, int solicited) {
    pthread_mutex_lock(&lock);
    ((struct cq *)c)->armed = 1;
    pthread_mutex_unlock(&lock);
    return solicited;
}

struct ibv_device **ibv_get_device_list(int *n) {
    int count = getenv("FAKE_DEVICES") ? atoi(getenv("FAKE_DEVICES")) : 1;
    must(count <= MOST_DEVICES, "devices");
    struct ibv_device **list = calloc(count + 1, sizeof *list);
    for (int i = 0; i < count; i++) list[i] = (struct ibv_device *)&devices[i];
    if (n) *n = count;
    return list;
}
void ibv_free_device_list(struct ibv_device **list) { free(list); }
const char *ibv_get_device_name(struct ibv_device *d) {
    static const char *names[] = {"fake0", "fake1", "fake2", "fake3"};
    return names[(int *)d - devices];
}

// Threads, and where other processes find this one.
static void start(void) {
    pthread_t thread;
    if (getenv("FAKE_NETWORK")) {
        network = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        struct sockaddr_un at;
        do own = 1 + (getpid() + own) % 4095;
        while (bind(network, (struct sockaddr *)&at, name_of(own, &at)));
        pthread_create(&thread, NULL, hear, NULL);
    }
    pthread_create(&thread, NULL, wire, NULL);
}

struct ibv_context *ibv_open_device(struct ibv_device *d) {
    struct ibv_context *c = calloc(1, sizeof *c);
    __atomic_add_fetch(&left, 1, __ATOMIC_SEQ_CST);
    c->device = d;
    c->ops.poll_cq = poll_cq;
    c->ops.req_notify_cq = req_notify_cq;
    c->ops.post_send = post_send;
    c->ops.post_recv = post_recv;
    pthread_mutex_lock(&lock);
    if (!started++) start();
    pthread_mutex_unlock(&lock);
    return c;
}
static int gone_with(void *what) {
    __atomic_sub_fetch(&left, 1, __ATOMIC_SEQ_CST);
    free(what);
    return 0;
}
int ibv_close_device(struct ibv_context *c) { return gone_with(c); }

int ibv_query_port(struct ibv_context *c, uint8_t port, struct _compat_ibv_port_attr *to) {
    struct ibv_port_attr *attr = (struct ibv_port_attr *)to;
    must(c && port == 1, "the port");
    attr->state = IBV_PORT_ACTIVE;
    attr->active_mtu = IBV_MTU_1024;
    attr->link_layer = IBV_LINK_LAYER_ETHERNET;
    return 0;
}
int ibv_query_gid(struct ibv_context *c, uint8_t port, int index, union ibv_gid *gid) {
    must(c && port == 1, "the port");
    for (int i = 0; i < 16; i++) gid->raw[i] = i + index;
    return index == 0 ? 0 : -1;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *c) {
    struct ibv_pd *pd = calloc(1, sizeof *pd);
    pd->context = c;
    __atomic_add_fetch(&left, 1, __ATOMIC_SEQ_CST);
    return pd;
}
int ibv_dealloc_pd(struct ibv_pd *pd) { return gone_with(pd); }

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *at, size_t bytes, int access) {
    must(access == (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE) || access == IBV_ACCESS_LOCAL_WRITE, "access");
    if (getenv("FAKE_LOCKED") && bytes > (size_t)atol(getenv("FAKE_LOCKED"))) {
        errno = ENOMEM;
        return NULL;
    }
    struct ibv_mr *mr = calloc(1, sizeof *mr);
    *mr = (struct ibv_mr){pd->context, pd, at, bytes, 0, 0, 0};
    pthread_mutex_lock(&lock);
    do mr->lkey = next_key++;
    while (mrs[(mr->lkey + 1) % QPS]);
    mr->rkey = mr->lkey + 1;
    __atomic_add_fetch(&left, 1, __ATOMIC_SEQ_CST);
    mrs[mr->rkey % QPS] = mr;
    pthread_mutex_unlock(&lock);
    return mr;
}
int ibv_dereg_mr(struct ibv_mr *mr) {
    pthread_mutex_lock(&lock);
    mrs[mr->rkey % QPS] = NULL;
    pthread_mutex_unlock(&lock);
    return gone_with(mr);
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *c) {
    struct ibv_comp_channel *channel = calloc(1, sizeof *channel);
    channel->context = c;
    __atomic_add_fetch(&left, 1, __ATOMIC_SEQ_CST);
    channel->fd = eventfd(0, EFD_SEMAPHORE);
    return channel;
}
int ibv_destroy_comp_channel(struct ibv_comp_channel *c) { close(c->fd); return gone_with(c); }

static struct ibv_cq *of_channel[QPS];
struct ibv_cq *ibv_create_cq(struct ibv_context *c, int entries, void *context, struct ibv_comp_channel *channel, int vector) {
    must(entries > 0 && entries <= ENTRIES && vector == 0, "a completion queue");
    struct cq *cq = calloc(1, sizeof *cq);
    cq->cq = (struct ibv_cq){.context = c, .channel = channel, .cq_context = context, .cqe = entries};
    of_channel[channel->fd % QPS] = &cq->cq;
    __atomic_add_fetch(&left, 1, __ATOMIC_SEQ_CST);
    return &cq->cq;
}
int ibv_destroy_cq(struct ibv_cq *cq) { return gone_with(cq); }
int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **context) {
    uint64_t one;
    must(read(channel->fd, &one, 8) == 8, "an event");
    *cq = of_channel[channel->fd % QPS];
    *context = (*cq)->cq_context;
    return 0;
}
void ibv_ack_cq_events(struct ibv_cq *cq, unsigned events) { must(cq && events == 1, "acknowledged events"); }

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr) {
    must((attr->qp_type == IBV_QPT_RC || attr->qp_type == IBV_QPT_UC) && attr->cap.max_send_sge == 1 && !attr->srq && !attr->sq_sig_all, "a queue pair");
    struct qp *qp = calloc(1, sizeof *qp);
    qp->qp = (struct ibv_qp){.context = pd->context, .pd = pd, .send_cq = attr->send_cq, .recv_cq = attr->recv_cq, .qp_type = attr->qp_type};
    pthread_mutex_lock(&lock);
    while (qps[next_qp % QPS]) next_qp++;
    qp->qp.qp_num = own * QPS + next_qp++ % QPS;
    qps[qp->qp.qp_num % QPS] = qp;
    __atomic_add_fetch(&left, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&lock);
    return &qp->qp;
}
int ibv_destroy_qp(struct ibv_qp *q) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < POSTS; i++)
        if (posts[i].used && posts[i].qp == (struct qp *)q) posts[i].used = 0;
    qps[q->qp_num % QPS] = NULL;
    pthread_mutex_unlock(&lock);
    return gone_with(q);
}

int ibv_modify_qp(struct ibv_qp *q, struct ibv_qp_attr *a, int mask) {
    struct qp *qp = (struct qp *)q;
    int wrong = 0, to = a->qp_state;
    pthread_mutex_lock(&lock);
    int to_init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    int to_rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    int to_rts = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
    int unreliable = q->qp_type == IBV_QPT_UC;
    if (unreliable) {
        to_rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
        to_rts = IBV_QP_STATE | IBV_QP_SQ_PSN;
    }
    if (mask & IBV_QP_AV)
        must(a->ah_attr.is_global && a->ah_attr.port_num == 1 && a->ah_attr.grh.hop_limit == 64 && a->ah_attr.grh.dgid.raw[15] == 15 &&
             a->ah_attr.grh.flow_label > 0 && a->ah_attr.grh.flow_label < 1 << 20 &&
             a->ah_attr.grh.traffic_class == (getenv("FAKE_CLASS") ? atoi(getenv("FAKE_CLASS")) : 0), "an address vector");
    if (to == IBV_QPS_RESET && mask == IBV_QP_STATE) {
        must(qp->outstanding == 0, "a reset with work outstanding");
        qp->receives = 0;
    } else if (to == IBV_QPS_INIT && qp->state == IBV_QPS_RESET && mask == to_init) {
        must(a->port_num == 1 && a->qp_access_flags == (unreliable ? 0 : IBV_ACCESS_REMOTE_WRITE), "INIT");
    } else if (to == IBV_QPS_RTR && qp->state == IBV_QPS_INIT && mask == to_rtr) {
        must(a->path_mtu == IBV_MTU_1024 && (unreliable || (a->min_rnr_timer == 12 && a->max_dest_rd_atomic == 1)), "RTR");
        qp->dest = a->dest_qp_num;
        qp->rq_psn = a->rq_psn;
        qp->label = a->ah_attr.grh.flow_label;
    } else if (to == IBV_QPS_RTS && qp->state == IBV_QPS_RTR && mask == to_rts) {
        must(unreliable || (a->timeout == 16 && a->retry_cnt == 6 && a->rnr_retry == 7 && a->max_rd_atomic == 1), "RTS");
        qp->sq_psn = a->sq_psn;
    } else if (to == IBV_QPS_SQD && qp->state == IBV_QPS_RTS && mask == IBV_QP_STATE) {
        must(qp->outstanding == 0, "drained with work outstanding");
        must(!getenv("FAKE_MLX5") || strcmp(getenv("FAKE_MLX5"), "can"), "drained, though the driver can do without");
    } else if (to == IBV_QPS_SQD && qp->state == IBV_QPS_SQD && mask == (IBV_QP_STATE | IBV_QP_AV)) {
        qp->label = a->ah_attr.grh.flow_label;
    } else if (!(to == IBV_QPS_RTS && qp->state == IBV_QPS_SQD && mask == IBV_QP_STATE)) {
        wrong = EINVAL;
    }
    if (!wrong) qp->state = to;
    pthread_mutex_unlock(&lock);
    return wrong;
}

// For fake_mlx5.c: another label for a connected queue pair.
int fake_relabel(struct ibv_qp *q, uint32_t label) {
    struct qp *qp = (struct qp *)q;
    pthread_mutex_lock(&lock);
    int ready = qp->state == IBV_QPS_RTS;
    if (ready) qp->label = label;
    pthread_mutex_unlock(&lock);
    return ready ? 0 : EINVAL;
}

// What is left of what was made: contexts, domains, memory, channels, completion queues, queue pairs.
int fake_left(void) { return left; }

const char *ibv_wc_status_str(enum ibv_wc_status status) { return status == IBV_WC_RETRY_EXC_ERR ? "retries exceeded" : "another"; }
