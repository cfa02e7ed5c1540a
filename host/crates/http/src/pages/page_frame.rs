//! Common frame of every page for people: the organization's brand, and security headers.

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{assets, brand};
use holdfast_adapters::texts::Texts;
use holdfast_domain::brand::OrganizationBrand;
use holdfast_domain::locale::Locale;
use holdfast_domain::organization::{Organization, PageOrigin};

/// Appearance of a page, and who may frame it.
#[derive(Default)]
pub struct PageLook {
    /// Shown above everything; the product's name when there is no organization.
    pub name: Option<String>,
    pub brand: OrganizationBrand,
    pub framing: FramePolicy,
    /// Whether forms of the page lead to other hosts. Browsers that apply `form-action` to
    /// redirects would stop there.
    pub leads_away: bool,
    /// Origin of the frames in the page.
    pub frames: Option<String>,
    /// Origin of a payment provider's library, which embeds the provider's form.
    pub library: Option<String>,
    /// Path below which `brand.css` and `logo` are served, without a trailing slash.
    pub path: String,
    pub texts: Texts,
}

/// Returns the browser's preferred languages, as it sends them.
pub fn languages(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::ACCEPT_LANGUAGE)?.to_str().ok()
}

/// Returns the texts for a page without a signer.
pub fn texts_for(headers: &HeaderMap, organization: Locale) -> Texts {
    Texts::of(Locale::chosen(None, languages(headers), organization))
}

/// Hands a script the texts that it names, as data that the browser does not run.
pub fn script_texts(texts: Texts, script: &str) -> Markup {
    const CALL: &str = "text(\"";

    let calls = script.match_indices(CALL).filter(|(at, _)| {
        // Not the end of a longer name such as `getContext`.
        let before = script[..*at].chars().next_back();
        !before.is_some_and(char::is_alphanumeric)
    });
    let named = calls.filter_map(|(at, call)| script[at + call.len()..].split_once('"'));
    // The script fills in the values itself, so it gets the patterns.
    let texts: serde_json::Map<String, serde_json::Value> = named
        .map(|(key, _)| (key.to_owned(), texts.pattern(key).into()))
        .collect();

    // The element ends at the first `</script>`.
    let json = serde_json::Value::Object(texts)
        .to_string()
        .replace('<', "\\u003c");
    html! { script id="texts" type="application/json" { (PreEscaped(json)) } }
}

/// Origins that may show a page in a frame.
#[derive(Default)]
pub enum FramePolicy {
    #[default]
    Nobody,
    Origins(Vec<PageOrigin>),
    /// For pages that show and accept no private data.
    Anybody,
}

/// State that a page reports to the page that embeds it (`postMessage`).
#[derive(Clone, Copy)]
pub enum EmbedMessage {
    Ready,
    Completed,
    Declined,
    Error,
}

impl EmbedMessage {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Completed => "completed",
            Self::Declined => "declined",
            Self::Error => "error",
        }
    }
}

impl PageLook {
    /// Returns the look of an organization.
    pub fn of(organization: Organization, texts: Texts) -> Self {
        let path = brand::path(&organization.id);
        let name = organization.display_name().to_owned();
        let settings = organization.settings;
        // The registered origins may frame every page of the organization. A caller that knows better
        // replaces them.
        Self {
            name: Some(name),
            brand: settings.brand,
            framing: FramePolicy::Origins(settings.embed_origins),
            leads_away: false,
            frames: None,
            library: None,
            path,
            texts,
        }
    }

    /// Returns the look of a page without an organization.
    pub fn plain(texts: Texts) -> Self {
        Self {
            texts,
            ..Self::default()
        }
    }

    /// Renders the organization's logo, or its name.
    pub fn masthead(&self) -> Markup {
        let name = self.name.as_deref().unwrap_or("holdfast");
        html! {
            p.brand {
                @if self.brand.logo.is_some() {
                    img src={ (self.path) "/logo" } alt=(name);
                } @else {
                    (name)
                }
            }
        }
    }

