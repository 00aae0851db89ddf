//! What the plugin would choose on this host, and what is missing, for `anabranch nccl check`.

use crate::{
    device::{self, Device},
    hardware,
    process::Process,
    requests,
    variables::{Carriers, Configuration, VARIABLES},
};
use anabranch_wire::{Datapath, udp::SOCKET_BUFFER};
use rustix::process::{Resource, getrlimit};
use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

/// A choice of the plugin, or a fact of this host on which it depends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub what: String,
    pub found: String,
    /// What to do where something is missing or not heeded.
    pub remedy: Option<String>,
    /// `true` if the plugin cannot run, or NCCL would not take it.
    pub is_fatal: bool,
}

fn finding(what: impl Into<String>, found: impl Into<String>) -> Finding {
    Finding { what: what.into(), found: found.into(), remedy: None, is_fatal: false }
}

impl Finding {
    fn but(self, remedy: impl Into<String>) -> Self {
        Finding { remedy: Some(remedy.into()), ..self }
    }

    fn fatal(self) -> Self {
        Finding { is_fatal: true, ..self }
    }
}

/// NCCL's variables for networks, and what holds in place of those that are not heeded; empty: they are.
const NCCL_VARIABLES: [(&str, &str); 3] = [
    ("NCCL_SOCKET_IFNAME", ""),
    ("NCCL_SOCKET_FAMILY", ""),
    ("NCCL_IB_DISABLE", "ANABRANCH_DATAPATH selects sockets or RDMA devices"),
];

/// Chooses as `init` and the first `listen` of each device do, and opens each device.
pub fn check(variables: &[(OsString, OsString)]) -> Vec<Finding> {
    let mut findings = nccl_variables(variables);
    match choices(variables) {
        Ok(chosen) => findings.splice(0..0, chosen).for_each(drop),
        Err(reason) => findings.insert(0, finding("configuration", reason).but("as it says").fatal()),
    }
    findings
        .extend(host(&std::env::var_os("SYSFS_PATH").map_or_else(|| "/sys".into(), PathBuf::from), Path::new("/proc")));
    findings
}

fn choices(variables: &[(OsString, OsString)]) -> Result<Vec<Finding>, String> {
    crate::schemes::check()?;
    let configuration = Configuration::read(variables.iter().cloned())?;
    let (mut devices, remarks) = device::find(&configuration)?;
    devices.iter_mut().for_each(|device| device.speed = device.speed.or(configuration.speed()));
    let (wire, stats) = (&configuration.wire, configuration.stats.clone());
    let mut findings = vec![
        finding("scheme", format!("{} over {} paths of a connection", configuration.scheme.name(), wire.labels)),
        finding(
            "transport",
            format!(
                "{} with {}, a silent rank is given up after {} s",
                configuration.transport.about().name,
                configuration.transport.control().name,
                wire.give_up.as_seconds()
            ),
        ),
    ];
    findings.extend(remarks.into_iter().map(|remark| finding("interfaces", remark).but("if it should be used")));
    let set = variables.iter().filter_map(|(name, value)| Some((name.to_str()?, value.to_string_lossy())));
    let ours = set.filter(|(name, _)| VARIABLES.iter().any(|variable| variable.name == *name));
    findings.extend(ours.map(|(name, value)| finding(name, value)));
    let carriers = configuration.carriers;
    let process = Arc::new(Process::new(configuration, devices).map_err(|failure| failure.message)?);
    for (number, rail) in process.rails.iter().enumerate() {
        findings.push(describe(&process, number, &rail.device));
    }
    let value = |name: &str| variables.iter().find(|(of, _)| of == name).map_or("".into(), |of| of.1.to_string_lossy());
    findings.extend(fusions(&process, &value("NCCL_NET_FORCE_MERGE"), &value("NCCL_NET_MERGE_LEVEL")));
    findings.push(match (&stats, process.page_at()) {
        (None, _) => finding("statistics", "off"),
        (Some(folder), Some(_)) => finding("statistics", format!("in {}", folder.display())),
        (Some(folder), None) => finding("statistics", format!("none: {} cannot hold a page", folder.display()))
            .but("set ANABRANCH_STATS to a folder of shared memory with 600 kB of room"),
    });
    if let Some(page) = process.page_at() {
        let _ = fs::remove_file(page);
    }
    let locked = getrlimit(Resource::Memlock).current;
    if let (true, Some(bytes)) = (carriers != Carriers::Udp, locked) {
        findings.push(
            finding("locked memory", format!("{bytes} B (ulimit -l)"))
                .but("`ulimit -l unlimited`, where ranks are many"),
        );
    }
    Ok(findings)
}

