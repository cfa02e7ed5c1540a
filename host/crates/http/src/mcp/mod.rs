//! Server of the Model Context Protocol, for assistants that act with a person's or a partner's credential
//! (`docs/mcp.md`). Its tools are the operations of the API: a call becomes a request to the same router, so that
//! scopes, validation, limits and the request log are those of the API.

mod calls;
mod tools;

use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, Implementation, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, Resource, ResourceContents, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};
use url::Url;

use super::SharedDocument;
use super::middleware::caller::McpCaller;
use super::pages::docs::{self, Guide};
use holdfast_domain::organization::Scope;
use holdfast_service::App;
use tools::ToolDefinition;

/// Path of the endpoint.
const PATH: &str = "/mcp";
/// Metadata of the protected resource (RFC 9728, section 3).
const METADATA: &str = "/.well-known/oauth-protected-resource";
const MARKDOWN: &str = "text/markdown";
/// Largest file of a call or an answer. Larger ones take the API itself.
const FILE_BYTES: usize = 16 * 1024 * 1024;
/// Largest request: a file in base64, and the rest of the call.
const MOST: usize = FILE_BYTES / 3 * 4 + 256 * 1024;

const INSTRUCTIONS: &str = "Tools of holdfast: envelopes for electronic signature, the vault with the authoritative \
    copies, and control of electronic chattel paper. Tools that send, sign for an organization or release make a dry \
    run unless dry_run is false. Acts that cannot be undone also need the confirmation_token of their dry run: show \
    the person what will happen, and pass it on only after they agreed. Read an envelope before you change it.";

/// The service: tools, and the router that runs their requests.
#[derive(Clone)]
struct McpServer {
    app: App,
    document: SharedDocument,
    /// Made from the document by the first request, as most starts are not followed by one.
    tools: Arc<OnceLock<Vec<ToolDefinition>>>,
    api: Router,
    /// The same router, for dry runs.
    rehearsal: Router,
}

/// Returns the routes of the protocol. `document` describes the operations of `api`.
pub fn routes(app: &App, document: SharedDocument, api: Router, rehearsal: Router) -> Router<App> {
    let server = McpServer {
        app: app.clone(),
        document,
        tools: Arc::default(),
        api,
        rehearsal,
    };

    let base = app.config.public_url();
    // No sessions: any node can answer any request. The names below stop DNS rebinding from a browser.
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(MOST)
        .with_allowed_hosts(hosts(&base))
        .with_allowed_origins(origins(&base))
        .enforce_origin_validation();
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(NeverSessionManager::default()),
        config,
    );

    Router::new()
        .route_service(PATH, service)
        // The layer covers the route before it only. The metadata below is public, as clients need it to sign
        // in.
        .route_layer(from_fn_with_state(app.clone(), authenticated))
        .route(METADATA, get(metadata))
        .route(&format!("{METADATA}{PATH}"), get(metadata))
}

/// Names under which browsers and clients may reach the service: its own, and this machine's.
fn hosts(base: &str) -> Vec<String> {
    let own = Url::parse(base).ok();
    let own = own.as_ref().and_then(Url::host_str).map(str::to_owned);
    let local = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    own.into_iter().chain(local).collect()
}

fn origins(base: &str) -> Vec<String> {
    // With the port, as an origin without one would match all ports of the host.
    let own = Url::parse(base).map(|url| {
        let port = url.port_or_known_default().unwrap_or_default();
        format!(
            "{}://{}:{port}",
            url.scheme(),
            url.host_str().unwrap_or_default()
        )
    });

    let local = ["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"].map(str::to_owned);
    own.into_iter().chain(local).collect()
}

/// Admits requests with a valid key or token. Others learn where the metadata is (RFC 9728, section 5.1).
async fn authenticated(State(app): State<App>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    match McpCaller::of(&parts, &app).await {
        Ok(caller) => {
            parts.extensions.insert(caller);
            next.run(Request::from_parts(parts, body)).await
        }
        Err(error) => {
            let mut response = error.into_response();
            let challenge = format!(
                "Bearer resource_metadata=\"{}{METADATA}{PATH}\"",
                app.config.public_url()
            );
            // A 429 or 503 is no challenge: a client would begin a new sign-in for nothing.
            if response.status().as_u16() == 401
                && let Ok(challenge) = HeaderValue::from_str(&challenge)
            {
                let headers = response.headers_mut();
                headers.insert(header::WWW_AUTHENTICATE, challenge);
            }

            response
        }
    }
}

