//! The journeys of `docs/arazzo.json`, executed step by step on the real router.
//!
//! The interpreter knows what the document uses: operations and workflows as steps, parameters and references to them,
//! bodies in JSON and forms, equality as a condition, repeats after a failure, and runtime expressions. The test fails
//! for anything else.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use serde_json::{Map, Value, json};

use super::openapi::{ApiOperation, document, operations};
use crate::sdk::test_key;
use crate::support::uploads::form_of;
use crate::support::{CONTRACT, TestApp, TestResponse};

const JOURNEYS: &str = include_str!("../../../docs/arazzo.json");

fn journeys() -> Value {
    serde_json::from_str(JOURNEYS).unwrap()
}

fn operations_by_id() -> BTreeMap<String, ApiOperation> {
    let operations = operations(&document()).into_iter();
    operations
        .map(|operation| {
            let id = operation.description["operationId"].as_str().unwrap();
            (id.to_owned(), operation)
        })
        .collect()
}

/// Returns the items of a list, or none if there is no list.
fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member]
        .as_str()
        .unwrap_or_else(|| panic!("no {member} in {value}"))
}

/// What the expressions of a step refer to.
#[derive(Default)]
struct Scope {
    inputs: Value,
    /// Outputs of the steps so far, by their ids.
    steps: Map<String, Value>,
    response: Option<TestResponse>,
    /// Outputs of the workflow that the step has called.
    outputs: Value,
}

impl Scope {
    /// Returns the value of a runtime expression. One without a value is a mistake of the document.
    fn value_of(&self, expression: &str) -> Value {
        let response = || {
            let response = self.response.as_ref();
            response.unwrap_or_else(|| panic!("{expression} before a response"))
        };

        let found = if expression == "$statusCode" {
            Some(json!(response().status.as_u16()))
        } else if let Some(pointer) = expression.strip_prefix("$response.body#") {
            response().json().pointer(pointer).cloned()
        } else if let Some(name) = expression.strip_prefix("$response.header.") {
            let value = response().headers.get(name);
            value.map(|value| value.to_str().unwrap().into())
        } else if let Some(name) = expression.strip_prefix("$inputs.") {
            self.inputs.get(name).cloned()
        } else if let Some(name) = expression.strip_prefix("$outputs.") {
            self.outputs.get(name).cloned()
        } else if let Some(rest) = expression.strip_prefix("$steps.") {
            let (step, name) = rest.split_once(".outputs.").unwrap();
            let outputs = self.steps.get(step);
            outputs.and_then(|outputs| outputs.get(name)).cloned()
        } else {
            panic!("unknown expression {expression}")
        };

        found
            .filter(|value| !value.is_null())
            .unwrap_or_else(|| panic!("{expression} has no value"))
    }

    /// Replaces the expressions in a value.
    fn resolved(&self, value: &Value) -> Value {
        match value {
            Value::String(text) if text.starts_with('$') => self.value_of(text),
            Value::String(text) => self.embedded(text).into(),
            Value::Array(items) => items.iter().map(|item| self.resolved(item)).collect(),
            Value::Object(members) => members
                .iter()
                .map(|(name, value)| (name.clone(), self.resolved(value)))
                .collect(),
            other => other.clone(),
        }
    }

    /// Replaces the expressions in braces inside a text.
    fn embedded(&self, text: &str) -> String {
        let mut pieces = text.split("{$");
        let mut result = pieces.next().unwrap().to_owned();
        for piece in pieces {
            let (expression, rest) = piece.split_once('}').unwrap();
            let value = self.value_of(&format!("${expression}"));
            result += value.as_str().unwrap();
            result += rest;
        }

        result
    }

    /// Evaluates the named expressions of `outputs`.
    fn named(&self, outputs: &Value) -> Value {
        match outputs {
            Value::Null => json!({}),
            outputs => self.resolved(outputs),
        }
    }

    /// Returns whether all conditions hold.
    fn holds(&self, criteria: &Value) -> bool {
        items(criteria).all(|criterion| {
            assert!(criterion.get("type").is_none(), "{criterion}");
            let condition = text(criterion, "condition");
            let (left, right) = condition
                .split_once(" == ")
                .unwrap_or_else(|| panic!("unknown condition {condition}"));

            let expected: Value = match right.strip_prefix('\'') {
                Some(rest) => rest.strip_suffix('\'').unwrap().into(),
                None => serde_json::from_str(right).unwrap(),
            };
            self.value_of(left) == expected
        })
    }
}

struct Interpreter<'a> {
    app: &'a TestApp,
    journeys: Value,
    operations: BTreeMap<String, ApiOperation>,
    /// Steps that have succeeded, as `workflow.step`.
    succeeded: RefCell<BTreeSet<String>>,
}

