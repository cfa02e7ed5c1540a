//! The component's exports.

#![expect(unsafe_code, reason = "the export macro writes the entry points")]

use crate::bindings::exports::holdfast::conversion::conversion::{Guest, ProviderError};
use crate::bindings::exports::holdfast::conversion::probing::Guest as Probing;
use crate::bindings::holdfast::host::blobs::Blob;
use crate::bindings::holdfast::host::http::{
    self, BodyPart, HeaderValue, HttpError, Request, Response,
};
use crate::bindings::holdfast::host::secrets::{self, Secret};
use crate::bindings::holdfast::host::{random, settings};
use crate::form::FileForm;

holdfast_plugin_sdk::http_failures!();

/// Bytes within which the header of a PDF must begin (ISO 32000-1, implementation note 13).
const PDF_HEADER_WITHIN: u32 = 1024;
/// Random bytes of a boundary.
const BOUNDARY: u32 = 16;

struct ConversionGotenbergComponent;

impl Probing for ConversionGotenbergComponent {
    /// Asks for the state of the service, which needs no credentials: the address is checked, and a wrong
    /// password shows at the first document.
    fn probe() -> Result<(), ProviderError> {
        login()?;
        let request = Request {
            method: "GET".into(),
            url: address("/health")?,
            headers: Vec::new(),
            body: Vec::new(),
        };

        let response = http::send(&request).map_err(unreachable)?;
        match response.status {
            200 => Ok(()),
            _ => Err(failure(&response)),
        }
    }
}

impl Guest for ConversionGotenbergComponent {
    fn convert(
        document: &Blob,
        file_name: String,
        media_type: String,
    ) -> Result<Blob, ProviderError> {
        let form = FileForm::with_boundary(&random::bytes(BOUNDARY));
        let login = login()?;
        let content_type = HeaderValue::Plain(form.content_type());
        let mut headers = vec![("Content-Type".to_owned(), content_type)];
        if let Some((user, password)) = &login {
            // The host encodes user and password.
            let secret = HeaderValue::Secret((format!("Basic {user}:"), password));
            headers.push(("Authorization".to_owned(), secret));
        }

        let request = Request {
            method: "POST".into(),
            url: address("/forms/libreoffice/convert")?,
            headers,
            body: vec![
                BodyPart::Text(form.head(&file_name, &media_type)),
                BodyPart::Blob(document),
                BodyPart::Text(form.tail()),
            ],
        };
        let answered = http::fetch(&request).map_err(unreachable)?;
        // Only the beginning is read: the PDF stays with the host and never enters this memory.
        let head = answered.body.read(0, PDF_HEADER_WITHIN);
        if answered.status != 200 {
            return Err(failure(&Response {
                status: answered.status,
                headers: answered.headers,
                body: head,
            }));
        }

        // Something in front of the service may answer 200 with a page of its own.
        if !head.windows(5).any(|bytes| bytes == b"%PDF-") {
            return Err(ProviderError::Unreachable(
                "the service answered with something that is no PDF".into(),
            ));
        }

        Ok(answered.body)
    }
}

/// Returns the error of a response that is no success. Texts of the service are not passed on: they can
/// quote the document.
fn failure(response: &Response) -> ProviderError {
    match response.status {
        401 | 403 => ProviderError::NotConfigured(
            "the service does not accept the setting username with the secret password".into(),
        ),
        404 => ProviderError::NotConfigured(
            "the setting base_url is not the address of a Gotenberg with LibreOffice".into(),
        ),
        429 => ProviderError::RateLimited(retry_after(response)),
        // LibreOffice gave up on the document, or it is larger than the service takes.
        status @ (400 | 413 | 415 | 422) => ProviderError::Rejected(format!(
            "the service cannot convert this document (answered {status})"
        )),
        // 503 is a conversion that took longer than the service permits, or a LibreOffice that restarts.
        status => ProviderError::Unreachable(format!("answered {status}")),
    }
}

/// Returns user and password, for a service that demands them.
fn login() -> Result<Option<(String, Secret)>, ProviderError> {
    let Some(user) = settings::get("username") else {
        return Ok(None);
    };
    let password = secrets::open("password")
        .ok_or_else(|| ProviderError::NotConfigured("secret password".into()))?;
    Ok(Some((user, password)))
}

/// Returns the address of a route.
fn address(route: &str) -> Result<String, ProviderError> {
    let base = settings::get("base_url")
        .ok_or_else(|| ProviderError::NotConfigured("setting base_url".into()))?;
    Ok(format!("{}{route}", base.trim_end_matches('/')))
}

crate::bindings::export!(ConversionGotenbergComponent with_types_in crate::bindings);
