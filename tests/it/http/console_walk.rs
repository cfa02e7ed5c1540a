//! A walk over the console: from the first page along all links, and each form that is found is sent with each kind of
//! wrong entry.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use axum::http::{Method, Request};
use holdfast::domain::component::Slot;
use serde_json::{Value, json};

use super::console::{Session, asked, invited};
use super::console_acts::ASKS;
use super::console_cells::{KnownIds, ids_of, routes};
use super::passkeys::encoded;
use crate::service::components::registry::variant;
use crate::service::funding;
use crate::support::pages::{FormControl, PageForm, attributes_of, forms_of, links_of, texts_of};
use crate::support::uploads::form_of;
use crate::support::{TestApp, TestResponse, envelope_body, form, pdf};

/// Forms that the walk does not reach, with the reason.
const NOT_REACHED: &[(&str, &str)] = &[
    ("/confirm", "is shown ten minutes after a confirmation"),
    (
        "/control/records/{id}/copy",
        "is shown to another party, as below",
    ),
    ("/enter/{link}/{code}", "comes before the sign-in"),
    ("/passkeys", "needs the answer of a device"),
    ("/passkeys/{id}/remove", "needs a device before"),
    ("/sign-in", "comes before the sign-in"),
    ("/sign-in/passkey", "comes before the sign-in"),
    ("/sso/{org}", "comes before the sign-in"),
];

/// Most pages of one route with the same conditions.
const PAGES: usize = 8;

/// A file that no form takes.
const NO_FILE: &[u8] = b"\xff no such file";

/// Pages and forms that were found.
struct ConsoleWalk<'a> {
    app: &'a TestApp,
    session: &'a Session,
    routes: BTreeSet<String>,
    waiting: VecDeque<String>,
    seen: BTreeSet<String>,
    visits: BTreeMap<String, usize>,
    pages: usize,
    /// Forms by their address and the names of their controls, without ids.
    forms: BTreeMap<(String, BTreeSet<String>), PageForm>,
}

impl<'a> ConsoleWalk<'a> {
    fn new(app: &'a TestApp, session: &'a Session) -> Self {
        Self {
            app,
            session,
            routes: routes().into_iter().map(|(_, path)| path).collect(),
            waiting: VecDeque::from(["/console".to_owned()]),
            seen: BTreeSet::new(),
            visits: BTreeMap::new(),
            pages: 0,
            forms: BTreeMap::new(),
        }
    }

    /// Reads all pages that links lead to.
    async fn go(&mut self) {
        while let Some(path) = self.waiting.pop_front() {
            let answer = self.session.get(self.app, &path).await;
            if answer.status == 303 {
                self.follow(answer.headers["location"].to_str().unwrap());
                continue;
            }

            assert_eq!(answer.status, 200, "a link leads to {path}");
            let kind = answer.headers["content-type"].to_str().unwrap();
            if kind.starts_with("text/html") {
                self.read(&path, &answer.text());
            }
        }
    }

    fn read(&mut self, path: &str, page: &str) {
        self.pages += 1;
        for form in forms_of(page) {
            if !form.action.starts_with("/console/") {
                continue;
            }
            let names = form.controls.iter().map(|one| without_ids(&one.name));
            let key = (without_ids(&form.action), names.collect());
            self.forms.entry(key).or_insert(form);
        }

        for link in links_of(page, path) {
            self.follow(&link);
        }
    }

    fn follow(&mut self, link: &str) {
        if !link.starts_with("/console") || !self.seen.insert(link.to_owned()) {
            return;
        }

        let (path, query) = link.split_once('?').unwrap_or((link, ""));
        let conditions = url::form_urlencoded::parse(query.as_bytes());
        let conditions: BTreeSet<_> = conditions.map(|(name, _)| name.into_owned()).collect();
        let kind = format!("{} {conditions:?}", without_ids(path));
        let visits = self.visits.entry(kind).or_default();
        *visits += 1;
        if *visits <= PAGES {
            self.waiting.push_back(link.to_owned());
        }
    }