impl<'a> Interpreter<'a> {
    fn new(app: &'a TestApp) -> Self {
        Self {
            app,
            journeys: journeys(),
            operations: operations_by_id(),
            succeeded: RefCell::default(),
        }
    }

    /// Runs a workflow and returns its outputs. Boxed, because a step can be a workflow.
    fn run<'s>(&'s self, id: &'s str, inputs: Value) -> Pin<Box<dyn Future<Output = Value> + 's>> {
        Box::pin(async move {
            let mut workflows = items(&self.journeys["workflows"]);
            let workflow = workflows.find(|workflow| workflow["workflowId"] == id);
            let workflow = workflow.unwrap_or_else(|| panic!("no workflow {id}"));
            for name in items(&workflow["inputs"]["required"]) {
                assert!(inputs.get(name.as_str().unwrap()).is_some(), "{id}: {name}");
            }

            let mut scope = Scope {
                inputs,
                ..Scope::default()
            };
            for step in items(&workflow["steps"]) {
                let name = text(step, "stepId");
                let outputs = self.step(step, &mut scope).await;
                scope.steps.insert(name.to_owned(), outputs);
                self.succeeded.borrow_mut().insert(format!("{id}.{name}"));
            }

            scope.named(&workflow["outputs"])
        })
    }

    /// Runs a step until it succeeds, and returns its outputs.
    async fn step(&self, step: &Value, scope: &mut Scope) -> Value {
        if let Some(workflow) = step["workflowId"].as_str() {
            let inputs: Map<String, Value> = self
                .parameters(step)
                .map(|one| (text(one, "name").to_owned(), scope.resolved(&one["value"])))
                .collect();
            scope.outputs = self.run(workflow, inputs.into()).await;
            return scope.named(&step["outputs"]);
        }

        let mut repeats = 0;
        loop {
            let response = self.request(step, scope).await;
            scope.response = Some(response);
            if scope.holds(&step["successCriteria"]) {
                return scope.named(&step["outputs"]);
            }

            let failed = || {
                let response = scope.response.as_ref().unwrap();
                format!(
                    "{}: {} {}",
                    step["stepId"],
                    response.status,
                    response.text()
                )
            };
            let mut actions = items(&step["onFailure"]);
            let action = actions.find(|action| scope.holds(&action["criteria"]));
            let action = action.unwrap_or_else(|| panic!("{}", failed()));
            assert_eq!(action["type"], "retry", "{action}");
            assert!(
                repeats < action["retryLimit"].as_u64().unwrap(),
                "{}",
                failed()
            );

            repeats += 1;
            let pause = action["retryAfter"].as_f64().unwrap();
            tokio::time::sleep(Duration::from_secs_f64(pause)).await;
        }
    }

    /// Returns the parameters of a step, those of `components` by their references.
    fn parameters<'s>(&'s self, step: &'s Value) -> impl Iterator<Item = &'s Value> {
        items(&step["parameters"]).map(move |parameter| match parameter["reference"].as_str() {
            Some(reference) => {
                let name = reference.strip_prefix("$components.parameters.").unwrap();
                &self.journeys["components"]["parameters"][name]
            }
            None => parameter,
        })
    }

    async fn request(&self, step: &Value, scope: &Scope) -> TestResponse {
        let operation = &self.operations[text(step, "operationId")];
        let mut path = format!("/api/v2{}", operation.path);
        let mut request = Request::builder().method(operation.method.clone());
        for parameter in self.parameters(step) {
            let name = text(parameter, "name");
            let value = scope.resolved(&parameter["value"]);
            let value = value.as_str().unwrap();
            match text(parameter, "in") {
                "path" => path = path.replace(&format!("{{{name}}}"), value),
                "header" => request = request.header(name, value),
                other => panic!("unknown place {other}"),
            }
        }

        let payload = scope.resolved(&step["requestBody"]["payload"]);
        let (content_type, body) = match step["requestBody"]["contentType"].as_str() {
            None => (None, Vec::new()),
            Some("application/json") => {
                let body = payload.to_string().into_bytes();
                (Some("application/json".to_owned()), body)
            }
            Some("multipart/form-data") => {
                let (content_type, body) = form(&payload);
                (Some(content_type), body)
            }
            Some(other) => panic!("unknown content type {other}"),
        };
        if let Some(content_type) = content_type {
            request = request.header("content-type", content_type);
        }

        let request = request.uri(path).body(Body::from(body)).unwrap();
        self.app.send(request).await
    }
}

