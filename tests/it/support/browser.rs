//! A real browser: Debian's Chromium, driven through its driver (WebDriver).

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder, Locator};
use http::Method;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Map, Value, json};

/// Device that the browser emulates.
#[derive(Clone, Copy)]
pub enum EmulatedScreen {
    Desktop,
    /// 360 px wide, with touch instead of a mouse.
    Phone,
    /// The phone turned.
    Landscape,
    /// A desktop page at 400 % zoom (WCAG 2.2, 1.4.10).
    Zoomed,
}

/// What a person did on the way to a result, and how long it took.
#[derive(Clone, Copy)]
pub struct Effort {
    pub clicks: usize,
    /// Fields that were filled in.
    pub entries: usize,
    pub time: Duration,
}

/// Acts since the counter was set to zero.
struct Counter {
    since: Instant,
    clicks: usize,
    entries: usize,
}

impl Counter {
    fn zero() -> Self {
        Self {
            since: Instant::now(),
            clicks: 0,
            entries: 0,
        }
    }
}

pub struct TestBrowser {
    pub page: Client,
    counter: Mutex<Counter>,
    _driver: ChromeDriverProcess,
    _profile: tempfile::TempDir,
}

/// The driver's process group. Dropping it at the end of a test also ends the browser.
struct ChromeDriverProcess(Child);

impl Drop for ChromeDriverProcess {
    fn drop(&mut self) {
        if let Some(group) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.0.wait();
    }
}

impl TestBrowser {
    pub async fn open(screen: EmulatedScreen) -> Self {
        Self::start(screen, true).await
    }

    pub async fn without_javascript(screen: EmulatedScreen) -> Self {
        Self::start(screen, false).await
    }

    async fn start(screen: EmulatedScreen, javascript: bool) -> Self {
        let (driver, port) = driver();
        let profile = tempfile::tempdir().unwrap();
        let mut arguments: Vec<String> = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
        ]
        .map(str::to_owned)
        .to_vec();

        arguments.push(format!("--user-data-dir={}", profile.path().display()));
        let mut options = json!({ "args": arguments });
        match screen {
            EmulatedScreen::Desktop => arguments.push("--window-size=1280,900".into()),
            EmulatedScreen::Phone => emulate(&mut options, 360, 740),
            EmulatedScreen::Landscape => emulate(&mut options, 740, 360),
            EmulatedScreen::Zoomed => emulate(&mut options, 320, 256),
        }

        options["args"] = json!(arguments);
        if !javascript {
            let off = json!({ "profile.managed_default_content_settings.javascript": 2 });
            options["prefs"] = off;
        }

        let mut capabilities = Map::new();
        capabilities.insert("goog:chromeOptions".into(), options);
        let page = ClientBuilder::new(hyper_util::client::legacy::connect::HttpConnector::new())
            .capabilities(capabilities)
            .connect(&format!("http://127.0.0.1:{port}"))
            .await
            .expect("Chromium starts");