    /// Returns the routes of the forms.
    fn reached(&self) -> BTreeSet<String> {
        let actions = self.forms.values().map(|form| form.action.as_str());
        actions.map(|action| self.route_of(action)).collect()
    }

    fn route_of(&self, action: &str) -> String {
        let below = action.strip_prefix("/console").unwrap();
        let is_of = |route: &str| {
            let is_as_long = route.split('/').count() == below.split('/').count();
            let mut pairs = route.split('/').zip(below.split('/'));
            is_as_long && pairs.all(|(part, given)| part.starts_with('{') || part == given)
        };
        let found = self.routes.iter().filter(|route| is_of(route));
        // The router prefers the route with more literal parts.
        let found = found.min_by_key(|route| route.matches('{').count());
        found.unwrap_or_else(|| panic!("no route {action}")).clone()
    }
}

/// Replaces the ids in a path or a name.
fn without_ids(text: &str) -> String {
    let is_id = |part: &str| {
        let tail = part.rsplit_once('_').map(|(_, tail)| tail);
        tail.is_some_and(|tail| tail.len() == 26)
    };
    let part = |part: &str| {
        let words = part
            .split('-')
            .map(|one| if is_id(one) { "ID" } else { one });
        words.collect::<Vec<_>>().join("-")
    };
    text.split('/').map(part).collect::<Vec<_>>().join("/")
}

/// Returns the values that a control has to refuse, by its type.
fn wrong_values(control: &FormControl) -> Vec<String> {
    let kind = control.kind.as_str();
    let is_of_machine = matches!(kind, "hidden" | "checkbox" | "submit" | "password");
    if is_of_machine || control.has("readonly") || control.has("hidden") {
        return Vec::new();
    }

    let mut wrong: Vec<String> = Vec::new();
    let is_chosen = matches!(kind, "select" | "radio" | "file");
    if control.has("required") && !is_chosen {
        wrong.push(String::new());
    }
    let is_text = matches!(
        kind,
        "text" | "textarea" | "email" | "url" | "search" | "tel"
    );
    if let Some(most) = control.number("maxlength").filter(|_| is_text) {
        wrong.push("x".repeat(usize::try_from(most).unwrap() + 1));
    }
    if control.has("pattern") {
        wrong.push("?".to_owned());
    }

    let of_kind = match kind {
        "email" => "nowhere-at-all",
        "url" => "nowhere at all",
        "number" => "soonish",
        "date" | "datetime-local" => "tomorrow",
        "time" => "late",
        "select" | "radio" => "no-such-choice",
        "file" => "no such file",
        _ => return wrong,
    };
    wrong.push(of_kind.to_owned());
    if kind == "number" {
        let below = control.number("min").map(|least| least - 1);
        let above = control.number("max").map(|most| most + 1);
        wrong.extend(
            [below, above]
                .into_iter()
                .flatten()
                .map(|one| one.to_string()),
        );
    }

    wrong
}

/// Returns a value that a user could enter, another one for each control; none for a file.
fn entered(control: &FormControl, number: usize) -> Option<String> {
    let present = control.value.clone();
    let is_given = present.as_deref().is_some_and(|value| !value.is_empty());
    let entry = match control.kind.as_str() {
        "file" | "submit" => return None,
        "checkbox" => return Some(control.attributes.get("value")?.clone()),
        "hidden" | "select" | "radio" => return present,
        _ if is_given => return present,
        "email" => format!("entry{number}@elm.example"),
        "url" => format!("https://entry{number}.example/"),
        "number" => control.number("min").unwrap_or(1).to_string(),
        "date" => format!("2031-05-{:02}", number % 28 + 1),
        _ => format!("Entry {number}"),
    };
    let most = control.number("maxlength").unwrap_or(500);
    Some(entry.chars().take(usize::try_from(most).unwrap()).collect())
}

