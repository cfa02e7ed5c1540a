//! Address guard: keeps requests to caller-supplied URLs out of the internal network.
//!
//! Provider plugins and webhooks use it alike. A host name is resolved once, every address is
//! checked, and the connection goes to a checked address: the connector dials with the resolver
//! that does the checks, so a second DNS answer cannot change the target.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use ipnet::IpNet;
use url::{Host, Url};

use holdfast_base::tls;

/// Timeout of establishing a connection.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Name suffixes that never resolve to public hosts: the specification's first, then those of RFC
/// 6762, RFC 8375 and common private networks.
const INSIDE: [&str; 9] = [
    ".local",
    ".internal",
    ".lan",
    ".arpa",
    ".localdomain",
    ".intranet",
    ".private",
    ".corp",
    ".home",
];

/// Metadata services of clouds in private networks: their answers contain credentials of the machine.
const METADATA: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
];

/// Reason a URL or address is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressRefusal {
    /// A scheme other than `https` (or `http` where that is allowed).
    #[error("scheme {0} is not allowed")]
    Scheme(String),
    /// `user:password@host`.
    #[error("user information in a URL is not allowed")]
    UserInfo,
    /// No host, or a name that only private networks use.
    #[error("host {0} is not public")]
    Host(String),
    /// An address outside the public internet. The text omits the address, because the name may
    /// resolve only inside.
    #[error("its address is not public")]
    Address(IpAddr),
}

/// Addresses that requests may go to, besides public ones.
#[derive(Clone, Debug, Default)]
pub struct AllowedAddresses {
    /// `http` and loopback, for development.
    insecure: bool,
    /// `http`, for answers that are signed themselves.
    plain: bool,
    /// Private networks of the operator.
    networks: Arc<[IpNet]>,
}

impl AllowedAddresses {
    /// Public addresses, with `http` and loopback for development.
    pub fn public(insecure: bool) -> Self {
        Self {
            insecure,
            ..Self::default()
        }
    }

    /// Allows `http`, for answers that are signed themselves, such as lists of revoked certificates.
    pub fn with_plain_http(mut self) -> Self {
        self.plain = true;
        self
    }

    /// Adds private networks. Their hosts may have private names, too.
    pub fn with_networks(mut self, networks: &[IpNet]) -> Self {
        self.networks = networks.into();
        self
    }
}

/// Checks a URL without resolving its name.
pub fn check_url(url: &Url, allowed: &AllowedAddresses) -> Result<(), AddressRefusal> {
    match url.scheme() {
        "https" => {}
        "http" if allowed.insecure || allowed.plain => {}
        other => return Err(AddressRefusal::Scheme(other.into())),
    }

    if !url.username().is_empty() || url.password().is_some() {
        return Err(AddressRefusal::UserInfo);
    }

    match url.host() {
        None => Err(AddressRefusal::Host(String::new())),
        Some(Host::Ipv4(address)) => check_address(address.into(), allowed),
        Some(Host::Ipv6(address)) => check_address(address.into(), allowed),
        Some(Host::Domain(name)) => check_name(name, allowed),
    }
}

fn check_name(name: &str, allowed: &AllowedAddresses) -> Result<(), AddressRefusal> {
    let name = name.to_ascii_lowercase();
    if name == "localhost" || name.ends_with(".localhost") {
        return if allowed.insecure {
            Ok(())
        } else {
            Err(AddressRefusal::Host(name))
        };
    }

    // A single label resolves through search domains,
    // and a trailing dot would evade the suffix list.
    let dotted = name.contains('.') && !name.ends_with('.');

    // Names of the operator's networks: their addresses decide.
    if !allowed.networks.is_empty() && !name.ends_with('.') {
        return Ok(());
    }
    if !dotted || INSIDE.iter().any(|suffix| name.ends_with(suffix)) {
        return Err(AddressRefusal::Host(name));
    }

    Ok(())
}

/// Checks that a connection to `address` is allowed.
pub fn check_address(address: IpAddr, allowed: &AllowedAddresses) -> Result<(), AddressRefusal> {
    // Before any check, so that an embedded IPv4 address cannot evade the IPv4 rules.
    let address = canonical(address);
    let is_own =
        allowed.networks.iter().any(|own| own.contains(&address)) && !METADATA.contains(&address);
    if is_own || (allowed.insecure && address.is_loopback()) {
        return Ok(());
    }

    let public = match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    };
    public.then_some(()).ok_or(AddressRefusal::Address(address))
}

