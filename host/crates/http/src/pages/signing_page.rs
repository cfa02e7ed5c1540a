//! The signing form as HTML: the document's pages, and one control for each field.

use std::collections::BTreeMap;

use holdfast_handwriting::Handwriting;
use maud::{Markup, html};

use super::assets;
use super::attachments::ACCEPTED;
use super::page_frame::{PageLook, script_texts};
use super::signer_link::payment;
use super::signing_files::version_of;
use holdfast_adapters::texts::{ShownConsent, Texts};
use holdfast_components::rules::placement::PageFacts;
use holdfast_domain::dates::DAY_OF_SIGNING;
use holdfast_domain::envelope::SignerKind;
use holdfast_domain::field::{ATTACHMENT, Area};
use holdfast_domain::locale::Message;
use holdfast_domain::question::{LONGEST_TEXT, SignerQuestion};
use holdfast_platform::room::attachments::FILE_MIB;
use holdfast_platform::room::form::{DOCUMENT, Problems, STYLE, SigningForm, WITNESS};
use holdfast_platform::room::signature::is_picture;
use holdfast_service::templates::pages::WIDTHS;
use holdfast_store::room::{RoomAttachment, RoomField};

/// Height in points from which a place of a text gets a control of several lines. Text has at most 11 points in the
/// document, so three lines of it fit.
const TALL: f64 = 40.0;

/// Number of pages from which the form has a list of them.
const LONG: usize = 3;

/// Widths of the document on a screen, as the style sheet lays it out.
const SIZES: &str = "(max-width: 60rem) 100vw, 60vw";

/// Controls of the person who is to sign in the signer's place: name, e-mail address and telephone.
pub const DELEGATION: [&str; 3] = ["delegate-name", "delegate-email", "delegate-phone"];

/// Control of the question to the sender.
pub const QUESTION: &str = "sender-question";

/// Control in which the script lists the pages that it displayed. Its name is that of the problem, too.
pub const DISPLAYED: &str = "displayed-pages";

/// Data of the signing form, including unsaved input.
pub struct SigningPage<'a> {
    /// Path of the signer's pages.
    pub path: &'a str,
    pub look: &'a PageLook,
    pub texts: Texts,
    pub consent_text: &'a ShownConsent,
    /// Name of the document.
    pub title: &'a str,
    /// Name of the signer.
    pub name: &'a str,
    pub role: &'a str,
    pub kind: SignerKind,
    /// Whether the form is the signer's own. On the device of another signer, the person can only sign.
    pub on_own_device: bool,
    /// Whether the signer may name another person to sign.
    pub allow_delegation: bool,
    /// Whether another person needs a mobile phone.
    pub delegate_phone: bool,
    /// Whether the signer may decline.
    pub may_decline: bool,
    /// Amount that this signer has to pay.
    pub owes: Option<&'a str>,
    pub pages: &'a [PageFacts],
    pub form: &'a SigningForm,
    /// Submitted values that could not be saved, by field name.
    pub entered: &'a BTreeMap<String, String>,
    pub problems: &'a Problems,
    /// Whether the submitted form contained consent to the present text.
    pub consent: bool,
    /// Whether the document has to be opened as PDF first.
    pub require_access: bool,
    /// Whether every page has to be shown first.
    pub require_pages: bool,
    /// Numbers of the pages that were displayed before.
    pub displayed: &'a [u32],
    /// Submitted reason for declining; may be empty.
    pub reason: &'a str,
    /// Submitted question to the sender; may be empty.
    pub question: &'a str,
    /// Questions that this signer asked, the oldest first.
    pub asked: &'a [SignerQuestion],
    /// Whether the signer asked to review all answers before finishing.
    pub review: bool,
    /// Whether the form is shown before the document is sent: nothing can be saved or signed. Pictures of
    /// pages are left to the builder's script if there is no path.
    pub preview: bool,
    /// Whether the script still has to tell that the page is shown to a person.
    pub unseen: bool,
}

