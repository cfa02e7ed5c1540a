//! The guides: which there are, and their Markdown as HTML.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use maud::{PreEscaped, html};
use pulldown_cmark::{CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::reference;

/// Guides that belong together.
pub struct Group {
    pub title: &'static str,
    slugs: &'static [&'static str],
}

impl Group {
    pub fn guides(&self) -> impl Iterator<Item = &'static Guide> {
        self.slugs.iter().filter_map(|slug| Guide::named(slug))
    }
}

macro_rules! guides {
    ($($title:literal: [$($slug:literal),* $(,)?])*) => {
        /// The order in which people need them.
        pub const GROUPS: &[Group] = &[$(Group { title: $title, slugs: &[$($slug),*] }),*];

        /// Names and texts.
        const SOURCES: &[(&str, &str)] = &[$($(
            ($slug, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/", $slug, ".md")))
        ),*),*];
    };
}

guides! {
    "Start": ["quickstart", "test-mode", "coming-from", "mcp"]
    "Guides": [
        "documents", "fields", "embedding", "signers", "consent", "webhooks", "bulk-send", "vault", "import", "facts", "funding", "control", "signed-acts", "tape", "retention", "evidence",
        "payment-and-identity", "languages",
    ]
    "Extend": ["rules", "provider-plugins", "components", "component-delivery", "signing-providers"]
    "Look up": ["errors", "troubleshooting", "glossary", "roles", "configuration", "command-line"]
    "Operate": ["operations", "reverse-proxy", "sealing-certificates", "monitoring", "console", "capacity", "proofs"]
}

/// A page of the documentation.
pub struct Guide {
    pub slug: &'static str,
    pub title: String,
    /// The first sentence.
    pub about: String,
    pub html: String,
    pub source: &'static str,
    pub sections: Vec<Section>,
}

/// A heading with the text below it.
pub struct Section {
    pub id: String,
    pub title: String,
    pub text: String,
}

static GUIDES: LazyLock<Vec<Guide>> = LazyLock::new(|| {
    SOURCES
        .iter()
        .map(|(slug, text)| rendered(slug, text))
        .collect()
});

/// Returns all guides, in their order.
pub fn all() -> &'static [Guide] {
    &GUIDES
}

impl Guide {
    pub fn address(&self) -> String {
        format!("/docs/{}", self.slug)
    }

    pub fn named(slug: &str) -> Option<&'static Self> {
        GUIDES.iter().find(|guide| guide.slug == slug)
    }
}

/// Names of languages on tabs. Samples in these that follow each other are one sample in several languages.
const TABS: &[(&str, &str)] = &[
    ("sh", "curl"),
    ("python", "Python"),
    ("typescript", "TypeScript"),
    ("javascript", "JavaScript"),
    ("php", "PHP"),
    ("ruby", "Ruby"),
];

fn tab(language: &str) -> Option<&'static str> {
    let known = TABS.iter().find(|(name, _)| *name == language);
    known.map(|(_, label)| *label)
}

/// A piece of a page, in order.
enum Piece<'a> {
    Event(Event<'a>),
    Code { language: String, text: String },
}

fn rendered(slug: &'static str, source: &'static str) -> Guide {
    // The same files are read on GitHub, which has both extensions.
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let mut pieces: Vec<Piece<'_>> = Vec::new();
    // Text before the first heading goes into a section without a title, which the search leaves out.
    let mut sections = vec![Section {
        id: String::new(),
        title: String::new(),
        text: String::new(),
    }];

    let mut ids: BTreeMap<String, usize> = BTreeMap::new();
    let mut title = String::new();
    let mut about = String::new();

    // Place of the heading that is being read, its level and text.
    let mut heading: Option<(usize, HeadingLevel, String)> = None;
    let mut code: Option<(String, String)> = None;

    // The end of a link does not repeat its address, so the stack remembers whether its start was written.
    let mut links = Vec::new();
    for event in Parser::new_ext(source, options) {
        match &event {
            Event::Text(text) | Event::Code(text) => {
                if let Some((_, text_of_code)) = &mut code {
                    text_of_code.push_str(text);
                } else if let Some((_, _, text_of_heading)) = &mut heading {
                    text_of_heading.push_str(text);
                } else if about.len() < 400 && sections.len() <= 2 {
                    about.push_str(text);
                }

                if let Some(section) = sections.last_mut() {
                    section.text.push_str(text);
                }
            }
            Event::SoftBreak
            | Event::HardBreak
            | Event::End(
                TagEnd::Paragraph | TagEnd::Item | TagEnd::TableCell | TagEnd::CodeBlock,
            ) => {
                if about.len() < 400 && heading.is_none() && code.is_none() && !about.is_empty() {
                    about.push(' ');
                }
                if let Some(section) = sections.last_mut() {
                    section.text.push(' ');
                }
            }
            _ => {}
        }

        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                // The id needs the whole text of the heading. Its opening tag is inserted at this place
                // once that is known.
                heading = Some((pieces.len(), level, String::new()));
            }
            Event::End(TagEnd::Heading(level)) => {
                let (from, _, text) =
                    heading
                        .take()
                        .unwrap_or((pieces.len(), level, String::new()));
                let id = unique(&mut ids, &text);
                if level == HeadingLevel::H1 {
                    title.clone_from(&text);
                }

                sections.push(Section {
                    id: id.clone(),
                    title: text,
                    text: String::new(),
                });
                let open = format!("<{level} id=\"{id}\">");
                pieces.insert(from, Piece::Event(Event::Html(open.into())));

                let close = format!("</{level}>\n");
                pieces.push(Piece::Event(Event::Html(close.into())));
            }
            Event::Start(Tag::CodeBlock(kind)) => {
                let language = match kind {
                    CodeBlockKind::Fenced(language) => language.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                code = Some((language, String::new()));
            }
            Event::End(TagEnd::CodeBlock) => {
                if let Some((language, text)) = code.take() {
                    pieces.push(Piece::Code { language, text });
                }
            }
            // Collected above. The end of the block writes it as a sample.
            Event::Text(_) if code.is_some() => {}
            Event::Start(Tag::Link {
                link_type,
                dest_url,
                title,
                id,
            }) => {
                // A link to a file that is not served keeps its words and loses its address.
                let served = served(&dest_url);
                links.push(served.is_some());
                if let Some(address) = served {
                    let dest_url = CowStr::from(address);
                    pieces.push(Piece::Event(Event::Start(Tag::Link {
                        link_type,
                        dest_url,
                        title,
                        id,
                    })));
                }
            }
            Event::End(TagEnd::Link) => {
                if links.pop() == Some(true) {
                    pieces.push(Piece::Event(event));
                }
            }
            // Pictures, which are written as HTML, stay in the repository.
            Event::Html(_) | Event::InlineHtml(_) => {}
            event => pieces.push(Piece::Event(event)),
        }
    }

    let sentence = about.split(". ").next().unwrap_or_default().trim();
    // Some guides introduce a list, with a colon at the end of their first sentence.
    let about = format!("{}.", sentence.trim_end_matches(['.', ':']));
    Guide {
        slug,
        title,
        about,
        html: written(pieces),
        source,
        sections,
    }
}

