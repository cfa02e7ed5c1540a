//! Acts that cannot be undone. A page names the object and the consequence, and asks before the act.

use axum::http::StatusCode;
use axum::response::Response;
use maud::html;

use super::passkeys::{ANSWER, CONFIRMS};
use super::signed_in::{ConsoleForm, hidden};
use crate::pages::page_frame::PageLook;

/// Field that the page sends when its user agrees.
pub const SURE: &str = "sure";
/// Field for the name of the object.
pub const TYPED: &str = "typed";

/// An act that cannot be undone, as its page describes it.
pub struct SensitiveAct {
    /// Label of the button.
    pub label: String,
    /// Names of the objects.
    pub objects: Vec<String>,
    /// Consequence for people and programs.
    pub consequence: String,
    /// Whether the user types the name of the object first.
    pub is_typed: bool,
    /// Page that the user goes back to instead.
    pub back: String,
}

impl ConsoleForm {
    /// Returns the page that asks for an act, unless the form comes from that page.
    pub fn meant(&self, act: &SensitiveAct) -> Result<(), Response> {
        let is_sure = self.value(SURE) == "yes";
        let typed = self.value(TYPED);
        let is_named = !act.is_typed || act.objects.iter().all(|name| is_same(typed, name));
        if is_sure && is_named {
            return Ok(());
        }

        Err(self.ask_if_sure(act, is_sure))
    }

    fn ask_if_sure(&self, act: &SensitiveAct, is_wrong: bool) -> Response {
        let texts = self.visitor.texts;
        // An answer of a device counts once.
        let own = [SURE, TYPED, ANSWER, CONFIRMS];
        let entries = self.values.iter();
        let entries = hidden(entries.filter(|(name, _)| !own.contains(&name.as_str())));
        let body = html! {
            ul.rows { @for name in &act.objects { li { strong { (name) } } } }
            p { (act.consequence) }
            form method="post" action=(self.path) {
                (entries)
                input type="hidden" name=(SURE) value="yes";
                @for name in act.objects.iter().filter(|_| act.is_typed) {
                    div.field {
                        label for=(TYPED) { (texts.with("sure-type", [("name", name.as_str())])) }
                        input id=(TYPED) name=(TYPED) value=(self.value(TYPED)) required autocomplete="off" spellcheck="false"
                            aria-invalid=[is_wrong.then_some("true")]
                            aria-describedby=[is_wrong.then_some("typed-problem")];
                        @if is_wrong { p.problem id="typed-problem" role="alert" { (texts.text("sure-type-wrong")) } }
                    }
                }
                button.danger.sure type="submit" { (act.label) }
            }
            p { a href=(act.back) { (texts.text("sure-not")) } }
        };

        let status = if is_wrong {
            StatusCode::UNPROCESSABLE_ENTITY
        } else {
            StatusCode::OK
        };
        let title = texts.with("sure-title", [("act", act.label.as_str())]);
        PageLook::plain(texts).console_notice(status, &title, body)
    }
}

/// Whether a typed name is the one on the page, where browsers show several spaces as one.
fn is_same(typed: &str, name: &str) -> bool {
    let words = |text: &str| {
        text.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    words(typed) == words(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_typed_as_the_page_shows_it() {
        assert!(is_same(" Retail  contract ", "Retail contract"));
        assert!(!is_same("retail contract", "Retail contract"));
        assert!(!is_same("", "Retail contract"));
    }
}