impl SigningPage<'_> {
    pub fn markup(&self) -> Markup {
        let texts = self.texts;

        html! {
            header.top {
                (self.look.masthead())
                h1 { bdi { (self.title) } }
                p {
                    (texts.with(self.headline(), [("name", self.name), ("role", self.role)]))
                    @if !self.preview {
                        " · "
                        (self.pdf("signing-download"))
                    }
                }
                @if self.has_text() {
                    button.quiet.reading-view type="button" aria-pressed="false" hidden { (texts.text("signing-reading-view")) }
                }
            }

            // A preview is about fields and pages, which have to be near for their pictures to load.
            @if !self.preview { (self.disclosure()) }
            (self.questions())

            main.signing data-hand=(self.style().as_str()) data-dates=(self.form.dates.format.as_str()) {
                (self.document())
                section.panel aria-label=(texts.text("signing-your-fields")) {
                    (self.progress())
                    form id="form" method=(self.method()) action=(self.path) novalidate data-preview[self.preview] data-sign=(self.sign())
                        data-rules[self.has_rules()] data-unseen[self.unseen] {
                        // Without the script, Enter presses the first submit button: it must not sign.
                        button type="submit" name="action" value="save" hidden { (self.texts.text("signing-save")) }
                        input type="hidden" name=(DOCUMENT) value=(self.form.document.version());
                        @if self.require_pages {
                            @let before: Vec<String> = self.displayed.iter().map(u32::to_string).collect();
                            input type="hidden" name=(DISPLAYED) value="" data-before=(before.join(","));
                        }

                        (self.summary_of_problems())
                        @for (index, field) in self.form.fields.iter().enumerate() {
                            (self.control(field, index))
                        }
                        (self.last_step())
                    }

                    @for (index, field) in self.form.fields.iter().enumerate() {
                        @if takes_file(field) {
                            form id={ "attach-" (index) } method="post" enctype="multipart/form-data"
                                action={ (self.path) "/attachments/" (index) } hidden {}
                        }
                    }
                    p.saved role="status" aria-live="polite" {}
                    div.guide hidden {
                        button.quiet.back type="button" { (texts.text("signing-back")) }
                        button.next type="button" { (texts.text("signing-next")) }
                    }
                }
            }

            (script_texts(texts, assets::SIGNING))
        }
    }

    /// Renders the step after the fields: payment, review, consent and the buttons.
    fn last_step(&self) -> Markup {
        let texts = self.texts;
        html! {
            div.step.last {
                @if let Some(amount) = self.owes {
                    (payment(texts, self.path, amount))
                }
                (self.review())
                @if let Some(role) = &self.form.submitter.witness_of { (self.witness(role)) }
                (self.consent())
                div.actions {
                    button type="submit" name="action" value="finish" { (texts.text(self.finish())) }
                    button.quiet.plain type="submit" name="action" value="review" { (texts.text("signing-check-first")) }
                    @if self.on_own_device {
                        button.quiet.plain type="submit" name="action" value="later" { (texts.text("signing-later")) }
                    }
                }
                @if self.on_own_device {
                    @if self.allow_delegation {
                        (self.delegate())
                    }
                    (self.ask())
                    @if self.may_decline { (self.decline()) }
                }
            }
        }
    }

    fn document(&self) -> Markup {
        let texts = self.texts;
        // The version is in the address, so that the browser fetches a page again after another signer's
        // entries.
        let version = version_of(&self.form.document);
        let page =
            |number: u32, kind: &str| format!("{}/pages/{number}.{kind}?v={version}", self.path);
        html! {
            section.document aria-label=(texts.text("signing-document")) {
                (self.ways_to_pages())
                @for (number, facts) in (1..).zip(self.pages) {
                    figure id={ "page-" (number) } data-page=(number) {
                        div.sheet {
                            (self.picture(number, facts, &page(number, "png")))
                            (self.marks(number, facts))
                        }
                        figcaption {
                            (self.page_name(number))
                            @if self.shows_text(facts) {
                                " · "
                                a href=(page(number, "txt")) { (texts.with("signing-page-text", [("number", number)])) }
                            }
                        }
                    }
                }
                (self.files())
            }
        }
    }

    /// Leads to the pages of a long document. The script adds small pictures when the list is opened: a page that is
    /// only seen small must not be delivered to a browser without the script, for which a delivered page counts as shown.
    fn ways_to_pages(&self) -> Markup {
        let count = u32::try_from(self.pages.len()).unwrap_or(u32::MAX);
        html! {
            @if self.pages.len() >= LONG {
                details.thumbs {
                    summary { (self.texts.text("template-pages")) }
                    ol {
                        @for number in 1..=count {
                            li { a href={ "#page-" (number) } { span { (self.page_name(number)) } } }
                        }
                    }
                }
            }
        }
    }

    /// Lists the files that earlier signers attached.
    fn files(&self) -> Markup {
        let files: Vec<_> = self.form.document.files().collect();
        html! {
            @if !files.is_empty() {
                section.files aria-label=(self.texts.text("attachment-files")) {
                    h2 { (self.texts.text("attachment-files")) }
                    ul {
                        @for (signer, field, file) in files {
                            li {
                                a dir="auto" href={ (self.path) "/attachments/" (file.sha256) } { (file.name) }
                                " (" (field) ", " (signer) ")"
                            }
                        }
                    }
                }
            }
        }
    }

    fn page_name(&self, number: u32) -> String {
        let count = u32::try_from(self.pages.len()).unwrap_or(u32::MAX);
        self.texts
            .with("signing-page", [("number", number), ("count", count)])
    }

    /// Returns whether a page has text, of its own or of earlier signers.
    fn shows_text(&self, facts: &PageFacts) -> bool {
        !self.preview && (facts.has_text || self.form.document.has_entries())
    }

    fn has_text(&self) -> bool {
        self.pages.iter().any(|facts| self.shows_text(facts))
    }

    /// Shows a page at the width that fits the screen. The script fetches pages as they come near:
    /// a browser alone would fetch several screens ahead.
    fn picture(&self, number: u32, facts: &PageFacts, address: &str) -> Markup {
        let [narrow, wide] = WIDTHS;
        let source = |width: u32| format!("{address}&w={width}");
        let sources = format!("{} {narrow}w, {} {wide}w", source(narrow), source(wide));
        let alt = self.page_name(number);
        let (width, height) = (facts.width.round(), facts.height.round());
        html! {
            @if self.preview && self.path.is_empty() {
                img alt=(alt) width=(width) height=(height);
            } @else if number == 1 {
                img src=(source(narrow)) srcset=(sources) sizes=(SIZES) alt=(alt) width=(width) height=(height);
            } @else {
                img data-src=(source(narrow)) data-srcset=(sources) sizes=(SIZES) alt=(alt)
                    width=(width) height=(height);
                noscript {
                    img src=(source(narrow)) srcset=(sources) sizes=(SIZES) alt=(alt)
                        width=(width) height=(height) loading="lazy";
                }
            }
        }
    }

    /// Marks the signer's fields on a page, as links to their controls, and the entries of earlier
    /// signers with their names. Hidden from screen readers,
    /// which reach the controls directly.
    fn marks(&self, page: u32, facts: &PageFacts) -> Markup {
        let (width, height) = (facts.width, facts.height);
        // Each place of a group stands for one of its options, in order. Every place of another field
        // shows the same answer.
        let areas = |field: &RoomField| -> Vec<(Area, Option<String>)> {
            let options = field.options.iter().filter(|_| field.is_group());
            let options = options.cloned().map(Some).chain(std::iter::repeat(None));
            let placed = field.areas.iter().copied().zip(options);
            placed.filter(|(area, _)| area.page == page).collect()
        };

        let earlier = self.form.document.entries();
        let earlier = earlier.flat_map(|entry| {
            let here = entry.areas.iter().filter(|area| area.page == page);
            here.map(move |area| (entry.signer, *area))
        });
        html! {
            svg viewBox={ "0 0 " (width) " " (height) } aria-hidden="true" focusable="false" {
                @for (signer, area) in earlier {
                    g.earlier {
                        rect x=(area.x * width) y=(area.y * height)
                            width=(area.w * width) height=(area.h * height) rx="2" {}
                        text x=(area.x * width) y=((area.y * height) - 2.0) font-size="6" { (signer) }
                    }
                }
                // Targets reach over the marks' edges, so that a finger hits a small one. They lie
                // below all marks: a near one never covers a mark itself.
                @for (index, field) in self.form.fields.iter().enumerate() {
                    @for (area, _) in areas(field) {
                        a href={ "#field-" (index) } tabindex="-1" data-target=(index) hidden[self.is_hidden(field)] {
                            rect.target x=(area.x * width) y=(area.y * height)
                                width=(area.w * width) height=(area.h * height) {}
                        }
                    }
                }
                @for (index, field) in self.form.fields.iter().enumerate() {
                    @for (area, option) in areas(field) {
                        a href={ "#field-" (index) } tabindex="-1" data-field=(index) data-option=[option] hidden[self.is_hidden(field)] {
                            rect x=(area.x * width) y=(area.y * height)
                                width=(area.w * width) height=(area.h * height) rx="2" {}
                            @if let Some(label) = mark_label(field).filter(|_| !field.is_locked()).map(|key| self.texts.text(key)) {
                                text.label x=((area.x + area.w / 2.0) * width)
                                    y=((area.y + area.h / 2.0) * height)
                                    font-size=(label_size(&label, area.w * width, area.h * height)) { (label) }
                            }
                        }
                    }
                }
            }
        }
    }

    fn progress(&self) -> Markup {
        // Only required fields count, so that the bar is full when the signer may finish.
        let required = self.form.fields.iter().filter(|field| field.required);
        let total = required.clone().count();
        let done = required
            .filter(|field| {
                // An unticked box is stored as `false`. A required one still has to be ticked.
                let value = self.form.submitter.values.get(&field.name);
                value.is_some_and(|value| !value.is_empty() && value != "false")
            })
            .count();

        let texts = self.texts;
        let progress = texts.with("signing-progress", [("done", done), ("total", total)]);
        html! {
            div.progress {
                h2 { (texts.text("signing-title")) }
                p id="progress-text" { (progress) }
                progress max=(total.max(1)) value=(done) aria-labelledby="progress-text" {}
                button.quiet.collapse type="button" hidden { (texts.text("signing-document")) }
            }
        }
    }

    fn summary_of_problems(&self) -> Markup {
        let problem_of = |(index, field): (usize, &RoomField)| {
            let why = self.problems.get(&field.name)?;
            Some((format!("#field-{index}"), field.name.clone(), why))
        };
        let fields = self.form.fields.iter().enumerate().filter_map(problem_of);
        // The number in the problem is that of the page.
        let unshown = match self.problems.get(DISPLAYED) {
            Some(Message::Count(_, page)) => format!("#page-{page}"),
            _ => "#page-1".to_owned(),
        };
        // These controls belong to the form and not to a field, so they are found by their own names.
        let of_form = [
            ("consent", "#consent", "signing-consent-field"),
            ("reason", "#reason", "signing-reason-field"),
            (QUESTION, "#sender-question", "question-summary"),
            (DELEGATION[0], "#delegate-name", "delegate-name"),
            (DELEGATION[1], "#delegate-email", "delegate-email"),
            (DELEGATION[2], "#delegate-phone", "delegate-phone"),
            (WITNESS[0], "#witness-name", "signing-witness-name"),
            (WITNESS[1], "#witness-address", "signing-witness-address"),
            (DOCUMENT, "#page-1", "signing-document-field"),
            (DISPLAYED, unshown.as_str(), "signing-document-field"),
        ];
        let others = of_form.into_iter().filter_map(|(name, link, label)| {
            Some((
                link.to_owned(),
                self.texts.text(label),
                self.problems.get(name)?,
            ))
        });

        html! {
            @if !self.problems.is_empty() {
                div.problems role="alert" tabindex="-1" {
                    p { (self.texts.text("signing-problems")) }
                    ul {
                        @for (link, name, why) in fields.chain(others) {
                            li { a href=(link) { (name) } ": " (self.texts.message(why)) }
                        }
                    }
                }
            }
        }
    }

    fn value_of(&self, field: &RoomField) -> &str {
        // Shows today. The room stores the day on which the signer finishes, which may be a later one.
        if field.field_type == "date" && self.kept(field) == DAY_OF_SIGNING {
            return &self.form.today;
        }
        // A locked field keeps the sender's value. A hand-made request cannot replace it.
        let typed = self.entered.get(&field.name).filter(|_| !field.is_locked());
        typed.map_or_else(|| self.kept(field), String::as_str)
    }

    fn kept(&self, field: &RoomField) -> &str {
        let kept = self.form.submitter.values.get(&field.name);
        kept.map(String::as_str).unwrap_or_default()
    }

    /// Returns whether answers change what the form asks for.
    fn has_rules(&self) -> bool {
        let ruled = |field: &RoomField| !field.rules.is_empty();
        self.form.fields.iter().any(ruled)
    }

    /// Returns whether the rules do not show a field now.
    fn is_hidden(&self, field: &RoomField) -> bool {
        self.form.hidden.contains(&field.name)
    }

    /// Renders one field's control, with its label and problem.
    fn control(&self, field: &RoomField, index: usize) -> Markup {
        let wrong = self.problems.get(&field.name);
        // Declared here, because the value that is borrowed from it outlives the match.
        let written;
        let value = match (field.field_type.as_str(), field.is_locked()) {
            // A locked date is text for people. The date control needs ISO 8601.
            ("date", true) => {
                written = self.form.dates.format.written(self.value_of(field));
                &written
            }
            _ => self.value_of(field),
        };

        let id = format!("field-{index}");
        let texts = self.texts;
        let control = FieldControl {
            texts,
            field,
            id: &id,
            value,
            described: wrong.map(|_| format!("{id}-problem")),
            index,
            has_lines: self.has_lines(field, value),
            file: self.form.submitter.attachments.get(&field.name),
            path: self.path,
            label: html! {
                (field.name)
                @if field.required || !field.rules.is_empty() {
                    span.required hidden[!field.required] { " " (texts.text("signing-required")) }
                }
                @if field.is_locked() { span.required.fixed { " " (texts.text("signing-fixed")) } }
            },
        };

        html! {
            div.step.field.invalid[wrong.is_some()] data-index=(index) data-kind=(field.field_type)
                data-title=(field.name) hidden[self.is_hidden(field)]
                data-required[field.required] data-readonly[field.is_locked()]
                data-answered[field.field_type == "checkbox" && !value.is_empty()]
                data-prefill=[self.prefill(field)] {
                (control.markup())
                @if self.form.fields.iter().position(RoomField::is_signature) == Some(index) {
                    (self.styles())
                }
                (self.problem(&id, wrong))
            }
        }
    }

    /// Returns whether a text is entered on several lines: its place in the document has room for them or may go on on
    /// another page, or the sender's value has them.
    fn has_lines(&self, field: &RoomField, value: &str) -> bool {
        let height = |area: &Area| {
            let page = usize::try_from(area.page).unwrap_or_default();
            let facts = page.checked_sub(1).and_then(|index| self.pages.get(index));
            facts.map_or(0.0, |facts| facts.height * area.h)
        };
        let is_tall = || field.areas.iter().any(|area| height(area) >= TALL);
        let is_text = field.field_type == "text";
        is_text && (value.contains('\n') || field.rules.overflow.is_some() || is_tall())
    }

    /// Formats a value for people.
    fn answer(&self, field: &RoomField, value: &str) -> Markup {
        let texts = self.texts;
        html! {
            @if is_picture(value) && field.is_signature() {
                img.drawn src=(value) alt=(texts.text("signing-your-signature"));
            } @else if field.field_type == "checkbox" {
                (texts.text(if value == "true" { "yes" } else { "no" }))
            } @else if value.is_empty() {
                span.empty { (texts.text("signing-not-filled-in")) }
            } @else if field.is_signature() {
                span.script { (value) }
            } @else if field.field_type == "date" {
                (self.form.dates.format.written(value))
            } @else {
                (value)
            }
        }
    }

    /// Returns what the form proposes for a signature or initials field.
    fn prefill(&self, field: &RoomField) -> Option<String> {
        match field.field_type.as_str() {
            "signature" => Some(self.name.to_owned()),
            "initials" => Some(initials(self.name)),
            _ => None,
        }
    }

    fn style(&self) -> Handwriting {
        let entered = self.entered.get(STYLE);
        let entered = entered.and_then(|name| Handwriting::parse(name));
        let [default, ..] = Handwriting::ALL;
        entered
            .or(self.form.submitter.signature_style)
            .unwrap_or(default)
    }

    /// One style for all typed signatures of the signer.
    fn styles(&self) -> Markup {
        let chosen = self.style();
        let first_name = self.name.split_whitespace().next();
        let first_name = first_name.unwrap_or_default();
        html! {
            fieldset.styles {
                legend { (self.texts.text("signing-style")) }
                div.samples {
                    @for style in Handwriting::ALL {
                        label title=(self.texts.text(style_name(style))) {
                            input type="radio" name=(STYLE) value=(style.as_str())
                                checked[style == chosen] aria-label=(self.texts.text(style_name(style)))
                                data-ascent=(style.extent().ascent)
                                data-descent=(style.extent().descent);
                            span.sample.(style.as_str()) aria-hidden="true" { (first_name) }
                        }
                    }
                }
            }
        }
    }

    fn problem(&self, id: &str, wrong: Option<&Message>) -> Markup {
        html! {
            @if let Some(wrong) = wrong {
                p.problem id={ (id) "-problem" } { (self.texts.message(wrong)) }
            }
        }
    }

    fn review(&self) -> Markup {
        html! {
            // An approver without fields has no answers to check.
            details.review open[self.review] hidden[self.form.fields.is_empty()] {
                summary { (self.texts.text("signing-check")) }
                dl {
                    @for (index, field) in self.form.fields.iter().enumerate() {
                        dt hidden[self.is_hidden(field)] { a href={ "#field-" (index) } { (field.name) } }
                        dd data-answer=(index) hidden[self.is_hidden(field)] { (self.answer(field, self.value_of(field))) }
                    }
                }
            }
        }
    }

    fn consent(&self) -> Markup {
        let wrong = self.problems.get("consent");
        let ShownConsent { text, locale } = self.consent_text;
        html! {
            div.consent.invalid[wrong.is_some()] {
                label lang=(locale.as_str()) dir=(locale.direction()) {
                    input id="consent" type="checkbox" name="consent" value=(self.consent_text.sha256()) required
                        checked[self.consent]
                        aria-invalid=[wrong.map(|_| "true")]
                        aria-describedby=[wrong.map(|_| "consent-problem")];
                    " " (text.statement)
                }
                (self.problem("consent", wrong))
                @if self.require_access && !self.preview {
                    p { (self.pdf("signing-open-pdf")) }
                }
            }
        }
    }

    /// Shows the text about electronic records above the document: the consent counts only after a clear and
    /// conspicuous statement (15 U.S.C. §7001(c)(1)(B)).
    fn disclosure(&self) -> Markup {
        let consent = self.consent_text;
        let locale = consent.locale;
        html! {
            section #disclosure.disclosure aria-labelledby="disclosure-title" lang=(locale.as_str()) dir=(locale.direction()) {
                h2 #disclosure-title { (Texts::of(locale).text("disclosure-title")) }
                @for paragraph in consent.paragraphs() { p { (paragraph) } }
            }
        }
    }

    /// Links to the document in the form in which the signer gets it; `label` is the key of its text.
    fn pdf(&self, label: &'static str) -> Markup {
        html! { a href={ (self.path) "/document.pdf" } download { (self.texts.text(label)) } }
    }

    /// Key of the line with the person of the form.
    fn headline(&self) -> &'static str {
        match self.kind {
            SignerKind::Signer => "signing-for",
            SignerKind::Approver => "signing-for-approver",
            SignerKind::Witness => "signing-for-witness",
        }
    }

    /// A preview has no operation to send a form to. Without scripts, its buttons lead back to the page behind it.
    fn method(&self) -> &'static str {
        if self.preview { "get" } else { "post" }
    }

    /// Label of the first tap where a signature is all there is to give.
    fn sign(&self) -> String {
        let pages = [("pages", self.pages.len())];
        self.texts.with("signing-sign-pages", pages)
    }

    /// Key of the label of the button that ends the signer's part.
    fn finish(&self) -> &'static str {
        match self.kind {
            SignerKind::Approver => "signing-approve",
            SignerKind::Signer | SignerKind::Witness => "signing-finish",
        }
    }

    /// Asks a witness of the signer with this role for name and postal address.
    fn witness(&self, role: &str) -> Markup {
        let texts = self.texts;
        let control = |name: &'static str, label: &'static str, token: &str, known: &str| {
            let wrong = self.problems.get(name);
            html! {
                label for=(name) { (texts.text(label)) }
                input id=(name) name=(name) type="text" dir="auto" maxlength="500" required
                    autocomplete=(token) value=(self.entered.get(name).map_or(known, String::as_str))
                    aria-invalid=[wrong.map(|_| "true")]
                    aria-describedby=[wrong.map(|_| format!("{name}-problem"))];
                (self.problem(name, wrong))
            }
        };

        html! {
            div.witness {
                p { (texts.with("signing-witness-of", [("role", role)])) }
                (control(WITNESS[0], "signing-witness-name", "name", self.name))
                (control(WITNESS[1], "signing-witness-address", "street-address", ""))
            }
        }
    }

    fn delegate(&self) -> Markup {
        let texts = self.texts;
        let control = |name: &'static str, kind: &str| {
            let wrong = self.problems.get(name);
            html! {
                label for=(name) { (texts.text(name)) }
                input id=(name) name=(name) type=(kind) maxlength="500" autocomplete="off"
                    value=[self.entered.get(name)]
                    aria-invalid=[wrong.map(|_| "true")]
                    aria-describedby=[wrong.map(|_| format!("{name}-problem"))];
                (self.problem(name, wrong))
            }
        };

        // A closed part would hide the problems of a refused delegation.
        let open = DELEGATION
            .iter()
            .any(|name| self.problems.contains_key(*name));
        html! {
            details.decline open[open] {
                summary { (texts.text("delegate-summary")) }
                p { (texts.text("delegate-explained")) }
                (control(DELEGATION[0], "text"))
                (control(DELEGATION[1], "email"))
                @if self.delegate_phone { (control(DELEGATION[2], "tel")) }
                button.quiet type="submit" name="action" value="delegate" { (texts.text("delegate-confirm")) }
            }
        }
    }

    /// Shows what the signer asked, with the sender's answers.
    fn questions(&self) -> Markup {
        let texts = self.texts;
        html! {
            @if !self.asked.is_empty() {
                section.disclosure aria-labelledby="questions-title" {
                    h2 #questions-title { (texts.text("question-yours")) }
                    @for question in self.asked {
                        @for line in question.text.lines() { p dir="auto" { (line) } }
                        @if let Some(answer) = question.answer() {
                            p { strong { (texts.text("question-answer")) } }
                            @for line in answer.lines() { p dir="auto" { (line) } }
                        } @else if question.closing.is_some() {
                            p { strong { (texts.text("question-was-dismissed")) } }
                        } @else {
                            p { strong { (texts.text("question-waits")) } }
                        }
                    }
                }
            }
        }
    }

    /// Offers a question to the sender, which leaves the document open for signing.
    fn ask(&self) -> Markup {
        let wrong = self.problems.get(QUESTION);
        let texts = self.texts;
        html! {
            details.decline open[wrong.is_some()] {
                summary { (texts.text("question-summary")) }
                p { (texts.text("question-explained")) }
                label for=(QUESTION) { (texts.text("question-label")) }
                // Browsers drop the first line break of a text.
                textarea id=(QUESTION) name=(QUESTION) dir="auto" rows="3" maxlength=(LONGEST_TEXT)
                    aria-invalid=[wrong.map(|_| "true")]
                    aria-describedby=[wrong.map(|_| format!("{QUESTION}-problem"))] { "\n" (self.question) }
                (self.problem(QUESTION, wrong))
                button.quiet type="submit" name="action" value="ask" { (texts.text("question-send")) }
            }
        }
    }

    fn decline(&self) -> Markup {
        let wrong = self.problems.get("reason");
        let texts = self.texts;
        html! {
            details.decline open[wrong.is_some()] {
                summary { (texts.text("decline-summary")) }
                label for="reason" { (texts.text("decline-reason")) }
                textarea id="reason" name="reason" dir="auto" rows="3" maxlength="4000"
                    aria-describedby=[wrong.map(|_| "reason-problem")] { (self.reason) }
                (self.problem("reason", wrong))
                // A confirmation that also works without the script.
                details.confirm open[wrong.is_some()] {
                    summary { (texts.text("decline-open")) }
                    p { (texts.text("decline-warning")) }
                    button.danger type="submit" name="action" value="decline" { (texts.text("decline-confirm")) }
                }
            }
        }
    }
}

