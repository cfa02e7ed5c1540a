//! Who is signed in, and forms with the token of the session.

use std::collections::BTreeMap;

use axum::extract::{FromRequest, FromRequestParts, RawForm, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use schemars::JsonSchema;
use subtle::ConstantTimeEq as _;

use super::navigation::failed;
use super::passkeys::{ANSWER, CONFIRMS};
use super::sign_in;
use super::sure::{SURE, TYPED};
use crate::error::HttpError;
use crate::middleware::extract::MultipartForm;
use crate::middleware::limits::CredentialLookup;
use crate::middleware::notes;
use crate::pages::page_frame::{PageLook, texts_for};
use holdfast_adapters::texts::Texts;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::locale::Locale;
use holdfast_domain::organization::{Organization, Permission};
use holdfast_domain::token::LinkToken;
use holdfast_platform::access::WebUser;
use holdfast_platform::access::sessions::{self, SignedIn};
use holdfast_platform::access::windows::LimitedCredential;
use holdfast_platform::{Caller, ServiceError, organizations};
use holdfast_service::{App, installation};

/// Cookie of the session. Browsers take it over HTTPS and from this machine only, and from no other path or subdomain.
const COOKIE: &str = "__Host-holdfast";

/// Returns the cookie of a new session; an empty one ends it.
pub fn cookie(secret: Option<&LinkToken>) -> HeaderValue {
    let value = match secret {
        Some(secret) => format!("{COOKIE}={}", secret.reveal()),
        None => format!("{COOKIE}=; Max-Age=0"),
    };
    let cookie = format!("{value}; Path=/; Secure; HttpOnly; SameSite=Strict");
    // The parts are of this program, so that they are always valid.
    HeaderValue::from_str(&cookie).unwrap_or_else(|_| HeaderValue::from_static(""))
}

fn secret(headers: &HeaderMap) -> Option<&str> {
    named_cookie(headers, COOKIE)
}

/// Whether a page of another site sent a form. Browsers name the site (Fetch Metadata), and the origin of each form (Fetch,
/// 3.1); programs name neither.
pub fn is_foreign(app: &App, headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site");
    // `same-site` does not count: another host of the domain may belong to an attacker.
    if site.is_some_and(|site| site != "same-origin") {
        return true;
    }
    // A program has no cookie of a browser that another site could misuse.
    let Some(origin) = headers.get(header::ORIGIN) else {
        return false;
    };
    let Ok(origin) = origin.to_str() else {
        return true;
    };

    // Our pages send no referrer, and browsers then keep the origin back, too; so does a page that wants to hide.
    if origin == "null" {
        return site.is_none();
    }

    // A proxy may pass on another host than the browser asked for.
    let console = app.config.console_url();
    let own = url::Url::parse(&console).map(|url| url.origin().ascii_serialization());
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let asked = origin.split_once("://").map(|(_, authority)| authority);
    let is_own = own.is_ok_and(|own| own == origin) || (asked.is_some() && asked == host);

    !is_own
}

/// Returns the value of a cookie.
pub fn named_cookie<'a>(headers: &'a HeaderMap, wanted: &str) -> Option<&'a str> {
    let cookies = headers.get_all(header::COOKIE).iter();
    let pairs = cookies
        .filter_map(|cookies| cookies.to_str().ok())
        .flat_map(|cookies| cookies.split(';'));
    let mut named = pairs.filter_map(|pair| pair.trim().split_once('='));
    named.find_map(|(name, value)| (name == wanted).then_some(value))
}

/// A signed-in user who asks for a page.
pub struct Visitor {
    pub signed_in: SignedIn,
    pub organization: Organization,
    pub texts: Texts,
    pub caller: Caller,
    /// Time of the request.
    pub now: Timestamp,
    /// Whether the user operates the installation.
    pub operates: bool,
}

impl Visitor {
    pub fn may(&self, permission: Permission) -> bool {
        self.signed_in.user.role.may(permission)
    }

    /// Requires a permission of the user. The error is the page that refuses others.
    pub fn require(&self, permission: Permission) -> Result<(), Response> {
        if self.may(permission) {
            Ok(())
        } else {
            Err(refused(self.texts))
        }
    }
}

impl Visitor {
    /// Reads a form with a file, sent from a page of the same session.
    pub async fn upload<T: JsonSchema>(
        &self,
        app: &App,
        request: Request,
    ) -> Result<MultipartForm<T>, Response> {
        self.upload_within(app, request).await
    }

    /// Like [`Self::upload`], with another limit of the file.
    pub async fn upload_within<T: JsonSchema, const LIMIT: u64>(
        &self,
        app: &App,
        request: Request,
    ) -> Result<MultipartForm<T, LIMIT>, Response> {
        if is_foreign(app, request.headers()) {
            return Err(refused(self.texts));
        }

        let form = MultipartForm::<T, LIMIT>::from_request(request, app).await;
        let mut form = form.map_err(IntoResponse::into_response)?;
        let given = form.texts.remove("token").unwrap_or_default();
        if self.is_token(&given) {
            Ok(form)
        } else {
            Err(refused(self.texts))
        }
    }

    fn is_token(&self, given: &str) -> bool {
        // In constant time, so that the time does not tell how much of a guess is right.
        let right = self.signed_in.form_token.as_bytes();
        given.as_bytes().ct_eq(right).into()
    }
}

/// Renders values as hidden fields.
pub fn hidden<'a>(values: impl Iterator<Item = (&'a String, &'a String)>) -> Markup {
    html! { @for (name, value) in values { input type="hidden" name=(name) value=(value); } }
}

