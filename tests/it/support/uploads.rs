//! Multipart forms.

use axum::http::Request;

use super::requests::api;
use super::{TestApp, TestResponse};

impl TestApp {
    /// Posts a multipart body with a `file` part and text parts.
    pub async fn upload(
        &self,
        path: &str,
        content_type: &str,
        file: &[u8],
        texts: &[(&str, &str)],
    ) -> TestResponse {
        self.upload_as(&self.key, path, content_type, file, texts)
            .await
    }

    pub async fn upload_as(
        &self,
        key: &str,
        path: &str,
        content_type: &str,
        file: &[u8],
        texts: &[(&str, &str)],
    ) -> TestResponse {
        let (content_type, body) = form_of(Some((content_type, file)), texts);
        self.post_text(key, path, &content_type, body).await
    }

    /// Uploads a component as a web-app user.
    pub async fn upload_component(
        &self,
        token: &str,
        name: &str,
        version: &str,
        component: &[u8],
    ) -> TestResponse {
        let texts = [("name", name), ("version", version)];
        self.upload_signed_component(token, component, &texts).await
    }

    pub async fn upload_signed_component(
        &self,
        token: &str,
        component: &[u8],
        texts: &[(&str, &str)],
    ) -> TestResponse {
        self.upload_form(token, Some(component), texts).await
    }

    /// Sends the form of an upload of a component.
    pub async fn upload_form(
        &self,
        token: &str,
        component: Option<&[u8]>,
        texts: &[(&str, &str)],
    ) -> TestResponse {
        let file = component.map(|component| ("application/wasm", component));
        let (content_type, body) = form_of(file, texts);
        let request = Request::post(api("/components"))
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", content_type);
        self.send(request.body(body.into()).unwrap()).await
    }

    /// Uploads a template into the library like the web app.
    pub async fn library_template(&self, texts: &[(&str, &str)], pdf: &[u8]) -> TestResponse {
        let (content_type, body) = form_of(Some(("application/pdf", pdf)), texts);
        let request = Request::post(api("/templates"))
            .header("authorization", format!("Bearer {}", self.web_admin()))
            .header("content-type", content_type);
        self.send(request.body(body.into()).unwrap()).await
    }
}

/// Encodes a multipart form; returns its content type and its bytes.
pub fn form_of(file: Option<(&str, &[u8])>, texts: &[(&str, &str)]) -> (String, Vec<u8>) {
    const BOUNDARY: &str = "a-boundary-no-file-contains";

    let mut body = Vec::new();
    for (name, text) in texts {
        let head = format!(
            "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n"
        );
        body.extend(head.into_bytes());
    }

    if let Some((content_type, file)) = file {
        let head = format!(
            "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"file\"\r\n\
             content-type: {content_type}\r\n\r\n"
        );
        body.extend(head.into_bytes());
        body.extend(file);
        body.extend(b"\r\n");
    }

    body.extend(format!("--{BOUNDARY}--\r\n").into_bytes());
    (format!("multipart/form-data; boundary={BOUNDARY}"), body)
}
