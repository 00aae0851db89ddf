#[path = "../tests/common/mod.rs"] mod common;
use common::*;
fn main(){
  let a:Vec<String>=std::env::args().collect();
  let g=|i:usize,d:u64|a.get(i).map_or(d,|x|x.parse().unwrap());
  let scheme=a.get(1).cloned().unwrap_or("prime".into());
  let t=fat_tree(g(2,2) as i64,g(3,16) as i64);
  let set=permutation(&t,g(4,8<<20),1);
  let mut s=setup(t,set,&scheme); use anabranch_settings::Parameters; if let Some(cc)=a.get(7) { s.transport.uet.set("congestion_control",&text(cc)).unwrap(); }
  for _ in 0..g(5,3) {
  let t0=std::time::Instant::now();
  let r=anabranch_sim::run(&s,g(6,1) as usize,&mut |_|true).unwrap();
  let max=r.flows.iter().map(|f|f.fct_rx.unwrap()).max().unwrap();
  let mq=r.links.iter().map(|l|l.queue.max_packets).max().unwrap();
  println!("{scheme} hops {} wall {:.3} ({:.3}) rate {:.2}M events/hop {:.3} fp {:016x} maxfct {max} ideal {} maxq {mq} trims {} retx {} to {} B/host {}",r.packet_hops,r.wall_seconds,t0.elapsed().as_secs_f64(),r.packet_hops as f64/r.wall_seconds/1e6,r.events as f64/r.packet_hops as f64,r.fingerprint,r.flows[0].ideal_rx,r.counters.trimmed,r.counters.retransmitted,r.counters.timeouts,r.bytes_per_host);
  }
}