/// Returns the key of the name of a style.
fn style_name(style: Handwriting) -> &'static str {
    match style {
        Handwriting::Casual => "signing-style-casual",
        Handwriting::Formal => "signing-style-formal",
        Handwriting::Light => "signing-style-light",
    }
}

pub(super) fn takes_file(field: &RoomField) -> bool {
    field.field_type == ATTACHMENT && !field.is_locked()
}

/// Returns the key of the word on the mark of an empty field.
fn mark_label(field: &RoomField) -> Option<&'static str> {
    match field.field_type.as_str() {
        "signature" => Some("mark-sign"),
        "initials" => Some("mark-initial"),
        "date" => Some("mark-date"),
        "checkbox" | "radio" => None,
        ATTACHMENT => Some("mark-attach"),
        _ => Some("mark-fill-in"),
    }
}

/// Font size at which a label fits its mark, in points of the page.
fn label_size(label: &str, width: f64, height: f64) -> f64 {
    // Chinese characters are as wide as high, other letters about half as wide.
    let widths = label.chars().map(|letter| match letter {
        '\u{2e80}'.. => 1.0,
        _ => 0.55,
    });
    let size = (width * 0.9 / widths.sum::<f64>())
        .min(height * 0.8)
        .min(18.0);

    (size * 10.0).round() / 10.0
}