/// Returns an id for a heading, as GitHub makes it, so that links work in both places.
fn unique(ids: &mut BTreeMap<String, usize>, text: &str) -> String {
    let kept = |character: char| match character {
        ' ' => Some('-'),
        '-' | '_' => Some(character),
        other => other.is_alphanumeric().then(|| other.to_ascii_lowercase()),
    };
    let id: String = text.chars().filter_map(kept).collect();
    let count = ids.entry(id.clone()).or_default();
    *count += 1;

    // GitHub leaves the first of several equal headings without a number.
    match *count {
        1 => id,
        more => format!("{id}-{}", more - 1),
    }
}

/// Returns the address under which a link of a guide is served. Files that are not served have none.
fn served(link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with('#') || link.starts_with('/') {
        return Some(link.to_owned());
    }

    let (file, anchor) = match link.split_once('#') {
        Some((file, anchor)) => (file, format!("#{anchor}")),
        None => (link, String::new()),
    };
    // People who follow the link want to read the reference and not its JSON.
    if file == "openapi.json" {
        return Some(reference::PATH.into());
    }

    let slug = file.strip_suffix(".md")?;
    let known = SOURCES.iter().any(|(known, _)| *known == slug);
    known.then(|| format!("/docs/{slug}{anchor}"))
}

/// Writes the pieces. Samples in several languages become tabs, which need no script.
fn written(pieces: Vec<Piece<'_>>) -> String {
    let mut page = String::new();
    let mut events = Vec::new();
    let mut samples: Vec<(String, String)> = Vec::new();

    let mut groups = 0;
    for piece in pieces {
        match piece {
            Piece::Code { language, text } => {
                // A second sample in the same language is another step and no translation, so it begins a
                // new group.
                let repeats = samples.iter().any(|(known, _)| *known == language);
                if repeats || tab(&language).is_none() {
                    end_samples(&mut page, &mut events, &mut samples, &mut groups);
                }

                if tab(&language).is_some() {
                    samples.push((language, text));
                } else {
                    let code = html! { pre tabindex="0" { code { (text) } } };
                    events.push(Event::Html(code.into_string().into()));
                }
            }
            Piece::Event(event) => {
                // Samples are one group only while nothing stands between them.
                end_samples(&mut page, &mut events, &mut samples, &mut groups);
                // Tables scroll by themselves on narrow screens.
                match &event {
                    Event::Start(Tag::Table(_)) => {
                        events.push(Event::Html("<div class=\"table\" tabindex=\"0\">".into()));
                        events.push(event);
                    }
                    Event::End(TagEnd::Table) => {
                        events.push(event);
                        events.push(Event::Html("</div>\n".into()));
                    }
                    _ => events.push(event),
                }
            }
        }
    }

    // The page may end with a sample.
    end_samples(&mut page, &mut events, &mut samples, &mut groups);
    pulldown_cmark::html::push_html(&mut page, events.into_iter());
    page
}

fn end_samples(
    page: &mut String,
    events: &mut Vec<Event<'_>>,
    samples: &mut Vec<(String, String)>,
    groups: &mut usize,
) {
    if samples.is_empty() {
        return;
    }

    let samples = std::mem::take(samples);
    *groups += 1;
    let group = format!("sample{groups}");
    let shown = |text: &str| html! { pre tabindex="0" { code { (text) } } };
    let block = match samples.as_slice() {
        [(_, text)] => shown(text),
        several => html! {
            div.tabs {
                @for (at, (language, _)) in several.iter().enumerate() {
                    input type="radio" name=(group) id={ (group) "-" (at) } checked[at == 0];
                    label for={ (group) "-" (at) } { (tab(language).unwrap_or_default()) }
                }
                @for (_, text) in several { (shown(text)) }
            }
        },
    };

    // The text before the sample is written first, because the page grows in one order only.
    pulldown_cmark::html::push_html(page, std::mem::take(events).into_iter());
    let PreEscaped(block) = block;
    page.push_str(&block);

    page.push('\n');
}
