//! A third-party payment processor: localstripe, run by `tests/payment_processor.py`.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use holdfast::config::{Config, ProviderInstance, SecretText};
use serde_json::Value;

pub const SECRET_KEY: &str = "sk_test_holdfast";
pub const WEBHOOK_SECRET: &str = "whsec_tests";

/// A running processor.
pub struct PaymentProcessor {
    pub url: String,
    running: Child,
}

impl Drop for PaymentProcessor {
    fn drop(&mut self) {
        let _ = self.running.kill();
        let _ = self.running.wait();
    }
}

impl PaymentProcessor {
    pub fn start() -> Self {
        let missing = "localstripe is missing: run `tests/set-up test`";
        let python = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../pdf-readers/bin/python");
        let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/payment_processor.py");
        let mut running = Command::new(python)
            .arg(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect(missing);

        let mut line = String::new();
        let output = running.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        let port: u16 = line.trim().parse().expect(missing);
        Self {
            url: format!("http://127.0.0.1:{port}"),
            running,
        }
    }

    /// Configures it as the payment provider, with the instance name `main`.
    pub fn configure(&self, config: &mut Config) {
        let secrets = [
            ("secret_key", SECRET_KEY),
            ("webhook_secret", WEBHOOK_SECRET),
        ]
        .map(|(name, secret)| (name.to_owned(), SecretText::new(secret)));
        config.providers.allow_insecure = true;
        let instance = ProviderInstance {
            base_url: self.url.parse().unwrap(),
            allow_hosts: None,
            timeout: Duration::from_secs(60),
            secrets: secrets.into(),
            publishable_key: Some("pk_test_holdfast".into()),
            settings: std::collections::BTreeMap::new(),
        };

        let instances = &mut config.providers.payment.instances;
        instances.insert("main".into(), instance);
    }

    /// Makes it send its webhook events to `url`.
    pub async fn send_events_to(&self, url: &str) {
        let form = [("url", url), ("secret", WEBHOOK_SECRET)];
        let client = reqwest::Client::new();
        let answer = client
            .post(format!("{}/_config/webhooks/tests", self.url))
            .form(&form);
        assert_eq!(answer.send().await.unwrap().status(), 200);
    }

    /// Reads an object from the processor's API.
    pub async fn get(&self, path: &str) -> Value {
        let client = reqwest::Client::new();
        let answer = client
            .get(format!("{}{path}", self.url))
            .bearer_auth(SECRET_KEY);
        parsed(answer.send().await.unwrap()).await
    }

    async fn post(&self, path: &str, form: &[(&str, &str)]) -> Value {
        let client = reqwest::Client::new();
        let request = client
            .post(format!("{}{path}", self.url))
            .bearer_auth(SECRET_KEY)
            .form(form);
        let answer = request.send().await.unwrap();
        let status = answer.status();

        let body = parsed(answer).await;
        assert_eq!(status, 200, "{path}: {body}");

        body
    }

    /// Cancels a payment intent at the processor.
    pub async fn cancel(&self, intent: &str) {
        self.post(&format!("/v1/payment_intents/{intent}/cancel"), &[])
            .await;
    }

    /// Pays a payment intent with a test card.
    pub async fn pay(&self, intent: &str) {
        let card = [
            ("type", "card"),
            ("card[number]", "4242424242424242"),
            ("card[exp_month]", "12"),
            ("card[exp_year]", "2030"),
            ("card[cvc]", "123"),
        ];
        let method = self.post("/v1/payment_methods", &card).await;
        let method = method["id"].as_str().unwrap().to_owned();

        let path = format!("/v1/payment_intents/{intent}");
        self.post(&path, &[("payment_method", &method)]).await;
        self.post(&format!("{path}/confirm"), &[]).await;
    }
}

async fn parsed(answer: reqwest::Response) -> Value {
    serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap()
}