    /// Renders a page with a title and a short text.
    pub fn notice(
        &self,
        status: StatusCode,
        title: &str,
        happening: Option<EmbedMessage>,
        body: Markup,
    ) -> Response {
        self.page(
            status,
            title,
            happening,
            "signing",
            self.noticed(title, body),
        )
    }

    /// Renders such a page with the script of the console, which asks for passkeys.
    pub fn console_notice(&self, status: StatusCode, title: &str, body: Markup) -> Response {
        let body = self.noticed(title, body);
        self.page(status, title, None, "console", body)
    }

    /// Renders such a page with the script of open links, which computes a proof of work.
    pub fn open_notice(&self, status: StatusCode, title: &str, body: Markup) -> Response {
        let body = self.noticed(title, body);
        self.page(status, title, None, "open", body)
    }

    /// Renders such a page about something new, with the script of the console, which copies values.
    pub fn made(&self, title: &str, body: Markup) -> Response {
        let body = self.noticed(title, body);
        self.page(StatusCode::CREATED, title, None, "console", body)
    }

    fn noticed(&self, title: &str, body: Markup) -> Markup {
        html! {
            header.top { (self.masthead()) }
            main.notice { h1 { (title) } (body) }
        }
    }

    /// Renders a page with the named style sheet, and the script of that name if there is one.
    pub fn page(
        &self,
        status: StatusCode,
        title: &str,
        happening: Option<EmbedMessage>,
        name: &str,
        body: Markup,
    ) -> Response {
        let markup = html! {
            (DOCTYPE)
            html lang=(self.texts.locale().as_str()) dir=(self.texts.locale().direction()) {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="robots" content="noindex";
                    title { (title) }
                    link rel="icon" type="image/svg+xml" href=(assets::address("icon.svg"));
                    link rel="stylesheet" href=(assets::address(&format!("{name}.css")));
                    @if self.brand.color.is_some() {
                        link rel="stylesheet" href={ (self.path) "/brand.css" };
                    }
                    @if let Some(script) = assets::script(name) {
                        script src=(script) type="module" {}
                    }
                }
                body data-embedders=(self.origins()) data-happening=[happening.map(EmbedMessage::as_str)] {
                    (body)
                }
            }
        };

        // Pages show personal data, so no cache keeps them. The address of a signing page is a credential,
        // which no other site may see as referrer.
        let headers = [
            (header::CONTENT_TYPE, "text/html; charset=utf-8"),
            (header::CACHE_CONTROL, "no-store"),
            (header::REFERRER_POLICY, "no-referrer"),
        ];

        let policy = [(header::CONTENT_SECURITY_POLICY, self.policy())];
        (status, headers, policy, markup.into_string()).into_response()
    }

    /// Returns the Content-Security-Policy: pages load only from this server, and only the
    /// organization's own pages may frame them.
    fn policy(&self) -> String {
        let ancestors = match self.origins() {
            none if none.is_empty() => "'none'".to_owned(),
            origins => origins,
        };
        let library = match &self.library {
            // The provider's form is a frame, and its script may call any host.
            Some(origin) => format!(
                "script-src 'self' {origin}; connect-src 'self' https: {origin}; \
                 frame-src https: {origin}"
            ),
            None => "script-src 'self'; connect-src 'self'".to_owned(),
        };
        let library = match &self.frames {
            Some(origin) => format!("{library}; frame-src {origin}"),
            None => library,
        };

        // `form-action` is open only for pages with forms that redirect to another host, because browsers
        // apply it to redirects.
        format!(
            "default-src 'none'; style-src 'self'; font-src 'self'; {library}; \
             img-src 'self' data: blob:; form-action {}; base-uri 'none'; \
             frame-ancestors {ancestors}",
            if self.leads_away { "*" } else { "'self'" }
        )
    }

    /// Returns the origins of pages that may frame this one, separated by spaces.
    fn origins(&self) -> String {
        match &self.framing {
            FramePolicy::Origins(origins) => {
                let origins: Vec<&str> = origins.iter().map(PageOrigin::as_str).collect();
                origins.join(" ")
            }
            FramePolicy::Anybody => "*".to_owned(),
            FramePolicy::Nobody => String::new(),
        }
    }
}
