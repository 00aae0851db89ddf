// A libibverbs of the tests' own: queue pairs within a process and, where FAKE_NETWORK is the same word in all of them,
// between processes, with a rate per flow label. Built against the real header, so that it holds our bindings to its layout. One
// label turns slow or dead under way (FAKE_FAULT=slow, dead), or its acknowledgements are lost (deaf): the one that carries data when
// FAULT_AT bytes have gone, for FAKE_FAULT_MS milliseconds (for good). FAKE_FAULT=lossy loses every LOSTth message of unreliable queue
// pairs. FAKE_DEVICES says how many devices there are (1), FAKE_CLASS and FAKE_LEVEL which traffic class and service level
// address vectors must have, FAKE_LOCKED how many
// bytes may be registered at once.
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
#define PIECE 20000
#define LONGEST 20000000
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
struct qp { struct ibv_qp qp; int state, receives, outstanding; uint32_t dest, rq_psn, sq_psn, label, got; struct receive ready[RECEIVES]; unsigned first; };
// A request: `at` bytes of it are on their way to another process, whose answer it awaits once they are all.
struct post { int used; struct qp *qp; struct ibv_send_wr wr; struct ibv_sge sge; uint64_t due; int dead, deaf, awaits; uint32_t number, at; };
// A piece of a request to another process, or the answer to the whole of it. Addresses are of the receiver.
struct message { uint32_t to, from, psn, number; int opcode, answer; uint32_t imm, rkey, offset, length; uint64_t addr; };
enum { TAKEN, NOT_READY, WRONG, GONE };

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

// Receives of a failed queue pair return.
static void flush(struct qp *qp) {
    for (; qp->receives > 0; qp->receives--, qp->first = (qp->first + 1) % RECEIVES)
        tell(qp->qp.recv_cq, (struct ibv_wc){.wr_id = qp->ready[qp->first].number, .status = IBV_WC_WR_FLUSH_ERR, .opcode = 0x55, .qp_num = qp->qp.qp_num});
}

static int is_unreliable(struct qp *qp) { return qp->qp.qp_type == IBV_QPT_UC; }

// A piece of a request arrives: at a connected queue pair, in registered memory, using up a receive where the request takes one.
static int arrive(struct message m, void *bytes, uint32_t size) {
    static unsigned sent;
    const char *fault = getenv("FAKE_FAULT");
    struct qp *at = find(m.to);
    if (!at || at->state < IBV_QPS_RTR || at->state == IBV_QPS_ERR || at->dest != m.from || at->rq_psn != m.psn) return GONE;
    int takes = m.opcode != IBV_WR_RDMA_WRITE, is_last = m.offset + size == m.length;
    // It was carried out already, and the answer was lost.
    if (!is_unreliable(at) && m.number <= at->got) return TAKEN;
    if (takes && !at->receives) return NOT_READY;
    struct receive *r = &at->ready[at->first];
    uint64_t to = m.addr;
    if (m.opcode == IBV_WR_SEND) {
        if (is_unreliable(at) && fault && !strcmp(fault, "lossy") && ++sent % LOST == 0) return TAKEN;
        must(m.length <= r->sge.length, "a message longer than its receive");
        to = r->sge.addr;
    } else if (m.length) {
        struct ibv_mr *mr = mrs[m.rkey % QPS];
        if (!mr || mr->rkey != m.rkey || mr->pd != at->qp.pd || to < (uint64_t)mr->addr || to + m.length > (uint64_t)mr->addr + mr->length) {
            at->state = IBV_QPS_ERR;
            flush(at);
            return WRONG;
        }
    }
    memcpy((void *)(to + m.offset), bytes, size);
    if (!is_last) return TAKEN;
    at->got = m.number;
    if (takes) {
        at->first = (at->first + 1) % RECEIVES;
        at->receives--;
        int message = m.opcode == IBV_WR_SEND;
        tell(at->qp.recv_cq, (struct ibv_wc){.wr_id = r->number, .opcode = message ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM,
             .byte_len = m.length, .imm_data = m.imm, .qp_num = at->qp.qp_num, .wc_flags = message ? 0 : IBV_WC_WITH_IMM});
    }
    return TAKEN;
}

// The socket of a process: a name that is gone with it.
static socklen_t name_of(uint32_t process, struct sockaddr_un *to) {
    *to = (struct sockaddr_un){.sun_family = AF_UNIX};
    int length = snprintf(to->sun_path + 1, sizeof to->sun_path - 1, "fake-verbs-%s-%u", getenv("FAKE_NETWORK"), process);
    return offsetof(struct sockaddr_un, sun_path) + 1 + length;
}

static int say(struct message m, void *bytes, uint32_t size) {
    struct sockaddr_un to;
    struct iovec parts[2] = {{&m, sizeof m}, {bytes, size}};
    struct msghdr whole = {.msg_name = &to, .msg_namelen = name_of(m.to / QPS, &to), .msg_iov = parts, .msg_iovlen = 2};
    return sendmsg(network, &whole, MSG_DONTWAIT) >= 0 ? 1 : errno == EAGAIN || errno == ENOBUFS ? 0 : -1;
}