        Self {
            page,
            counter: Mutex::new(Counter::zero()),
            _driver: driver,
            _profile: profile,
        }
    }

    pub async fn url(&self) -> String {
        self.page.current_url().await.unwrap().to_string()
    }

    pub async fn goto(&self, url: &str) {
        self.page.goto(url).await.unwrap();
    }

    /// Waits until an element that matches is visible.
    pub async fn see(&self, css: &str) -> fantoccini::elements::Element {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            if let Ok(found) = self.page.find(Locator::Css(css)).await
                && found.is_displayed().await.unwrap_or(false)
            {
                return found;
            }
            if Instant::now() > deadline {
                let text = self.text().await;
                panic!("no {css} on the page: {text}");
            }

            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until the page contains the text.
    pub async fn read(&self, text: &str) {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let now = self.text().await;
            if now.contains(text) {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "{text:?} is not on the page: {now}"
            );

            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub async fn text(&self) -> String {
        match self.page.find(Locator::Css("body")).await {
            Ok(body) => body.text().await.unwrap_or_default(),
            Err(_) => String::new(),
        }
    }

    /// Sets the counter of clicks, entries and time to zero.
    pub fn begin(&self) {
        *self.counter.lock().unwrap() = Counter::zero();
    }

    /// Returns the clicks, entries and time since [`TestBrowser::begin`].
    pub fn effort(&self) -> Effort {
        let counter = self.counter.lock().unwrap();
        Effort {
            clicks: counter.clicks,
            entries: counter.entries,
            time: counter.since.elapsed(),
        }
    }

    pub async fn click(&self, css: &str) {
        self.counter.lock().unwrap().clicks += 1;
        // A page that follows its record can replace the element before it is clicked.
        for _ in 0..20 {
            match self.see(css).await.click().await {
                Err(error) if error.is_stale_element_reference() => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                clicked => return clicked.unwrap(),
            }
        }
        panic!("{css} is replaced again and again");
    }

    pub async fn type_into(&self, css: &str, text: &str) {
        self.counter.lock().unwrap().entries += 1;
        self.see(css).await.send_keys(text).await.unwrap();
    }

    /// Presses Tab until the element has the focus, like a user without a mouse.
    pub async fn tab_to(&self, css: &str) {
        let focused = format!("return document.activeElement === document.querySelector({css:?})");
        for _ in 0..60 {
            if self.run(&focused).await == Value::Bool(true) {
                return;
            }
            self.keys("\u{e004}").await;
        }
        panic!("{css} cannot be reached by keyboard");
    }

    /// Types into the focused element, one key at a time like a real keyboard. `\u{e004}` is Tab,
    /// `\u{e007}` Enter. WebDriver's "element send keys" would focus the element first, which moves
    /// the cursor of a date control back to its first part.
    pub async fn keys(&self, keys: &str) {
        use fantoccini::actions::{InputSource as _, KeyAction, KeyActions};
        let mut board = KeyActions::new("keyboard".into());
        for value in keys.chars() {
            board = board
                .then(KeyAction::Down { value })
                .then(KeyAction::Up { value });
        }
        self.page.perform_actions(board).await.unwrap();
    }

    /// Presses keys together as a chord and releases the last one first.
    pub async fn press(&self, keys: &[&str]) {
        use fantoccini::actions::{InputSource as _, KeyAction, KeyActions};

        let keys: Vec<char> = keys.iter().filter_map(|key| key.chars().next()).collect();
        let mut board = KeyActions::new("keyboard".into());
        for value in &keys {
            board = board.then(KeyAction::Down { value: *value });
        }

        for value in keys.iter().rev() {
            board = board.then(KeyAction::Up { value: *value });
        }

        self.page.perform_actions(board).await.unwrap();
    }

    /// Runs a script in the page and returns the value that it returns with `return`.
    pub async fn run(&self, script: &str) -> Value {
        self.page.execute(script, Vec::new()).await.unwrap()
    }

    /// Waits until a script in the page returns `true`.
    pub async fn until(&self, script: &str) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.run(script).await != Value::Bool(true) {
            if Instant::now() > deadline {
                panic!("never: {script}: {}", self.text().await);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Draws a line through points inside an element, like a pen.
    pub async fn draw(&self, css: &str, points: &[(f64, f64)]) {
        use fantoccini::actions::{
            InputSource as _, MOUSE_BUTTON_LEFT, MouseActions, PointerAction,
        };

        let element = self.see(css).await;
        let (_, _, width, height) = element.rectangle().await.unwrap();
        let mut pen = MouseActions::new("pen".into());
        for (index, (x, y)) in points.iter().enumerate() {
            pen = pen.then(PointerAction::MoveToElement {
                element: element.clone(),
                duration: Some(Duration::from_millis(20)),
                x: (x - 0.5) * width,
                y: (y - 0.5) * height,
            });

            if index == 0 {
                pen = pen.then(PointerAction::Down {
                    button: MOUSE_BUTTON_LEFT,
                });
            }
        }

        pen = pen.then(PointerAction::Up {
            button: MOUSE_BUTTON_LEFT,
        });

        self.page.perform_actions(pen).await.unwrap();
    }

    /// Drags from the middle of one element to a point inside another, given in parts of its size, with
    /// a finger.
    pub async fn drag_by_finger(&self, from: &str, to: &str, (x, y): (f64, f64)) {
        use fantoccini::actions::{InputSource as _, PointerAction, TouchActions};

        let (from, to) = (self.see(from).await, self.see(to).await);
        let (_, _, width, height) = to.rectangle().await.unwrap();
        let duration = Some(Duration::from_millis(20));
        let on = |x: f64, y: f64| PointerAction::MoveToElement {
            element: to.clone(),
            duration,
            x: x * width,
            y: y * height,
        };
        let finger = TouchActions::new("finger".into())
            .then(PointerAction::MoveToElement {
                element: from,
                duration,
                x: 0.0,
                y: 0.0,
            })
            .then(PointerAction::Down { button: 0 })
            // A browser decides by the first movement whether a finger scrolls.
            .then(PointerAction::MoveBy {
                duration,
                x: 0.0,
                y: -30.0,
            })
            .then(on(x - 0.5, y - 0.45))
            .then(on(x - 0.5, y - 0.5))
            .then(PointerAction::Up { button: 0 });

        self.page.perform_actions(finger).await.unwrap();
    }

    /// Sends a command of the DevTools protocol to the browser.
    pub async fn tell(&self, command: &str, parameters: Value) {
        let command = DeveloperTools {
            command: command.to_owned(),
            parameters,
        };
        self.page.issue_cmd(command).await.unwrap();
    }

    /// Gives the browser a device with passkeys, which recognizes its person at once.
    pub async fn authenticator(&self) {
        let options = json!({
            "protocol": "ctap2", "transport": "internal", "hasResidentKey": true,
            "hasUserVerification": true, "isUserVerified": true, "automaticPresenceSimulation": true,
        });
        self.tell("WebAuthn.enable", json!({})).await;
        let device = json!({ "options": options });
        self.tell("WebAuthn.addVirtualAuthenticator", device).await;
    }

    pub async fn dark(&self) {
        let dark = json!([{ "name": "prefers-color-scheme", "value": "dark" }]);
        self.tell("Emulation.setEmulatedMedia", json!({ "features": dark }))
            .await;
    }

    /// Emulates a slow phone: 1.6 Mbit/s down, 150 ms to each answer, a quarter of the processor.
    pub async fn slow(&self) {
        let network = json!({
            "offline": false, "latency": 150, "downloadThroughput": 200_000, "uploadThroughput": 93_750,
        });
        self.tell("Network.enable", json!({})).await;
        self.tell("Network.emulateNetworkConditions", network).await;
        self.tell("Emulation.setCPUThrottlingRate", json!({ "rate": 4 }))
            .await;
    }

    /// Asks for pages in this language from now on.
    pub async fn prefer(&self, language: &str) {
        let headers = json!({ "headers": { "Accept-Language": language } });
        self.tell("Network.enable", json!({})).await;
        self.tell("Network.setExtraHTTPHeaders", headers).await;
    }

    pub async fn offline(&self, offline: bool) {
        let network = json!({
            "offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1,
        });
        self.tell("Network.enable", json!({})).await;
        self.tell("Network.emulateNetworkConditions", network).await;
    }

    /// Saves a screenshot of the page next to the build, for manual review.
    pub async fn picture(&self, name: &str) {
        let png = self.page.screenshot().await.unwrap();
        let folder = screenshots();
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("{name}.png")), png).unwrap();
    }

    /// Asserts that axe-core finds no serious or critical problem, and HTML_CodeSniffer (the engine of
    /// pa11y) no error against WCAG 2 AA.
    pub async fn is_accessible(&self, what: &str) {
        self.run(engine("axe-core/axe.min.js")).await;
        let script = "const done = arguments[arguments.length - 1];
            axe.run(document, { resultTypes: ['violations'] }).then(
                (found) => done(found.violations.map((rule) => ({
                    id: rule.id, impact: rule.impact,
                    nodes: rule.nodes.map((node) => node.html + ' ' + node.failureSummary),
                }))),
                (error) => done(String(error)));";
        let found = self.page.execute_async(script, Vec::new()).await.unwrap();
        let found = found.as_array().unwrap_or_else(|| panic!("{found}"));
        let serious: Vec<&Value> = found
            .iter()
            .filter(|rule| rule["impact"] == "serious" || rule["impact"] == "critical")
            .collect();
        assert!(serious.is_empty(), "{what}: {serious:#?}");

        self.run(engine("html_codesniffer/build/HTMLCS.js")).await;
        let script = "const done = arguments[arguments.length - 1];
            HTMLCS.process('WCAG2AA', document, () => done(HTMLCS.getMessages()
                .filter((message) => message.type === HTMLCS.ERROR)
                // Forms that keep each change at once need no button (H32 is one technique of several).
                .filter((message) => !message.code.endsWith('.H32.2'))
                // It takes noscript as visible, and knows `color` of a text in SVG and not its fill.
                .filter((message) => !message.element.closest?.('noscript, svg'))
                .map((message) => `${message.code}: ${message.msg} ${message.element.outerHTML?.slice(0, 200)}`)),
                () => done('it failed'));";

        let errors = self.page.execute_async(script, Vec::new()).await.unwrap();
        assert_eq!(errors, json!([]), "{what}: {errors:#}");
    }
}

fn emulate(options: &mut Value, width: u32, height: u32) {
    let metrics = json!({ "width": width, "height": height, "pixelRatio": 2.0, "touch": true });
    options["mobileEmulation"] = json!({ "deviceMetrics": metrics });
}

pub fn screenshots() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("screenshots")
}