/// Fuses devices as NCCL will.
fn fusions(process: &Arc<Process>, forced: &str, level: &str) -> Vec<Finding> {
    let devices: Vec<&Device> = process.rails.iter().map(|rail| &rail.device).collect();
    let name = "NCCL_NET_FORCE_MERGE";
    let of_request = |request: requests::Request| {
        let list = match request.list {
            Ok(list) => list,
            Err(reason) => return finding(name, reason).but("name devices of this host; NCCL ends otherwise").fatal(),
        };
        let all = list.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
        let fused = process.try_fuse(&list, request.is_forced);
        match fused.and_then(|number| Ok((number, process.rail(number).map_err(|failure| failure.message)?))) {
            Ok((number, rail)) => {
                let found = describe(process, number as usize, &rail.device);
                Finding { what: format!("{} of devices {all}", found.what), ..found }
            }
            Err(reason) if request.is_forced => {
                finding(name, format!("devices {all} stay apart")).but(format!("{reason}; NCCL ends")).fatal()
            }
            Err(reason) => finding(format!("devices {all}"), format!("not fused: {reason}")),
        }
    };
    let mut findings: Vec<Finding> = requests::of(&devices, forced, level).into_iter().map(of_request).collect();
    if !matches!(level, "" | "LOC" | "PORT") {
        findings.push(finding("NCCL_NET_MERGE_LEVEL", format!("{level}: NCCL's topology decides what it fuses")));
    }
    findings
}

/// Opens a device, as its first listener does.
fn describe(process: &Arc<Process>, number: usize, device: &Device) -> Finding {
    let addresses: Vec<String> = device.planes().map(|ip| ip.to_string()).collect();
    let numa = device.pci_path.as_ref().and_then(|path| fs::read_to_string(path.join("numa_node")).ok());
    let numa = numa
        .filter(|node| !node.starts_with('-'))
        .map_or("no NUMA node".into(), |node| format!("NUMA node {}", node.trim()));
    let place = device.pci_path.as_ref().map_or_else(|| "virtual".into(), |path| path.display().to_string());
    let by = device.rdma.as_ref().map_or_else(|| "UDP".into(), |rdma| format!("UC queue pairs of {}", rdma.name));
    let what = format!("device {number}, {}", device.title());
    let opened = process.open(number as i32, 0).and_then(|mut opened| {
        let driver = opened.node()?.driver();
        let payload = driver.endpoint().0.settings().mtu();
        Ok((payload, driver.datapath().abilities().labels))
    });
    match opened {
        Ok((payload, labels)) => finding(
            what,
            format!(
                "{} by {by} at {} Mbit/s, payloads of {payload} B in an MTU of {} B, {labels} labels, {numa}, {place}",
                addresses.join(" and "),
                device.speed(),
                device.mtu
            ),
        ),
        Err(failure) => finding(what, failure.message)
            .but("free its ports or its device, or leave it out of ANABRANCH_IFNAME")
            .fatal(),
    }
}

