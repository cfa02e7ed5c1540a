//! Writes the demo contract and the test documents into `tests/fixtures`. Every run writes the same
//! bytes.
//!
//! `cargo run -p holdfast-documents --example make_fixtures`
//!
//! The contract is an illustration written for this project: people, numbers and the vehicle are
//! invented, and nothing in it is legal advice. Its last page has the lines that the demo signs,
//! and the texts that serve as anchors (`Buyer signature:` occurs once).

#[path = "make_fixtures/synthetic.rs"]
mod synthetic;

use std::path::Path;

use holdfast_documents::DocumentError;
use holdfast_documents::typeset::{Ink, SheetStyle, TextStyle, TypesetSheet};

const WIDTH: f32 = 612.0;
const HEIGHT: f32 = 792.0;
const LEFT: f32 = 50.0;
const RIGHT: f32 = WIDTH - 50.0;
const FULL: f32 = RIGHT - LEFT;

const BLACK: Ink = (20, 20, 24);
const GREY: Ink = (96, 98, 104);
const RULE: Ink = (60, 62, 68);
const SHADE: Ink = (238, 240, 243);

const TITLE: SheetStyle = SheetStyle::new(TextStyle::Bold, 14.0, BLACK);
const HEADING: SheetStyle = SheetStyle::new(TextStyle::Bold, 9.5, BLACK);
const BODY: SheetStyle = SheetStyle::new(TextStyle::Regular, 8.6, BLACK);
const STRONG: SheetStyle = SheetStyle::new(TextStyle::Bold, 8.6, BLACK);
const SMALL: SheetStyle = SheetStyle::new(TextStyle::Regular, 7.2, GREY);
const FIGURE: SheetStyle = SheetStyle::new(TextStyle::Bold, 13.0, BLACK);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures");
    std::fs::create_dir_all(&folder)?;
    let contract =
        contract().map_err(|error| format!("the contract could not be set: {error:?}"))?;
    std::fs::write(folder.join("retail-installment-contract.pdf"), contract)?;
    // Each format of a picture has a reader of its own, and the tests upload both.
    for name in ["scan.png", "scan.jpg"] {
        scan().save(folder.join(name))?;
    }

    for (name, pdf) in synthetic::all()? {
        std::fs::write(folder.join(name), pdf)?;
    }

    Ok(())
}

/// Returns a grey gradient, the smallest image that uploads accept.
fn scan() -> image::GrayImage {
    image::GrayImage::from_fn(16, 16, |x, y| image::Luma([(8 * (x + y)) as u8]))
}

fn contract() -> Result<Vec<u8>, DocumentError> {
    let mut sheet = TypesetSheet::new(WIDTH, HEIGHT)?;
    parties_and_disclosures(&mut sheet);
    sheet.add_page();
    figures(&mut sheet);
    sheet.add_page();
    terms(&mut sheet);
    sheet.add_page();

    // The running lines come last, because they state the number of pages.
    signatures(&mut sheet);
    running_lines(&mut sheet);
    sheet.into_pdf("Retail Installment Sale Contract")
}

