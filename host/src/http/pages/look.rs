//! What is around every page for people: the organization's brand, and headers
//! that keep out whatever is not ours.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::{DOCTYPE, Markup, html};

use crate::domain::brand::Brand;
use crate::domain::organization::{EmbedOrigin, Organization};

/// How pages look, and who may frame them.
#[derive(Default)]
pub struct Look {
    /// Shown above everything; our own name when there is no organization.
    pub name: Option<String>,
    pub brand: Brand,
    pub framing: Framing,
    /// Its forms lead to other hosts: browsers that check where a form's answer
    /// redirects to would stop there.
    pub leads_away: bool,
    /// Origin of a payment provider's library, which brings a form of its own.
    pub library: Option<String>,
    /// Where `brand.css` and `logo` are served, without a trailing slash.
    pub path: String,
}

/// Whose pages may show a page in a frame.
#[derive(Default)]
pub enum Framing {
    #[default]
    Nobody,
    Origins(Vec<EmbedOrigin>),
    /// For pages that show and take nothing of anybody's.
    Anybody,
}

/// What a page tells the page that embeds it (`postMessage`).
#[derive(Clone, Copy)]
pub enum Happening {
    Ready,
    Completed,
    Declined,
    Error,
}

impl Happening {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Completed => "completed",
            Self::Declined => "declined",
            Self::Error => "error",
        }
    }
}

impl Look {
    /// Of an organization whose brand is served below `path`.
    pub fn of(organization: Organization, path: String) -> Self {
        let name = organization.display_name().to_owned();
        let settings = organization.settings;
        Self {
            name: Some(name),
            brand: settings.brand,
            framing: Framing::Origins(settings.embed_origins),
            leads_away: false,
            library: None,
            path,
        }
    }

    /// The name, or the logo that stands for it.
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

    /// A page with a title and a few words.
    pub fn notice(
        &self,
        status: StatusCode,
        title: &str,
        happening: Option<Happening>,
        body: Markup,
    ) -> Response {
        let body = html! {
            header.top { (self.masthead()) }
            main.notice { h1 { (title) } (body) }
        };
        self.page(status, title, happening, "signing", body)
    }

    /// A page with the style sheet and the script of that name.
    pub fn page(
        &self,
        status: StatusCode,
        title: &str,
        happening: Option<Happening>,
        assets: &str,
        body: Markup,
    ) -> Response {
        let markup = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="robots" content="noindex";
                    title { (title) }
                    link rel="stylesheet" href={ "/assets/" (assets) ".css" };
                    @if self.brand.color.is_some() {
                        link rel="stylesheet" href={ (self.path) "/brand.css" };
                    }
                    script src={ "/assets/" (assets) ".js" } type="module" {}
                }
                body data-embedders=(self.origins()) data-happening=[happening.map(Happening::as_str)] {
                    (body)
                }
            }
        };
        let headers = [
            (header::CONTENT_TYPE, "text/html; charset=utf-8"),
            (header::CACHE_CONTROL, "no-store"),
            (header::REFERRER_POLICY, "no-referrer"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        ];
        let policy = [(header::CONTENT_SECURITY_POLICY, self.policy())];
        (status, headers, policy, markup.into_string()).into_response()
    }

    /// Pages load only what this server serves, and only the organization's own
    /// pages may frame them.
    fn policy(&self) -> String {
        let ancestors = match &self.framing {
            Framing::Anybody => "*".to_owned(),
            Framing::Origins(origins) if !origins.is_empty() => self.origins(),
            _ => "'none'".to_owned(),
        };
        let library = match &self.library {
            // Its form is a frame, and its calls go to where it likes.
            Some(origin) => format!(
                "script-src 'self' {origin}; connect-src 'self' https: {origin}; \
                 frame-src https: {origin}"
            ),
            None => "script-src 'self'; connect-src 'self'".to_owned(),
        };
        format!(
            "default-src 'none'; style-src 'self'; {library}; \
             img-src 'self' data: blob:; form-action {}; base-uri 'none'; \
             frame-ancestors {ancestors}",
            if self.leads_away { "*" } else { "'self'" }
        )
    }

    fn origins(&self) -> String {
        match &self.framing {
            Framing::Origins(origins) => {
                let origins: Vec<&str> = origins.iter().map(EmbedOrigin::as_str).collect();
                origins.join(" ")
            }
            _ => String::new(),
        }
    }

    /// The brand's colour as a style sheet.
    pub fn style(&self) -> Response {
        let text = self.brand.color.as_ref().map_or(String::new(), |color| {
            format!(
                ":root {{ --accent: {color}; --on-accent: {}; }}\n",
                color.text()
            )
        });
        let headers = [
            (header::CONTENT_TYPE, "text/css; charset=utf-8"),
            (header::CACHE_CONTROL, "private, max-age=300"),
        ];
        (headers, text).into_response()
    }

    /// The brand's logo.
    pub fn logo(self) -> Response {
        let Some(logo) = self.brand.logo else {
            return StatusCode::NOT_FOUND.into_response();
        };
        let headers = [
            (header::CONTENT_TYPE, logo.file_type.as_str()),
            (header::CACHE_CONTROL, "private, max-age=300"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        ];
        (headers, logo.bytes).into_response()
    }
}