/// Returns the script of an accessibility engine.
fn engine(file: &str) -> &'static str {
    static SOURCES: Mutex<BTreeMap<String, &str>> = Mutex::new(BTreeMap::new());

    let mut sources = SOURCES.lock().unwrap();
    sources.entry(file.to_owned()).or_insert_with(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../axe/node_modules");
        let source = std::fs::read_to_string(folder.join(file));
        source
            .expect("the engine is there: tests/set-up test")
            .leak()
    })
}

/// Starts a driver. Drivers that start at the same time can choose the same port; the one that
/// loses exits, so this tries again.
fn driver() -> (ChromeDriverProcess, u16) {
    let mut started = (0..10).filter_map(|_| try_driver());
    started.next().expect("chromedriver says its port")
}

fn try_driver() -> Option<(ChromeDriverProcess, u16)> {
    let mut child = Command::new("chromedriver")
        .arg("--port=0")
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("chromedriver is there: tests/set-up test");
    let output = child.stdout.take().unwrap();

    let driver = ChromeDriverProcess(child);
    let mut lines = BufReader::new(output).lines();
    let port = lines.by_ref().find_map(|line| {
        let line = line.ok()?;
        let rest = line.split_once("started successfully on port ")?.1;
        rest.trim_end_matches('.').parse().ok()
    })?;

    // Keep reading: the driver would block on a full pipe.
    std::thread::spawn(move || lines.for_each(drop));
    Some((driver, port))
}

/// A command of Chromium's DevTools protocol, sent through its driver.
#[derive(Debug)]
struct DeveloperTools {
    command: String,
    parameters: Value,
}

impl WebDriverCompatibleCommand for DeveloperTools {
    fn endpoint(
        &self,
        base: &url::Url,
        session: Option<&str>,
    ) -> Result<url::Url, url::ParseError> {
        base.join(&format!(
            "session/{}/goog/cdp/execute",
            session.unwrap_or_default()
        ))
    }

    fn method_and_body(&self, _: &url::Url) -> (Method, Option<String>) {
        let body = json!({ "cmd": self.command, "params": self.parameters });
        (Method::POST, Some(body.to_string()))
    }
}
