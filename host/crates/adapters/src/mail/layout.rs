//! Renders a letter as HTML and as text, in the organization's branding.
//!
//! Mail clients support little HTML: styles are inline, tables limit the width and hold
//! the button because some clients ignore `max-width` and the padding of a link, and
//! no colour is set that would be unreadable on a dark background. Nothing needs more than
//! the width of a phone, and everything is in the plain text, too.

use maud::{DOCTYPE, Markup, html};

use super::letters::MailContent;
use holdfast_domain::brand::{BrandColor, BrandLogo, OrganizationBrand};
use holdfast_domain::organization::Organization;

/// Characters of a link's last part that are shown. The button and the plain text have all of them.
const VISIBLE_SECRET: usize = 6;

/// Branding of an organization's mails.
pub struct MailBranding {
    /// Display name of the sender, and heading of the mail when there is no logo.
    pub sender: String,
    pub color: BrandColor,
    pub logo: Option<BrandLogo>,
}

impl MailBranding {
    pub fn of(organization: &Organization) -> Self {
        let OrganizationBrand { color, logo, .. } = organization.settings.brand.clone();
        Self {
            sender: organization.display_name().to_owned(),
            color: color.unwrap_or(BrandColor::OURS),
            logo,
        }
    }
}

/// Renders the plain-text part, with the same wording as the HTML.
pub fn text(letter: &MailContent, look: &MailBranding) -> String {
    let mut blocks = vec![greeting(letter)];
    blocks.extend(letter.paragraphs.iter().cloned());
    if let Some(button) = &letter.button {
        let label = [("label", button.label.as_str())];
        let label = letter.texts.with("mail-button", label);
        blocks.push(format!("{label}\n{}", button.url));
    }

    blocks.extend(letter.notes.iter().cloned());
    // The separator of a signature (RFC 3676, section 4.3), which mail programs fold away in replies.
    blocks.push(format!("-- \n{}", look.sender));
    blocks.join("\n\n") + "\n"
}

/// Renders the HTML part; `logo` is the `cid:` URL of the logo.
pub fn html(letter: &MailContent, look: &MailBranding, logo: Option<&str>) -> String {
    let language = letter.texts.locale();
    let direction = language.direction();
    // `start` is a value of newer readers only.
    let side = if direction == "rtl" { "right" } else { "left" };
    let frame = format!(
        "padding:24px 16px;border-top:4px solid {};text-align:{side};\
         font-family:system-ui,-apple-system,'Segoe UI',Roboto,Arial,sans-serif;\
         font-size:16px;line-height:1.5;overflow-wrap:anywhere",
        look.color
    );

    let page = html! {
        (DOCTYPE)
        html lang=(language.as_str()) dir=(direction) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="supported-color-schemes" content="light dark";
                title { (letter.subject) }
            }
            body style="margin:0;padding:0;color-scheme:light dark" {
                (preheader(letter))
                (table("100%", "", html! {
                    td align="center" {
                        // Web readers drop the page around the tables, and its language with it.
                        (table("560", "width:100%;max-width:560px", html! {
                            td lang=(language.as_str()) dir=(direction) align=(side) style=(frame) {
                                (head(look, logo))
                                p { (greeting(letter)) }
                                @for paragraph in &letter.paragraphs { p { (paragraph) } }
                                @if let Some(button) = &letter.button {
                                    (self::button(&button.label, &button.url, &look.color))
                                }
                                @for note in &letter.notes {
                                    p style="font-size:13px;opacity:0.8" { (note) }
                                }
                            }
                        }))
                    }
                }))
            }
        }
    };

    page.into_string()
}

/// Renders a table of one row. Outlook for Windows heeds the attribute `width`, and others the style.
fn table(width: &str, style: &str, row: Markup) -> Markup {
    let style = (!style.is_empty()).then_some(style);
    html! {
        table role="presentation" width=(width) cellpadding="0" cellspacing="0" border="0" style=[style] {
            tr { (row) }
        }
    }
}

/// Renders what lists of mails show behind the subject. They would show the name and the greeting otherwise.
fn preheader(letter: &MailContent) -> Markup {
    html! {
        @if let Some(first) = letter.paragraphs.first() {
            div style="display:none;max-height:0;overflow:hidden;mso-hide:all" { (first) }
        }
    }
}

/// Renders the logo on white, as many logos are drawn for paper; without one, the name.
fn head(look: &MailBranding, logo: Option<&str>) -> Markup {
    html! {
        @match logo {
            Some(url) => img src=(url) alt=(look.sender)
                style="display:block;max-height:56px;max-width:240px;background-color:#ffffff;padding:6px;border-radius:4px";,
            None => p style="font-size:18px;font-weight:bold;margin:0" { (look.sender) },
        }
    }
}

/// Renders a button with the link as text below it, so that recipients can check where it leads.
fn button(label: &str, url: &str, color: &BrandColor) -> Markup {
    let cell = format!("background-color:{color};border-radius:6px");
    // The letters are black or white by the brand's colour, so that they can be read on it.
    let link = format!(
        "display:inline-block;padding:12px 20px;color:{};font-weight:bold;text-decoration:none",
        color.text()
    );
    html! {
        table role="presentation" cellpadding="0" cellspacing="0" border="0" {
            tr { td bgcolor=(color) style=(cell) { a href=(url) style=(link) { (label) } } }
        }
        p style="font-size:13px" { a href=(url) dir="ltr" style="color:inherit" { (shortened(url)) } }
    }
}