/// Sends a form as a browser does.
async fn post(
    app: &TestApp,
    session: &Session,
    form: &PageForm,
    entries: &[(String, String)],
    file: &[u8],
) -> TestResponse {
    let pairs = entries.iter();
    let pairs: Vec<_> = pairs
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    if !form.is_multipart {
        let form_text = encoded(&pairs);
        return asked(app, Method::POST, &form.action, &session.cookie, &form_text).await;
    }

    let (content_type, body) = form_of(Some(("application/pdf", file)), &pairs);
    let request = Request::post(&form.action)
        .header("accept", "text/html")
        .header("content-type", content_type)
        .header("cookie", &session.cookie);
    app.send(request.body(body.into()).unwrap()).await
}

/// Form with a wrong entry in one control.
struct WrongForm<'a> {
    form: &'a PageForm,
    wrong: &'a FormControl,
    value: String,
}

impl WrongForm<'_> {
    /// Returns the entries as a browser sends them.
    fn entries(&self) -> Vec<(String, String)> {
        let controls = self.form.controls.iter().enumerate();
        let others = controls.filter(|(_, one)| one.name != self.wrong.name);
        let mut entries: Vec<_> = others
            .filter_map(|(at, one)| Some((one.name.clone(), entered(one, at)?)))
            .collect();
        if self.wrong.kind != "file" {
            entries.push((self.wrong.name.clone(), self.value.clone()));
        }

        entries
    }

    /// Sends the form, and agrees where a page asks.
    async fn send(&self, app: &TestApp, session: &Session) -> TestResponse {
        let mut sent = self.entries();
        sent.extend(self.form.first_button.clone());
        let document = pdf::with_lines(&["A plain agreement"]);
        let file = match self.wrong.kind.as_str() {
            "file" => NO_FILE,
            _ => document.as_slice(),
        };
        let answer = post(app, session, self.form, &sent, file).await;
        let page = answer.text();
        let forms = forms_of(&page);
        let asks = forms.iter().find(|form| form.control("sure").is_some());
        let Some(asks) = asks.filter(|_| answer.status == 200) else {
            return answer;
        };

        let object = texts_of(&page, "ul.rows strong").concat();
        let agreed = asks.controls.iter().map(|one| {
            let value = match one.name.as_str() {
                "typed" => object.clone(),
                _ => one.value.clone().unwrap_or_default(),
            };
            (one.name.clone(), value)
        });
        let agreed: Vec<_> = agreed.collect();
        post(app, session, self.form, &agreed, file).await
    }

    /// Returns the faults of the answer.
    fn faults(&self, answer: &TestResponse) -> Vec<String> {
        if !answer.status.is_client_error() {
            return vec![format!("was answered with {}", answer.status)];
        }

        let page = answer.text();
        let forms = forms_of(&page);
        let mut same = forms.iter().filter(|form| form.action == self.form.action);
        let Some(form) = same.find(|form| form.control(&self.wrong.name).is_some()) else {
            return vec![format!("{}: the form is gone", answer.status)];
        };

        let mut faults = Vec::new();
        if !form.has_problem {
            faults.push("no problem in the form".to_owned());
        }
        for link in attributes_of(&page, ".problems a[href^='#']", "href") {
            let field = format!("[id='{}']", &link[1..]);
            if texts_of(&page, &field).is_empty() {
                faults.push(format!("a problem leads to {link}, which is not there"));
            }
        }

        // An unknown choice is no choice of the page.
        let has_no_place = |name: &str| {
            name == self.wrong.name && matches!(self.wrong.kind.as_str(), "select" | "radio")
        };
        let is_secret = |name: &str| {
            let control = form.control(name);
            name == "token" || control.is_some_and(|one| one.kind == "password")
        };
        for (name, value) in self.entries() {
            let is_kept = form.values(&name).any(|kept| kept == value);
            if !is_kept && !is_secret(&name) && !has_no_place(&name) {
                faults.push(format!("{name}={value:.20} is lost"));
            }
        }

        faults
    }
}