/// Unwraps an IPv4 address embedded in IPv6 (mapped,
/// RFC 4291; translated, RFC 2765; NAT64, RFC 6052).
fn canonical(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else {
        return address;
    };

    let [a, b, c, d, e, f, g, h] = v6.segments();
    let tail = |high: u16, low: u16| {
        let [w, x] = high.to_be_bytes();
        let [y, z] = low.to_be_bytes();
        IpAddr::V4(Ipv4Addr::new(w, x, y, z))
    };
    match [a, b, c, d, e, f] {
        [0, 0, 0, 0, 0, 0xffff] => tail(g, h),
        [0, 0, 0, 0, 0xffff, 0] => tail(g, h),
        [0x64, 0xff9b, 0, 0, 0, 0] => tail(g, h),
        _ => address,
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let reserved = address.is_unspecified()
        || address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_broadcast()
        || address.is_documentation()
        || a == 0
        || a >= 240
        // RFC 6598, carrier-grade NAT; RFC 2544, benchmarks; RFC 6890, protocol assignments.
        || (a == 100 && (64..128).contains(&b))
        || (a == 198 && (b == 18 || b == 19))
        || (a == 192 && b == 0 && c == 0)
        // RFC 7526, the former 6to4 relay.
        || (a == 192 && b == 88 && c == 99)
        // The metadata address of a large cloud's virtual machines.
        || address == Ipv4Addr::new(168, 63, 129, 16);

    !reserved
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    // Only 2000::/3 is global unicast (RFC 4291). It contains reserved ranges: Teredo and its
    // neighbours, documentation, and 6to4.
    let global = (a & 0xe000) == 0x2000;
    let reserved =
        (a == 0x2001 && (b < 0x0200 || b == 0x0db8)) || (a == 0x3fff && b < 0x1000) || a == 0x2002;
    global && !reserved
}

/// DNS resolution; a trait so that tests can replace it.
pub trait DnsLookup: Send + Sync {
    /// Returns every address of a name.
    fn addresses(&self, name: String) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>>;
}

/// Resolver of the operating system.
pub struct SystemLookup;

impl DnsLookup for SystemLookup {
    fn addresses(&self, name: String) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// Resolver that returns checked addresses only. If any address of a name is refused, the whole
/// name is: a mix of public and private answers indicates an attack.
#[derive(Clone)]
pub struct GuardedResolver {
    lookup: Arc<dyn DnsLookup>,
    allowed: AllowedAddresses,
}

/// Reason a name could not be resolved to an allowed address.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// The name, or one of its addresses, is not public.
    #[error(transparent)]
    Refused(#[from] AddressRefusal),
    /// The name does not resolve.
    #[error("the host name cannot be resolved: {0}")]
    Unknown(#[from] std::io::Error),
}

impl GuardedResolver {
    pub fn new(lookup: Arc<dyn DnsLookup>, allowed: AllowedAddresses) -> Self {
        Self { lookup, allowed }
    }

    /// Returns all addresses of a name, provided that all are public.
    pub async fn resolve(&self, name: &str) -> Result<Vec<SocketAddr>, ResolveError> {
        check_name(name, &self.allowed)?;
        let addresses = self.lookup.addresses(name.to_owned()).await?;
        if addresses.is_empty() {
            return Err(std::io::Error::other("it has no address").into());
        }

        for address in &addresses {
            check_address(*address, &self.allowed)?;
        }

        let with_port = |address| SocketAddr::new(address, 0);
        Ok(addresses.into_iter().map(with_port).collect())
    }
}

impl reqwest::dns::Resolve for GuardedResolver {
    fn resolve(&self, name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let resolver = self.clone();
        Box::pin(async move {
            let addresses = resolver.resolve(name.as_str()).await?;
            Ok(Box::new(addresses.into_iter()) as reqwest::dns::Addrs)
        })
    }
}

impl tower::Service<hyper_util::client::legacy::connect::dns::Name> for GuardedResolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = ResolveError;
    type Future = BoxFuture<'static, Result<Self::Response, ResolveError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ResolveError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: hyper_util::client::legacy::connect::dns::Name) -> Self::Future {
        let resolver = self.clone();
        Box::pin(async move { Ok(resolver.resolve(name.as_str()).await?.into_iter()) })
    }
}

/// Builds an HTTP client for caller-supplied URLs: checked resolution, no redirects, no proxies
/// from the environment.
pub fn client(allowed: AllowedAddresses) -> Result<reqwest::Client, reqwest::Error> {
    let plain = allowed.insecure || allowed.plain;
    let resolver = GuardedResolver::new(Arc::new(SystemLookup), allowed);
    tls::with_system_roots(reqwest::Client::builder())
        .dns_resolver(Arc::new(resolver))
        // A redirect could lead to an address that the caller's URL check never saw.
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .https_only(!plain)
        .connect_timeout(CONNECT_TIMEOUT)
        .build()
}

/// Returns the text of the innermost cause, which describes a failed request without its address.
pub fn cause(error: &reqwest::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(inner) = innermost.source() {
        innermost = inner;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(text: &str) -> Result<(), AddressRefusal> {
        match Url::parse(text) {
            Ok(url) => check_url(&url, &AllowedAddresses::public(false)),
            Err(_) => Err(AddressRefusal::Host(text.into())),
        }
    }

    #[test]
    fn public_https_urls_are_accepted() {
        for url in [
            "https://hooks.example.com/a?b=c",
            "https://example.com:8443/",
            "https://93.184.216.34/",
            "https://[2606:2800:220:1:248:1893:25c8:1946]/",
            "https://bücher.example/",
        ] {
            assert_eq!(verdict(url), Ok(()), "{url}");
        }
    }

    #[test]
    fn the_operators_networks_are_reached_and_no_others() {
        let own = ["10.20.0.0/16", "fd12::/16"].map(|text| text.parse().unwrap());
        let allowed = AllowedAddresses::public(false).with_networks(&own);
        let check = |text: &str| check_url(&Url::parse(text).unwrap(), &allowed);
        for url in [
            "https://10.20.3.4/",
            "https://[fd12::1]/",
            "https://[::ffff:10.20.3.4]/",
            "https://docuseal/",
            "https://docuseal.corp/",
            "https://example.com/",
        ] {
            assert_eq!(check(url), Ok(()), "{url}");
        }

        for url in [
            "https://10.21.0.1/",
            "https://127.0.0.1/",
            "https://169.254.169.254/",
            "https://[::ffff:10.21.0.1]/",
            "https://localhost/",
            "https://docuseal./",
            "http://10.20.3.4/",
        ] {
            assert!(check(url).is_err(), "{url}");
        }

        let whole = ["100.64.0.0/10", "fc00::/7"].map(|text| text.parse().unwrap());
        let whole = AllowedAddresses::public(false).with_networks(&whole);
        for metadata in ["https://100.100.100.200/", "https://[fd00:ec2::254]/"] {
            assert!(
                check_url(&Url::parse(metadata).unwrap(), &whole).is_err(),
                "{metadata}"
            );
        }

        for address in ["10.20.255.255", "fd12:ffff::1"] {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(check_address(address, &allowed), Ok(()));
            assert!(check_address(address, &AllowedAddresses::public(true)).is_err());
        }
    }

    #[test]
    fn plain_http_opens_no_other_address() {
        let allowed = AllowedAddresses::public(false).with_plain_http();
        let check = |text: &str| check_url(&Url::parse(text).unwrap(), &allowed);
        assert_eq!(check("http://crl.example.com/ca.crl"), Ok(()));
        for url in [
            "http://127.0.0.1/",
            "http://10.0.0.1/",
            "http://localhost/",
            "ldap://example.com/",
        ] {
            assert!(check(url).is_err(), "{url}");
        }
    }

    /// URLs of internal targets in many spellings.
    const INSIDE_SPELLINGS: &[&str] = &[
        // Schemes and user information.
        "http://example.com/",
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://example.com/",
        "data:text/plain,x",
        "javascript:alert(1)",
        "ws://example.com/",
        "//example.com/",
        "https:///",
        "https://",
        "",
        "https://user@example.com/",
        "https://user:secret@example.com/",
        "https://:secret@example.com/",
        "https://example.com@127.0.0.1/",
        "https://127.0.0.1#@example.com/",
        "https://127.0.0.1\\@example.com/",
        "https://127.0.0.1?@example.com/",
        // Names.
        "https://localhost/",
        "https://LOCALHOST/",
        "https://localhost./",
        "https://LOCALHOST./",
        "https://a.localhost/",
        "https://a.LocalHost/",
        "https://a.localhost./",
        "https://localhost.localdomain/",
        "https://localhost:8443/",
        "https://intranet/",
        "https://metadata/",
        "https://example/",
        "https://printer.local/",
        "https://PRINTER.LOCAL/",
        "https://printer.local./",
        "https://db.internal/",
        "https://metadata.google.internal/",
        "https://metadata.google.internal./",
        "https://instance-data.ec2.internal/",
        "https://nas.lan/",
        "https://a.home.arpa/",
        "https://1.0.0.127.in-addr.arpa/",
        "https://wiki.corp/",
        "https://wiki.intranet/",
        "https://wiki.private/",
        "https://router.home/",
        "https://example.com./",
        "https://.local/",
        "https://%6c%6fcalhost/",
        "https://l\u{24de}calhost/",
        "https://\u{ff4c}\u{ff4f}\u{ff43}\u{ff41}\u{ff4c}\u{ff48}\u{ff4f}\u{ff53}\u{ff54}/",
        "https://printer\u{3002}local/",
        "https://printer\u{ff0e}local/",
        "https://lo\u{ad}calhost/",
        // This machine.
        "https://127.0.0.1/",
        "https://127.0.0.1:8443/",
        "https://127.0.0.1./",
        "https://127.1/",
        "https://127.0.1/",
        "https://127.255.255.254/",
        "https://2130706433/",
        "https://0x7f000001/",
        "https://0X7F000001/",
        "https://0x7f.1/",
        "https://0x7f.0.0.1/",
        "https://0x7f.0x0.0x0.0x1/",
        "https://017700000001/",
        "https://0177.0.0.1/",
        "https://0177.1/",
        "https://0000177.0.0.1/",
        "https://127.0x1/",
        "https://127.0.0.0x1/",
        "https://%31%32%37.0.0.1/",
        "https://127%2e0%2e0%2e1/",
        "https://127\u{3002}0\u{3002}0\u{3002}1/",
        "https://\u{2460}\u{2461}\u{2466}.\u{24ea}.\u{24ea}.\u{2460}/",
        "https://\u{ff11}\u{ff12}\u{ff17}.0.0.1/",
        "https://0/",
        "https://0.0.0.0/",
        "https://0.0/",
        "https://0x0/",
        "https://00/",
        "https://0.1.2.3/",
        // Private, shared and special IPv4 (RFC 6890).
        "https://10.0.0.1/",
        "https://10.1/",
        "https://012.1/",
        "https://167772161/",
        "https://0xa000001/",
        "https://10.255.255.255/",
        "https://172.16.0.1/",
        "https://172.31.255.255/",
        "https://2886729729/",
        "https://192.168.1.1/",
        "https://192.168.257/",
        "https://3232235777/",
        "https://0xc0a80101/",
        "https://0300.0250.1.1/",
        "https://169.254.169.254/",
        "https://169.254.43518/",
        "https://2852039166/",
        "https://0xa9fea9fe/",
        "https://0xa9.0xfe.0xa9.0xfe/",
        "https://0251.0376.0251.0376/",
        "https://0251.254.169.0xfe/",
        "https://169.254.170.2/",
        "https://100.64.0.1/",
        "https://100.100.100.200/",
        "https://100.127.255.255/",
        "https://168.63.129.16/",
        "https://192.0.0.1/",
        "https://192.0.0.192/",
        "https://192.0.2.1/",
        "https://198.18.0.1/",
        "https://198.19.255.255/",
        "https://198.51.100.1/",
        "https://203.0.113.1/",
        "https://192.88.99.1/",
        "https://224.0.0.1/",
        "https://239.255.255.250/",
        "https://240.0.0.1/",
        "https://255.255.255.255/",
        "https://4294967295/",
        "https://4294967296/",
        "https://256.256.256.256/",
        "https://1.2.3.4.5/",
        // IPv6, and IPv4 in it.
        "https://[::]/",
        "https://[0:0:0:0:0:0:0:0]/",
        "https://[::1]/",
        "https://[0000::1]/",
        "https://[0:0:0:0:0:0:0:1]/",
        "https://[::1]:8443/",
        "https://[::2]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[::ffff:7f00:1]/",
        "https://[0:0:0:0:0:ffff:127.0.0.1]/",
        "https://[::FFFF:169.254.169.254]/",
        "https://[::ffff:10.0.0.1]/",
        "https://[::ffff:0:127.0.0.1]/",
        "https://[::127.0.0.1]/",
        "https://[::7f00:1]/",
        "https://[::93.184.216.34]/",
        "https://[64:ff9b::7f00:1]/",
        "https://[64:ff9b::127.0.0.1]/",
        "https://[64:ff9b::a9fe:a9fe]/",
        "https://[64:ff9b::10.0.0.1]/",
        "https://[64:ff9b:1::7f00:1]/",
        "https://[64:ff9b:1:1::1]/",
        "https://[2002:7f00:1::]/",
        "https://[2002:a00:1::1]/",
        "https://[2002:5db8:d822::1]/",
        "https://[2001::1]/",
        "https://[2001:0:7f00:1::]/",
        "https://[2001:10::1]/",
        "https://[2001:20::1]/",
        "https://[2001:db8::1]/",
        "https://[3fff::1]/",
        "https://[100::1]/",
        "https://[5f00::1]/",
        "https://[fe80::1]/",
        "https://[fe80::1%25eth0]/",
        "https://[fe80::1%eth0]/",
        "https://[::1%25lo]/",
        "https://[febf::1]/",
        "https://[fec0::1]/",
        "https://[fc00::1]/",
        "https://[fd00:ec2::254]/",
        "https://[fd12:3456::1]/",
        "https://[ff02::1]/",
        "https://[ff0e::1]/",
        "https://[4000::1]/",
        "https://[::1/",
        "https://::1/",
        "https://[127.0.0.1]/",
    ];

    #[test]
    fn unusual_spellings_of_internal_addresses_are_refused() {
        assert!(INSIDE_SPELLINGS.len() >= 150, "{}", INSIDE_SPELLINGS.len());
        for url in INSIDE_SPELLINGS {
            assert!(verdict(url).is_err(), "{url}");
        }
    }

    #[test]
    fn reserved_addresses_are_refused_and_adjacent_ones_accepted() {
        for (inside, outside) in [
            ("10.255.255.255", "11.0.0.0"),
            ("172.16.0.0", "172.15.255.255"),
            ("172.31.255.255", "172.32.0.0"),
            ("192.168.0.0", "192.167.255.255"),
            ("100.64.0.0", "100.63.255.255"),
            ("100.127.255.255", "100.128.0.0"),
            ("169.254.0.0", "169.253.255.255"),
            ("198.18.0.0", "198.17.255.255"),
            ("198.19.255.255", "198.20.0.0"),
            ("224.0.0.0", "223.255.255.255"),
            ("127.255.255.255", "128.0.0.0"),
            ("0.255.255.255", "1.0.0.0"),
            ("2001:1ff::", "2001:200::"),
            ("2002::1", "2003::1"),
            ("3fff:fff::1", "3fff:1000::1"),
            ("4000::", "3ffe::1"),
            ("::ffff:10.0.0.1", "::ffff:8.8.8.8"),
            ("64:ff9b::10.0.0.1", "64:ff9b::8.8.8.8"),
        ] {
            let check =
                |text: &str| check_address(text.parse().unwrap(), &AllowedAddresses::public(false));
            assert!(check(inside).is_err(), "{inside}");
            assert_eq!(check(outside), Ok(()), "{outside}");
        }
    }

    #[test]
    fn development_allows_loopback_and_http_but_no_other_internal_address() {
        let insecure =
            |text: &str| check_url(&Url::parse(text).unwrap(), &AllowedAddresses::public(true));
        assert_eq!(insecure("http://127.0.0.1:9/"), Ok(()));
        assert_eq!(insecure("http://localhost:9/"), Ok(()));
        assert!(insecure("http://10.0.0.1/").is_err());
        assert!(insecure("http://169.254.169.254/").is_err());
    }
}
