use super::{
    carried::{Carried, SendMethod},
    shared::DATAGRAM,
};
use serde_json::Value;
use std::{
    net::TcpListener,
    process::{Command, Stdio},
    time::Duration,
};

/// Runs `iperf3` for two seconds; `None` if it is not installed or fails.
pub(super) fn measure(method: SendMethod) -> Option<Carried> {
    // A port that was free just now.
    let port = TcpListener::bind("127.0.0.1:0").ok()?.local_addr().ok()?.port().to_string();
    let server = Command::new("iperf3")
        .args(["-s", "-1", "-B", "127.0.0.1", "-p", &port])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut server = server.ok()?;
    std::thread::sleep(Duration::from_millis(300));
    let datagram = DATAGRAM.to_string();
    let more: &[&str] = if method == SendMethod::IperfUdp { &["-u", "-b", "0", "-l", &datagram] } else { &[] };
    let client = Command::new("iperf3").args(["-c", "127.0.0.1", "-p", &port, "-t", "2", "-J"]).args(more).output();
    // It serves one client and exits; without a client it keeps waiting.
    let _ = server.kill();
    let _ = server.wait();
    let report: Value = serde_json::from_slice(&client.ok()?.stdout).ok()?;
    let end = report.get("end")?;
    let sum = if method == SendMethod::IperfUdp { end.get("sum")? } else { end.get("sum_received")? };
    let number = |of: &Value, key: &str| of.get(key).and_then(Value::as_f64);
    let lost = number(sum, "lost_percent").unwrap_or(0.0) / 100.0;
    let seconds = number(sum, "seconds")?;
    let bytes = number(sum, "bytes")? * (1.0 - lost);
    let cpu = end.get("cpu_utilization_percent")?;
    let busy = (number(cpu, "host_total")? + number(cpu, "remote_total")?) / 100.0;
    (bytes > 0.0).then_some(Carried { method, bytes: bytes as u64, cpu_seconds: busy * seconds, seconds })
}
