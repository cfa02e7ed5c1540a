//! Forms and links of pages, read as a browser without a script reads them.

use std::collections::BTreeMap;

use scraper::{ElementRef, Html, Selector};

/// Form of a page that is sent with POST.
#[derive(Clone)]
pub struct PageForm {
    pub action: String,
    pub is_multipart: bool,
    pub controls: Vec<FormControl>,
    /// Whether a problem is shown in the form.
    pub has_problem: bool,
    /// Whether a button is red.
    pub is_dangerous: bool,
    /// Name and value of the button that the Enter key presses, if it has a name.
    pub first_button: Option<(String, String)>,
}

/// Control of a form with a name.
#[derive(Clone)]
pub struct FormControl {
    pub name: String,
    /// Type of an `input`, else the name of the element.
    pub kind: String,
    /// What a browser sends; none for a box without a tick.
    pub value: Option<String>,
    pub attributes: BTreeMap<String, String>,
}

impl FormControl {
    pub fn has(&self, attribute: &str) -> bool {
        self.attributes.contains_key(attribute)
    }

    /// Returns an attribute that is a number.
    pub fn number(&self, attribute: &str) -> Option<i64> {
        self.attributes.get(attribute)?.parse().ok()
    }
}

impl PageForm {
    /// Returns the values that the controls of a name have.
    pub fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let named = self.controls.iter().filter(move |one| one.name == name);
        named.filter_map(|one| one.value.as_deref())
    }

    pub fn control(&self, name: &str) -> Option<&FormControl> {
        self.controls.iter().find(|one| one.name == name)
    }
}

/// Returns the forms of a page that are sent with POST to an address.
pub fn forms_of(page: &str) -> Vec<PageForm> {
    let page = Html::parse_document(page);
    let forms = selector("form[method=post][action]");
    let controls = selector("input, select, textarea, button");
    let read = |form: ElementRef<'_>| {
        let own = page.select(&controls);
        let own: Vec<_> = own.filter(|one| belongs_to(*one, form)).collect();
        let mut buttons = own.iter().filter(|one| is_button(**one));
        let first_button = buttons.next().and_then(|button| {
            let name = button.attr("name")?.to_owned();
            Some((name, button.attr("value").unwrap_or_default().to_owned()))
        });
        let named = own.iter().filter(|one| !is_button(**one));
        PageForm {
            action: form.attr("action").unwrap_or_default().to_owned(),
            is_multipart: form.attr("enctype") == Some("multipart/form-data"),
            controls: named.filter_map(|one| control(*one)).collect(),
            has_problem: form.select(&selector(PROBLEM)).next().is_some(),
            is_dangerous: form.select(&selector("button.danger")).next().is_some(),
            first_button,
        }
    };
    page.select(&forms).map(read).collect()
}

/// Problem of a field, list of problems, or field that is marked.
const PROBLEM: &str = ".problem, .problems, [aria-invalid=true]";

fn selector(css: &str) -> Selector {
    Selector::parse(css).unwrap()
}

/// Whether a control is one of a form, inside it or by its id.
fn belongs_to(control: ElementRef<'_>, form: ElementRef<'_>) -> bool {
    match control.attr("form") {
        Some(id) => form.attr("id") == Some(id),
        None => control.ancestors().any(|one| one.id() == form.id()),
    }
}

fn kind_of(control: ElementRef<'_>) -> String {
    let name = control.value().name();
    let kind = control.attr("type");
    match name {
        "input" => kind.unwrap_or("text").to_owned(),
        _ => name.to_owned(),
    }
}

fn is_button(control: ElementRef<'_>) -> bool {
    let is_submit = kind_of(control) == "submit";
    is_submit || (control.value().name() == "button" && control.attr("type") != Some("button"))
}

fn control(element: ElementRef<'_>) -> Option<FormControl> {
    if element.attr("disabled").is_some() || element.value().name() == "button" {
        return None;
    }

    let kind = kind_of(element);
    let attributes = element.value().attrs();
    Some(FormControl {
        name: element.attr("name")?.to_owned(),
        value: value_of(element, &kind),
        attributes: attributes
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        kind,
    })
}

fn value_of(element: ElementRef<'_>, kind: &str) -> Option<String> {
    let given = element.attr("value");
    match kind {
        "textarea" => Some(element.text().collect()),
        "select" => {
            let options = selector("option");
            let mut chosen = element.select(&options);
            let chosen = chosen.find(|option| option.attr("selected").is_some());
            let chosen = chosen.or_else(|| element.select(&options).next())?;
            chosen.attr("value").map(str::to_owned)
        }
        "checkbox" | "radio" => {
            element.attr("checked")?;
            Some(given.unwrap_or("on").to_owned())
        }
        _ => Some(given.unwrap_or_default().to_owned()),
    }
}

/// Returns where the links of a page lead to on this host, by its own address. Downloads are left out.
pub fn links_of(page: &str, path: &str) -> Vec<String> {
    let page = Html::parse_document(page);
    let own = url::Url::parse("http://own.example").unwrap();
    let base = own.join(path).unwrap();
    let links = selector("a[href]:not([download])");
    let links = page.select(&links).filter_map(|link| {
        let to = base.join(link.attr("href")?).ok()?;
        let query = to.query().map(|query| format!("?{query}"));
        let is_own = to.origin() == own.origin();
        is_own.then(|| format!("{}{}", to.path(), query.unwrap_or_default()))
    });
    links.collect()
}

/// Returns the texts of the elements that match.
pub fn texts_of(page: &str, css: &str) -> Vec<String> {
    let page = Html::parse_document(page);
    let elements = selector(css);
    let texts = page
        .select(&elements)
        .map(|one| one.text().collect::<String>());
    texts.collect()
}

/// Returns an attribute of the elements that match and have it.
pub fn attributes_of(page: &str, css: &str, attribute: &str) -> Vec<String> {
    let page = Html::parse_document(page);
    let elements = selector(css);
    let values = page
        .select(&elements)
        .filter_map(|one| one.attr(attribute).map(str::to_owned));
    values.collect()
}
