//! Interpreter of content streams, limited to operators that affect text.

mod layers;
mod marks;
mod show;

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use hayro_syntax::object::{Dict, Name, ObjectIdentifier, Stream};
use hayro_syntax::page::Resources;

use crate::content::{ContentLexer, ContentOperand, ContentOperator, OperandStack};
use crate::decode::decode;
use crate::error::ReadError;
use crate::font::{FontIndex, FontTable};
use crate::geometry::{AffineMap, PageRect};
use crate::limits::{MAX_FORM_DEPTH, ReadBudget, ReadLimit};
use crate::page_text::{ContentStream, PageText, PlacedImage, ShowKind, TextSource};
use crate::text_state::{TextMatrices, TextState};

pub(crate) use layers::HiddenLayers;
use marks::MarkedContent;

/// Maximum `q` nesting that is restored exactly; real content stays far below.
const MAX_SAVED_STATES: usize = 1_000;

/// Most pictures of a page that are noted.
const MAX_IMAGES: usize = 100_000;

/// How much of a page's text is wanted.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum TextExtent {
    All,
    /// Up to the first operator that shows readable text.
    First,
    /// All, for comparisons: without places.
    Compact,
}

/// Interpreter that turns the streams of one page into a [`PageText`].
pub(crate) struct ContentInterpreter<'r, 'a> {
    fonts: &'r mut FontTable<'a>,
    budget: &'r mut ReadBudget,
    hidden_layers: &'r HiddenLayers,
    page: PageText,
    forms: HashMap<ObjectIdentifier, Option<Rc<FormXObject<'a>>>>,
    /// The running stream and the streams that draw it.
    scopes: Vec<StreamScope>,
    /// Number of enclosing marks that hide their content.
    hidden: usize,
    /// Number of enclosing marks that replace the text of their content.
    replacing: usize,
    extent: TextExtent,
    /// Everything wanted was read.
    is_done: bool,
    /// Some text may lie beside the page.
    is_uncertain: bool,
    /// Glyphs of the compact text so far.
    compact_glyphs: usize,
}

/// A form XObject, read once per page.
struct FormXObject<'a> {
    content: Rc<[u8]>,
    matrix: AffineMap,
    resources: Option<Resources<'a>>,
    is_hidden: bool,
}

/// A use of a content stream. It is added to [`PageText::streams`] when it shows its first glyph,
/// so that drawing an empty form a million times costs no memory.
struct StreamScope {
    stream: ContentStream,
    form: Option<ObjectIdentifier>,
    index: Option<usize>,
}

/// Mutable state of one run of a stream.
struct TextRun<'s, 'a> {
    resources: &'s Resources<'a>,
    state: TextState,
    saved: Vec<TextState>,
    matrices: TextMatrices,
    marks: Vec<MarkedContent>,
    fonts: HashMap<Vec<u8>, Option<FontIndex>>,
}

impl<'r, 'a> ContentInterpreter<'r, 'a> {
    pub(crate) fn new(
        fonts: &'r mut FontTable<'a>,
        budget: &'r mut ReadBudget,
        hidden_layers: &'r HiddenLayers,
        (width, height): (f64, f64),
        extent: TextExtent,
    ) -> Self {
        Self {
            fonts,
            budget,
            hidden_layers,
            page: PageText {
                width,
                height,
                ..PageText::default()
            },
            forms: HashMap::new(),
            scopes: Vec::new(),
            hidden: 0,
            replacing: 0,
            extent,
            is_done: false,
            is_uncertain: false,
            compact_glyphs: 0,
        }
    }

    pub(crate) fn finish(self) -> PageText {
        self.page
    }

    /// Returns the compact text; none if some of it may lie beside the page.
    pub(crate) fn finish_compact(self) -> Option<String> {
        (!self.is_uncertain).then_some(self.page.text)
    }