/// Sends each form with each wrong entry. Returns their number, and the faults of the answers.
async fn send_wrong_entries(walk: &ConsoleWalk<'_>) -> (usize, Vec<String>) {
    let (mut sent, mut faults) = (0, Vec::new());
    for form in walk.forms.values() {
        let mut known = BTreeSet::new();
        for wrong in &form.controls {
            // The choices of a group have one name.
            if !known.insert(&wrong.name) {
                continue;
            }
            for value in wrong_values(wrong) {
                let wrong = WrongForm { form, wrong, value };
                let answer = wrong.send(walk.app, walk.session).await;
                sent += 1;
                let (action, name) = (&form.action, &wrong.wrong.name);
                let found = wrong.faults(&answer).into_iter();
                faults.extend(
                    found.map(|fault| format!("{action} {name}={:.20}: {fault}", wrong.value)),
                );
            }
        }
    }

    (sent, faults)
}

/// Fills an organization with objects in the states that have forms. Returns pages that only forms lead to.
async fn fill(app: &TestApp, ada: &Session, known: &KnownIds) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let post = async |path: &str, entries: &[(&str, &str)]| {
        let answer = ada.post(app, path, &encoded(entries)).await;
        assert_eq!(answer.status, 303, "{path}: {}", answer.text());
        answer
    };
    let (template, sent) = (known.template.as_str(), known.envelope.as_str());

    // Documents: a draft, a paper, one with a question, a void one.
    let tagged = pdf::with_lines(&["{{Sign;type=signature;role=Buyer}}"]);
    let draft = ada.upload(app, "/console/drafts", &tagged, &[]).await;
    assert_eq!(draft.status, 303, "{}", draft.text());
    let paper = json!({
        "customer_email": "jordan.lee@example.com", "customer_name": "Jordan Lee",
        "envelope_kind": "paper", "envelope_name": "A paper",
    });
    let paper = app.post("/partner/envelopes", paper).await.data(201);
    let path = format!("/partner/envelopes/{}/upload", text(&paper["envelope_id"]));
    let signed = pdf::with_lines(&["Signed elsewhere"]);
    app.upload(&path, "application/pdf", &signed, &[])
        .await
        .data(201);
    let body = envelope_body(&json!(template));
    let doubtful = app.post("/partner/envelopes", body.clone()).await.data(201);
    let question = [("sender-question".to_owned(), "Which price?".to_owned())];
    form::press(app, &text(&doubtful["sign_url"]), "ask", &question).await;
    let void = app.post("/partner/envelopes", body).await.data(201);
    let void = format!("/partner/envelopes/{}/void", text(&void["envelope_id"]));
    app.post(&void, json!({})).await.data(200);

    // What belongs to a document or to the list of them.
    let dates = format!("/console/envelopes/{sent}/dates");
    post(&dates, &[("name", "Term"), ("date", "2031-05-01")]).await;
    post("/console/filters", &[("name", "Elm"), ("q", "elm")]).await;
    let place = format!("at-{template}");
    let package = [("name", "Sale"), (place.as_str(), "1")];
    post("/console/packages", &package).await;
    let links = format!("/console/templates/{template}/open-links");
    let link = [
        ("name", "Summer sale"),
        ("expires_at", "2030-12-31"),
        ("limit", "20"),
        ("verify_email", "yes"),
    ];
    post(&links, &link).await;

    // The columns of tapes.
    let columns = [("map", "Line 12"), ("columns", "Loan = contract_number")];
    post("/console/tapes/maps", &columns).await;
    let table = b"Loan Number,Amount Financed,Colour\nA-1,5,red\n";
    let waiting = ada.upload(app, "/console/tapes", table, &[("name", "Line 13")]);
    let waiting = waiting.await;
    assert_eq!(waiting.status, 303, "{}", waiting.text());

    // A map of facts with two versions, attachments, an own pack and one of a lender.
    let map = [
        ("name", "Retail"),
        ("template", template),
        ("begin", "retail_installment"),
    ];
    let map = post("/console/fact-maps", &map).await;
    let map = map.headers["location"].to_str().unwrap();
    let map = map.trim_start_matches("/console");
    let mut content = app.web(Method::GET, map, Value::Null).await.data(200);
    let members = content.as_object_mut().unwrap();
    members.retain(|name, _| ["name", "applies_to", "facts"].contains(&name.as_str()));
    app.web(Method::PUT, map, content).await.data(200);
    let attachments = format!("/console/envelopes/{sent}/stipulations");
    post(&attachments, &[("stipulations", "insurance")]).await;
    let (lender, pack) = funding::lender(app).await;
    let invitation = json!({ "organization_id": app.org.as_str() });
    let path = format!("/funding-packs/{pack}/invitations");
    app.post_with_bearer(&lender, &path, invitation)
        .await
        .data(200);
    let component = variant(Slot::Funding, "rules of the originator");
    let component = app
        .upload_component(app.web_admin(), "elm-funding", "1.0.0", &component)
        .await
        .data(201);
    let component = text(&component["component_id"]);
    let own = [
        ("name", "Own"),
        ("component_id", component.as_str()),
        ("description", "First terms"),
    ];
    post("/console/funding", &own).await;
    // A request to destroy a record, and one that another person has authorized.
    let reviewer = app.person("ben@oak.example", "compliance");
    for is_authorized in [false, true] {
        let id = app.vaulted_envelope().await;
        let request = json!({ "envelope_ids": [id], "reason": "Its time is over." });
        let request = app.web(Method::POST, "/destructions", request).await;
        let request = text(&request.data(201)["destruction_id"]);
        if is_authorized {
            let path = format!("/destructions/{request}/authorize");
            let authorized = app.post_with_bearer(&reviewer, &path, json!({})).await;
            authorized.data(200);
        }
    }
    // A legal hold, and one of which the end is requested.
    for case in ["A-17", "B-18"] {
        let hold = json!({
            "scope": "customer", "subject_id": known.customer, "reason": "Suit", "case_reference": case,
        });
        let hold = app.web(Method::POST, "/legal-holds", hold).await.data(201);
        if case == "B-18" {
            let lift = format!("/console/holds/{}/lift", text(&hold["hold_id"]));
            post(&lift, &[("reason", "Settled")]).await;
        }
    }

    // A deleted template, and another version of a template.
    let [deleted, versioned] = [app.contract_template().await, app.contract_template().await];
    let deleted = text(&deleted["template_id"]);
    let path = format!("/console/templates/{deleted}/delete");
    post(&path, &[("sure", "yes")]).await;
    let versions = text(&versioned["template_id"]);
    let versions = format!("/console/templates/{versions}/versions");
    let differences = ada.upload(app, &versions, &tagged, &[]).await.text();
    let proposal = forms_of(&differences);
    let proposal = proposal.iter().find_map(|form| form.control("proposal"));
    let proposal = proposal.unwrap().value.clone().unwrap();
    let confirmed = [("proposal", proposal.as_str())];
    post(&format!("{versions}/confirm"), &confirmed).await;

    // People, a receiver that is disabled, rules in force, and a table of clients.
    invited(app, "eva@oak.example", "admin");
    let receiver = json!({ "url": "https://hooks.example.com/off", "events": ["*"] });
    let receiver = app
        .web(Method::POST, "/webhooks/endpoints", receiver)
        .await
        .data(201);
    let receiver = text(&receiver["endpoint_id"]);
    post(&format!("/console/receivers/{receiver}/disable"), &[]).await;
    let rules = variant(Slot::Compliance, "shown");
    let admin = app.web_admin();
    let rules = app.upload_component(admin, "elm-rules", "1.0.0", &rules);
    let rules = rules.await.data(201);
    let active = json!({ "component_id": rules["component_id"] });
    let path = "/component-slots/rules.compliance/activate";
    app.post_with_bearer(admin, path, active).await.data(201);

    let table = format!("/console/bulk/{}/table", known.batch);
    let columns = ada.upload(app, &table, b"Name,Mail\nKim,kim@elm.example\n", &[]);
    vec![differences, columns.await.text()]
}