fn nccl_variables(variables: &[(OsString, OsString)]) -> Vec<Finding> {
    let get = |name: &str| variables.iter().find(|(of, _)| of == name).map(|(_, value)| value.to_string_lossy());
    let get = |name: &str| get(name).filter(|value| !value.is_empty());
    let mut findings = Vec::new();
    if let Some(net) = get("NCCL_NET") {
        let is_ours = net.eq_ignore_ascii_case("anabranch");
        let found = finding("NCCL_NET", net);
        findings.push(if is_ours {
            found
        } else {
            found.but("NCCL takes another network: unset it, or NCCL_NET=Anabranch").fatal()
        });
    }
    if let Some(plugins) = get("NCCL_NET_PLUGIN") {
        let is_ours = plugins.split(',').any(|name| name.trim().contains("anabranch"));
        let found = finding("NCCL_NET_PLUGIN", plugins);
        findings.push(if is_ours {
            found
        } else {
            found.but("NCCL loads another plugin: NCCL_NET_PLUGIN=anabranch").fatal()
        });
    }
    let carriers = Configuration::read(variables.iter().cloned()).map_or(Carriers::Rc, |read| read.carriers);
    let of_hardware = |(name, of_reliable): (&'static str, bool)| match carriers {
        Carriers::Udp => (name, "sockets need no RDMA device; ANABRANCH_DATAPATH=rc or uc do"),
        Carriers::Uc | Carriers::Auto if of_reliable => (name, "ANABRANCH_DATAPATH=rc alone acknowledges in hardware"),
        _ => (name, ""),
    };
    for (name, instead) in NCCL_VARIABLES.into_iter().chain(hardware::NAMES.map(of_hardware)) {
        let Some(value) = get(name) else { continue };
        let found = |word| finding(name, format!("{value}, {word}"));
        findings.push(if instead.is_empty() { found("heeded") } else { found("not heeded").but(instead) });
    }
    findings
}