/// Encodes a form. Its file is the contract of the tests.
fn form(payload: &Value) -> (String, Vec<u8>) {
    assert_eq!(payload["file"], "contract.pdf", "{payload}");
    let members = payload.as_object().unwrap().iter();
    let texts: Vec<(&str, &str)> = members
        .filter(|(name, _)| *name != "file")
        .map(|(name, value)| (name.as_str(), value.as_str().unwrap()))
        .collect();

    form_of(Some(("application/pdf", CONTRACT)), &texts)
}

fn inputs(key: &str, deal: &str) -> Value {
    json!({
        "api_key": key, "document": "contract.pdf", "deal": deal,
        "customer_name": "Jordan Ellery", "customer_email": "jordan@elm.example",
        "corrected_email": "jordan.ellery@elm.example", "recipient_email": "robin@bank.example",
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn every_step_of_the_partner_journeys_succeeds() {
    let app = TestApp::start().await;
    let test_key = test_key(&app).await;
    let interpreter = Interpreter::new(&app);

    let signed = interpreter
        .run("signAndVault", inputs(&test_key, "deal-1"))
        .await;
    assert_eq!(signed["document_hash"].as_str().unwrap().len(), 64);

    let voided = interpreter
        .run("correctAndVoid", inputs(&test_key, "deal-2"))
        .await;
    assert_eq!(voided["status"], "voided");

    // The idempotency keys of a journey make its repeat the same act.
    let vaulted = interpreter
        .run("vaultPaper", inputs(&app.key, "deal-3"))
        .await;
    let released = interpreter
        .run("releaseRecord", inputs(&app.key, "deal-3"))
        .await;
    let link = released["authoritative_signed_url"].as_str().unwrap();
    assert!(link.starts_with("http"), "{link}");
    assert_eq!(released["envelope_id"], vaulted["envelope_id"]);
    assert_eq!(app.count("envelope").await, 3);

    let succeeded = interpreter.succeeded.take();
    for workflow in items(&interpreter.journeys["workflows"]) {
        for step in items(&workflow["steps"]) {
            let name = format!("{}.{}", text(workflow, "workflowId"), text(step, "stepId"));
            assert!(succeeded.contains(&name), "{name} has not run");
        }
    }
}

/// A failure names the step, so the test above cannot pass over one.
#[tokio::test(flavor = "multi_thread")]
#[should_panic(expected = "\"template\": 401 Unauthorized")]
async fn a_failing_step_ends_its_journey() {
    let app = TestApp::start().await;
    let interpreter = Interpreter::new(&app);
    let inputs = inputs("lk_test_nothing", "deal-1");
    interpreter.run("sendContract", inputs).await;
}

#[test]
fn every_operation_of_the_partner_journeys_is_in_the_openapi_document() {
    let (journeys, operations) = (journeys(), operations_by_id());
    assert_eq!(journeys["arazzo"], "1.1.0");
    assert_eq!(journeys["info"]["version"], document()["info"]["version"]);

    let workflows: Vec<&Value> = items(&journeys["workflows"]).collect();
    assert_eq!(workflows.len(), 5);
    let ids: BTreeSet<&str> = workflows
        .iter()
        .map(|one| text(one, "workflowId"))
        .collect();

    let mut calls = 0;
    for step in workflows.iter().flat_map(|one| items(&one["steps"])) {
        if let Some(workflow) = step["workflowId"].as_str() {
            assert!(ids.contains(workflow), "{workflow}");
            continue;
        }

        let operation = &operations[text(step, "operationId")];
        let given: BTreeSet<&str> = items(&step["parameters"])
            .filter_map(|parameter| parameter["name"].as_str())
            .collect();
        for parameter in items(&operation.description["parameters"]) {
            let name = text(parameter, "name");
            let is_missing = parameter["required"] == true && !given.contains(name);
            assert!(!is_missing, "{} has no {name}", step["stepId"]);
        }

        let content_type = step["requestBody"]["contentType"].as_str();
        let accepted = &operation.description["requestBody"]["content"];
        let is_accepted = content_type.is_none_or(|one| accepted.get(one).is_some());
        assert!(is_accepted, "{}: {content_type:?}", step["stepId"]);
        calls += 1;
    }
    assert!(calls > 10, "{calls}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_partner_journeys_are_served_beside_the_openapi_document() {
    let app = TestApp::start().await;
    let served = app.get("/arazzo.json").await;
    assert_eq!(served.headers["content-type"], "application/json");
    assert_eq!(served.text(), JOURNEYS);

    let source = &journeys()["sourceDescriptions"][0];
    assert_eq!(source["url"], "./openapi.json");
    assert_eq!(app.get("/openapi.json").await.status, 200);
}
