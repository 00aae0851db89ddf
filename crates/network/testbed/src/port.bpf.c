// What a port of a switch does besides queueing: marks (RED) and trims by a virtual queue that has the rate, burst and limit
// of the real one behind it. Runs where packets leave (clsact, egress), in front of the queueing discipline.
//
// It needs no function and no type of the kernel, so that any loader takes it. `settings` is written over by whoever loads it.
//   clang -O2 -g -target bpf -c port.bpf.c -o port.bpf.o && llvm-strip -g port.bpf.o
// With -DCOMPARE (the test of the virtual queue) it also adds up the real backlog, which takes BTF of the kernel.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

#define TRIMMED 0x7717 /* on a packet that has been here before */
#define URGENT 0x10010 /* class 1:10, which goes before data */
#define ETHERNET 14
#define IP_HEADER 20
#define CAN_BE_TRIMMED_BY 64 /* bytes at least, else it is not worth it */

struct settings {
  __u64 magic;       /* where to find it */
  __u64 rate;        /* bits per second */
  __u64 burst;       /* bytes that leave at once after a rest */
  __u64 limit;       /* bytes that the queue holds */
  __u64 min, max;    /* bytes between which marking becomes likely */
  __u64 probability; /* just below max, in 2^-32 */
  __u64 trims;       /* 1: what finds no room is cut to `keep` bytes */
  __u64 keep;        /* bytes of a trimmed frame */
};
volatile const struct settings settings = {0x416e61627261634eull, 200000000, 25000, 300000, ~0ull, ~0ull, 0, 0, 112};

/* Another rate while packets pass; 0: that of the settings. */
struct speed { __u64 rate, burst; };
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct speed);
} speed SEC(".maps");

struct port {
  struct bpf_spin_lock lock;
  __u32 pad;
  __u64 last;  /* when `level` was, ns */
  __s64 level; /* bytes in the virtual queue; below zero: burst that is left */
  __u64 packets, marked, trimmed, deepest;
  __u64 virtual_sum, real_sum; /* over packets, with -DCOMPARE */
};
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct port);
} port SEC(".maps");

#ifdef COMPARE
#define RELOCATED __attribute__((preserve_access_index))
struct gnet_stats_queue { __u32 qlen, backlog; } RELOCATED;
struct Qdisc { struct gnet_stats_queue qstats; } RELOCATED;
struct net_device { struct Qdisc *qdisc; } RELOCATED;
struct sk_buff { struct net_device *dev; } RELOCATED;
extern void *bpf_cast_to_kern_ctx(void *) __ksym;
static __always_inline __u32 real_backlog(struct __sk_buff *skb) {
  struct sk_buff *kernel = bpf_cast_to_kern_ctx(skb);
  struct Qdisc *queue = 0;
  __u32 backlog = 0;
  bpf_probe_read_kernel(&queue, sizeof queue, &kernel->dev->qdisc);
  if (queue) bpf_probe_read_kernel(&backlog, sizeof backlog, &queue->qstats.backlog);
  return backlog;
}
#endif

static __always_inline int trim(struct __sk_buff *skb, struct port *p) {
  __u64 keep = settings.keep;
  __u16 old_length = 0, ip_length = bpf_htons(keep - ETHERNET), udp_length = bpf_htons(keep - ETHERNET - IP_HEADER), none = 0;
  bpf_skb_load_bytes(skb, 16, &old_length, 2);
  if (bpf_skb_change_tail(skb, keep, 0)) return 2; /* TC_ACT_SHOT */
  bpf_l3_csum_replace(skb, 24, old_length, ip_length, 2);
  bpf_skb_store_bytes(skb, 16, &ip_length, 2, 0);
  bpf_skb_store_bytes(skb, 38, &udp_length, 2, 0);
  bpf_skb_store_bytes(skb, 40, &none, 2, 0); /* no UDP checksum */
  __sync_fetch_and_add(&p->trimmed, 1);
  skb->mark = TRIMMED;
  skb->priority = URGENT;
  return bpf_redirect(skb->ifindex, 0); /* joins the port anew, so that its length is the trimmed one */
}

SEC("classifier") int leaves(struct __sk_buff *skb) {
  if (skb->mark == TRIMMED) {
    skb->mark = 0;
    return 0;
  }
  __u32 zero = 0;
  struct port *p = bpf_map_lookup_elem(&port, &zero);
  struct speed *changed = bpf_map_lookup_elem(&speed, &zero);
  if (!p || !changed) return 0;
  __u64 rate = changed->rate ? changed->rate : settings.rate;
#ifdef COMPARE
  __u32 real = real_backlog(skb);
#endif
  __u64 now = bpf_ktime_get_ns();
  __s64 length = skb->wire_len, burst = changed->rate ? changed->burst : settings.burst, limit = settings.limit, before;
  bpf_spin_lock(&p->lock);
  __u64 passed = now - p->last;
  if (passed > 1000000000ull) passed = 1000000000ull;
  __s64 drained = passed * (rate / 8000) / 1000000;
  if (drained > 0) {
    p->level -= drained;
    p->last = now;
  }
  if (p->level < -burst) p->level = -burst;
  before = p->level;
  __u64 fits = before + length <= limit;
  __u64 trims = !fits && settings.trims && length > (__s64)settings.keep + CAN_BE_TRIMMED_BY;
  /* What does not fit is dropped behind; headers go first, and take their time from the data's. */
  if (fits) p->level += length;
  else if (trims) p->level += settings.keep;
  bpf_spin_unlock(&p->lock);
  __u64 backlog = before > 0 ? before : 0;
  __sync_fetch_and_add(&p->packets, 1);
  if (backlog > p->deepest) p->deepest = backlog;
#ifdef COMPARE
  __sync_fetch_and_add(&p->virtual_sum, backlog);
  __sync_fetch_and_add(&p->real_sum, real);
#endif
  if (skb->protocol != bpf_htons(0x0800)) return 0;
  if (trims) return trim(skb, p);
  if (backlog > settings.min) {
    __u64 chance = backlog >= settings.max ? 0xffffffffull
                                           : (backlog - settings.min) * settings.probability / (settings.max - settings.min);
    if (bpf_get_prandom_u32() <= chance && bpf_skb_ecn_set_ce(skb) && fits) __sync_fetch_and_add(&p->marked, 1);
  }
  return 0;
}
char LICENSE[] SEC("license") = "Dual MIT/GPL";