    /// Runs the page's own content, which is always entry 0 of the streams.
    pub(crate) fn run_page(
        &mut self,
        content: Vec<u8>,
        resources: &Resources<'a>,
        matrix: AffineMap,
    ) -> Result<(), ReadError> {
        let stream = ContentStream {
            source: TextSource::Page,
            parent: None,
            name: Vec::new(),
            invocation: 0..0,
            content: content.into(),
            matrix,
        };
        self.page.streams.push(stream.clone());

        self.run_scope(
            StreamScope {
                stream,
                form: None,
                index: Some(0),
            },
            resources,
            TextState::new(matrix),
        )
    }

    /// Runs an annotation's appearance.
    pub(crate) fn run_appearance(
        &mut self,
        stream: &Stream<'a>,
        page_resources: &Resources<'a>,
        matrix: AffineMap,
    ) -> Result<(), ReadError> {
        if self.is_done {
            return Ok(());
        }

        let id = stream.obj_id();
        let Some(form) = self.form(id, stream)? else {
            return Ok(());
        };

        let scope = StreamScope {
            stream: ContentStream {
                source: TextSource::Appearance {
                    number: id.obj_number,
                    generation: id.gen_number,
                },
                parent: None,
                name: Vec::new(),
                invocation: 0..0,
                content: Rc::clone(&form.content),
                matrix,
            },
            form: Some(id),
            index: None,
        };

        // The state is a new one: the content of the page passes nothing on to an annotation.
        let resources = form.resources.as_ref().unwrap_or(page_resources);
        self.run_scope(scope, resources, TextState::new(matrix))
    }

    fn run_scope(
        &mut self,
        scope: StreamScope,
        resources: &Resources<'a>,
        state: TextState,
    ) -> Result<(), ReadError> {
        let content = Rc::clone(&scope.stream.content);
        // A stream may leave marks open; they must not hide content outside of it.
        let hidden_before = self.hidden;
        self.scopes.push(scope);
        let mut run = TextRun {
            resources,
            state,
            saved: Vec::new(),
            matrices: TextMatrices::new(),
            marks: Vec::new(),
            fonts: HashMap::new(),
        };

        let mut lexer = ContentLexer::new(&content);
        let mut operands = OperandStack::default();
        while !self.is_done
            && let Some(operator) = lexer.next(&mut operands)
        {
            // Forms count at every use, because a short file can draw one form a million times.
            self.budget.spend_operator()?;
            self.execute(&mut run, &operator, &operands)?;
        }

        // A mark that the stream leaves open still replaces the text of its glyphs.
        while let Some(mark) = run.marks.pop() {
            self.end_mark(mark);
        }

        self.hidden = hidden_before;
        self.scopes.pop();
        Ok(())
    }

