//! Colour and logo of an organization. They are public: each mail and each page behind a link of the
//! organization shows them.

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use crate::error::HttpError;
use crate::middleware::limits;
use crate::routing::get;
use holdfast_domain::brand::OrganizationBrand;
use holdfast_domain::id::OrgId;
use holdfast_platform::ServiceError;
use holdfast_platform::access::windows::LimitedCredential;
use holdfast_platform::organizations;
use holdfast_service::App;

const PATH: &str = "/assets/brand";

/// Returns the path below which an organization's brand is served.
pub fn path(org: &OrgId) -> String {
    format!("{PATH}/{org}")
}

pub fn routes() -> Router<App> {
    Router::new()
        .route(&format!("{PATH}/{{org}}/brand.css"), get(style))
        .route(&format!("{PATH}/{{org}}/logo"), get(logo))
}

async fn brand(app: &App, org: &str, request: Request) -> Result<OrganizationBrand, HttpError> {
    let (parts, _) = request.into_parts();
    // No credential guards the brand, so requests count by address only.
    limits::admit(app, LimitedCredential::Address, "", &parts)?;
    let org = OrgId::parse(org).ok_or(ServiceError::NotFound("Organization"))?;
    let organization = organizations::read(app, &org).await?;
    Ok(organization.settings.brand)
}

/// Serves the colour as a style sheet.
async fn style(
    State(app): State<App>,
    Path(org): Path<String>,
    request: Request,
) -> Result<Response, HttpError> {
    let brand = brand(&app, &org, request).await?;
    // `embed.js` links this sheet for every organization. One without a colour gets an empty sheet and
    // no error.
    let text = brand.color.map_or(String::new(), |color| {
        format!(
            ":root {{ --accent: {color}; --on-accent: {}; }}\n",
            color.text()
        )
    });

    // The address has no version. A new colour shows within five minutes.
    let headers = [
        (header::CONTENT_TYPE, "text/css; charset=utf-8"),
        (header::CACHE_CONTROL, "public, max-age=300"),
    ];
    Ok((headers, text).into_response())
}

async fn logo(
    State(app): State<App>,
    Path(org): Path<String>,
    request: Request,
) -> Result<Response, HttpError> {
    let Some(logo) = brand(&app, &org, request).await?.logo else {
        return Ok(StatusCode::NOT_FOUND.into_response());
    };

    let headers = [
        (header::CONTENT_TYPE, logo.file_type.as_str()),
        (header::CACHE_CONTROL, "public, max-age=300"),
    ];
    Ok((headers, logo.bytes).into_response())
}
