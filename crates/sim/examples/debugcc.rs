//! scratch
#[path = "../tests/common/mod.rs"] mod common;
use common::*; use anabranch_settings::Parameters;
fn main(){ let a:Vec<String>=std::env::args().collect();
 let t=fat_tree(2,16); let set=permutation(&t,8<<20,1); let mut s=setup(t,set,&a[1]); s.transport.uet.set("congestion_control",&text(&a[2])).unwrap();
 s.measure.uplink_counts=true;
 let r=anabranch_sim::run(&s,1,&mut |_|true).unwrap();
 let mut f:Vec<_>=r.flows.iter().map(|f|(f.fct_rx.unwrap().as_us(),f.flow_id,f.retransmitted_packets)).collect(); f.sort_by(|a,b|b.partial_cmp(a).unwrap());
 println!("{:?}",&f[..8]); println!("median {:?}",f[64]);
 for k in &f[..3] { for c in r.uplink_counts.iter().filter(|c|c.flow_id==k.1) { let n=r.uplink_counts.iter().filter(|d|d.from==c.from&&d.to==c.to).count(); let l=r.links.iter().find(|l|l.from==c.from&&l.to==c.to).unwrap(); let d=&s.flows.flows[k.1 as usize]; let leaf=d.dst/8; let m=r.links.iter().find(|l|l.from==c.to&&l.to==format!("leaf{leaf}")).unwrap(); let shared:Vec<_>=r.uplink_counts.iter().filter(|e|e.to==c.to && s.flows.flows[e.flow_id as usize].dst/8==leaf).map(|e|e.flow_id).collect(); println!("flow {} up {}->{} flows {n} util {:.3} ; down to leaf{leaf} flows {:?} util {:.3} trims {} {}",k.1,c.from,c.to,l.utilisation,shared,m.utilisation,l.trims,m.trims);}}
}
