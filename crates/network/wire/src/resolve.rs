//! Addresses by name.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6, ToSocketAddrs};

/// Returns the addresses of `HOST:PORT`, in the order in which they are to be tried.
///
/// It is that of the resolver, families in turn (RFC 8305, section 4). An IPv6 address may have a scope:
/// `[fe80::1%eth0]:7000`.
/// Errors: what was found and what is expected, for a message.
pub fn resolve(text: &str) -> Result<Vec<SocketAddr>, String> {
    let wrong = || format!("found `{text}`, expected an address and a port, for example 10.0.0.2:7000");
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let port: u16 = port.parse().map_err(|_| wrong())?;
    let host = host.strip_prefix('[').map_or(Some(host), |rest| rest.strip_suffix(']')).ok_or_else(wrong)?;
    if let Some((ip, scope)) = host.split_once('%') {
        return Ok(vec![scoped(text, ip, scope, port, wrong)?]);
    }
    let found = (host, port).to_socket_addrs();
    let found: Vec<SocketAddr> =
        found.map_err(|error| format!("found `{text}`: the name cannot be resolved: {error}"))?.collect();
    if found.iter().any(|at| is_link_local(at.ip())) {
        return Err(format!(
            "found `{text}`, a link-local address without its interface; expected for example [{host}%eth0]:{port}"
        ));
    }
    if found.is_empty() {
        return Err(format!("found `{text}`, a name without addresses"));
    }
    Ok(in_turn(found))
}

/// Returns the address of a local interface, `fe80::1%eth0` if it is link-local, with port 0.
/// Errors: what is expected, for a message that has what was found.
pub fn resolve_local(text: &str) -> Result<SocketAddr, String> {
    let wrong = || "expected an address of this machine, for example 10.0.0.1 or fe80::1%eth0".to_string();
    if let Some((ip, scope)) = text.split_once('%') {
        return scoped(text, ip, scope, 0, wrong);
    }
    match text.parse().map_err(|_| wrong())? {
        ip if is_link_local(ip) => {
            Err(format!("a link-local address requires its interface; expected for example {text}%eth0"))
        }
        ip => Ok((ip, 0).into()),
    }
}

fn is_link_local(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
}

fn scoped(text: &str, ip: &str, scope: &str, port: u16, wrong: impl Fn() -> String) -> Result<SocketAddr, String> {
    let ip: Ipv6Addr = ip.parse().map_err(|_| wrong())?;
    let known = if_addrs::get_if_addrs().unwrap_or_default();
    let index = known.into_iter().find(|of| of.name == scope).and_then(|of| of.index).or(scope.parse().ok());
    let index = index.ok_or_else(|| format!("found `{text}`, and no interface with an address is called `{scope}`"))?;
    Ok(SocketAddrV6::new(ip, port, 0, index).into())
}

/// The family of the first address begins.
fn in_turn(all: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let is_first = all.first().is_some_and(SocketAddr::is_ipv6);
    let (first, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|at| at.is_ipv6() == is_first);
    let longest = first.len().max(others.len());
    (0..longest).flat_map(|at| [first.get(at), others.get(at)]).flatten().copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_take_turns() {
        let of = |all: &[&str]| in_turn(all.iter().map(|at| at.parse().unwrap()).collect());
        let text = |all: &[&str]| of(all).iter().map(ToString::to_string).collect::<Vec<_>>();
        let all = ["[::1]:1", "[::2]:1", "[::3]:1", "10.0.0.1:1", "10.0.0.2:1"];
        assert_eq!(text(&all), ["[::1]:1", "10.0.0.1:1", "[::2]:1", "10.0.0.2:1", "[::3]:1"]);
        assert_eq!(text(&["10.0.0.1:1", "10.0.0.2:1"]), ["10.0.0.1:1", "10.0.0.2:1"]);
    }

    #[test]
    fn scopes_are_interfaces() {
        let loopback = resolve("[fe80::1%lo]:7000").unwrap();
        assert!(
            matches!(loopback[..], [SocketAddr::V6(at)] if at.scope_id() == 1 && at.port() == 7000),
            "{loopback:?}"
        );
        for (text, words) in [
            ("[fe80::1%no-such]:7000", "no interface with an address is called `no-such`"),
            ("[fe80::1]:7000", "[fe80::1%eth0]:7000"),
            ("nowhere", "10.0.0.2:7000"),
            ("[::1:7000", "10.0.0.2:7000"),
            ("127.0.0.1:70000", "10.0.0.2:7000"),
            ("no.such.name.invalid:7000", "cannot be resolved"),
        ] {
            let error = resolve(text).unwrap_err();
            assert!(error.contains(words) && error.contains(text), "{error}");
        }
        assert_eq!(resolve("[::1]:7000").unwrap(), ["[::1]:7000".parse().unwrap()]);
        assert_eq!(resolve_local("10.0.0.1").unwrap(), "10.0.0.1:0".parse().unwrap());
        assert!(matches!(resolve_local("fe80::1%lo").unwrap(), SocketAddr::V6(at) if at.scope_id() == 1));
        for (text, words) in [
            ("fe80::1%no-such", "no interface with an address is called `no-such`"),
            ("fe80::1", "fe80::1%eth0"),
            ("eth0", "fe80::1%eth0"),
        ] {
            let error = resolve_local(text).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }
}
