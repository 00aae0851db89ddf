// What a faulty link does to packets that have crossed it: loses, repeats and damages them by chance, and takes them on a
// detour that delays them. Runs where packets arrive (clsact, ingress), behind the queue and the rate of the port at the other end.
//
// It needs no function and no type of the kernel, so that any loader takes it. `link` is written by whoever loads it.
//   clang -O2 -g -target bpf -c link.bpf.c -o link.bpf.o && llvm-strip -g link.bpf.o
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

#define REPEATED 0x7718 /* on the second of two */
#define DELAYED 0x7719  /* on a packet that comes back from its detour */
#define HEADERS 42      /* Ethernet, IPv4 without options, UDP: what is damaged lies behind them */
#define UDP 17

struct link {
  __u64 loses, repeats, damages; /* chances in 2^-32: 2^32 is always */
  __u32 detour; /* 0, or the interface that delays what arrives */
  __u32 back;   /* 0, or at that interface: the one to which packets come back */
};
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct link);
} link SEC(".maps");

struct counts { __u64 lost, repeated, damaged; };
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct counts);
} counts SEC(".maps");

static __always_inline int strikes(__u64 chance) {
  return chance && bpf_get_prandom_u32() < chance;
}

static __always_inline void damage(struct __sk_buff *skb, struct counts *c) {
  __u8 first = 0, protocol = 0, byte = 0;
  if (skb->len <= HEADERS) return;
  bpf_skb_load_bytes(skb, 14, &first, 1);
  bpf_skb_load_bytes(skb, 23, &protocol, 1);
  if (first != 0x45 || protocol != UDP) return;
  __u32 at = HEADERS + bpf_get_prandom_u32() % (skb->len - HEADERS);
  if (bpf_skb_load_bytes(skb, at, &byte, 1)) return;
  byte ^= 1 << (bpf_get_prandom_u32() & 7);
  /* The checksum is not updated: where the sender left it to hardware, there is none, and the bit reaches the receiver. */
  if (!bpf_skb_store_bytes(skb, at, &byte, 1, 0)) __sync_fetch_and_add(&c->damaged, 1);
}

SEC("classifier") int arrives(struct __sk_buff *skb) {
  __u32 zero = 0;
  struct link *l = bpf_map_lookup_elem(&link, &zero);
  struct counts *c = bpf_map_lookup_elem(&counts, &zero);
  if (!l || !c) return 0;
  if (l->back) {
    skb->mark = DELAYED;
    return bpf_redirect(l->back, BPF_F_INGRESS);
  }
  if (skb->mark == DELAYED) {
    skb->mark = 0;
    return 0;
  }
  if (skb->mark == REPEATED) {
    skb->mark = 0;
  } else if (skb->protocol == bpf_htons(0x0800)) {
    if (strikes(l->loses)) {
      __sync_fetch_and_add(&c->lost, 1);
      return 2; /* TC_ACT_SHOT */
    }
    if (strikes(l->repeats)) {
      skb->mark = REPEATED;
      if (!bpf_clone_redirect(skb, skb->ifindex, BPF_F_INGRESS)) __sync_fetch_and_add(&c->repeated, 1);
      skb->mark = 0;
    }
    if (strikes(l->damages)) damage(skb, c);
  }
  return l->detour ? bpf_redirect(l->detour, 0) : 0;
}
char LICENSE[] SEC("license") = "Dual MIT/GPL";
