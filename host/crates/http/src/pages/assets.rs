//! Static scripts, styles and fonts of pages. Their addresses contain a digest, so that browsers keep them
//! for good.

use std::borrow::Cow;
use std::sync::LazyLock;

use axum::Router;
use axum::extract::RawQuery;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use holdfast_handwriting::Handwriting;
use sha2::{Digest as _, Sha256};

use crate::routing::get;
use holdfast_service::App;

/// The icon of browser tabs.
const ICON: &str = include_str!("assets/icon.svg");

const SIGNING_STYLE: &str = include_str!("assets/signing.css");

/// The Latin letters of the styles of signatures, a quarter of the whole fonts, which a browser loads for other
/// letters only. Made by fontTools: `pyftsubset caveat.ttf --flavor=woff2 --no-hinting
/// --layout-features=kern,liga,calt,ccmp,locl --unicodes=…`, with the ranges of `signing.css`.
const LATIN: [(&str, &[u8]); 3] = [
    ("casual.woff2", include_bytes!("assets/casual.woff2")),
    ("formal.woff2", include_bytes!("assets/formal.woff2")),
    ("light.woff2", include_bytes!("assets/light.woff2")),
];

/// Scripts of pages with texts in the reader's language.
pub const SIGNING: &str = concat!(
    include_str!("assets/texts.js"),
    include_str!("assets/signing.js")
);
pub const EMBED: &str = concat!(
    include_str!("assets/texts.js"),
    include_str!("assets/embed.js")
);
pub const PAYMENT: &str = concat!(
    include_str!("assets/texts.js"),
    include_str!("assets/payment.js")
);
pub const VERIFICATION: &str = concat!(
    include_str!("assets/texts.js"),
    include_str!("assets/verification.js")
);

pub const OPEN: &str = concat!(
    include_str!("assets/texts.js"),
    include_str!("assets/open.js")
);

pub const BUILDER: &str = concat!(
    include_str!("assets/texts.js"),
    include_str!("assets/places.js"),
    include_str!("assets/builder.js")
);

/// All assets. Pages of one name have a style and a script.
static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    let style = "text/css; charset=utf-8";
    let script = "text/javascript; charset=utf-8";
    // Without the fonts of signatures: the policy of the guides lets none load.
    let docs_style: String = SIGNING_STYLE
        .lines()
        .filter(|line| !line.starts_with("@font-face"))
        .chain(include_str!("assets/docs.css").lines())
        .flat_map(|line| [line, "\n"])
        .collect();
    let builder_style = concat!(
        include_str!("assets/signing.css"),
        include_str!("assets/builder.css")
    );
    let console_style = concat!(
        include_str!("assets/signing.css"),
        include_str!("assets/console.css")
    );
    // Every page can be embedded, and reports to the page around it.
    let script_of = |name: &str, text: &str| {
        let text = format!("{}{text}", include_str!("assets/frame.js"));
        Asset::new(name, script, text.into_bytes().into())
    };
    let fonts = Handwriting::ALL.map(|hand| {
        let name = format!("{}.ttf", hand.as_str());
        Asset::new(&name, "font/ttf", hand.font().into())
    });
    let latin = LATIN.map(|(name, bytes)| Asset::new(name, "font/woff2", bytes.into()));
    let mut signing = SIGNING_STYLE.to_owned();
    for font in fonts.iter().chain(&latin) {
        signing = signing.replace(&font.name, &font.address());
    }
    let signing: Cow<'static, [u8]> = signing.into_bytes().into();
    let mut assets = vec![
        Asset::new("signing.css", style, signing.clone()),
        script_of("signing.js", SIGNING),
        Asset::new("embed.css", style, signing.clone()),
        script_of("embed.js", EMBED),
        Asset::new("payment.css", style, signing.clone()),
        Asset::new("open.css", style, signing.clone()),
        script_of("open.js", OPEN),
        Asset::new("verification.css", style, signing),
        script_of("verification.js", VERIFICATION),
        script_of("payment.js", PAYMENT),
        Asset::of("builder.css", style, builder_style),
        script_of("builder.js", BUILDER),
        Asset::new("docs.css", style, docs_style.into_bytes().into()),
        Asset::of("console.css", style, console_style),
        Asset::of("console.js", script, include_str!("assets/console.js")),
        Asset::of("icon.svg", "image/svg+xml", ICON),
    ];
    assets.extend(fonts);
    assets.extend(latin);
    assets
});

struct Asset {
    name: String,
    content_type: &'static str,
    bytes: Cow<'static, [u8]>,
    /// Query that names the version.
    version: String,
}

impl Asset {
    fn of(name: &str, content_type: &'static str, text: &'static str) -> Self {
        Self::new(name, content_type, text.as_bytes().into())
    }

    fn new(name: &str, content_type: &'static str, bytes: Cow<'static, [u8]>) -> Self {
        // The version comes from the bytes, so that all nodes of a release write the same address.
        let digest = hex::encode(Sha256::digest(&bytes));
        Self {
            name: name.to_owned(),
            content_type,
            bytes,
            version: format!("v={}", &digest[..16]),
        }
    }

    fn address(&self) -> String {
        format!("/assets/{}?{}", self.name, self.version)
    }

    /// Answers a request; the address of an older version gives the current text for a while.
    fn answer(&self, query: Option<&str>) -> Response {
        // While nodes are upgraded, a page of one may ask another node for a version that it does not
        // have. An hour bounds how long the browser keeps that answer.
        let lifetime = if query == Some(self.version.as_str()) {
            "public, max-age=31536000, immutable"
        } else {
            "max-age=3600"
        };
        let headers = [
            (header::CONTENT_TYPE, self.content_type),
            (header::CACHE_CONTROL, lifetime),
        ];

        (headers, self.bytes.clone()).into_response()
    }
}

/// Returns the address of the script of pages, if they have one.
pub fn script(name: &str) -> Option<String> {
    let name = format!("{name}.js");
    let asset = ASSETS.iter().find(|asset| asset.name == name);
    asset.map(Asset::address)
}

/// Returns the address of an asset, with its version.
pub fn address(name: &str) -> String {
    let asset = ASSETS.iter().find(|asset| asset.name == name);
    asset.map_or_else(|| format!("/assets/{name}"), Asset::address)
}

pub fn routes() -> Router<App> {
    let route = |router: Router<App>, asset: &'static Asset| {
        router.route(
            &format!("/assets/{}", asset.name),
            get(move |RawQuery(query): RawQuery| async move { asset.answer(query.as_deref()) }),
        )
    };

    // Browsers request this path for pages that name no icon, such as a PDF.
    let icon = get(async || ([(header::CONTENT_TYPE, "image/svg+xml")], ICON));
    ASSETS
        .iter()
        .fold(Router::new(), route)
        .route("/favicon.ico", icon)
}
