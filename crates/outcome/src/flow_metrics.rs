//! What is counted per flow. A metric is declared here, once: its column, unit, meaning and whether the fingerprint covers
//! it follow. Who counts it fills its field ([`FlowMetrics::merge`] puts the two ends of a flow together).

/// Hands the declarations of all metrics to the macro `with`: `name: unit, meaning, fingerprint place;`, the last for those
/// that the fingerprint covers, in which they stand in the order of their places. A metric without a place is outside.
#[macro_export]
macro_rules! flow_metrics {
    ($with:ident) => {
        $with! {
            retransmitted_packets: "packets", "data packets sent more than once", fingerprint 0;
            out_of_order_packets: "packets", "arrivals whose PSN was not the lowest one missing", fingerprint 1;
            max_reorder_bytes: "bytes", "most payload ever received beyond the lowest missing byte", fingerprint 3;
            path_switches: "packets", "packets sent with another path tag than the packet before", fingerprint 4;
            out_of_sequence_packets: "packets", "arrivals whose PSN was not the last arrival's plus one", fingerprint 2;
        }
    };
}

macro_rules! metrics {
    ($($name:ident: $unit:literal, $meaning:literal, $(fingerprint $place:literal)?;)*) => {
        /// What is counted of one flow.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct FlowMetrics {
            $(
                #[doc = concat!("In ", $unit, ": ", $meaning, ".")]
                pub $name: u64,
            )*
        }

        impl FlowMetrics {
            /// How many of them the fingerprint covers.
            pub const IN_FINGERPRINT: usize = [$($(stringify!($place),)?)*].len();

            /// Adds what the other end of the flow has counted.
            pub fn merge(&mut self, other: &Self) {
                $(self.$name += other.$name;)*
            }

            /// Those that the fingerprint covers, in its order.
            pub fn fingerprint_words(&self) -> [u64; Self::IN_FINGERPRINT] {
                let mut words = [0; Self::IN_FINGERPRINT];
                $($(words[$place] = self.$name;)?)*
                words
            }
        }
    };
}

flow_metrics!(metrics);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fingerprint_has_its_own_order() {
        let mut metrics = FlowMetrics { retransmitted_packets: 1, path_switches: 5, ..FlowMetrics::default() };
        metrics.merge(&FlowMetrics {
            out_of_order_packets: 2,
            out_of_sequence_packets: 3,
            max_reorder_bytes: 4,
            ..FlowMetrics::default()
        });
        assert_eq!(metrics.fingerprint_words(), [1, 2, 3, 4, 5]);
    }
}
