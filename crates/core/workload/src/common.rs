use crate::WorkloadError;
use anabranch_settings::parameters;

parameters! {
    /// Keys of every workload in addition to the parameters of its kind.
    pub struct CommonParameters {
        /// Name in the results; random draws are keyed by it. Default: the kind, numbered from the second one on.
        name: Option<String> = None, source "ours";
        /// Traffic class of the flows. Default: the fabric's first.
        class: Option<String> = None, source "ours";
        /// Jobs: shares hosts with an earlier job without a warning.
        overlap: bool = false, source "ours", Expert;
        /// Includes the flows in the statistics.
        measured: bool = true, source "ours", Expert;
        /// Load balancer of the flows. Default: that of the scenario.
        load_balancer: Option<String> = None, source "ours";
        /// Congestion control of the flows, with the parameters of its table in `[transport]`. Default: that of the transport.
        congestion_control: Option<String> = None, source "ours: Spritz Table III monitors one flow beside a background whose control the text does not give", Expert;
        /// Share of the flows (0 to 1, chosen at random) that becomes a second workload with its own class and load
        /// balancer.
        split_share: f64 = 0.0, source "PRIME §IV-A2: mixed traffic", Expert;
        /// Name of the second workload. Default: the first one's with `-split`.
        split_name: Option<String> = None, source "ours", Expert;
        /// Traffic class of the second workload. Default: that of the first.
        split_class: Option<String> = None, source "ours", Expert;
        /// Load balancer of the second workload. Default: that of the first.
        split_load_balancer: Option<String> = None, source "ours", Expert;
    }
}

impl CommonParameters {
    /// Checks the limits and the consistency of every parameter.
    /// Errors: [`WorkloadError`] for the first invalid parameter.
    pub fn check(&self) -> Result<(), WorkloadError> {
        let share = self.split_share;
        WorkloadError::unless((0.0..=1.0).contains(&share), "split_share", share, "a share from 0 to 1")?;
        let unused = [
            ("split_name", &self.split_name),
            ("split_class", &self.split_class),
            ("split_load_balancer", &self.split_load_balancer),
        ];
        match unused.into_iter().find(|(_, value)| value.is_some()) {
            Some((key, _)) if share == 0.0 => {
                Err(WorkloadError::of_key(key, "has no effect while `split_share` is 0, expected a share above 0"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_must_make_sense() {
        let of = |share, name: Option<&str>| CommonParameters {
            split_share: share,
            split_name: name.map(String::from),
            ..Default::default()
        };
        assert!(of(0.1, Some("rest")).check().is_ok() && of(0.0, None).check().is_ok());
        assert_eq!(of(1.1, None).check().unwrap_err().key.as_deref(), Some("split_share"));
        assert_eq!(of(0.0, Some("rest")).check().unwrap_err().key.as_deref(), Some("split_name"));
    }
}