fn parties_and_disclosures(sheet: &mut TypesetSheet) {
    sheet.text(LEFT, 62.0, "RETAIL INSTALLMENT SALE CONTRACT", TITLE);
    sheet.text(LEFT, 76.0, "Simple finance charge · motor vehicle", SMALL);
    sheet.text_right(RIGHT, 62.0, "Contract no. RIC-2026-004187", STRONG);
    sheet.text_right(RIGHT, 76.0, "Dated May 4, 2026", SMALL);
    sheet.stroke(&[(LEFT, 84.0), (RIGHT, 84.0)], 1.2, RULE);

    // The amounts of all pages add up. A reader of the demo may check the arithmetic.
    let third = FULL / 3.0;
    let boxes = [
        (
            "BUYER",
            "Jordan A. Ellery\n2148 Larkspur Lane\nRaleigh, NC 27606",
        ),
        (
            "CO-BUYER",
            "Morgan T. Ellery\n2148 Larkspur Lane\nRaleigh, NC 27606",
        ),
        (
            "SELLER – CREDITOR",
            "Pinecrest Auto Center, Inc.\n900 Capital Boulevard\nRaleigh, NC 27603",
        ),
    ];
    for (index, (label, address)) in boxes.into_iter().enumerate() {
        let x = LEFT + third * index as f32;
        sheet.frame(x, 94.0, third, 62.0, 0.6, RULE);
        sheet.text(x + 6.0, 105.0, label, SMALL);
        sheet.paragraph(x + 6.0, 111.0, third - 12.0, address, BODY);
    }

    let mut y = 168.0;
    y += sheet.paragraph(LEFT, y, FULL,
        "You, the Buyer (and the Co-Buyer, if any), may buy the vehicle described below for cash or on \
         credit. By signing this contract you choose to buy it on credit under the terms on all of its \
         pages. You agree to pay the Seller – Creditor (\u{201c}we\u{201d} or \u{201c}us\u{201d}) the amount \
         financed and the finance charge in U.S. funds on the payment schedule below. We figure your \
         finance charge on a daily basis.", BODY) + 8.0;

    y = vehicle(sheet, y);
    sheet.text(
        LEFT,
        y + 10.0,
        "FEDERAL TRUTH-IN-LENDING DISCLOSURES",
        HEADING,
    );

    y += 16.0;
    let quarter = FULL / 5.0;
    // These are the five figures of Regulation Z, 12 CFR 1026.18(b), (d), (e), (h) and (j).
    let disclosures = [
        (
            "ANNUAL\nPERCENTAGE RATE",
            "The cost of your credit as a yearly rate.",
            "6.49 %",
        ),
        (
            "FINANCE\nCHARGE",
            "The dollar amount the credit will cost you.",
            "$4,920.56",
        ),
        (
            "AMOUNT\nFINANCED",
            "The credit provided to you or on your behalf.",
            "$27,815.15",
        ),
        (
            "TOTAL OF\nPAYMENTS",
            "What you will have paid after all scheduled payments.",
            "$32,735.71",
        ),
        (
            "TOTAL\nSALE PRICE",
            "The total cost on credit, with your down payment of $5,500.00.",
            "$38,235.71",
        ),
    ];
    for (index, (title, meaning, amount)) in disclosures.into_iter().enumerate() {
        let x = LEFT + quarter * index as f32;
        // 12 CFR 1026.17(a)(2): the rate and the finance charge are more conspicuous than the other figures.
        if index < 2 {
            sheet.fill(x, y, quarter, 96.0, SHADE);
        }

        sheet.frame(x, y, quarter, 96.0, if index < 2 { 1.4 } else { 0.7 }, RULE);
        sheet.paragraph(x + 5.0, y + 5.0, quarter - 10.0, title, STRONG);
        sheet.paragraph(x + 5.0, y + 31.0, quarter - 10.0, meaning, SMALL);
        sheet.text(x + 5.0, y + 88.0, amount, FIGURE);
    }

    y += 108.0;
    y = schedule(sheet, y);
    // 12 CFR 1026.18(k) to (p) puts these statements beside the figures.
    let clauses = [
        (
            "Security. ",
            "You give us a security interest in the vehicle being bought.",
        ),
        (
            "Prepayment. ",
            "If you pay off early, you will not have to pay a penalty.",
        ),
        (
            "Late charge. ",
            "If a payment is not received in full within 15 days after it is due, you will pay a late charge of $6.00 or 5 % of the part that is late, whichever is less.",
        ),
        (
            "More information. ",
            "See the other pages of this contract for nonpayment, default, any required repayment in full before the scheduled date, and our security interest.",
        ),
    ];

    for (title, text) in clauses {
        y += sheet.paragraph(LEFT, y, FULL, &format!("{title}{text}"), BODY) + 3.0;
    }
}

fn vehicle(sheet: &mut TypesetSheet, top: f32) -> f32 {
    sheet.text(LEFT, top + 10.0, "VEHICLE", HEADING);
    let y = top + 16.0;
    let columns: [(&str, &str, f32); 6] = [
        ("New / used", "New", 60.0),
        ("Year", "2026", 44.0),
        ("Make and model", "Halden Meridian AWD", 140.0),
        ("Odometer", "12 miles", 64.0),
        ("Vehicle identification number", "5HDMR2AX6T1004187", 130.0),
        ("Primary use", "Personal", 74.0),
    ];

    let mut x = LEFT;
    for (label, value, width) in columns {
        sheet.frame(x, y, width, 30.0, 0.6, RULE);
        sheet.text(x + 5.0, y + 10.0, label, SMALL);
        sheet.text(x + 5.0, y + 23.0, value, STRONG);
        x += width;
    }

    y + 40.0
}