/// Returns the token by which a browser proposes known values (HTML, "Autofill"), for a field named by its content.
/// Names are those that senders write in English; other fields are left to the browser.
fn autocomplete(name: &str) -> Option<&'static str> {
    const TOKENS: [(&str, &str); 12] = [
        ("email", "email"),
        ("e-mail", "email"),
        ("phone", "tel"),
        ("mobile", "tel"),
        ("zip", "postal-code"),
        ("postal", "postal-code"),
        ("street", "street-address"),
        ("address", "street-address"),
        ("city", "address-level2"),
        ("state", "address-level1"),
        ("company", "organization"),
        ("name", "name"),
    ];

    let name = name.to_lowercase();
    let words = |part: &str| {
        name.split(|one: char| !one.is_alphanumeric() && one != '-')
            .any(|word| word == part)
    };
    let known = TOKENS.iter().find(|(part, _)| words(part));
    known.map(|(_, token)| *token)
}

/// Returns the first letters of up to four words of a name.
fn initials(name: &str) -> String {
    // A hyphen joins two names with an initial each.
    let words = name.split(|character: char| character.is_whitespace() || character == '-');
    let letters = words.filter_map(|word| word.chars().find(|letter| letter.is_alphabetic()));
    letters.take(4).flat_map(char::to_uppercase).collect()
}

