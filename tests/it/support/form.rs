//! The signing form, used like a browser without JavaScript.

use axum::body::Body;
use axum::http::Request;
use scraper::{Html, Selector};

use super::{TestApp, TestResponse};

/// Value of `consent` among the values for [`press`], for a signer who ticks the box on the page.
pub const TICK: &str = "ticked";

/// Requests a page of the form, and reports that it is shown, as its script does.
pub async fn open(app: &TestApp, url: &str) -> TestResponse {
    let page = fetch(app, url).await;
    if page.status == 200 && page.text().contains(" data-unseen") {
        press(app, url, "seen", &[]).await;
    }
    page
}

/// Requests a page of the form, like a program that fetches links.
pub async fn fetch(app: &TestApp, url: &str) -> TestResponse {
    app.send(Request::get(path(url)).body(Body::empty()).unwrap())
        .await
}

/// Returns the SHA-256 that the box for the consent sends; none on a page without one.
pub fn tick_of(page: &str) -> Option<String> {
    let document = Html::parse_document(page);
    let control = Selector::parse("input#consent").unwrap();
    let control = document.select(&control).next()?;
    control.attr("value").map(str::to_owned)
}

/// Returns a value for every control, chosen by its type, and the consent.
pub fn filled(page: &str) -> Vec<(String, String)> {
    let document = Html::parse_document(page);
    let controls =
        Selector::parse("form input[name], form select[name], .field textarea[name]").unwrap();
    document
        .select(&controls)
        .filter(|control| control.attr("type") != Some("hidden"))
        .filter(|control| {
            control.attr("type") != Some("radio") || control.attr("checked").is_some()
        })
        .map(|control| {
            let name = control.attr("name").unwrap().to_owned();
            let value = match control.attr("type") {
                Some("checkbox") if name == "consent" => control.attr("value").unwrap(),
                Some("checkbox") => "true",
                Some("date") => "2026-11-21",
                Some("radio") => control.attr("value").unwrap(),
                _ => "Jordan Lee",
            };

            (name, value.to_owned())
        })
        .collect()
}

/// Submits the form with a button. A ticked consent ([`TICK`]) sends the value of the box on the signer's page.
pub async fn press(
    app: &TestApp,
    url: &str,
    action: &str,
    values: &[(String, String)],
) -> TestResponse {
    let is_ticked = values.iter().any(|(name, value)| is_tick(name, value));
    let tick = if is_ticked {
        tick_of(&fetch(app, url).await.text())
    } else {
        None
    };
    let tick = tick.unwrap_or_default();

    let mut body = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in values {
        let value = if is_tick(name, value) { &tick } else { value };
        body.append_pair(name, value);
    }

    body.append_pair("action", action);
    let request = Request::post(path(url))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(Body::from(body.finish()))
        .unwrap();
    app.send(request).await
}

fn is_tick(name: &str, value: &str) -> bool {
    name == "consent" && value == TICK
}

/// Saves values like the form's script does, and returns the response.
pub async fn save(app: &TestApp, url: &str, values: &[(&str, &str)]) -> serde_json::Value {
    let mut body = url::form_urlencoded::Serializer::new(String::new());
    body.extend_pairs(values).append_pair("action", "save");
    let request = Request::post(path(url))
        .header("content-type", "application/x-www-form-urlencoded")
        .header("accept", "application/json")
        .body(Body::from(body.finish()))
        .unwrap();
    app.send(request).await.json()
}

/// Opens the form, fills in every control and finishes.
pub async fn sign(app: &TestApp, url: &str) {
    let page = open(app, url).await;
    assert_eq!(page.status, 200, "{}", page.text());
    let answer = press(app, url, "finish", &filled(&page.text())).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

/// Returns the link in a mail, or an empty text when it has none.
pub fn link_in(mail: &str) -> String {
    let mail = mail.replace("=\r\n", "").replace("=3D", "=");
    let start = mail.find("http://").unwrap_or(mail.len());
    let link = mail[start..].chars();
    link.take_while(|character| !character.is_whitespace() && *character != '"')
        .collect()
}

pub fn path(url: &str) -> String {
    let url = url::Url::parse(url).expect("a URL of this server");
    match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    }
}

/// Returns the version of the document that a page shows.
pub fn version(page: &str) -> String {
    let document = Html::parse_document(page);
    let control = Selector::parse("input[name=document-version]").unwrap();
    let control = document.select(&control).next().unwrap();
    control.attr("value").unwrap().to_owned()
}