/// Returns a link in the length in which people read it: its secret is left out but for its first characters.
fn shortened(url: &str) -> String {
    let secret = url.rfind('/').map_or(0, |slash| slash + 1);
    match url[secret..].char_indices().nth(VISIBLE_SECRET) {
        Some((end, _)) => format!("{}…", &url[..secret + end]),
        None => url.to_owned(),
    }
}

fn greeting(letter: &MailContent) -> String {
    match &letter.to {
        Some(name) => letter.texts.with("mail-hello", [("name", name.as_str())]),
        None => letter.texts.text("mail-hello-nobody"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mail::letters::MailButton;
    use crate::texts::Texts;
    use holdfast_domain::clock::Timestamp;
    use holdfast_domain::id::OrgId;
    use holdfast_domain::locale::Locale;
    use holdfast_domain::organization::OrgSettings;

    fn look(brand: OrganizationBrand) -> MailBranding {
        MailBranding::of(&Organization {
            id: OrgId::new(),
            name: "Maple".into(),
            settings: OrgSettings {
                brand,
                ..OrgSettings::default()
            },
            created_at: Timestamp::from_millis(0),
        })
    }

    fn letter() -> MailContent {
        MailContent {
            texts: Texts::default(),
            subject: "Sign".into(),
            to: Some("<b>Ann</b>".into()),
            paragraphs: vec!["Maple & Oak ask you.".into()],
            button: Some(MailButton {
                label: "Sign".into(),
                url: "https://sign.example/abc".into(),
            }),
            notes: vec!["For you alone.".into()],
        }
    }

    #[test]
    fn a_mail_names_the_organization_with_and_without_a_brand() {
        let plain = look(OrganizationBrand::default());
        assert_eq!(plain.sender, "Maple");
        assert_eq!(plain.color, BrandColor::OURS);
        assert!(html(&letter(), &plain, None).contains("Maple</p>"));

        let named = look(OrganizationBrand {
            name: Some("Maple Motors".into()),
            ..OrganizationBrand::default()
        });
        assert_eq!(named.sender, "Maple Motors");
    }

    #[test]
    fn text_and_html_of_a_mail_agree_and_input_is_escaped() {
        let (letter, look) = (letter(), look(OrganizationBrand::default()));
        let text = text(&letter, &look);
        let page = html(&letter, &look, None);
        for words in [
            "Maple & Oak ask you.",
            "https://sign.example/abc",
            "For you alone.",
        ] {
            assert!(text.contains(words), "{text}");
            let escaped = words.replace('&', "&amp;");
            assert!(page.contains(&escaped), "{page}");
        }

        assert!(!page.contains("<b>Ann"), "{page}");
        assert!(!page.contains("<img"), "{page}");
    }

    #[test]
    fn a_mail_is_a_table_of_limited_width_with_a_hidden_first_sentence() {
        let arabic = MailContent {
            texts: Texts::of(Locale::Ar),
            ..letter()
        };
        for (letter, side, direction) in [(letter(), "left", "ltr"), (arabic, "right", "rtl")] {
            let page = html(&letter, &look(OrganizationBrand::default()), None);
            let hidden = "mso-hide:all\">Maple &amp; Oak ask you.</div>";
            assert!(page.contains(hidden), "{page}");
            assert!(page.contains("width=\"560\""), "{page}");
            assert!(page.contains("max-width:560px"), "{page}");

            let cell = format!("dir=\"{direction}\" align=\"{side}\"");
            assert!(page.contains(&cell), "{page}");
        }
    }

    #[test]
    fn a_long_link_is_whole_in_the_text_and_shortened_where_it_is_read_in_html() {
        let url = "https://sign.example/sign/0123456789abcdef";
        let long = MailContent {
            button: Some(MailButton {
                label: "Sign".into(),
                url: url.into(),
            }),
            ..letter()
        };
        let look = look(OrganizationBrand::default());
        assert!(text(&long, &look).contains(url));

        let page = html(&long, &look, None);
        assert_eq!(page.matches(&format!("href=\"{url}\"")).count(), 2);
        assert!(page.contains(">https://sign.example/sign/012345…</a>"));
        assert_eq!(
            shortened("https://sign.example/abc"),
            "https://sign.example/abc"
        );
    }

    #[test]
    fn the_mail_button_has_the_brand_colour_and_readable_text() {
        let yellow = look(OrganizationBrand {
            color: Some(BrandColor::try_from("#ffd000".to_owned()).unwrap()),
            ..OrganizationBrand::default()
        });
        let page = html(&letter(), &yellow, Some("cid:logo"));
        assert!(page.contains("background-color:#ffd000"), "{page}");
        assert!(page.contains("color:#000000"), "{page}");
        assert!(page.contains("src=\"cid:logo\""), "{page}");
    }
}
