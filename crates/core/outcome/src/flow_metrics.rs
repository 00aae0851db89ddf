//! Metrics per flow, each declared here once. Columns, summary, comparisons, claims and fingerprint follow; a backend
//! that measures one fills its field of [`FlowCounters`].

use crate::measures::metrics;

/// Passes the declarations of all metrics to the macro `with`: `name: how, unit, meaning, fingerprint place;`.
///
/// `how` (`sum` or `max`) combines the counts of several flows, and of sender and receiver. The fingerprint covers
/// those with a place, in that order.
#[macro_export]
macro_rules! flow_metrics {
    ($with:ident) => {
        $with! {
            retransmitted_packets: sum, "packets", "retransmissions of data packets", fingerprint 0;
            out_of_order_packets: sum, "packets", "arrivals whose PSN was not the lowest one missing", fingerprint 1;
            max_reorder_bytes: max, "bytes", "most payload ever received beyond the lowest missing byte", fingerprint 3;
            path_switches: sum, "packets", "packets sent with another path tag than the packet before", fingerprint 4;
            out_of_sequence_packets: sum, "packets", "arrivals whose PSN was not the last arrival's plus one", fingerprint 2;
            refused_packets: sum, "packets", "early arrivals for which the NIC had no memory";
            max_queue_pairs: max, "queue pairs", "most that the flow had open at once, probes included";
        }
    };
}

/// Combination of two counts.
mod together {
    pub(super) fn sum(a: u64, b: u64) -> u64 {
        a + b
    }
    pub(super) fn max(a: u64, b: u64) -> u64 {
        a.max(b)
    }
}

macro_rules! declare {
    ($($name:ident: $how:ident, $unit:literal, $meaning:literal $(, fingerprint $place:literal)?;)*) => {
        metrics! {
            /// Metrics of one flow apart from its times.
            FlowMetrics from
            /// Counts of one flow by a backend that counts all of them.
            FlowCounters,
            /// Metrics of flows that a backend measures.
            FlowMeasures {
                $($name: concat!("In ", $unit, ": ", $meaning, ".");)*
            }
        }

        impl FlowCounters {
            /// Combines the counts of sender and receiver of a flow.
            pub fn merge(&mut self, other: &Self) {
                $(self.$name = together::$how(self.$name, other.$name);)*
            }
        }

        impl FlowMetrics {
            /// Number of metrics that the fingerprint covers.
            pub const IN_FINGERPRINT: usize = [$($(stringify!($place),)?)*].len();

            /// Returns the metrics that the fingerprint covers, in its order.
            pub fn fingerprint_words(&self) -> [Option<u64>; Self::IN_FINGERPRINT] {
                let mut words = [None; Self::IN_FINGERPRINT];
                $($(words[$place] = self.$name;)?)*
                words
            }

            /// Combines the metrics of several flows. A metric unknown for one flow is unknown for all together.
            pub fn together<'a>(flows: impl IntoIterator<Item = &'a Self>) -> Self {
                let mut all: Option<Self> = None;
                for flow in flows {
                    all = Some(match all {
                        None => *flow,
                        Some(all) => FlowMetrics {
                            $($name: all.$name.zip(flow.$name).map(|(a, b)| together::$how(a, b)),)*
                        },
                    });
                }
                all.unwrap_or_default()
            }
        }
    };
}

flow_metrics!(declare);

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(reorder: u64, packets: u64) -> FlowCounters {
        FlowCounters { max_reorder_bytes: reorder, out_of_order_packets: packets, ..FlowCounters::default() }
    }

    #[test]
    fn the_fingerprint_has_its_own_order() {
        let mut metrics = FlowCounters { retransmitted_packets: 1, path_switches: 5, ..FlowCounters::default() };
        metrics.merge(&FlowCounters { out_of_sequence_packets: 3, ..counted(4, 2) });
        assert_eq!(FlowMetrics::from(metrics).fingerprint_words(), [1, 2, 3, 4, 5].map(Some));
    }

    #[test]
    fn maxima_are_not_added_up() {
        let mut both = counted(4000, 2);
        both.merge(&counted(3000, 5));
        assert_eq!(both, counted(4000, 7));
        let flows = [counted(4000, 2).into(), counted(9000, 5).into()];
        assert_eq!(FlowMetrics::together(&flows), counted(9000, 7).into());
    }

    #[test]
    fn one_unknown_makes_the_whole_unknown() {
        let unknown = FlowMetrics { path_switches: None, ..counted(1, 1).into() };
        let together = FlowMetrics::together(&[counted(2, 2).into(), unknown]);
        assert_eq!((together.path_switches, together.out_of_order_packets), (None, Some(3)));
        assert_eq!(FlowMetrics::together(&[]), FlowMetrics::default(), "nothing is known of no flow");
    }
}
