//! Forms of the console that are refused: their entries stay, and each problem is at its field.

use super::console::Session;
use super::console_cells::ids_of;
use crate::support::{TestApp, TestResponse};

/// A form with a mistake.
struct RefusedEntries<'a> {
    path: String,
    entries: &'a [(&'a str, &'a str)],
    /// Field that the page marks. None for a problem of the whole form.
    field: Option<&'a str>,
}

fn encoded(pairs: &[(&str, &str)]) -> String {
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    form.extend_pairs(pairs);
    form.finish()
}

#[track_caller]
fn keeps(answer: &TestResponse, path: &str, entries: &[(&str, &str)], field: Option<&str>) {
    let page = answer.text();
    assert!(answer.status.is_client_error(), "{path}: {page}");
    assert!(page.contains("class=\"problems\""), "{path}: {page}");
    for (name, value) in entries {
        assert!(page.contains(value), "{path} keeps {name}: {page}");
    }

    if let Some(field) = field {
        let marked = format!("id=\"{field}-problem\"");
        let linked = format!("href=\"#{field}\"");
        assert!(page.contains(&marked), "{path} marks {field}: {page}");
        assert!(page.contains(&linked), "{path} links {field}: {page}");
    }
}

async fn all_keep(app: &TestApp, session: &Session, forms: &[RefusedEntries<'_>]) {
    for form in forms {
        let answer = session.post(app, &form.path, &encoded(form.entries)).await;
        keeps(&answer, &form.path, form.entries, form.field);
        assert_eq!(answer.status, 422, "{}", form.path);
    }
}

/// Mistakes that the type of no control names. `console_walk` makes the others in every form.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_form_keeps_its_entries() {
    let app = TestApp::start().await;
    let known = ids_of(&app).await;
    let ada = Session::of(&app, "ada@oak.example", "owner").await;
    let settings = |part: &str| format!("/console/settings/{part}");
    let forms = [
        RefusedEntries {
            path: known.path("/envelopes/{id}/dates"),
            entries: &[
                ("name", "Term seven"),
                ("date", "2031-05-01"),
                ("notice_days", "60, 30"),
                ("notify", "nowhere-at-all"),
            ],
            field: Some("notify-date"),
        },
        RefusedEntries {
            path: "/console/keys".to_owned(),
            entries: &[("name", "Dealer seven")],
            field: Some("scopes"),
        },
        RefusedEntries {
            path: settings("brand"),
            entries: &[("brand_name", "Oak seven"), ("color", "verdant")],
            field: Some("color"),
        },
        RefusedEntries {
            path: settings("origins"),
            entries: &[("embed_origins", "no origin"), ("return_origins", "")],
            field: Some("embed_origins"),
        },
        RefusedEntries {
            path: settings("link-host"),
            entries: &[("host", "no host at all")],
            field: Some("host"),
        },
        RefusedEntries {
            path: settings("disclosure"),
            entries: &[
                ("contact_email", "nowhere-at-all"),
                ("contact_phone", "+1 555 0107"),
                ("disclosure_language", "en"),
            ],
            field: Some("contact_email"),
        },
        RefusedEntries {
            path: settings("consent"),
            entries: &[("consent_language", "en"), ("version", "seventh version")],
            field: None,
        },
        RefusedEntries {
            path: "/console/packages".to_owned(),
            entries: &[("name", "Sale seven")],
            field: None,
        },
        RefusedEntries {
            path: known.path("/changes/{id}/review"),
            entries: &[("comment", "Why is seven left out?")],
            field: Some("verdict"),
        },
    ];
    all_keep(&app, &ada, &forms).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_act_of_control_keeps_its_entries() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let ada = Session::of(&app, "ada@oak.example", "owner").await;
    let page = format!("/console/control/records/{id}");
    let forms = [
        RefusedEntries {
            path: format!("/console/control/designate/{id}"),
            entries: &[("controller", "org_nobody"), ("next", &page)],
            field: Some("controller"),
        },
        RefusedEntries {
            path: format!("/console/control/release/{id}"),
            entries: &[
                ("recipient_name", "Robin Park"),
                ("recipient_organization", "Second Example Bank"),
                ("recipient_email", "nowhere-at-all"),
                ("purpose_of_release", "Assignment of seven"),
                ("authorized_signature", "Dora Oak"),
                ("next", &page),
                ("sure", "yes"),
                ("typed", "Retail instalment contract"),
            ],
            field: Some("recipient_email"),
        },
    ];
    all_keep(&app, &ada, &forms).await;
}

/// The user sends a form of an earlier sign-in again. A page of another site cannot.
#[tokio::test(flavor = "multi_thread")]
async fn a_form_of_an_earlier_sign_in_keeps_its_entries() {
    let app = TestApp::start().await;
    let ada = Session::of(&app, "ada@oak.example", "owner").await;
    let send = async |site: &str| {
        let request = axum::http::Request::post("/console/users")
            .header("accept", "text/html")
            .header("content-type", "application/x-www-form-urlencoded")
            .header("sec-fetch-site", site)
            .header("cookie", &ada.cookie)
            .body("token=old&email=kim%40elm.example&role=sender".into());
        app.send(request.unwrap()).await
    };

    let again = send("same-origin").await;
    assert_eq!(again.status, 403, "{}", again.text());
    let page = again.text();
    let is_kept = page.contains("Send this form again?") && page.contains("kim@elm.example");
    assert!(is_kept && page.contains("as ada@oak.example"), "{page}");
    assert!(!page.contains("value=\"old\""), "{page}");

    let foreign = send("cross-site").await.text();
    assert!(!foreign.contains("kim@elm.example"), "{foreign}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_does_not_exist_leads_on() {
    let app = TestApp::start().await;
    let ada = Session::of(&app, "ada@oak.example", "owner").await;
    for (path, way) in [
        ("/console/no-such-page", "href=\"/console\""),
        ("/console/templates/tmpl_0", "href=\"/console\""),
    ] {
        let answer = ada.get(&app, path).await;
        assert_eq!(answer.status, 404, "{path}");
        let page = answer.text();
        assert!(page.contains("Nothing has this address"), "{path}: {page}");
        assert!(page.contains(way), "{path}: {page}");
    }
}
