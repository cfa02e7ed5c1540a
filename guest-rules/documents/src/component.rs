//! Exports of the component, called by the host.

#![expect(
    unsafe_code,
    reason = "the export macro writes the functions the host calls"
)]

use crate::contract::bindings;
use crate::contract::bindings::exports::holdfast::documents::{
    completion, copies, documents, excerpts, form_fields, handwriting, long_term, signatures,
    sources, values, variables, vaulting, watermarks, wording,
};
use crate::{
    Area, BoxedValue, CompletionFacts, CustodyFacts, CustodySheet, DocumentError,
    DocumentExtension, ExtensionRequest, FilledField, FlowingField, FormField, FoundSignatures,
    MarkRequest, MarkWords, Marked, Misfit, PageImage, Picture, SealRequest, SealSpace,
    SettledDocument, SignatureHandling, ValidationData, VariableValue, VaultCopies, VaultRequest,
    WatermarkRequest, WrittenField,
};

struct DocumentsComponent;

impl documents::Guest for DocumentsComponent {
    fn fill(pdf: Vec<u8>, fields: Vec<FilledField>) -> Result<Vec<u8>, DocumentError> {
        crate::fill(&pdf, &fields)
    }

    fn mark(pdf: Vec<u8>, request: MarkRequest) -> Result<Marked, DocumentError> {
        crate::mark(pdf, &request)
    }

    fn prepare_seal(pdf: Vec<u8>, request: SealRequest) -> Result<SealSpace, DocumentError> {
        crate::prepare_seal(pdf, &request)
    }

    fn strip_tags(pdf: Vec<u8>) -> Result<Vec<u8>, DocumentError> {
        crate::strip_tags(&pdf)
    }

    fn picture_to_pdf(picture: Picture) -> Result<Vec<u8>, DocumentError> {
        crate::picture_to_pdf(&picture)
    }

    fn merge(pdfs: Vec<Vec<u8>>) -> Result<Vec<u8>, DocumentError> {
        crate::merge(&pdfs)
    }

    fn page_image(pdf: Vec<u8>, page: u32, width: u32) -> Result<PageImage, DocumentError> {
        crate::page_image(&pdf, page, width)
    }

    fn custody_record(facts: CustodyFacts) -> Result<Vec<u8>, DocumentError> {
        crate::custody_record(&facts)
    }
}

impl handwriting::Guest for DocumentsComponent {
    fn fill(pdf: Vec<u8>, fields: Vec<WrittenField>) -> Result<Vec<u8>, DocumentError> {
        crate::fill_written(&pdf, &fields)
    }
}

impl completion::Guest for DocumentsComponent {
    fn certificate(facts: CompletionFacts) -> Result<Vec<u8>, DocumentError> {
        crate::completion_certificate(&facts)
    }
}

impl signatures::Guest for DocumentsComponent {
    fn signatures(pdf: Vec<u8>) -> Result<FoundSignatures, DocumentError> {
        crate::signatures(&pdf)
    }
}

impl form_fields::Guest for DocumentsComponent {
    fn form_fields(pdf: Vec<u8>) -> Result<Vec<FormField>, DocumentError> {
        crate::form_fields(pdf)
    }
}

impl wording::Guest for DocumentsComponent {
    fn mark(
        pdf: Vec<u8>,
        request: MarkRequest,
        words: Option<MarkWords>,
    ) -> Result<Marked, DocumentError> {
        crate::worded_mark(pdf, &request, words.as_ref())
    }

    fn custody_record(sheet: CustodySheet) -> Result<Vec<u8>, DocumentError> {
        crate::worded_custody_record(&sheet)
    }
}

impl vaulting::Guest for DocumentsComponent {
    fn prepare_copies(
        pdf: Vec<u8>,
        request: VaultRequest,
    ) -> Result<Option<VaultCopies>, DocumentError> {
        crate::prepare_copies(pdf, &request)
    }
}

impl watermarks::Guest for DocumentsComponent {
    fn watermark(pdf: Vec<u8>, request: WatermarkRequest) -> Result<Vec<u8>, DocumentError> {
        crate::watermark(pdf, &request)
    }
}

impl sources::Guest for DocumentsComponent {
    fn settle(pdf: Vec<u8>) -> Result<SettledDocument, DocumentError> {
        crate::settle(pdf)
    }

    fn unlock(pdf: Vec<u8>, password: String) -> Result<Vec<u8>, DocumentError> {
        crate::unlock(pdf, &password)
    }

    fn without_actions(pdf: Vec<u8>) -> Result<Option<Vec<u8>>, DocumentError> {
        crate::without_actions(&pdf)
    }
}

impl values::Guest for DocumentsComponent {
    fn check(values: Vec<BoxedValue>) -> Vec<Option<Misfit>> {
        crate::check_values(&values)
    }

    fn draw(value: BoxedValue, pixels: u32) -> Result<PageImage, DocumentError> {
        crate::draw_value(&value, pixels)
    }

    fn fill(pdf: Vec<u8>, fields: Vec<FlowingField>) -> Result<Vec<u8>, DocumentError> {
        crate::fill_flowing(&pdf, &fields)
    }
}

impl copies::Guest for DocumentsComponent {
    fn write_anew(
        pdf: Vec<u8>,
        signatures: SignatureHandling,
    ) -> Result<Option<Vec<u8>>, DocumentError> {
        crate::write_anew(pdf, signatures)
    }
}

impl excerpts::Guest for DocumentsComponent {
    fn excerpt(pdf: Vec<u8>, place: Area, width: u32) -> Result<PageImage, DocumentError> {
        crate::excerpt(&pdf, &place, width)
    }
}

impl variables::Guest for DocumentsComponent {
    fn find(document: Vec<u8>) -> Result<Vec<String>, DocumentError> {
        crate::find_variables(&document)
    }

    fn replace(document: Vec<u8>, values: Vec<VariableValue>) -> Result<Vec<u8>, DocumentError> {
        crate::replace_variables(&document, values)
    }
}

impl long_term::Guest for DocumentsComponent {
    fn extend(pdf: Vec<u8>, request: ExtensionRequest) -> Result<DocumentExtension, DocumentError> {
        crate::extend(pdf, &request)
    }

    fn validation_data_of(pdf: Vec<u8>) -> Result<ValidationData, DocumentError> {
        crate::validation_data_of(&pdf)
    }
}

bindings::export!(DocumentsComponent with_types_in bindings);