fn schedule(sheet: &mut TypesetSheet, top: f32) -> f32 {
    sheet.text(LEFT, top + 10.0, "YOUR PAYMENT SCHEDULE", HEADING);
    let mut y = top + 16.0;
    let columns = [LEFT, LEFT + 120.0, LEFT + 260.0];
    // 59 payments of $545.60 and the last one make the total of payments on this page.
    let rows = [
        [
            "Number of payments",
            "Amount of payments",
            "When payments are due",
        ],
        ["59", "$545.60", "Monthly, beginning June 18, 2026"],
        ["1", "$545.31", "May 18, 2031"],
    ];
    for (index, row) in rows.into_iter().enumerate() {
        if index == 0 {
            sheet.fill(LEFT, y, FULL, 16.0, SHADE);
        }

        sheet.frame(LEFT, y, FULL, 16.0, 0.6, RULE);
        for (x, cell) in columns.into_iter().zip(row) {
            sheet.text(
                x + 6.0,
                y + 11.3,
                cell,
                if index == 0 { STRONG } else { BODY },
            );
        }

        y += 16.0;
    }

    y + 10.0
}

fn figures(sheet: &mut TypesetSheet) {
    sheet.text(LEFT, 62.0, "ITEMIZATION OF AMOUNT FINANCED", HEADING);
    // 12 CFR 1026.18(c): the amount financed is itemized. Its last row is the figure on the first page.
    let rows: [(&str, &str, bool); 16] = [
        (
            "1.  Cash price of the vehicle, with accessories and delivery",
            "$31,240.00",
            false,
        ),
        ("     Highway use tax", "$937.20", false),
        ("     Total cash price", "$32,177.20", true),
        (
            "2.  Trade-in: 2018 Corvane Lark, agreed value",
            "$4,000.00",
            false,
        ),
        (
            "     Less payoff made by us to Blue Ridge Credit Union",
            "$0.00",
            false,
        ),
        ("     Net trade-in", "$4,000.00", false),
        ("     Cash down payment", "$1,500.00", false),
        ("     Total down payment", "$5,500.00", true),
        (
            "3.  Unpaid balance of cash price (1 minus 2)",
            "$26,677.20",
            true,
        ),
        ("4.  Amounts paid to others on your behalf", "", false),
        (
            "     To public officials for title and registration",
            "$138.95",
            false,
        ),
        (
            "     To Pinecrest Auto Center, Inc. for documentary fee",
            "$599.00",
            false,
        ),
        (
            "     To Granite Assurance Company for gap waiver (optional)",
            "$400.00",
            false,
        ),
        (
            "     Total amounts paid to others on your behalf",
            "$1,137.95",
            true,
        ),
        ("5.  Prepaid finance charge", "$0.00", false),
        ("6.  Amount financed (3 plus 4)", "$27,815.15", true),
    ];

    let mut y = 70.0;
    for (label, amount, total) in rows {
        if total {
            sheet.fill(LEFT, y, FULL, 16.0, SHADE);
        }

        let look = if total { STRONG } else { BODY };
        let indent = if label.starts_with(' ') { 18.0 } else { 6.0 };
        sheet.text(LEFT + indent, y + 11.3, label.trim_start(), look);
        sheet.text_right(RIGHT - 6.0, y + 11.3, amount, look);
        sheet.stroke(&[(LEFT, y + 16.0), (RIGHT, y + 16.0)], 0.3, GREY);

        y += 16.0;
    }

    sheet.frame(LEFT, 70.0, FULL, y - 70.0, 0.7, RULE);
    y += 20.0;
    y = numbered(
        sheet,
        y,
        "INSURANCE",
        &[
            "You must insure the vehicle against loss and damage for as long as you owe us money under this contract. You may choose the company and the agent. The policy must name us as loss payee, cover at least the unpaid balance, and carry a deductible of no more than $1,000.",
            "Liability insurance for bodily injury and damage to property of others is not included in this contract.",
            "The gap waiver is not required to obtain credit. It is included only because you asked for it and initialed a separate form that states its price and its terms.",
        ],
    );

    numbered(
        sheet,
        y,
        "FINANCE CHARGE AND PAYMENTS",
        &[
            "We figure the finance charge each day on the part of the amount financed that you have not yet paid, at the daily equivalent of the annual percentage rate. Paying early lowers it; paying late raises it.",
            "We apply each payment first to the finance charge earned so far, then to the unpaid amount financed, then to other amounts you owe under this contract.",
            "You may prepay all or part of the unpaid amount financed at any time without penalty. A partial prepayment does not excuse later payments.",
            "The disclosures on the first page assume that you make every payment on its due date. Your last payment will differ if you do not, and we will send you a statement of what it is.",
        ],
    );
}

