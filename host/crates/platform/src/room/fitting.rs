//! Whether entries fit their fields, and how they will look, before they are signed.
//!
//! The component that writes the document judges: nothing that a person signed fails afterwards for want of room
//! or of a letter.

use std::collections::BTreeMap;

use super::Room;
use super::execute::{REFERENCE, document_value};
use super::form::{FormError, Problems, SigningForm, stored_value};
use super::signature::component_style;
use holdfast_base::fair_queue::WorkOwner;
use holdfast_components::ComponentError;
use holdfast_components::rules::document_values::{BoxedValue, Misfit};
use holdfast_components::rules::documents::FieldValue;
use holdfast_components::rules::placement::PageFacts;
use holdfast_domain::dates::{DAY_OF_SIGNING, DateFormat};
use holdfast_domain::envelope::StoredFile;
use holdfast_domain::field::{ATTACHMENT, Area};
use holdfast_domain::id::OrgId;
use holdfast_domain::locale::Message;
use holdfast_handwriting::Handwriting;
use holdfast_store::page_facts;
use holdfast_store::room::RoomField;

/// Size of the picture of an entry, in pixels for a point of its field.
const SHARPNESS: f64 = 3.0;

/// Largest width of such a picture, in pixels.
const WIDEST: f64 = 1_600.0;

/// A value to be written into a document.
pub struct FieldEntry<'a> {
    pub field: &'a RoomField,
    pub value: &'a str,
}

/// A field with a value that does not fit it.
pub struct Misfitting {
    /// Name of the field.
    pub field: String,
    pub why: Misfit,
}

impl Room {
    /// Returns the entries that cannot be written into their fields on these pages.
    pub async fn misfits(
        &self,
        org: &OrgId,
        pages: &[PageFacts],
        entries: &[FieldEntry<'_>],
        (style, dates): (Option<Handwriting>, DateFormat),
    ) -> Result<Vec<Misfitting>, ComponentError> {
        let mut fields = Vec::new();
        let mut boxed = Vec::new();
        for FieldEntry { field, value } in entries {
            // Pictures are scaled and boxes are ticked: both fit any area.
            let Some(value) = text_of(field, value, dates) else {
                continue;
            };

            for area in &field.areas {
                let Some((width, height)) = size_of(pages, area) else {
                    continue;
                };

                let boxed_value = |value| BoxedValue {
                    value,
                    style: style.map(component_style),
                    width,
                    height,
                };
                if field.rules.overflow.is_some() {
                    // With the number of a page that no document has.
                    let reference = REFERENCE.replace("{page}", "9999");
                    fields.push((*field, true));
                    boxed.push(boxed_value(FieldValue::Text(reference)));
                }

                if !fits_anyway(&value, width, height) {
                    fields.push((*field, false));
                    boxed.push(boxed_value(value.clone()));
                }
            }
        }

        if boxed.is_empty() {
            return Ok(Vec::new());
        }

        let documents = self.components.documents(None, self.store.priority());
        let documents = documents.for_owner(WorkOwner::new(org, ""));
        // One call for all values, because each call starts a fresh instance.
        let verdicts = documents.check_values(boxed).await?;
        let misfits = fields.into_iter().zip(verdicts);
        let misfits: Vec<_> = misfits.collect();
        let too_long = |field: &RoomField| {
            let mut all = misfits.iter();
            all.any(|((other, is_reference), why)| {
                let is_long = matches!(why, Some(Misfit::TooLong(_)));
                !is_reference && is_long && other.name == field.name
            })
        };
        let found = misfits.iter().filter_map(|((field, is_reference), why)| {
            let why = why.clone()?;
            let continues = matches!(why, Misfit::TooLong(_)) && field.rules.overflow.is_some();

            // A long text continues on an added page, if its field has room for the reference to it.
            let is_problem = if *is_reference {
                too_long(field)
            } else {
                !continues
            };

            is_problem.then(|| Misfitting {
                field: field.name.clone(),
                why,
            })
        });

        Ok(found.collect())
    }

    /// Returns the problems of a signer's values that cannot be written into the document.
    pub(super) async fn fit_problems(
        &self,
        form: &SigningForm,
        values: &BTreeMap<String, String>,
        style: Option<Handwriting>,
    ) -> Result<Problems, FormError> {
        let entries = form.fields.iter().filter_map(|field| {
            let value = values.get(&field.name)?;
            let is_day = field.field_type == "date" && value == DAY_OF_SIGNING;
            let value = if is_day { &form.today } else { value };
            // The signer cannot change a value that the sender fixed, or the name of a file.
            let is_own = !field.is_locked() && field.field_type != ATTACHMENT;
            is_own.then_some(FieldEntry { field, value })
        });
        let entries: Vec<FieldEntry<'_>> = entries.collect();

        let is_text =
            |entry: &FieldEntry<'_>| text_of(entry.field, entry.value, form.dates.format).is_some();
        if !entries.iter().any(is_text) {
            return Ok(Problems::new());
        }

        let org = &form.submitter.org;
        // Areas are fractions of a page, so its size decides how much text they hold.
        let pages = self.page_facts(org, &form.submission.file()).await?;
        let look = (style, form.dates.format);
        let misfits = self.misfits(org, &pages, &entries, look).await?;
        let problems = misfits.into_iter().map(|Misfitting { field, why }| {
            let named = |found: &&RoomField| found.name == field;
            let found = form.fields.iter().find(named);
            let is_signature = found.is_some_and(RoomField::is_signature);
            (field, message(&why, is_signature))
        });

        Ok(problems.collect())
    }

    /// Draws a value as the document will have it: a PNG on a transparent ground, or why there is none.
    pub async fn look(
        &self,
        form: &SigningForm,
        field: &RoomField,
        value: &str,
        style: Option<Handwriting>,
    ) -> Result<Result<Vec<u8>, Message>, FormError> {
        let stored = match stored_value(field, value.trim()) {
            Ok(stored) => stored,
            Err(why) => return Ok(Err(why)),
        };
        let Some(value) = text_of(field, &stored, form.dates.format) else {
            return Err(FormError::NotFound);
        };

        let org = &form.submitter.org;
        let pages = self.page_facts(org, &form.submission.file()).await?;
        // The picture is a preview. Further areas of the field have the same
        // value, and are checked at saving.
        let area = field.areas.first();
        let Some((width, height)) = area.and_then(|area| size_of(&pages, area)) else {
            return Err(FormError::NotFound);
        };

        let boxed = BoxedValue {
            value,
            style: style.map(component_style),
            width,
            height,
        };

        let documents = self.components.documents(None, self.store.priority());
        let documents = documents.for_owner(WorkOwner::new(org, &form.submission.id.to_string()));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 1 and the widest picture"
        )]
        let pixels = (f64::from(width) * SHARPNESS).clamp(1.0, WIDEST) as u32;
        if let Ok(picture) = documents.draw_value(boxed.clone(), pixels).await? {
            return Ok(Ok(picture.png));
        }

