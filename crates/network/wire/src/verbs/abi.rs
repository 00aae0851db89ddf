//! Structures of `infiniband/verbs.h` on 64-bit Linux, up to the last field that is used.

use std::ffi::{c_int, c_uint, c_void};

/// Used only by pointer.
#[repr(C)]
pub(super) struct Opaque {
    _private: [u8; 0],
}

type Unused = *const c_void;

#[repr(C)]
pub(super) struct ContextOps {
    pub(super) before_poll: [Unused; 11],
    pub(super) poll_cq: unsafe extern "C" fn(*mut Cq, c_int, *mut Wc) -> c_int,
    pub(super) req_notify_cq: unsafe extern "C" fn(*mut Cq, c_int) -> c_int,
    pub(super) between: [Unused; 12],
    pub(super) post_send: unsafe extern "C" fn(*mut Qp, *mut SendWr, *mut *mut SendWr) -> c_int,
    pub(super) post_recv: unsafe extern "C" fn(*mut Qp, *mut RecvWr, *mut *mut RecvWr) -> c_int,
    pub(super) after: [Unused; 5],
}

#[repr(C)]
pub(super) struct Context {
    pub(super) device: *mut Opaque,
    pub(super) ops: ContextOps,
    pub(super) cmd_fd: c_int,
    pub(super) async_fd: c_int,
    // More fields follow, which only the library reads.
}

#[repr(C)]
pub(super) struct Channel {
    pub(super) context: *mut Context,
    pub(super) fd: c_int,
    pub(super) refcnt: c_int,
}

#[repr(C)]
pub(super) struct Cq {
    pub(super) context: *mut Context,
    // More fields follow.
}

#[repr(C)]
pub(super) struct Mr {
    pub(super) context: *mut Context,
    pub(super) pd: *mut Opaque,
    pub(super) addr: *mut c_void,
    pub(super) length: usize,
    pub(super) handle: u32,
    pub(super) lkey: u32,
    pub(super) rkey: u32,
}