/// Walks over the console of an organization that has objects in most states.
async fn walked<'a>(app: &'a TestApp, ada: &'a Session) -> ConsoleWalk<'a> {
    let known = ids_of(app).await;
    let pages = fill(app, ada, &known).await;
    app.vaulted_envelope().await;

    let mut walk = ConsoleWalk::new(app, ada);
    for page in pages {
        walk.read("/console", &page);
    }
    walk.go().await;
    walk
}

#[tokio::test(flavor = "multi_thread")]
async fn every_form_of_the_console_keeps_its_entries() {
    let app = TestApp::start().await;
    let ada = Session::of(&app, "ada@oak.example", "owner").await;
    let walk = walked(&app, &ada).await;

    let forms = routes().into_iter().filter(|(method, _)| method == "POST");
    let left_out = NOT_REACHED.iter().map(|(path, _)| (*path).to_owned());
    let reached: BTreeSet<String> = walk.reached().into_iter().chain(left_out).collect();
    let forms: BTreeSet<String> = forms.map(|(_, path)| path).collect();
    assert_eq!(reached, forms);

    let (sent, faults) = send_wrong_entries(&walk).await;
    println!(
        "{} pages, {} forms, {sent} wrong entries",
        walk.pages,
        walk.forms.len()
    );
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(sent > 150, "{sent} wrong entries");
}