    fn execute(
        &mut self,
        run: &mut TextRun<'_, 'a>,
        operator: &ContentOperator<'_>,
        operands: &OperandStack<'_>,
    ) -> Result<(), ReadError> {
        let state = &mut run.state;
        match operator.name {
            b"q" if run.saved.len() < MAX_SAVED_STATES => run.saved.push(state.clone()),
            b"Q" => {
                if let Some(saved) = run.saved.pop() {
                    *state = saved;
                }
            }
            b"cm" => {
                if let Some(numbers) = operands.numbers::<6>() {
                    state.ctm = AffineMap::new(numbers).then(&state.ctm);
                }
            }
            // A text object begins with new matrices. Font and spacing stay (ISO 32000-1, 9.4.1).
            b"BT" => run.matrices = TextMatrices::new(),
            b"Tf" => self.set_font(run, operands),
            b"gs" => self.set_graphics_state(run, operands),
            b"Tc" => set(&mut state.character_spacing, operands),
            b"Tw" => set(&mut state.word_spacing, operands),
            b"TL" => set(&mut state.leading, operands),
            b"Ts" => set(&mut state.rise, operands),
            b"Tz" => {
                if let Some([percent]) = operands.numbers() {
                    state.horizontal_scale = percent / 100.0;
                }
            }
            b"Td" | b"TD" => {
                if let Some([x, y]) = operands.numbers() {
                    if operator.name == b"TD" {
                        state.leading = -y;
                    }
                    run.matrices.next_line(x, y);
                }
            }
            b"Tm" => {
                if let Some(numbers) = operands.numbers::<6>() {
                    run.matrices.set(AffineMap::new(numbers));
                }
            }
            b"T*" => run.matrices.next_line(0.0, -state.leading),
            b"Tj" => self.show(run, operator, operands, ShowKind::Show)?,
            b"TJ" => self.show(run, operator, operands, ShowKind::ShowAdjusted)?,
            b"'" => {
                run.matrices.next_line(0.0, -state.leading);
                self.show(run, operator, operands, ShowKind::NextLineShow)?;
            }
            b"\"" => {
                let [.., word, character, _] = operands.values() else {
                    return Ok(());
                };
                let (
                    ContentOperand::Number(word_spacing),
                    ContentOperand::Number(character_spacing),
                ) = (word, character)
                else {
                    return Ok(());
                };

                state.word_spacing = *word_spacing;
                state.character_spacing = *character_spacing;
                run.matrices.next_line(0.0, -state.leading);
                let kind = ShowKind::SpacedNextLineShow {
                    word_spacing: *word_spacing,
                    character_spacing: *character_spacing,
                };

                self.show(run, operator, operands, kind)?;
            }
            b"BMC" => self.begin_mark(run, MarkedContent::plain()),
            b"BDC" => {
                let mark = self.described_mark(run, operator, operands);
                self.begin_mark(run, mark);
            }
            b"EMC" => {
                if let Some(mark) = run.marks.pop() {
                    self.end_mark(mark);
                }
            }
            b"Do" => self.draw_object(run, operator, operands)?,
            b"BI" => {
                // An inline image is no object, so the comparison knows it by the length of its operator.
                let size = operator.range.len();
                self.place_image(&run.state.ctm, (0, 0), size);
            }
            _ => {}
        }

        Ok(())
    }

    fn set_font(&mut self, run: &mut TextRun<'_, 'a>, operands: &OperandStack<'_>) {
        let [.., ContentOperand::Name(name), ContentOperand::Number(size)] = operands.values()
        else {
            return;
        };

        run.state.size = *size;
        // Pages set the same few fonts at every line, so names are looked up once in a run.
        run.state.font = match run.fonts.get(name.as_ref()) {
            Some(known) => *known,
            None => {
                let found = self.fonts.find(&run.resources.fonts, name);
                run.fonts.insert(name.to_vec(), found);
                found
            }
        };
    }