/// `GET /.well-known/oauth-protected-resource`: RFC 9728, section 2.
async fn metadata(State(app): State<App>) -> axum::Json<Value> {
    let base = app.config.public_url();
    let mut metadata = json!({
        "resource": format!("{base}{PATH}"),
        "resource_name": "holdfast",
        "resource_documentation": format!("{base}/docs/mcp"),
        "bearer_methods_supported": ["header"],
        "scopes_supported": Scope::ALL.iter().map(|scope| scope.as_str()).collect::<Vec<_>>(),
    });
    // Without an issuer, clients have API keys only, and no server to get a token from.
    if let Some(oidc) = &app.config.auth.oidc {
        metadata["authorization_servers"] = json!([oidc.issuer]);
    }

    axum::Json(metadata)
}

impl McpServer {
    /// Returns where a guide is read.
    fn address(&self, guide: &Guide) -> String {
        let base = self.app.config.public_url();
        format!("{base}/docs/{}.md", guide.slug)
    }

    /// Counts a message that becomes no request to the API.
    async fn counted(&self, parts: &Parts, caller: &McpCaller) -> Result<(), ErrorData> {
        let counted = caller.count(&self.app, parts).await;
        counted
            .map_err(|error| ErrorData::invalid_request("Rate limit exceeded", Some(error.body())))
    }

    /// Returns the tools that the caller's scopes or role permit.
    fn tools_of(&self, caller: &McpCaller) -> impl Iterator<Item = &ToolDefinition> {
        // Tools that the caller may not use are not listed: an assistant would only try them.
        let caller = caller.clone();
        let tools = self.tools.get_or_init(|| {
            let document = serde_json::from_slice(&self.document);
            tools::of(&document.unwrap_or_default())
        });
        tools.iter().filter(move |tool| tool.is_for(&caller))
    }
}

/// Returns who makes a request, with its head.
fn caller_of(context: &RequestContext<RoleServer>) -> Result<(&Parts, &McpCaller), ErrorData> {
    let parts = context.extensions.get::<Parts>();
    let caller = parts.and_then(|parts| parts.extensions.get::<McpCaller>());
    parts
        .zip(caller)
        .ok_or_else(|| ErrorData::internal_error("the request has no caller", None))
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("holdfast", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        // The list becomes no request to the API, so it is counted here.
        let (parts, caller) = caller_of(&context)?;
        self.counted(parts, caller).await?;
        let tools: Vec<Tool> = self.tools_of(caller).map(ToolDefinition::shown).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    /// The guides, so that an assistant can look up how the service works.
    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let (parts, caller) = caller_of(&context)?;
        self.counted(parts, caller).await?;
        let guides = docs::guides().iter().map(|guide| {
            Resource::new(self.address(guide), guide.slug)
                .with_title(&guide.title)
                .with_description(&guide.about)
                .with_mime_type(MARKDOWN)
        });

        Ok(ListResourcesResult::with_all_items(guides.collect()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let (parts, caller) = caller_of(&context)?;
        self.counted(parts, caller).await?;
        let mut guides = docs::guides().iter();
        let guide = guides.find(|guide| self.address(guide) == request.uri);
        let guide = guide.ok_or_else(|| {
            let text = format!("No resource {}", request.uri);
            ErrorData::resource_not_found(text, None)
        })?;
        let text = ResourceContents::text(guide.source, request.uri).with_mime_type(MARKDOWN);

        Ok(ReadResourceResult::new(vec![text]).into())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let (parts, caller) = caller_of(&context)?;
        // A tool that the caller may not use and one that does not exist get the same answer.
        let tool = self
            .tools_of(caller)
            .find(|tool| tool.name == request.name)
            .ok_or_else(|| {
                let text = format!("No tool {} for this credential", request.name);
                ErrorData::invalid_params(text, None)
            })?;

        let arguments = request.arguments.unwrap_or_default();
        let result = calls::call(self, tool, caller, parts, arguments).await;
        Ok(result.into())
    }
}