/// The party that is to get control of a record has forms that the originator has not.
#[tokio::test(flavor = "multi_thread")]
async fn every_form_of_another_party_keeps_its_entries() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let (lender, _) = app.party().await;
    let designate = format!("/partner/control/records/{id}/designate");
    let body = json!({ "controller": lender });
    app.post(&designate, body).await.data(200);
    let lea = Session::at(&app, &lender, "lea@bank.example", "owner").await;

    let mut walk = ConsoleWalk::new(&app, &lea);
    walk.go().await;
    let reached = walk.reached();
    assert!(reached.contains("/control/records/{id}/copy"));
    assert!(reached.contains("/control/{act}/{id}"));

    let (_, faults) = send_wrong_entries(&walk).await;
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The page that asks names what happens. A form with a box that agrees comes back without the tick.
#[tokio::test(flavor = "multi_thread")]
async fn every_red_button_asks() {
    let app = TestApp::start().await;
    let ada = Session::of(&app, "ada@oak.example", "owner").await;
    let walk = walked(&app, &ada).await;
    let document = pdf::with_lines(&["A plain agreement"]);

    let mut asking = BTreeSet::new();
    for form in walk.forms.values().filter(|form| form.is_dangerous) {
        let controls = form.controls.iter().enumerate();
        let unsure = controls.filter(|(_, one)| one.name != "sure");
        let mut entries: Vec<_> = unsure
            .filter_map(|(at, one)| Some((one.name.clone(), entered(one, at)?)))
            .collect();
        entries.extend(form.first_button.clone());

        let answer = post(&app, &ada, form, &entries, &document).await;
        let page = answer.text();
        let asks = forms_of(&page)
            .iter()
            .any(|one| one.control("sure").is_some());
        let has_acted = answer.status.is_redirection();
        assert!(asks && !has_acted, "{}: {page}", form.action);
        asking.insert(walk.route_of(&form.action));
    }

    let unknown = asking
        .iter()
        .filter(|route| !ASKS.contains(&route.as_str()));
    assert_eq!(unknown.count(), 0, "{asking:?}");
    assert!(asking.len() >= 8, "{asking:?}");
}