        // Why it cannot be drawn is asked only then.
        let verdict = documents.check_values(vec![boxed]).await?;
        let why = verdict.into_iter().next().flatten();
        Ok(Err(why.map_or_else(
            || Message::new("problem-picture-unreadable"),
            |why| message(&why, field.is_signature()),
        )))
    }

    /// Returns the pages of a document, as they were read at its upload, or read now.
    pub async fn page_facts(
        &self,
        org: &OrgId,
        document: &StoredFile,
    ) -> Result<Vec<PageFacts>, FormError> {
        if let Some(identity) = self.components.placement_identity() {
            let mut connection = self.store.read().await?;
            let reader = page_facts::reader(&identity);
            let kept = page_facts::get(&mut connection, org, &document.sha256, &reader).await?;
            if let Some(kept) = kept {
                return Ok(kept);
            }
        }

        // No facts of this reader's version are kept, or they are forgotten by now.
        let pdf = self.files.get(document).await?;
        let reader = self.components.placement(None, self.store.priority());
        let reader = reader.for_owner(WorkOwner::new(org, &document.sha256));
        match reader.inspect(pdf).await? {
            Ok(facts) => Ok(facts.pages),
            Err(why) => Err(FormError::Document(format!("{why:?}"))),
        }
    }
}

/// Returns a value as it is written, if it is a text or a typed name.
fn text_of(field: &RoomField, value: &str, dates: DateFormat) -> Option<FieldValue> {
    let value = document_value(field, value, dates)?.ok()?;
    let is_text = matches!(value, FieldValue::Text(_) | FieldValue::Typed(_));
    is_text.then_some(value)
}

/// Returns the size of a field in points.
fn size_of(pages: &[PageFacts], area: &Area) -> Option<(f32, f32)> {
    let page = pages.get(usize::try_from(area.page).ok()?.checked_sub(1)?)?;
    #[expect(clippy::cast_possible_truncation, reason = "sizes of a page")]
    let size = ((area.w * page.width) as f32, (area.h * page.height) as f32);
    Some(size)
}

/// Returns whether a short plain text always fits. Most entries do, and need no call of the component.
fn fits_anyway(value: &FieldValue, width: f32, height: f32) -> bool {
    /// Smallest font size in points, and the widest plain letter at that size.
    const SMALLEST: f32 = 5.0;
    const WIDEST_LETTER: f32 = 0.95 * SMALLEST;

    let FieldValue::Text(text) = value else {
        return false;
    };

    let is_plain = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    #[expect(clippy::cast_precision_loss, reason = "at most 4,000 characters")]
    let longest = text.len() as f32 * WIDEST_LETTER;
    is_plain && longest <= width * 0.9 && height >= SMALLEST * 1.1
}

/// Returns the sentence for a person.
fn message(why: &Misfit, is_signature: bool) -> Message {
    match why {
        Misfit::TooLong(_) if is_signature => Message::new("problem-signature-room"),
        Misfit::TooLong(room) => Message::with_limit("problem-room", *room as usize),
        Misfit::NotDrawable(characters) => {
            let shown: String = characters.chars().take(10).collect();
            let key = if is_signature {
                "problem-signature-letters"
            } else {
                "problem-letters"
            };
            Message::Limit(key, shown)
        }
    }
}