static void answered(struct message m);

static void *hear(void *unused) {
    static char packet[sizeof(struct message) + PIECE];
    for (;;) {
        ssize_t got = recv(network, packet, sizeof packet, 0);
        if (got < (ssize_t)sizeof(struct message)) continue;
        struct message m;
        memcpy(&m, packet, sizeof m);
        pthread_mutex_lock(&lock);
        if (m.answer) {
            answered(m);
        } else {
            uint32_t size = got - sizeof m;
            int result = arrive(m, packet + sizeof m, size);
            struct qp *at = find(m.to);
            // A dead queue pair is silent.
            if (result != GONE && !is_unreliable(at) && (result != TAKEN || m.offset + size == m.length))
                for (int tries = 0; tries < 50 && say((struct message){.to = m.from, .from = m.to, .psn = m.psn, .number = m.number, .answer = 1 + result}, NULL, 0) == 0; tries++)
                    usleep(200);
        }
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

// Sends a request, or more of it; TAKEN: it has arrived, NOT_READY: not yet, GONE: it never will.
static int send_request(struct post *p) {
    struct qp *qp = p->qp;
    struct message m = {.to = qp->dest, .from = qp->qp.qp_num, .psn = qp->sq_psn, .number = p->number, .opcode = p->wr.opcode,
                        .imm = p->wr.imm_data, .rkey = p->wr.wr.rdma.rkey, .length = p->sge.length, .addr = p->wr.wr.rdma.remote_addr};
    if (m.to / QPS == own) {
        int result = arrive(m, (void *)p->sge.addr, p->sge.length);
        return is_unreliable(qp) ? TAKEN : result;
    }
    if (network < 0) return is_unreliable(qp) ? TAKEN : GONE;
    if (p->awaits) return now() - p->due > GIVE_UP ? GONE : NOT_READY;
    do {
        uint32_t size = p->sge.length - p->at < PIECE ? p->sge.length - p->at : PIECE;
        m.offset = p->at;
        int said = say(m, (void *)(p->sge.addr + p->at), size);
        // Messages that no process receives are lost.
        if (said < 0) return is_unreliable(qp) ? TAKEN : now() - p->due > GIVE_UP ? GONE : NOT_READY;
        if (said == 0) return is_unreliable(qp) && now() - p->due > PATIENCE ? TAKEN : now() - p->due > GIVE_UP ? GONE : NOT_READY;
        p->at += size;
    } while (p->at < p->sge.length);
    p->awaits = !is_unreliable(qp);
    p->due = now();
    return p->awaits ? NOT_READY : TAKEN;
}

// Memory that a device may use: registered with this key in the same protection domain.
static void owned(struct qp *qp, struct ibv_sge *sge) {
    struct ibv_mr *mr = mrs[(sge->lkey + 1) % QPS];
    must(mr && mr->lkey == sge->lkey && mr->pd == qp->qp.pd && sge->addr >= (uint64_t)mr->addr && sge->addr + sge->length <= (uint64_t)mr->addr + mr->length, "memory that is not registered");
}

static void done_with(struct post *p) {
    p->used = 0;
    while (top > 0 && !posts[top - 1].used) top--;
}

// Ends a request.
static void end(struct post *p, int status) {
    struct qp *qp = p->qp;
    if (status) qp->state = IBV_QPS_ERR;
    qp->outstanding--;
    struct ibv_wc wc = {.wr_id = p->wr.wr_id, .status = status, .opcode = status ? 0x55 : p->wr.opcode == IBV_WR_SEND ? IBV_WC_SEND : IBV_WC_RDMA_WRITE,
                        .qp_num = qp->qp.qp_num};
    done_with(p);
    tell(qp->qp.send_cq, wc);
    if (status) flush(qp);
}

// Another process has answered the first request of a queue pair.
static void answered(struct message m) {
    for (int i = 0; i < top; i++) {
        struct post *p = &posts[i];
        if (!p->used || p->qp->qp.qp_num != m.to || p->qp->sq_psn != m.psn || p->number != m.number || !p->awaits) continue;
        if (m.answer - 1 == NOT_READY) {
            p->awaits = p->at = 0;
            p->due = now() + DELAY;
        } else if (!p->deaf) {
            end(p, m.answer - 1 == TAKEN ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
        }
        return;
    }
}

// Requests of a queue pair are carried out in order.
static int is_first(struct post *p) {
    for (int i = 0; i < top; i++)
        if (posts[i].used && posts[i].qp == p->qp && (int32_t)(posts[i].number - p->number) < 0) return 0;
    return 1;
}

static void *wire(void *unused) {
    pthread_mutex_lock(&lock);
    for (;;) {
        struct post *p = NULL;
        uint64_t time = now();
        int any = 0;
        for (int i = 0; i < top && !p; i++) {
            struct post *o = &posts[i];
            any |= o->used;
            int failed = o->used && o->qp->state == IBV_QPS_ERR;
            if (!o->used || (o->due > time && !o->awaits && !failed) || !is_first(o)) continue;
            if (failed) {
                end(o, IBV_WC_WR_FLUSH_ERR);
                i = -1;
                continue;
            }
            int result = o->dead ? GONE : send_request(o);
            if (result == NOT_READY) continue;
            if (result == TAKEN && o->deaf) {
                o->dead = 1;
                o->due = time + GIVE_UP;
                continue;
            }
            end(o, result == TAKEN ? IBV_WC_SUCCESS : result == WRONG ? IBV_WC_REM_ACCESS_ERR : IBV_WC_RETRY_EXC_ERR);
            i = -1;
        }
        if (!any) {
            pthread_cond_wait(&posted, &lock);
            continue;
        }
        pthread_mutex_unlock(&lock);
        usleep(20);
        pthread_mutex_lock(&lock);
    }
    return unused;
}

static int post_send(struct ibv_qp *q, struct ibv_send_wr *wr, struct ibv_send_wr **bad) {
    struct qp *qp = (struct qp *)q;
    const char *fault = getenv("FAKE_FAULT");
    pthread_mutex_lock(&lock);
    must(wr->next == NULL && wr->num_sge == 1 && wr->send_flags == IBV_SEND_SIGNALED, "a write is not as it should be");
    must(q->qp_type == IBV_QPT_RC || wr->opcode == IBV_WR_SEND, "an operation of another service");
    if (wr->sg_list->length) owned(qp, wr->sg_list);
    must(qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_ERR, "a write before the queue pair is ready");
    int at = 0;
    while (at < POSTS && posts[at].used) at++;
    must(at < POSTS && wr->sg_list->length <= (q->qp_type == IBV_QPT_UC ? PIECE : LONGEST), "too many requests, or too long ones");
    if (at >= top) top = at + 1;
    gone += wr->sg_list->length;
    static uint64_t until;
    int data = wr->sg_list->length > (q->qp_type == IBV_QPT_UC ? 900 : 50000), strikes = fault && *fault && strcmp(fault, "lossy");
    if (gone > FAULT_AT && !faulty && strikes && data) {
        faulty = qp->label;
        until = getenv("FAKE_FAULT_MS") ? now() + atoll(getenv("FAKE_FAULT_MS")) * 1000000 : ~0ull;
    }
    int struck = faulty && qp->label == faulty && now() < until, dead = struck && !strcmp(fault, "dead");
    uint64_t took = wr->sg_list->length * NS_PER_BYTE * (struck && *fault == 's' ? 20 : 1), start = now();
    if (start < free_at[qp->label]) start = free_at[qp->label];
    free_at[qp->label] = start + took;
    static uint32_t numbers;
    posts[at] = (struct post){.used = 1, .qp = qp, .wr = *wr, .sge = *wr->sg_list, .due = dead ? now() + GIVE_UP : start + took + DELAY,
                              .dead = dead, .deaf = struck && !strcmp(fault, "deaf"), .number = ++numbers};
    qp->outstanding++;
    *bad = NULL;
    pthread_cond_signal(&posted);
    pthread_mutex_unlock(&lock);
    return 0;
}

static int post_recv(struct ibv_qp *q, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
    pthread_mutex_lock(&lock);
    struct qp *qp = (struct qp *)q;
    must(wr->num_sge == 1 && wr->next == NULL && wr->wr_id, "a receive is not as it should be");
    must(qp->state != IBV_QPS_RESET && qp->state != IBV_QPS_ERR, "a receive before INIT");
    int full = qp->receives >= RECEIVES;
    if (!full) {
        owned(qp, wr->sg_list);
        qp->ready[(qp->first + qp->receives++) % RECEIVES] = (struct receive){wr->wr_id, *wr->sg_list};
    }
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
// gloo, which PyTorch loads, links to it and calls it for a transport that nothing here uses.
int ibv_query_device(struct ibv_context *c, struct ibv_device_attr *out) {
    (void)c, (void)out;
    return ENOSYS;
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
             a->ah_attr.sl == (getenv("FAKE_LEVEL") ? atoi(getenv("FAKE_LEVEL")) : 0) &&
             a->ah_attr.grh.traffic_class == (getenv("FAKE_CLASS") ? atoi(getenv("FAKE_CLASS")) : 0), "an address vector");
    if (to == IBV_QPS_RESET && mask == IBV_QP_STATE) {
        must(qp->outstanding == 0, "a reset with work outstanding");
        qp->receives = qp->got = 0;
    } else if (to == IBV_QPS_ERR && mask == IBV_QP_STATE) {
        qp->state = to;
        flush(qp);
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

int ibv_fork_init(void) { return 0; }

// What is left of what was made: contexts, domains, memory, channels, completion queues, queue pairs.
int fake_left(void) { return left; }

const char *ibv_wc_status_str(enum ibv_wc_status status) { return status == IBV_WC_RETRY_EXC_ERR ? "retries exceeded" : "another"; }
