use holdfast_documents::{Area, FormField, FormFieldKind, form_fields};

use crate::support::{TestPdf, contract};

/// A page of 200 × 400 points with one widget of each kind, and some that are no fields to fill.
fn form(rotate: u32) -> Vec<u8> {
    let mut pdf = TestPdf::new();
    pdf.add("<</Type/Catalog/Pages 2 0 R/AcroForm<</Fields[5 0 R 6 0 R 7 0 R 10 0 R 11 0 R 12 0 R 13 0 R 14 0 R]>>>>");
    pdf.add("<</Type/Pages/Kids[3 0 R]/Count 1>>");
    pdf.add(format!(
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 400]/Rotate {rotate}/Contents 4 0 R\
         /Annots[5 0 R 6 0 R 8 0 R 9 0 R 10 0 R 11 0 R 12 0 R 13 0 R 16 0 R]>>"
    ));

    pdf.stream("", b"0 0 10 10 re f");
    let widget = "/Type/Annot/Subtype/Widget";
    pdf.add(format!(
        "<<{widget}/FT/Tx/T(Name)/TU(Your name)/Ff 2/MaxLen 40/V(Ann)/Rect[20 360 120 380]>>"
    ));
    pdf.add(format!(
        "<<{widget}/FT/Tx/T(Day)/Rect[20 320 120 340]/AA<</F<</S/JavaScript/JS(AFDate_FormatEx\\(\"mm/dd/yyyy\"\\);)>>>>>>"
    ));

    // Two buttons of one group.
    pdf.add("<</FT/Btn/Ff 32768/T(Plan)/V/Gold/Kids[8 0 R 9 0 R]>>");
    pdf.add(format!(
        "<<{widget}/Parent 7 0 R/Rect[20 280 40 300]/AP<</N<</Gold 4 0 R/Off 4 0 R>>>>>>"
    ));
    pdf.add(format!(
        "<<{widget}/Parent 7 0 R/Rect[60 280 80 300]/AP<</N<</Silver 4 0 R/Off 4 0 R>>>>>>"
    ));

    pdf.add(format!(
        "<<{widget}/FT/Btn/T(Waiver)/Rect[20 240 40 260]/V/Off>>"
    ));
    pdf.add(format!(
        "<<{widget}/FT/Ch/Ff 131072/T(State)/Opt[(Ohio)[(TX)(Texas)]]/Rect[20 200 120 220]>>"
    ));
    pdf.add(format!(
        "<<{widget}/FT/Sig/T(Signature)/Rect[20 160 120 180]>>"
    ));

    // A push button, a hidden field and the second half of a full name.
    pdf.add(format!(
        "<<{widget}/FT/Btn/Ff 65536/T(Print)/Rect[20 120 40 140]>>"
    ));
    pdf.add("<</T(Seller)/FT/Tx/Kids[16 0 R]>>");
    pdf.add("<<>>");
    pdf.add(format!(
        "<<{widget}/Parent 14 0 R/T(City)/Ff 1/Rect[20 80 120 100]>>"
    ));

    pdf.finish()
}

fn named<'a>(fields: &'a [FormField], name: &str) -> &'a FormField {
    let known: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
    let field = fields.iter().find(|field| field.name == name);
    field.unwrap_or_else(|| panic!("{name} is not one of {known:?}"))
}

#[test]
fn the_fields_of_a_form_are_listed_with_their_kinds_values_and_places() {
    let fields = form_fields(form(0)).unwrap();
    let kinds: Vec<(&str, FormFieldKind)> = fields
        .iter()
        .map(|field| (field.name.as_str(), field.kind))
        .collect();
    assert_eq!(
        kinds,
        [
            ("Name", FormFieldKind::Text),
            ("Day", FormFieldKind::Date),
            ("Plan", FormFieldKind::Radio),
            ("Waiver", FormFieldKind::Checkbox),
            ("State", FormFieldKind::Select),
            ("Signature", FormFieldKind::Signature),
            ("Seller.City", FormFieldKind::Text),
        ]
    );

    let name = named(&fields, "Name");
    assert!(name.required && !name.readonly);
    assert_eq!(name.label, "Your name");
    assert_eq!((name.value.as_str(), name.max_length), ("Ann", Some(40)));

    let place = Area {
        page: 1,
        x: 0.1,
        y: 0.05,
        w: 0.5,
        h: 0.05,
    };
    assert!(same(&name.areas[0], &place), "{:?}", name.areas);

    let plan = named(&fields, "Plan");
    assert_eq!(plan.options, ["Gold", "Silver"]);
    assert_eq!((plan.value.as_str(), plan.areas.len()), ("Gold", 2));
    assert_eq!(named(&fields, "State").options, ["Ohio", "Texas"]);
    assert_eq!(named(&fields, "Waiver").value, "");
    assert!(named(&fields, "Seller.City").readonly);
}

#[test]
fn places_are_those_of_the_page_as_it_is_displayed() {
    // Turned clockwise: the top of the page is at the right.
    let fields = form_fields(form(90)).unwrap();
    let place = Area {
        page: 1,
        x: 0.9,
        y: 0.1,
        w: 0.05,
        h: 0.5,
    };

    let areas = &named(&fields, "Name").areas;
    assert!(same(&areas[0], &place), "{areas:?}");
}

#[test]
fn a_document_without_a_form_has_no_fields() {
    assert_eq!(form_fields(contract()).unwrap(), []);
}

fn same(left: &Area, right: &Area) -> bool {
    let numbers = |area: &Area| [area.x, area.y, area.w, area.h];
    let pairs = numbers(left).into_iter().zip(numbers(right));
    left.page == right.page && pairs.into_iter().all(|(a, b)| (a - b).abs() < 1e-4)
}