fn terms(sheet: &mut TypesetSheet) {
    let mut y = 52.0;
    y = numbered(
        sheet,
        y,
        "OUR SECURITY INTEREST",
        &[
            "You grant us a security interest in the vehicle, in all parts and goods installed on it, in money or goods received for it, and in refunds of insurance and service contracts financed here. It secures payment of all you owe under this contract and your other agreements in it.",
            "You will see that our security interest is shown on the certificate of title. You will not sell, rent or transfer the vehicle, or take it out of the country, without our written permission.",
        ],
    );

    y = numbered(
        sheet,
        y,
        "DEFAULT",
        &[
            "You are in default if you do not pay any payment when it is due; if you give false, incomplete or misleading information on your credit application; if you start, or someone starts against you, a proceeding in bankruptcy; or if you break any other agreement in this contract that lowers the prospect of payment.",
            "If you are in default we may, after any notice and right to cure that the law gives you, demand that you pay at once all you owe; take the vehicle peacefully and without entering your home; and use any other right the law gives us.",
            "If we take the vehicle, you may get it back by paying what you owe plus our reasonable expenses, until we sell it or agree to sell it. We will send you written notice before a sale, apply what the sale brings to what you owe, pay you any surplus, and you will owe us any balance unless the law says otherwise.",
            "If we hire an attorney who is not our employee to collect what you owe, you will pay a reasonable fee and court costs as the law allows.",
        ],
    );

    y = numbered(
        sheet,
        y,
        "ASSIGNMENT AND THE AUTHORITATIVE COPY",
        &[
            "We may assign this contract and our security interest to another party (the \u{201c}assignee\u{201d}) without your consent. The assignee then has our rights, and you must pay as it directs once you have notice.",
            "This contract is made as an electronic record that constitutes chattel paper. The parties agree that there is one authoritative copy of it, held in a vault kept for the owner of the contract, and that every other copy or print is marked as non-authoritative.",
            "A change of the assignee named on the authoritative copy is made only with the consent of the party then in control of it. Possession of a printed or downloaded copy transfers no right.",
        ],
    );

    y = numbered(
        sheet,
        y,
        "OTHER AGREEMENTS",
        &[
            // 16 CFR 455.3(b) wants this sentence in the contract about a used vehicle.
            "Used vehicle buyers guide: for a used vehicle, the information on the window form is part of this contract and overrides any contrary provision in it.",
            "We may call, text or e-mail you at the numbers and addresses you give us about this contract. Tell us at once when they change.",
            "This contract contains the whole agreement between you and us about this sale on credit. A change must be in writing and signed by us. If a part of it is not valid, all other parts stay in force. Federal law and the law of North Carolina apply.",
        ],
    );

    // The Holder Rule (16 CFR 433.2) prescribes these words.
    let notice = "NOTICE: ANY HOLDER OF THIS CONSUMER CREDIT CONTRACT IS SUBJECT TO ALL CLAIMS AND DEFENSES WHICH THE DEBTOR COULD ASSERT AGAINST THE SELLER OF GOODS OR SERVICES OBTAINED PURSUANT HERETO OR WITH THE PROCEEDS HEREOF. RECOVERY HEREUNDER BY THE DEBTOR SHALL NOT EXCEED AMOUNTS PAID BY THE DEBTOR HEREUNDER.";
    let height = sheet.height(notice, STRONG, FULL - 16.0);
    sheet.frame(LEFT, y, FULL, height + 12.0, 1.0, RULE);

    sheet.paragraph(LEFT + 8.0, y + 6.0, FULL - 16.0, notice, STRONG);
}

fn numbered(sheet: &mut TypesetSheet, top: f32, title: &str, clauses: &[&str]) -> f32 {
    sheet.text(LEFT, top + 10.0, title, HEADING);
    sheet.stroke(&[(LEFT, top + 14.0), (RIGHT, top + 14.0)], 0.6, RULE);
    let mut y = top + 19.0;
    for (index, clause) in clauses.iter().enumerate() {
        // The letter stays at z for a longer list: the next character would be no letter.
        let letter = char::from(b'a' + u8::try_from(index).unwrap_or(25).min(25));
        sheet.paragraph(LEFT + 2.0, y, 16.0, &format!("{letter}."), STRONG);
        y += sheet.paragraph(LEFT + 18.0, y, FULL - 18.0, clause, BODY) + 2.5;
    }

    y + 7.0
}