/// Facts of the machine, from its `/sys` and `/proc`.
fn host(sys: &Path, proc: &Path) -> Vec<Finding> {
    let read = |path: PathBuf| fs::read_to_string(path).ok().map(|text| text.trim().to_string());
    let names = |folder: PathBuf| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    };
    let limits = ["rmem_max", "wmem_max"].map(|name| read(proc.join("sys/net/core").join(name)));
    let known = limits.clone().map(|limit| limit.unwrap_or_else(|| "unknown".into()));
    let buffers = finding(
        "socket buffers",
        format!("{SOCKET_BUFFER} B are requested, rmem_max is {}, wmem_max {}", known[0], known[1]),
    );
    let is_small = limits.iter().flatten().any(|limit| limit.parse().is_ok_and(|limit: usize| limit < SOCKET_BUFFER));
    let sysctl = format!(
        "`sysctl -w net.core.rmem_max={SOCKET_BUFFER} net.core.wmem_max={SOCKET_BUFFER}`, against drops under bursts"
    );
    let of_interface = |name: &String| {
        let port = sys.join("class/infiniband").join(name).join("ports/1/gid_attrs/ndevs/0");
        format!("{name} ({})", read(port).unwrap_or_else(|| "no interface".into()))
    };
    let rdma: Vec<String> = names(sys.join("class/infiniband")).iter().map(of_interface).collect();
    let rdma =
        if rdma.is_empty() { "none".into() } else { format!("{}; ANABRANCH_DATAPATH=uc takes them", rdma.join(", ")) };
    let driver = read(proc.join("driver/nvidia/version")).and_then(|text| text.lines().next().map(str::to_string));
    let count = names(proc.join("driver/nvidia/gpus")).len();
    let amd = sys.join("module/amdgpu").is_dir().then(|| "amdgpu".to_string());
    let gpu = driver.map(|line| format!("{count} GPUs, {line}")).or(amd);
    let peer = sys.join("module/nvidia_peermem").is_dir();
    let memory = format!("nvidia_peermem is {}loaded; neither it nor DMA-BUF is used", if peer { "" } else { "not " });
    let host_only = "none: NCCL copies what GPUs send through memory of the host (ptrSupport 1)";
    let numa = read(sys.join("devices/system/node/online")).unwrap_or_else(|| "unknown".into());
    vec![
        if is_small { buffers.but(sysctl) } else { buffers },
        finding("RDMA devices", rdma),
        finding("GPU driver", gpu.unwrap_or_else(|| "none".into())),
        finding("GPU memory", memory).but(host_only),
        finding("NUMA nodes", numa),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(all: &[(&str, &str)]) -> Vec<Finding> {
        let all: Vec<_> = all.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        check(&all)
    }

    #[test]
    fn choices_of_loopback_are_named() {
        let all = [
            ("ANABRANCH_IFNAME", "=lo"),
            ("ANABRANCH_PATHS", "4"),
            ("ANABRANCH_MTU", "1000B"),
            ("ANABRANCH_STATS", "off"),
        ];
        let more = [("NCCL_IB_TC", "106"), ("NCCL_SOCKET_FAMILY", "AF_INET"), ("NCCL_NET_PLUGIN", "anabranch")];
        let findings = of(&[&all[..], &more].concat());
        let find =
            |what: &str| findings.iter().find(|of| of.what == what).unwrap_or_else(|| panic!("{what}: {findings:?}"));
        for word in ["127.0.0.1 by UDP", "payloads of 1000 B", "4 labels", "virtual"] {
            assert!(find("device 0, lo").found.contains(word), "{findings:?}");
        }
        assert!(find("NCCL_IB_TC").found.ends_with("106, not heeded") && find("NCCL_IB_TC").remedy.is_some());
        let heeded = |datapath| {
            let timeout = ("NCCL_IB_TIMEOUT", "22");
            let findings = of(&[&all[..], &more, &[timeout, ("ANABRANCH_DATAPATH", datapath)]].concat());
            let is_heeded = |name: &str| findings.iter().any(|of| of.what == name && of.found.ends_with(", heeded"));
            [is_heeded("NCCL_IB_TC"), is_heeded("NCCL_IB_TIMEOUT")]
        };
        assert_eq!(["udp", "uc", "rc"].map(heeded), [[false, false], [true, false], [true, true]]);
        assert!(find("NCCL_SOCKET_FAMILY").remedy.is_none());
        assert!(findings.iter().all(|of| !of.is_fatal), "{findings:?}");
    }

    #[test]
    fn fused_devices_are_printed() {
        let host = || crate::fused::tests::host(&[("eth0", "127.8.1.1"), ("eth1", "127.8.2.1"), ("eth2", "127.8.3.1")]);
        let [found] = &fusions(&host(), "eth2,eth0", "LOC")[..] else { panic!("one group") };
        assert_eq!((found.what.as_str(), found.is_fatal), ("device 3, eth0+eth2 of devices 0 and 2", false));
        assert!(found.found.starts_with("127.8.1.1 and 127.8.3.1 by UDP at 200000 Mbit/s"), "{found:?}");
        // Three are no planes of four paths.
        let [found] = &fusions(&host(), "", "")[..] else { panic!("one card") };
        assert!(found.what == "devices 0 and 1 and 2" && found.found.contains("a multiple of 3") && !found.is_fatal);
        for forced in ["eth0,eth1,eth2", "eth0,eth9"] {
            let [found] = &fusions(&host(), forced, "LOC")[..] else { panic!("one group") };
            assert!(found.is_fatal && found.remedy.is_some(), "{found:?}");
        }
        assert!(fusions(&host(), "", "PIX")[0].found.starts_with("PIX: NCCL's topology"));
    }

    #[test]
    fn what_prevents_a_run_is_fatal() {
        let usual = ("ANABRANCH_IFNAME", "=lo");
        for (name, value) in [
            ("ANABRANCH_SCHEME", "hoper"),
            ("ANABRANCH_ADDRESS", "192.0.2.77"),
            ("ANABRANCH_MTU", "8889B"),
            ("NCCL_NET", "Socket"),
            ("NCCL_NET_PLUGIN", "none"),
        ] {
            let findings = of(&[usual, ("ANABRANCH_STATS", "off"), (name, value)]);
            let fatal: Vec<_> = findings.iter().filter(|of| of.is_fatal).collect();
            assert!(fatal.len() == 1 && fatal[0].remedy.is_some(), "{name}: {findings:?}");
        }
    }

    #[test]
    fn facts_of_a_machine_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        file("class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0", "eth0\n");
        file("driver/nvidia/version", "NVRM version: 570\nGCC\n");
        file("driver/nvidia/gpus/0000:01:00.0/information", "");
        file("module/nvidia_peermem/refcnt", "0\n");
        file("sys/net/core/rmem_max", "212992\n");
        file("sys/net/core/wmem_max", "8388608\n");
        file("devices/system/node/online", "0-1\n");
        let findings = host(folder.path(), folder.path());
        let found: Vec<&str> = findings.iter().map(|of| of.found.as_str()).collect();
        assert!(found[0].contains("rmem_max is 212992") && findings[0].remedy.is_some(), "{findings:?}");
        assert!(found[1].starts_with("mlx5_0 (eth0)") && found[2] == "1 GPUs, NVRM version: 570", "{findings:?}");
        assert!(found[3].starts_with("nvidia_peermem is loaded") && found[4] == "0-1", "{findings:?}");
    }
}