/// Shows that an action is not allowed.
pub fn refused(texts: Texts) -> Response {
    let title = texts.text("console-forbidden-title");
    let text = html! { p { (texts.text("console-forbidden")) } };
    PageLook::plain(texts).notice(StatusCode::FORBIDDEN, &title, None, text)
}

impl Visitor {
    /// Returns the visitor as they are now; none if the session is over.
    pub async fn again(&self, app: &App) -> Result<Option<Self>, ServiceError> {
        let Some(signed_in) = sessions::again(app, &self.signed_in).await? else {
            return Ok(None);
        };

        let organization = organizations::read(app, &self.caller.org).await?;
        Ok(Some(Self {
            texts: self.texts,
            operates: installation::is_operator(app, &self.caller.org, signed_in.user.role),
            caller: Caller::from(&WebUser::from(&signed_in)),
            organization,
            signed_in,
            now: app.clock.now(),
        }))
    }
}

impl FromRequestParts<App> for Visitor {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Response> {
        let asks = || Redirect::to(&sign_in::address(parts)).into_response();
        let Some(secret) = secret(&parts.headers).map(str::to_owned) else {
            return Err(asks());
        };

        let refused = |error: HttpError| error.into_response();
        let counted = Some(LimitedCredential::WebToken);
        let lookup = CredentialLookup::begin(app, counted, &secret, parts).await;
        let lookup = lookup.map_err(refused)?;
        let found = sessions::signed_in(lookup.core(), &secret).await;
        let found = found.map_err(|error| refused(error.into()))?;
        // Counts an unknown cookie against its network before the visitor is led to the sign-in.
        lookup.settle(app, found.is_some()).map_err(refused)?;

        let Some(signed_in) = found else {
            return Err(asks());
        };

        let user = WebUser::from(&signed_in);
        // A second extractor of the same request would have the same values, so the first ones stay.
        let notes = notes::of(parts);
        let _ = notes.org.set(user.org.clone());
        let _ = notes.credential.set(signed_in.session.id.to_string());
        let caller = Caller::from(&user);
        let organization = organizations::read(app, &caller.org).await;
        let organization = organization.map_err(failed)?;

        Ok(Self {
            texts: texts_for(&parts.headers, organization.settings.language),
            operates: installation::is_operator(app, &caller.org, user.role),
            organization,
            caller,
            signed_in,
            now: app.clock.now(),
        })
    }
}

/// Form of a signed-in user, sent from a page of the same session.
pub struct ConsoleForm {
    pub visitor: Visitor,
    /// Path of the request.
    pub path: String,
    pub values: BTreeMap<String, String>,
}

impl ConsoleForm {
    pub fn value(&self, name: &str) -> &str {
        self.values.get(name).map_or("", |value| value.trim())
    }
}

impl FromRequest<App> for ConsoleForm {
    type Rejection = Response;

    async fn from_request(request: Request, app: &App) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        let visitor = Visitor::from_request_parts(&mut parts, app).await?;

        // One layer more than the token of the session.
        if is_foreign(app, &parts.headers) {
            return Err(refused(visitor.texts));
        }

        let path = parts.uri.path().to_owned();
        let request = Request::from_parts(parts.clone(), body);
        let values = read_form(request, app).await?;
        let given = values.get("token").map_or("", String::as_str);
        let is_current = visitor.is_token(given);
        let form = Self {
            visitor,
            path,
            values,
        };
        if is_current {
            return Ok(form);
        }

        // Only a browser names this site, and only for our own pages.
        let site = parts.headers.get("sec-fetch-site");
        let is_own = site.is_some_and(|site| site == "same-origin");
        if is_own && form.values.contains_key("token") {
            Err(form.ask_to_send_again())
        } else {
            Err(refused(form.visitor.texts))
        }
    }
}

impl ConsoleForm {
    /// Shows the entries of a form that was opened before the present sign-in, such as one in another tab, to be sent
    /// as the present user.
    fn ask_to_send_again(&self) -> Response {
        let (texts, email) = (self.visitor.texts, &self.visitor.signed_in.user.email);
        // Agreements and signatures of the earlier session do not count in this one, which may be that of another
        // organization.
        let earlier = ["token", SURE, TYPED, ANSWER, CONFIRMS];
        let entries = self.values.iter();
        let entries = entries.filter(|(name, _)| !earlier.contains(&name.as_str()));
        let who = [
            ("email", email.as_str()),
            ("organization", self.visitor.organization.display_name()),
        ];
        let body = html! {
            p { (texts.with("form-again", who)) }
            form method="post" action=(self.path) {
                (self.visitor.token())
                (hidden(entries))
                button type="submit" { (texts.text("form-again-button")) }
            }
        };

        let title = texts.text("form-again-title");
        PageLook::plain(texts).notice(StatusCode::FORBIDDEN, &title, None, body)
    }
}

/// Reads the values of a form.
pub async fn read_form(request: Request, app: &App) -> Result<BTreeMap<String, String>, Response> {
    let RawForm(bytes) = RawForm::from_request(request, app)
        .await
        .map_err(IntoResponse::into_response)?;
    let values: BTreeMap<String, String> =
        url::form_urlencoded::parse(&bytes).into_owned().collect();
    // PostgreSQL takes no U+0000. Refused here, it is a mistake in the form and no error of the database.
    if values.values().any(|value| value.contains('\0')) {
        Err(HttpError::bad_request("A value has the character U+0000").into_response())
    } else {
        Ok(values)
    }
}

/// Returns the language of a visitor who is not signed in.
pub fn plain(headers: &HeaderMap) -> Texts {
    texts_for(headers, Locale::default())
}
