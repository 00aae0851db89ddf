//! View of Dragonflies and Slim Flies that guided schemes decide on.

use super::{Switches, view};
use crate::{
    context::Ctx,
    ids::{PacketId, SwitchId},
    packet::Kind,
    plan::Guided,
};
use anabranch_lb::{GuidedPaths, GuidedSwitch, GuidedTopology, SwitchHeader, SwitchScheme};
use anabranch_topology::{Guidance, PathType};
use anabranch_units::Time;

/// A switch and a packet's destination switch.
struct At<'s, 'p> {
    guided: &'p Guided,
    here: u32,
    to: u32,
    cx: &'s mut Ctx<'p>,
}

impl GuidedSwitch for At<'_, '_> {
    #[inline]
    fn topology(&self) -> GuidedTopology {
        match self.guided.guide.guidance() {
            Guidance::Dragonfly => GuidedTopology::Dragonfly,
            Guidance::SlimFly | Guidance::Graph => GuidedTopology::SlimFly,
        }
    }
    #[inline]
    fn here(&self) -> u32 {
        self.here
    }
    #[inline]
    fn destination(&self) -> u32 {
        self.to
    }
    #[inline]
    fn ports(&self, switch: u32) -> u32 {
        self.guided.guide.port_count(switch)
    }
    #[inline]
    fn peer(&self, switch: u32, port: u32) -> u32 {
        self.guided.guide.peer(switch, port)
    }
    #[inline]
    fn is_local(&self, switch: u32, port: u32) -> bool {
        self.guided.guide.is_local(switch, port)
    }
    #[inline]
    fn group(&self, switch: u32) -> u32 {
        self.guided.guide.group_of(switch)
    }
    #[inline]
    fn minimal(&self, switch: u32) -> u32 {
        self.guided.guide.default_port_of(switch, self.to)
    }
    #[inline]
    fn named(&self, hop: u8, over_local: bool, ev: u16) -> u32 {
        self.guided.guide.next_port(self.here, hop, over_local, [ev >> 8, ev & 0xff], self.to)
    }
    fn path_type(&self, local: u8, global: u8) -> Option<u8> {
        self.guided.guide.guidance().category(PathType { local, global })
    }
    fn is_live(&self, port: u32) -> bool {
        let (guide, tables) = (&self.guided.guide, &self.cx.tables);
        !tables.any_dead
            || !tables.dead[guide.link_at(self.here, port).0 as usize]
                && !guide.default_is_dead(guide.peer(self.here, port), self.to, &tables.dead)
    }
    fn queue(&mut self, port: u32) -> u64 {
        let link = self.guided.guide.link_at(self.here, port).0;
        self.cx.ports.backlog(self.cx.plan.port_of(link), self.cx.now)
    }
    fn snapshot(&self, switch: u32, port: u32) -> u64 {
        let link = self.guided.guide.link_at(switch, port).0;
        self.cx.shared.snapshots.as_ref().map_or(0, |snapshots| snapshots.read(link, self.cx.now))
    }
    fn paths(&mut self) -> &GuidedPaths {
        self.cx.paths.live(self.cx.plan, &self.guided.guide, self.here, self.to, self.cx.tables)
    }
}

impl Switches {
    #[inline]
    pub(super) fn guided_hop<'p>(
        &mut self,
        cx: &mut Ctx<'p>,
        guided: &'p Guided,
        switch: SwitchId,
        to: u32,
        id: PacketId,
    ) -> Option<u32> {
        let packet = &cx.ports[id];
        let default = || guided.guide.default_port_of(switch.0, to);
        let port = match packet.kind {
            Kind::Data | Kind::Header | Kind::Probe => {
                let (port, header) = self.guide(cx, guided, (switch, to), id, packet.head);
                cx.ports[id].head = header;
                port
            }
            Kind::Ack | Kind::Nack | Kind::ProbeReply | Kind::Grant if guided.guides_replies => {
                self.guide_reply(cx, guided, (switch, to), id)
            }
            _ => default(),
        };
        let link = guided.guide.link_at(switch.0, port).0;
        if cx.tables.any_dead && port == default() && guided.guide.default_is_dead(switch.0, to, &cx.tables.dead) {
            // A default path that is known to be dead is replaced by the shortest live path.
            return cx.routes.towards(switch.0, to).links.first().map(|link| link.0);
        }
        self.count_uplink(cx, id, link);
        Some(link)
    }

    /// Returns the port that the scheme chooses from a switch to another, and the header that it leaves.
    #[inline(always)]
    fn guide<'p>(
        &mut self,
        cx: &mut Ctx<'p>,
        guided: &'p Guided,
        (switch, to): (SwitchId, u32),
        id: PacketId,
        mut header: SwitchHeader,
    ) -> (u32, SwitchHeader) {
        let packet = &cx.ports[id];
        let (now, view, balancer) = (Time::from_ps(cx.now), view(cx.plan, packet), packet.balancer);
        let mut at = At { guided, here: switch.0, to, cx };
        let port = self.schemes.of(switch, balancer).guide(now, &view, &mut header, &mut at);
        (port, header)
    }

    #[inline(never)]
    fn guide_reply<'p>(&mut self, cx: &mut Ctx<'p>, guided: &'p Guided, between: (SwitchId, u32), id: PacketId) -> u32 {
        let header = cx.ports[id].guided_header();
        let (port, header) = self.guide(cx, guided, between, id, header);
        cx.ports[id].set_guided_header(&header);
        port
    }
}
