//! NCCL's own variables of its transport over RDMA devices, as far as they fit our queue pairs. NCCL ignores a value that it
//! cannot read; here it is an error, since the job would run with another one.

use crate::variables::Interfaces;
use anabranch_wire::verbs::VerbsSettings;

/// In the order of [`Hardware::read`], each with whether it is of reliable queue pairs alone.
pub(crate) const NAMES: [(&str, bool); 6] = [
    ("NCCL_IB_HCA", false),
    ("NCCL_IB_GID_INDEX", false),
    ("NCCL_IB_TC", false),
    ("NCCL_IB_TIMEOUT", true),
    ("NCCL_IB_RETRY_CNT", true),
    ("NCCL_IB_SL", false),
];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hardware {
    /// RDMA devices that may be used; `None`: all.
    devices: Option<Interfaces>,
    pub(crate) gid_index: Option<u8>,
    /// Traffic class, in place of the one that NCCL names.
    pub(crate) class: Option<u8>,
    timeout: Option<u8>,
    retries: Option<u8>,
    service_level: Option<u8>,
}

impl Hardware {
    pub(crate) fn read<'a>(given: impl Fn(&str) -> Option<&'a str>) -> Result<Self, String> {
        // NCCL's default of index and class is -1: unset.
        let number = |name: &str, least: i64, most: u8, what: &str| match given(name) {
            None => Ok(None),
            Some("-1") if most == u8::MAX => Ok(None),
            Some(text) => match text.parse::<i64>() {
                Ok(value) if (least..=i64::from(most)).contains(&value) => Ok(Some(value as u8)),
                _ => Err(format!("{name}: found `{text}`, expected {what}, a whole number from {least} to {most}")),
            },
        };
        Ok(Hardware {
            devices: given(NAMES[0].0).map(devices).transpose()?,
            gid_index: number(NAMES[1].0, 0, u8::MAX, "an index of the table of GIDs")?,
            class: number(NAMES[2].0, 0, u8::MAX, "a traffic class")?,
            // 0 would wait for ever.
            timeout: number(NAMES[3].0, 1, 31, "4.096 us times two to the power of it")?,
            retries: number(NAMES[4].0, 0, 7, "retransmissions")?,
            service_level: number(NAMES[5].0, 0, 15, "a service level")?,
        })
    }

    pub(crate) fn selects(&self, device: &str) -> bool {
        self.devices.as_ref().is_none_or(|devices| devices.selects(device, false))
    }

    /// Returns settings with the values of the variables.
    pub(crate) fn apply(&self, settings: VerbsSettings) -> VerbsSettings {
        VerbsSettings {
            gid_index: self.gid_index,
            timeout: self.timeout.unwrap_or(settings.timeout),
            retries: self.retries.unwrap_or(settings.retries),
            service_level: self.service_level.unwrap_or(settings.service_level),
            ..settings
        }
    }
}

/// Reads names of devices, some with the port, which here is always 1.
fn devices(text: &str) -> Result<Interfaces, String> {
    let mut names = Vec::new();
    for name in text.split(',') {
        let (device, port) = name.split_once(':').unwrap_or((name, "1"));
        if !["", "1"].contains(&port.trim()) {
            return Err(format!("{}: found `{}`, expected port 1", NAMES[0].0, name.trim()));
        }
        names.push(device);
    }
    Interfaces::read(NAMES[0].0, &names.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &'static str, text: &'static str) -> Result<Hardware, String> {
        Hardware::read(|of| (of == name).then_some(text))
    }

    #[test]
    fn nccl_names_devices_ports_and_numbers() {
        let selected = |text: &'static str| {
            let hardware = read("NCCL_IB_HCA", text).unwrap();
            ["mlx5_0", "mlx5_1", "mlx5_10"].map(|name| hardware.selects(name))
        };
        assert_eq!(selected("mlx5_1"), [false, true, true]);
        assert_eq!(selected("=mlx5_1:1,mlx5_0"), [true, true, false]);
        assert_eq!(selected("^mlx5_1:1"), [true, false, false]);
        let applied = |name, text| read(name, text).unwrap().apply(VerbsSettings::default());
        assert_eq!(applied("NCCL_IB_TIMEOUT", "23").timeout, 23);
        assert_eq!(applied("NCCL_IB_RETRY_CNT", "0").retries, 0);
        assert_eq!(applied("NCCL_IB_SL", "5").service_level, 5);
        assert_eq!(applied("NCCL_IB_GID_INDEX", "3").gid_index, Some(3));
        assert_eq!(applied("NCCL_IB_GID_INDEX", "-1"), VerbsSettings::default());
        assert_eq!(read("NCCL_IB_TC", "106").unwrap().class, Some(106));
        for (name, text) in [
            ("NCCL_IB_HCA", "mlx5_0:2"),
            ("NCCL_IB_HCA", "="),
            ("NCCL_IB_GID_INDEX", "256"),
            ("NCCL_IB_TC", "0x20"),
            ("NCCL_IB_TIMEOUT", "0"),
            ("NCCL_IB_TIMEOUT", "-1"),
            ("NCCL_IB_TIMEOUT", "32"),
            ("NCCL_IB_RETRY_CNT", "8"),
            ("NCCL_IB_SL", "16"),
        ] {
            let error = read(name, text).unwrap_err();
            assert!(error.starts_with(name) && error.contains("expected"), "{error}");
        }
    }
}