    /// Applies `gs`, which may also set the font.
    fn set_graphics_state(&mut self, run: &mut TextRun<'_, 'a>, operands: &OperandStack<'_>) {
        let font = operands
            .last_name()
            .and_then(|name| run.resources.ext_g_states.get::<Dict<'a>>(name))
            .and_then(|state| state.get::<hayro_syntax::object::Array<'a>>("Font"));
        if let Some(font) = font {
            // The reference identifies the font, so one font is loaded once, however it is set.
            let object = font.raw_iter().next().and_then(|item| item.as_obj_ref());
            let mut items = font.flex_iter();
            if let Some(dict) = items.next::<Dict<'a>>()
                && let Some(size) = items.next::<f64>()
            {
                run.state.font = self.fonts.get(object.map(Into::into), || Some(dict));
                run.state.size = size;
            }
        }
    }

    fn draw_object(
        &mut self,
        run: &mut TextRun<'_, 'a>,
        operator: &ContentOperator<'_>,
        operands: &OperandStack<'_>,
    ) -> Result<(), ReadError> {
        let Some(name) = operands.last_name() else {
            return Ok(());
        };
        let Some(stream) = run.resources.x_objects.get::<Stream<'a>>(name) else {
            return Ok(());
        };

        let subtype = stream.dict().get::<Name<'_>>("Subtype");
        if subtype.as_deref() == Some(b"Image") {
            // Pictures matter only to the comparison after a write, which reads whole pages.
            let pixels = |key: &str| stream.dict().get::<u32>(key).unwrap_or(0);
            let pixels = (pixels("Width"), pixels("Height"));
            if self.extent == TextExtent::All
                && !self.hidden_layers.hides_entry(stream.dict(), "OC")
            {
                self.place_image(&run.state.ctm, pixels, stream.raw_data().len());
            }

            return Ok(());
        }

        let id = stream.obj_id();

        // A form that draws itself would recurse without end.
        let draws_itself = self.scopes.iter().any(|scope| scope.form == Some(id));
        if subtype.as_deref() != Some(b"Form") || draws_itself {
            return Ok(());
        }
        // Each level is a call of this function, and the stack of the sandbox is limited.
        if self.scopes.len() > MAX_FORM_DEPTH {
            return Err(ReadError::OverLimit(ReadLimit::FormDepth));
        }
        let Some(form) = self.form(id, &stream)? else {
            return Ok(());
        };

        if form.is_hidden {
            return Ok(());
        }

        let matrix = form.matrix.then(&run.state.ctm);
        let scope = StreamScope {
            stream: ContentStream {
                source: TextSource::Form {
                    number: id.obj_number,
                    generation: id.gen_number,
                },
                parent: None,
                name: name.to_vec(),
                invocation: operator.range.clone(),
                content: Rc::clone(&form.content),
                matrix,
            },
            form: Some(id),
            index: None,
        };

        // Forms of older programs have no resources and use those around them (ISO 32000-1, 7.8.3).
        let resources = form.resources.as_ref().unwrap_or(run.resources);
        // The form begins with the state of its caller and must not change it (ISO 32000-1, 8.10.1).
        let mut state = run.state.clone();
        state.ctm = matrix;

        self.run_scope(scope, resources, state)
    }

    /// Notes a picture, which fills the unit square of the current coordinates.
    fn place_image(&mut self, map: &AffineMap, pixels: (u32, u32), size: usize) {
        if self.extent != TextExtent::All || self.hidden > 0 || self.page.images.len() >= MAX_IMAGES
        {
            return;
        }

        let PageRect { x0, y0, x1, y1 } = map.bounds_of(0.0, 0.0, 1.0, 1.0);
        let (width, height) = (self.page.width, self.page.height);
        self.page.images.push(PlacedImage {
            rect: PageRect {
                x0: x0 / width,
                y0: y0 / height,
                x1: x1 / width,
                y1: y1 / height,
            },
            pixels,
            size,
        });
    }

    fn form(
        &mut self,
        id: ObjectIdentifier,
        stream: &Stream<'a>,
    ) -> Result<Option<Rc<FormXObject<'a>>>, ReadError> {
        if let Some(known) = self.forms.get(&id) {
            return Ok(known.clone());
        }

        let content = decode(stream, self.budget.page_content_left())?;
        self.budget
            .spend_page_content(content.as_ref().map_or(0, Vec::len))?;
        let dict = stream.dict();
        let form = content.map(|content| {
            Rc::new(FormXObject {
                content: content.into(),
                matrix: dict
                    .get::<[f64; 6]>("Matrix")
                    .map_or(AffineMap::IDENTITY, AffineMap::new),
                resources: dict.get::<Dict<'a>>("Resources").map(Resources::new),
                is_hidden: self.hidden_layers.hides_entry(dict, "OC"),
            })
        });

        // A form that cannot be decoded is noted as well: each use of it would decode it again.
        self.forms.insert(id, form.clone());
        Ok(form)
    }

    /// Returns the entry of [`PageText::streams`] for the running stream, adding it if necessary.
    fn current_stream(&mut self) -> usize {
        let mut parent = None;
        // Parents come before their children, because each stream names the one that draws it.
        for scope in &mut self.scopes {
            let index = match scope.index {
                Some(index) => index,
                None => {
                    let index = self.page.streams.len();
                    self.page.streams.push(ContentStream {
                        parent,
                        ..scope.stream.clone()
                    });
                    scope.index = Some(index);
                    index
                }
            };

            parent = Some(index);
        }

        parent.unwrap_or(0)
    }
}

fn set(parameter: &mut f64, operands: &OperandStack<'_>) {
    if let Some([value]) = operands.numbers() {
        *parameter = value;
    }
}

/// Returns the byte range of an operator, which stays valid after the run.
fn owned_range(operator: &ContentOperator<'_>) -> Range<usize> {
    operator.range.clone()
}
