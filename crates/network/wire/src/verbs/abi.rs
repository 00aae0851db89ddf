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
    before_poll: [Unused; 11],
    pub(super) poll_cq: unsafe extern "C" fn(*mut Opaque, c_int, *mut Wc) -> c_int,
    pub(super) req_notify_cq: unsafe extern "C" fn(*mut Opaque, c_int) -> c_int,
    between: [Unused; 12],
    pub(super) post_send: unsafe extern "C" fn(*mut Qp, *mut SendWr, *mut *mut SendWr) -> c_int,
    pub(super) post_recv: unsafe extern "C" fn(*mut Qp, *mut RecvWr, *mut *mut RecvWr) -> c_int,
    after: [Unused; 5],
}

#[repr(C)]
pub(super) struct Context {
    pub(super) device: *mut Opaque,
    pub(super) ops: ContextOps,
    // More fields follow, which only the library reads.
}

#[repr(C)]
pub(super) struct Channel {
    context: *mut Context,
    pub(super) fd: c_int,
}

#[repr(C)]
pub(super) struct Mr {
    before_keys: [Unused; 4],
    handle: u32,
    pub(super) lkey: u32,
    pub(super) rkey: u32,
}

#[repr(C)]
pub(super) struct Qp {
    before_handle: [Unused; 6],
    handle: u32,
    pub(super) qp_num: u32,
    // More fields follow.
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Wc {
    pub(super) wr_id: u64,
    pub(super) status: c_uint,
    pub(super) opcode: c_uint,
    vendor_err: u32,
    pub(super) byte_len: u32,
    pub(super) imm_data: u32,
    pub(super) qp_num: u32,
    after: [u32; 4],
}

#[repr(C)]
#[derive(Default)]
pub(super) struct PortAttr {
    pub(super) state: c_uint,
    max_mtu: c_uint,
    pub(super) active_mtu: c_uint,
    before_layer: [u16; 17],
    pub(super) link_layer: u8,
    flags: u8,
    port_cap_flags2: u16,
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
    pub(super) lid: u16,
    pub(super) service_level: u8,
    pub(super) path_and_rate: [u8; 2],
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
    pub(super) send_cq: *mut Opaque,
    pub(super) recv_cq: *mut Opaque,
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
    pub(super) before_reads: [u16; 3],
    pub(super) max_rd_atomic: u8,
    pub(super) max_dest_rd_atomic: u8,
    pub(super) min_rnr_timer: u8,
    pub(super) port_num: u8,
    pub(super) timeout: u8,
    pub(super) retry_cnt: u8,
    pub(super) rnr_retry: u8,
    pub(super) alternate: [u8; 2],
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

    /// C's `sizeof` and `offsetof` for rdma-core 44 (and 50) on 64-bit Linux, of the fields that are used.
    #[test]
    fn structures_are_those_of_the_header() {
        macro_rules! laid_out {
            ($type:ty, $size:expr, $($field:ident)*: $($offset:expr)*) => {
                assert_eq!(($size, [$($offset),*]), (size_of::<$type>(), [$(offset_of!($type, $field)),*]));
            };
        }
        laid_out!(ContextOps, 256, poll_cq req_notify_cq post_send post_recv: 88 96 200 208);
        assert_eq!(offset_of!(Context, ops), 8);
        laid_out!(Channel, 16, fd: 8);
        laid_out!(Mr, 48, lkey rkey: 36 40);
        assert_eq!(offset_of!(Qp, qp_num), 52);
        laid_out!(Wc, 48, status opcode byte_len imm_data qp_num: 8 12 20 24 28);
        laid_out!(PortAttr, 52, active_mtu link_layer: 8 46);
        laid_out!(GlobalRoute, 24, flow_label sgid_index hop_limit traffic_class: 16 20 21 22);
        laid_out!(AhAttr, 32, is_global port_num: 29 30);
        assert_eq!(size_of::<QpCap>(), 20);
        laid_out!(QpInitAttr, 64, cap qp_type sq_sig_all: 32 52 56);
        laid_out!(QpAttr, 144, path_mtu rq_psn sq_psn dest_qp_num qp_access_flags: 8 20 24 28 32);
        laid_out!(QpAttr, 144, ah_attr max_rd_atomic max_dest_rd_atomic min_rnr_timer port_num: 56 126 127 128 129);
        laid_out!(QpAttr, 144, timeout retry_cnt rnr_retry: 130 131 132);
        laid_out!(Sge, 16, length lkey: 8 12);
        laid_out!(SendWr, 128, next sg_list num_sge opcode send_flags: 8 16 24 28 32);
        laid_out!(SendWr, 128, imm_data remote_addr rkey rest: 36 40 48 56);
        laid_out!(RecvWr, 32, num_sge: 24);
    }
}
