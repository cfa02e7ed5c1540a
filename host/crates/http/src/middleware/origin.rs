//! Client address and browser of a request.

use std::net::{IpAddr, SocketAddr};

use axum::extract::ConnectInfo;
use axum::http::header;
use axum::http::request::Parts;
use ipnet::IpNet;

use holdfast_platform::room::form::RequestOrigin;
use holdfast_service::App;

/// Returns the origin of a signer's request, which is recorded with the signature.
pub fn origin(app: &App, parts: &Parts) -> RequestOrigin {
    let user_agent = parts.headers.get(header::USER_AGENT);
    let user_agent = user_agent.and_then(|value| value.to_str().ok());
    let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
    // Proxies can add a header of their own instead of extending the first one, so all count, in order.
    let forwarded = parts.headers.get_all("x-forwarded-for");
    let forwarded: Vec<&str> = forwarded
        .iter()
        .filter_map(|value| value.to_str().ok())
        .collect();
    let client = peer.map(|ConnectInfo(peer)| {
        client(peer.ip(), &forwarded.join(","), &app.config.trusted_proxies)
    });

    RequestOrigin {
        ip: client.map(|client| client.to_string()),
        // The text becomes part of the evidence, and a client can send one of any length.
        user_agent: user_agent.map(|text| text.chars().take(400).collect()),
    }
}

/// Returns the nearest address that is not a trusted proxy. An untrusted hop can forge everything
/// before it, so the search ends there.
fn client(peer: IpAddr, forwarded: &str, trusted: &[IpNet]) -> IpAddr {
    // An IPv4 peer of a dual-stack socket has a mapped address, which no IPv4 network contains.
    let mut client = peer.to_canonical();
    for hop in forwarded.rsplit(',') {
        if !trusted.iter().any(|network| network.contains(&client)) {
            break;
        }

        match hop.trim().parse::<IpAddr>() {
            Ok(hop) => client = hop.to_canonical(),
            // A proxy that writes no address, such as `unknown`, ends the chain that can be trusted.
            Err(_) => break,
        }
    }

    client
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwarded_addresses_are_accepted_from_trusted_proxies_only() {
        let trusted = ["10.0.0.0/8".parse().unwrap(), "::1/128".parse().unwrap()];
        for (peer, forwarded, expected) in [
            ("203.0.113.7", "", "203.0.113.7"),
            ("203.0.113.7", "198.51.100.1", "203.0.113.7"),
            ("10.0.0.1", "198.51.100.1", "198.51.100.1"),
            (
                "10.0.0.1",
                "1.1.1.1, 198.51.100.1, 10.2.3.4",
                "198.51.100.1",
            ),
            ("10.0.0.1", "", "10.0.0.1"),
            ("10.0.0.1", "unknown", "10.0.0.1"),
            ("::1", "2001:db8::5", "2001:db8::5"),
            ("::ffff:10.0.0.1", "198.51.100.1", "198.51.100.1"),
        ] {
            let found = client(peer.parse().unwrap(), forwarded, &trusted);
            assert_eq!(found.to_string(), expected, "{peer} {forwarded}");
        }
    }
}
