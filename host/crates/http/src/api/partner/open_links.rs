//! Partner API: open links of templates.

use axum::extract::State;

use crate::error::HttpError;
use crate::middleware::act::{ActOn, BareAct};
use crate::middleware::caller::{EnvelopesRead, EnvelopesWrite, PartnerCaller};
use crate::middleware::extract::{PageQuery, ResourceId, ValidQuery};
use crate::qr::svg;
use crate::reply::{Created, DataReply, FileReply, Found, PageReply, Svg};
use holdfast_service::App;
use holdfast_service::envelopes::open_links::{self, CreateOpenLink, OpenLinkView};

pub async fn create(
    act: ActOn<PartnerCaller<EnvelopesWrite>, CreateOpenLink>,
) -> Result<Created<OpenLinkView>, HttpError> {
    act.run(open_links::create).await
}

pub async fn list(
    State(app): State<App>,
    partner: PartnerCaller<EnvelopesRead>,
    ResourceId(id): ResourceId,
    ValidQuery(query): ValidQuery<PageQuery>,
) -> Result<PageReply<OpenLinkView>, HttpError> {
    let (page, limit) = query.checked()?;
    let (found, total) = open_links::list(&app, &partner.caller, &id, page, limit).await?;
    Ok(PageReply::new(&found, page, limit, total))
}

pub async fn read(
    State(app): State<App>,
    partner: PartnerCaller<EnvelopesRead>,
    ResourceId(id): ResourceId,
) -> Result<Found<OpenLinkView>, HttpError> {
    let link = open_links::get(&app, &partner.caller, &id).await?;
    Ok(DataReply::new(&link))
}

/// Returns the address of an open link as a QR code, to be printed.
pub async fn qr(
    State(app): State<App>,
    partner: PartnerCaller<EnvelopesRead>,
    ResourceId(id): ResourceId,
) -> Result<FileReply<Svg>, HttpError> {
    let link = open_links::get(&app, &partner.caller, &id).await?;
    let drawing = svg(&link.url)?;
    FileReply::of_bytes(&app, &format!("{id}.svg"), drawing.as_bytes()).await
}

pub async fn close(
    act: BareAct<PartnerCaller<EnvelopesWrite>>,
) -> Result<Found<OpenLinkView>, HttpError> {
    act.run(open_links::close).await
}