struct FieldControl<'a> {
    texts: Texts,
    field: &'a RoomField,
    id: &'a str,
    value: &'a str,
    /// Id of the text that describes the problem.
    described: Option<String>,
    label: Markup,
    index: usize,
    /// Whether a text is entered on several lines.
    has_lines: bool,
    /// File of an attachment field.
    file: Option<&'a RoomAttachment>,
    /// Path of the signer's pages.
    path: &'a str,
}

impl FieldControl<'_> {
    fn markup(&self) -> Markup {
        match self.field.field_type.as_str() {
            "checkbox" => self.checkbox(),
            ATTACHMENT => self.attachment(),
            "select" if !self.field.options.is_empty() => self.select(),
            "radio" if !self.field.options.is_empty() => self.radio(),
            "signature" | "initials" if is_picture(self.value) => self.drawn(),
            "signature" | "initials" => self.signature(),
            _ if self.has_lines => self.lines(),
            // Also for a choice without options, which could not be answered otherwise.
            _ => self.text(),
        }
    }

    fn invalid(&self) -> Option<&'static str> {
        self.described.as_ref().map(|_| "true")
    }

    /// An unticked box sends nothing, so a hidden control sends `false` for it.
    fn checkbox(&self) -> Markup {
        let (field, id) = (self.field, self.id);
        html! {
            input type="hidden" name=(field.name) value="false";
            label for=(id) {
                input id=(id) type="checkbox" name=(field.name) value="true"
                    checked[self.value == "true"] required[field.required]
                    disabled[field.is_locked()] aria-invalid=[self.invalid()]
                    aria-describedby=[self.described.as_deref()];
                " " (self.label)
            }
        }
    }

    fn select(&self) -> Markup {
        let (field, id) = (self.field, self.id);
        html! {
            label for=(id) { (self.label) }
            select id=(id) name=(field.name) required[field.required]
                disabled[field.is_locked()] aria-invalid=[self.invalid()]
                aria-describedby=[self.described.as_deref()] {
                option value="" { (self.texts.text("signing-choose")) }
                @if !self.value.is_empty() && !field.options.iter().any(|option| option == self.value) {
                    option value=(self.value) selected { (self.value) }
                }
                @for option in &field.options {
                    option value=(option) selected[option == self.value] { (option) }
                }
            }
        }
    }

    fn radio(&self) -> Markup {
        let field = self.field;
        html! {
            fieldset id=(self.id) tabindex="-1" aria-describedby=[self.described.as_deref()] {
                legend { (self.label) }
                @for option in &field.options {
                    label.choice {
                        input type="radio" name=(field.name) value=(option)
                            checked[option == self.value] disabled[field.is_locked()]
                            required[field.required];
                        " " (option)
                    }
                }
            }
        }
    }

    /// Renders an input for a typed name; the script adds drawing and uploading.
    fn signature(&self) -> Markup {
        let (field, id) = (self.field, self.id);
        let initials = field.field_type == "initials";
        html! {
            label for=(id) { (self.label) }
            input.script id=(id) name=(field.name) value=(self.value) type="text" dir="auto"
                autocomplete=[(!initials).then_some("name")]
                placeholder=(self.texts.text(if initials { "signing-type-initials" } else { "signing-type-name" }))
                enterkeyhint="next" required[field.required] readonly[field.is_locked()] maxlength="200"
                aria-invalid=[self.invalid()] aria-describedby=[self.described.as_deref()];
            (self.phone())
        }
    }

    /// Offers to draw on a phone. The script moves the button to the drawing area.
    fn phone(&self) -> Markup {
        let (field, texts) = (self.field, self.texts);
        html! {
            @if !field.is_locked() {
                button.quiet.phone type="submit" name="action" value={ "phone:" (field.name) } { (texts.text("signing-phone")) }
            }
        }
    }

    /// Renders a picture that was drawn or uploaded earlier.
    fn drawn(&self) -> Markup {
        let (field, texts) = (self.field, self.texts);
        html! {
            p.label id={ (self.id) "-label" } { (self.label) }
            input type="hidden" name=(field.name) value=(self.value);
            img.drawn src=(self.value) alt=(texts.text("signing-your-signature"));
            @if !field.is_locked() {
                button.quiet id=(self.id) type="submit" name="action" value={ "clear:" (field.name) }
                    aria-describedby={ (self.id) "-label" } { (self.texts.text("signing-sign-again")) }
                (self.phone())
            }
        }
    }

    /// Renders the choice of a file, which has a form of its own, and the file that was chosen.
    fn attachment(&self) -> Markup {
        let (field, id, texts) = (self.field, self.id, self.texts);
        let form = format!("attach-{}", self.index);
        let name = self.file.map_or("", |file| file.name.as_str());
        let href = self
            .file
            .map(|file| format!("{}/attachments/{}", self.path, file.sha256));

        html! {
            label for=(id) { (self.label) }
            p.attached hidden[self.file.is_none()] {
                @if let Some(href) = href { a dir="auto" href=(href) { (name) } }
                " "
                button.quiet type="submit" name="action" value={ "detach:" (field.name) } { (texts.text("attachment-remove")) }
            }
            input id=(id) type="file" name="file" form=(form)
                accept=(ACCEPTED) hidden
                aria-invalid=[self.invalid()] aria-describedby={ (id) "-hint " (self.described.as_deref().unwrap_or_default()) };
            // Without the script, the node saves the entries first, and the signer chooses the file on the next page.
            button.quiet.attach type="submit" name="action" value={ "attach:" (field.name) } {
                (texts.text("attachment-add"))
            }
            p.hint id={ (id) "-hint" } { (texts.with("attachment-hint", [("limit", FILE_MIB)])) }
        }
    }

    /// Maximum length of a text, in characters.
    fn most(&self) -> &str {
        // The signing room refuses longer texts in a field without a limit of its own.
        self.field.rules.max_length.as_deref().unwrap_or("4000")
    }

    /// Renders a text of several lines.
    fn lines(&self) -> Markup {
        let (field, id) = (self.field, self.id);
        html! {
            label for=(id) { (self.label) }
            // Browsers drop the first line break of a text.
            textarea id=(id) name=(field.name) dir="auto" rows="4" autocomplete=[autocomplete(&field.name)]
                required[field.required] readonly[field.is_locked()] maxlength=(self.most())
                aria-invalid=[self.invalid()] aria-describedby=[self.described.as_deref()] { "\n" (self.value) }
        }
    }

    fn text(&self) -> Markup {
        let (field, id) = (self.field, self.id);
        let kind = field.field_type.as_str();

        // A date control drops a value that is not a date, so such a value gets a text control.
        let is_date = !field.is_locked()
            && (self.value.is_empty() || self.value.parse::<jiff::civil::Date>().is_ok());
        html! {
            label for=(id) { (self.label) }
            input id=(id) name=(field.name) value=(self.value) dir="auto"
                autocomplete=[autocomplete(&field.name)]
                type=(if kind == "date" && is_date { "date" } else { "text" })
                inputmode=[(kind == "number").then_some("decimal")] enterkeyhint="next"
                required[field.required] readonly[field.is_locked()]
                maxlength=[(kind != "date").then(|| self.most())]
                aria-invalid=[self.invalid()] aria-describedby=[self.described.as_deref()];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initials_are_the_first_letters_of_the_names() {
        for (name, expected) in [
            ("Jordan Lee", "JL"),
            ("ana maría de la cruz soto", "AMDL"),
            ("Jean-Luc O'Neil (CFO)", "JLOC"),
            ("李雷", "李"),
            ("", ""),
        ] {
            assert_eq!(initials(name), expected, "{name}");
        }
    }

    #[test]
    fn a_field_named_by_its_content_lets_the_browser_propose() {
        for (name, token) in [
            ("Buyer full name", Some("name")),
            ("Email", Some("email")),
            ("Mobile phone", Some("tel")),
            ("Company name", Some("organization")),
            ("ZIP code", Some("postal-code")),
            ("Statement", None),
            ("Odometer", None),
        ] {
            assert_eq!(autocomplete(name), token, "{name}");
        }
    }

    #[test]
    fn a_label_fits_its_mark() {
        for (width, height) in [(120.0, 20.0), (30.0, 12.0), (300.0, 60.0)] {
            for (label, em) in [("Initial", 7.0 * 0.55), ("签缩写", 3.0)] {
                let size = label_size(label, width, height);
                assert!(size <= height && size * em <= width, "{label}: {size}");
            }
        }
    }
}