fn signatures(sheet: &mut TypesetSheet) {
    sheet.text(LEFT, 62.0, "SIGNATURES", TITLE);
    let mut y = 74.0;
    let notice = "NOTICE TO BUYER: Do not sign this contract before you read it or if it contains any blank spaces. You are entitled to a completed copy of the contract you sign. You may prepay the full amount due under this contract at any time. The annual percentage rate may be negotiated with the seller, and the seller may assign this contract and keep its right to receive a part of the finance charge.";
    let height = sheet.height(notice, STRONG, FULL - 16.0);
    sheet.fill(LEFT, y, FULL, height + 12.0, SHADE);
    sheet.frame(LEFT, y, FULL, height + 12.0, 1.0, RULE);
    sheet.paragraph(LEFT + 8.0, y + 6.0, FULL - 16.0, notice, STRONG);

    y += height + 24.0;
    y += sheet.paragraph(LEFT, y, FULL,
        "By signing below you agree to the terms of this contract, confirm that we gave it to you before you \
         signed it and that you were free to take and review it, and agree that your electronic signature has \
         the same effect as a signature on paper. You acknowledge that you have read all four pages and that \
         you received a completely filled-in copy.", BODY) + 16.0;

    // Anchors also match inside words: no label of the co-buyer may contain one of the buyer.
    let labels = [
        [
            "BUYER",
            "Buyer signature:",
            "Date:",
            "Buyer printed name:",
            "Buyer initials:",
        ],
        [
            "CO-BUYER – responsible for paying the entire debt",
            "Co-buyer's signature:",
            "Date (co-buyer):",
            "Co-buyer's printed name:",
            "Co-buyer's initials:",
        ],
    ];

    for [note, signature, date, printed, initials] in labels {
        sheet.text(LEFT, y + 8.0, note, SMALL);
        y += 44.0;
        line(sheet, LEFT, y, 330.0, signature);
        line(sheet, LEFT + 362.0, y, FULL - 362.0, date);
        y += 42.0;
        line(sheet, LEFT, y, 330.0, printed);
        line(sheet, LEFT + 362.0, y, FULL - 362.0, initials);

        y += 30.0;
    }

    sheet.frame(LEFT, y, 10.0, 10.0, 0.8, RULE);
    sheet.text(LEFT + 16.0, y + 8.6, "Gap waiver requested. I want the optional gap waiver for the price stated in the itemization.", BODY);
    y += 30.0;

    sheet.stroke(&[(LEFT, y), (RIGHT, y)], 0.6, RULE);
    y += 8.0;
    sheet.text(LEFT, y + 10.0, "SELLER – CREDITOR", HEADING);
    sheet.paragraph(LEFT, y + 15.0, FULL,
        "Pinecrest Auto Center, Inc. accepts this contract and assigns its interest in it to Crescent Auto \
         Finance, LLC (assignee) under the terms of their agreement, without recourse unless that agreement \
         says otherwise.", BODY);

    y += 88.0;
    line(sheet, LEFT, y, 330.0, "Seller signature:");
    line(sheet, LEFT + 362.0, y, FULL - 362.0, "Seller title:");
}

/// Draws a line to write on, with its label below.
fn line(sheet: &mut TypesetSheet, x: f32, y: f32, width: f32, label: &str) {
    sheet.stroke(&[(x, y), (x + width, y)], 0.8, RULE);
    sheet.text(x, y + 10.0, label, SMALL);
}

fn running_lines(sheet: &mut TypesetSheet) {
    let count = sheet.page_count();
    for index in 0..count {
        sheet.select_page(index);
        sheet.stroke(&[(LEFT, HEIGHT - 46.0), (RIGHT, HEIGHT - 46.0)], 0.4, GREY);
        // A page may be shown alone, so each one states that it is a sample.
        sheet.text(LEFT, HEIGHT - 35.0, "Retail Installment Sale Contract · RIC-2026-004187 · Sample for demonstration, not legal advice", SMALL);

        sheet.text_right(
            RIGHT,
            HEIGHT - 35.0,
            &format!("Page {} of {count}", index + 1),
            SMALL,
        );
    }
}