#[repr(C)]
pub(super) struct Qp {
    pub(super) context: *mut Context,
    pub(super) qp_context: *mut c_void,
    pub(super) pd: *mut Opaque,
    pub(super) send_cq: *mut Cq,
    pub(super) recv_cq: *mut Cq,
    pub(super) srq: *mut Opaque,
    pub(super) handle: u32,
    pub(super) qp_num: u32,
    // More fields follow.
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Wc {
    pub(super) wr_id: u64,
    pub(super) status: c_uint,
    pub(super) opcode: c_uint,
    pub(super) vendor_err: u32,
    pub(super) byte_len: u32,
    pub(super) imm_data: u32,
    pub(super) qp_num: u32,
    pub(super) src_qp: u32,
    pub(super) wc_flags: c_uint,
    pub(super) pkey_index: u16,
    pub(super) slid: u16,
    pub(super) sl: u8,
    pub(super) dlid_path_bits: u8,
}

#[repr(C)]
#[derive(Default)]
pub(super) struct PortAttr {
    pub(super) state: c_uint,
    pub(super) max_mtu: c_uint,
    pub(super) active_mtu: c_uint,
    pub(super) gid_tbl_len: c_int,
    pub(super) port_cap_flags: u32,
    pub(super) max_msg_sz: u32,
    pub(super) bad_pkey_cntr: u32,
    pub(super) qkey_viol_cntr: u32,
    pub(super) pkey_tbl_len: u16,
    pub(super) lid: u16,
    pub(super) sm_lid: u16,
    pub(super) lmc: u8,
    pub(super) max_vl_num: u8,
    pub(super) sm_sl: u8,
    pub(super) subnet_timeout: u8,
    pub(super) init_type_reply: u8,
    pub(super) active_width: u8,
    pub(super) active_speed: u8,
    pub(super) phys_state: u8,
    pub(super) link_layer: u8,
    pub(super) flags: u8,
    pub(super) port_cap_flags2: u16,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct GlobalRoute {
    pub(super) dgid: [u64; 2],
    pub(super) flow_label: u32,
    pub(super) sgid_index: u8,
    pub(super) hop_limit: u8,
    pub(super) traffic_class: u8,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct AhAttr {
    pub(super) grh: GlobalRoute,
    pub(super) dlid: u16,
    pub(super) sl: u8,
    pub(super) src_path_bits: u8,
    pub(super) static_rate: u8,
    pub(super) is_global: u8,
    pub(super) port_num: u8,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct QpCap {
    pub(super) max_send_wr: u32,
    pub(super) max_recv_wr: u32,
    pub(super) max_send_sge: u32,
    pub(super) max_recv_sge: u32,
    pub(super) max_inline_data: u32,
}

#[repr(C)]
pub(super) struct QpInitAttr {
    pub(super) qp_context: *mut c_void,
    pub(super) send_cq: *mut Cq,
    pub(super) recv_cq: *mut Cq,
    pub(super) srq: *mut Opaque,
    pub(super) cap: QpCap,
    pub(super) qp_type: c_uint,
    pub(super) sq_sig_all: c_int,
}

#[repr(C)]
#[derive(Default)]
pub(super) struct QpAttr {
    pub(super) qp_state: c_uint,
    pub(super) cur_qp_state: c_uint,
    pub(super) path_mtu: c_uint,
    pub(super) path_mig_state: c_uint,
    pub(super) qkey: u32,
    pub(super) rq_psn: u32,
    pub(super) sq_psn: u32,
    pub(super) dest_qp_num: u32,
    pub(super) qp_access_flags: c_uint,
    pub(super) cap: QpCap,
    pub(super) ah_attr: AhAttr,
    pub(super) alt_ah_attr: AhAttr,
    pub(super) pkey_index: u16,
    pub(super) alt_pkey_index: u16,
    pub(super) en_sqd_async_notify: u8,
    pub(super) sq_draining: u8,
    pub(super) max_rd_atomic: u8,
    pub(super) max_dest_rd_atomic: u8,
    pub(super) min_rnr_timer: u8,
    pub(super) port_num: u8,
    pub(super) timeout: u8,
    pub(super) retry_cnt: u8,
    pub(super) rnr_retry: u8,
    pub(super) alt_port_num: u8,
    pub(super) alt_timeout: u8,
    pub(super) rate_limit: u32,
}

#[repr(C)]
pub(super) struct Sge {
    pub(super) addr: u64,
    pub(super) length: u32,
    pub(super) lkey: u32,
}

#[repr(C)]
pub(super) struct SendWr {
    pub(super) wr_id: u64,
    pub(super) next: *mut SendWr,
    pub(super) sg_list: *mut Sge,
    pub(super) num_sge: c_int,
    pub(super) opcode: c_uint,
    pub(super) send_flags: c_uint,
    pub(super) imm_data: u32,
    pub(super) remote_addr: u64,
    pub(super) rkey: u32,
    /// Rest of the union of work requests, and two more unions, unused by an RDMA write.
    pub(super) rest: [u64; 9],
}

#[repr(C)]
pub(super) struct RecvWr {
    pub(super) wr_id: u64,
    pub(super) next: *mut RecvWr,
    pub(super) sg_list: *mut Sge,
    pub(super) num_sge: c_int,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    /// C's `sizeof` and `offsetof` for rdma-core 44 (and 50) on 64-bit Linux.
    #[test]
    fn structures_are_those_of_the_header() {
        assert_eq!(size_of::<ContextOps>(), 256);
        assert_eq!(offset_of!(Context, ops), 8);
        let ops = |offset: usize| 8 + offset;
        assert_eq!(ops(offset_of!(ContextOps, poll_cq)), 96);
        assert_eq!(ops(offset_of!(ContextOps, req_notify_cq)), 104);
        assert_eq!(ops(offset_of!(ContextOps, post_send)), 208);
        assert_eq!(ops(offset_of!(ContextOps, post_recv)), 216);
        assert_eq!((offset_of!(Context, cmd_fd), offset_of!(Context, async_fd)), (264, 268));
        assert_eq!((size_of::<Channel>(), offset_of!(Channel, fd)), (16, 8));
        assert_eq!(size_of::<Mr>(), 48);
        assert_eq!([offset_of!(Mr, addr), offset_of!(Mr, length)], [16, 24]);
        assert_eq!([offset_of!(Mr, lkey), offset_of!(Mr, rkey)], [36, 40]);
        assert_eq!([offset_of!(Qp, handle), offset_of!(Qp, qp_num)], [48, 52]);
        assert_eq!(size_of::<Wc>(), 48);
        assert_eq!([offset_of!(Wc, status), offset_of!(Wc, opcode), offset_of!(Wc, byte_len)], [8, 12, 20]);
        assert_eq!([offset_of!(Wc, imm_data), offset_of!(Wc, qp_num), offset_of!(Wc, wc_flags)], [24, 28, 36]);
        assert_eq!(offset_of!(Wc, dlid_path_bits), 45);
        assert_eq!(size_of::<PortAttr>(), 52);
        assert_eq!([offset_of!(PortAttr, active_mtu), offset_of!(PortAttr, max_msg_sz)], [8, 20]);
        assert_eq!([offset_of!(PortAttr, lid), offset_of!(PortAttr, link_layer)], [34, 46]);
    }

    #[test]
    fn attributes_of_queue_pairs_are_those_of_the_header() {
        assert_eq!(size_of::<GlobalRoute>(), 24);
        assert_eq!([offset_of!(GlobalRoute, flow_label), offset_of!(GlobalRoute, sgid_index)], [16, 20]);
        assert_eq!([offset_of!(GlobalRoute, hop_limit), offset_of!(GlobalRoute, traffic_class)], [21, 22]);
        assert_eq!(size_of::<AhAttr>(), 32);
        assert_eq!([offset_of!(AhAttr, dlid), offset_of!(AhAttr, sl)], [24, 26]);
        assert_eq!([offset_of!(AhAttr, is_global), offset_of!(AhAttr, port_num)], [29, 30]);
        assert_eq!(size_of::<QpCap>(), 20);
        assert_eq!(size_of::<QpInitAttr>(), 64);
        assert_eq!([offset_of!(QpInitAttr, cap), offset_of!(QpInitAttr, qp_type)], [32, 52]);
        assert_eq!(offset_of!(QpInitAttr, sq_sig_all), 56);
        assert_eq!(size_of::<QpAttr>(), 144);
        assert_eq!([offset_of!(QpAttr, path_mtu), offset_of!(QpAttr, rq_psn), offset_of!(QpAttr, sq_psn)], [8, 20, 24]);
        assert_eq!([offset_of!(QpAttr, dest_qp_num), offset_of!(QpAttr, qp_access_flags)], [28, 32]);
        assert_eq!([offset_of!(QpAttr, ah_attr), offset_of!(QpAttr, alt_ah_attr)], [56, 88]);
        assert_eq!([offset_of!(QpAttr, pkey_index), offset_of!(QpAttr, max_rd_atomic)], [120, 126]);
        assert_eq!([offset_of!(QpAttr, max_dest_rd_atomic), offset_of!(QpAttr, min_rnr_timer)], [127, 128]);
        assert_eq!([offset_of!(QpAttr, port_num), offset_of!(QpAttr, timeout)], [129, 130]);
        assert_eq!([offset_of!(QpAttr, retry_cnt), offset_of!(QpAttr, rnr_retry)], [131, 132]);
        assert_eq!(offset_of!(QpAttr, rate_limit), 136);
    }

    #[test]
    fn work_requests_are_those_of_the_header() {
        assert_eq!((size_of::<Sge>(), offset_of!(Sge, length), offset_of!(Sge, lkey)), (16, 8, 12));
        assert_eq!(size_of::<SendWr>(), 128);
        assert_eq!([offset_of!(SendWr, next), offset_of!(SendWr, sg_list), offset_of!(SendWr, num_sge)], [8, 16, 24]);
        assert_eq!([offset_of!(SendWr, opcode), offset_of!(SendWr, send_flags)], [28, 32]);
        assert_eq!([offset_of!(SendWr, imm_data), offset_of!(SendWr, remote_addr)], [36, 40]);
        assert_eq!([offset_of!(SendWr, rkey), offset_of!(SendWr, rest)], [48, 56]);
        assert_eq!((size_of::<RecvWr>(), offset_of!(RecvWr, num_sge)), (32, 24));
    }
}
