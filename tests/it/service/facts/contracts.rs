//! Made retail instalment contracts: PDFs in five layouts, and the values that they print.

use std::fmt::Write as _;

use holdfast::domain::fact_map::FactMapDocument;
use holdfast::domain::facts::FactKind;
use jiff::ToSpan as _;
use jiff::civil::Date;
use serde_json::{Value, json};

use super::seeded::SeededNumbers;
use crate::builder::PdfBuilder;

const STARTER: &str =
    include_str!("../../../../host/crates/service/src/facts/starters/retail_installment.json");

/// Facts of a made contract. The starter map has all of them but the last.
pub const FACTS: [(&str, FactKind); 14] = [
    ("contract_number", FactKind::Text),
    ("vin", FactKind::Vin),
    ("contract_date", FactKind::Date),
    ("amount_financed", FactKind::Money),
    ("finance_charge", FactKind::Money),
    ("total_of_payments", FactKind::Money),
    ("apr", FactKind::Percentage),
    ("number_of_payments", FactKind::Integer),
    ("payment_amount", FactKind::Money),
    ("first_payment_date", FactKind::Date),
    ("buyer", FactKind::Text),
    ("seller", FactKind::Text),
    ("secured_party", FactKind::Text),
    ("down_payment", FactKind::Money),
];

/// Some have the words of anchors in them: VIN, APR.
const BUYERS: [&str; 8] = [
    "Kevin Moore",
    "Jordan Lee",
    "April Vinson",
    "Irving O'Brien",
    "Ana de la Cruz",
    "Calvin Marvin",
    "José Núñez",
    "Lee A. Buyer",
];
const SELLERS: [&str; 4] = [
    "Oak Motors LLC",
    "Maple Street Motors",
    "April Lake Autos, Inc.",
    "A-1 Autos of Irvine",
];
const BANKS: [&str; 3] = [
    "First Example Bank",
    "Harbor Credit Union",
    "Divine Auto Finance, LLC",
];

/// Words of further pages, with the names and numbers that a careless search would take for facts.
const TERMS: [&str; 8] = [
    "You promise to pay the Amount Financed and the Finance Charge as they become due.",
    "The Annual Percentage Rate may be negotiated with the Seller. The Seller may assign this contract.",
    "If a payment is more than 10 days late, you pay a late charge of $25.00 or 5% of the payment.",
    "You may prepay all or part of the unpaid balance at any time. Section 3.2 names the refund.",
    "We figure the Finance Charge on a daily basis, from the contract date, on 365 days a year.",
    "You give us a security interest in the vehicle, identified by its VIN, and in all parts put on it.",
    "Insurance: you keep the vehicle insured with a deductible of no more than $1,000.00.",
    "If you default, we may demand that you pay the Total of Payments less the refund at once.",
];

/// Returns the starter map, for all envelopes.
pub fn starter() -> FactMapDocument {
    let mut map: Value = serde_json::from_str(STARTER).unwrap();
    map["applies_to"] = json!({ "all": true });
    serde_json::from_value(map).unwrap()
}

/// Layout of a contract's first page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ContractLayout {
    /// Federal box across the page, with captions of two lines and a schedule below.
    Across,
    /// One line for each value, scanned.
    Stacked,
    /// Grid of cells with small captions above the values.
    Cells,
    /// Two columns, and the schedule in a sentence; scanned.
    Columns,
    /// Landscape page that is stored upright and displayed turned.
    Turned,
}

impl ContractLayout {
    pub const ALL: [Self; 5] = [
        Self::Across,
        Self::Stacked,
        Self::Cells,
        Self::Columns,
        Self::Turned,
    ];

    /// Whether the pages are pictures, with the text of a recognition behind them.
    fn is_scan(self) -> bool {
        matches!(self, Self::Stacked | Self::Columns)
    }

    /// Returns the map that an organization writes for the layout: the starter, with other places where the layout
    /// needs them.
    pub fn fact_map(self) -> FactMapDocument {
        let mut map = json!(starter());
        let facts = map["facts"].as_array_mut().unwrap();
        facts.push(json!({ "name": "down_payment", "kind": "money", "currency": "USD" }));

        for (name, anchor, direction) in self.places() {
            let fact = facts.iter_mut().find(|fact| fact["name"] == *name).unwrap();
            let (direction, number) = match direction.split_once(' ') {
                Some((direction, number)) => (direction, Some(number)),
                None => (*direction, None),
            };
            let mut place = json!({ "anchor": anchor, "page": 1, "direction": direction });
            if let Some(number) = number {
                place["number"] = json!(number.parse::<u32>().unwrap());
            }
            fact["printed"] = json!([place]);
        }

        serde_json::from_value(map).unwrap()
    }

    /// Returns the facts that the starter map does not find here, with anchor and direction.
    fn places(self) -> &'static [(&'static str, &'static str, &'static str)] {
        match self {
            // The federal words are there, and the starter knows them.
            Self::Across | Self::Stacked => &[("down_payment", "Down Payment", "right_of")],

            Self::Cells => &[
                ("contract_number", "1. CONTRACT NUMBER", "below"),
                ("contract_date", "2. DATE OF CONTRACT", "below"),
                ("vin", "3. VIN", "below"),
                ("buyer", "4. BUYER", "below"),
                ("seller", "5. SELLER / CREDITOR", "below"),
                ("secured_party", "6. ASSIGNED TO", "below"),
                ("apr", "7. APR", "below"),
                ("finance_charge", "8. FINANCE CHARGE", "below"),
                ("amount_financed", "9. AMOUNT FINANCED", "below"),
                ("total_of_payments", "10. TOTAL OF PAYMENTS", "below"),
                ("number_of_payments", "11. NUMBER OF PAYMENTS", "below"),
                ("payment_amount", "12. EACH PAYMENT", "below"),
                ("first_payment_date", "13. FIRST PAYMENT DUE", "below"),
                ("down_payment", "14. DOWN PAYMENT", "below"),
            ],

            Self::Columns => &[
                ("contract_number", "Contract No.:", "right_of"),
                ("contract_date", "Dated:", "right_of"),
                ("vin", "VIN:", "right_of"),
                ("buyer", "Buyer:", "right_of"),
                ("seller", "Seller:", "right_of"),
                ("secured_party", "Assignee:", "right_of"),
                ("apr", "Annual Percentage Rate", "right_of"),
                ("finance_charge", "Finance Charge", "right_of"),
                ("amount_financed", "Amount Financed", "right_of"),
                ("total_of_payments", "Total of Payments", "right_of"),
                ("number_of_payments", "Your payments", "number_of_line 1"),
                ("payment_amount", "Your payments", "number_of_line 2"),
                ("first_payment_date", "Your payments", "number_of_line 1"),
                ("down_payment", "Down payment:", "right_of"),
            ],

            Self::Turned => &[
                ("contract_number", "Deal No.", "right_of"),
                ("contract_date", "Dated", "right_of"),
                ("vin", "Serial No. (VIN)", "below"),
                ("buyer", "Purchaser", "right_of"),
                ("seller", "Dealer:", "right_of"),
                ("secured_party", "Lienholder", "right_of"),
                // `APR` alone is also in `April`.
                ("apr", "APR (yearly)", "below"),
                ("finance_charge", "Finance Charge", "below"),
                ("amount_financed", "Amount Financed", "below"),
                ("total_of_payments", "Total of Payments", "below"),
                ("number_of_payments", "No. of Payments", "below"),
                ("payment_amount", "Amount of Each", "below"),
                ("first_payment_date", "First Due", "below"),
                ("down_payment", "Cash Down", "right_of"),
            ],
        }
    }
}

/// A contract before it is printed.
pub struct MadeContract {
    pub layout: ContractLayout,
    number: usize,
    date: Date,
    first_payment: Date,
    /// Hundredths of a percentage point.
    apr: u64,
    /// Amounts in cents.
    amount: u64,
    total: u64,
    payment: u64,
    /// A third of the contracts have none.
    down: Option<u64>,
    payments: u64,
    buyer: &'static str,
    seller: &'static str,
    bank: &'static str,
}

fn one_of(list: &[&'static str], numbers: &mut SeededNumbers) -> &'static str {
    list[numbers.below(list.len() as u64) as usize]
}

impl MadeContract {
    pub fn new(number: usize, numbers: &mut SeededNumbers) -> Self {
        let payments = 12 * (2 + numbers.below(6));
        let payment = 20_000 + numbers.below(90_000);
        let total = payments * payment;
        let (year, month, day) = (numbers.below(3), numbers.below(12), numbers.below(28));
        let date = jiff::civil::date(2024 + year as i16, 1 + month as i8, 1 + day as i8);
        let first_payment = date.checked_add((20 + numbers.below(40) as i64).days());

        Self {
            layout: ContractLayout::ALL[number % ContractLayout::ALL.len()],
            number,
            date,
            first_payment: first_payment.unwrap(),
            apr: 100 + numbers.below(2_400),
            amount: total * (70 + numbers.below(25)) / 100,
            total,
            payment,
            down: (!number.is_multiple_of(3)).then(|| 50_000 + numbers.below(900_000)),
            payments,
            buyer: one_of(&BUYERS, numbers),
            seller: one_of(&SELLERS, numbers),
            bank: one_of(&BANKS, numbers),
        }
    }

    fn vin(&self) -> String {
        // Without a check digit: the comparison does not need one.
        format!("1HGCM82633A{:06}", self.number)
    }

    /// Returns the canonical value of a fact, if the contract has it.
    pub fn value(&self, fact: &str) -> Option<String> {
        let text = match fact {
            "contract_number" => format!("RIC-{:06}", self.number),
            "vin" => self.vin(),
            "contract_date" => self.date.to_string(),
            "first_payment_date" => self.first_payment.to_string(),
            "amount_financed" => cents(self.amount),
            "finance_charge" => cents(self.total - self.amount),
            "total_of_payments" => cents(self.total),
            "payment_amount" => cents(self.payment),
            "down_payment" => cents(self.down?),
            "apr" => {
                let text = cents(self.apr);
                text.trim_end_matches('0').trim_end_matches('.').to_owned()
            }
            "number_of_payments" => self.payments.to_string(),
            "buyer" => self.buyer.to_owned(),
            "seller" => self.seller.to_owned(),
            "secured_party" => self.bank.to_owned(),
            _ => return None,
        };
        Some(text)
    }

    /// Returns the contract as it is signed: a page with the facts, and two with terms.
    pub fn pdf(&self) -> Vec<u8> {
        let mut pdf = PdfBuilder::new();
        let courier = pdf.object(
            "<< /Type /Font /Subtype /Type1 /BaseFont /Courier /Encoding /WinAnsiEncoding >>",
        );

        let mut resources = format!("/Font << /F1 3 0 R /F2 {courier} 0 R >>");
        if self.layout.is_scan() {
            let grey: Vec<u8> = (0..34 * 44_u32).map(|dot| 190 + (dot % 64) as u8).collect();
            let entries = "/Type /XObject /Subtype /Image /Width 34 /Height 44 /BitsPerComponent 8 \
                           /ColorSpace /DeviceGray";
            let picture = pdf.stream(entries, &grey);
            let _ = write!(resources, " /XObject << /P {picture} 0 R >>");
        }

        for (index, page) in [self.first_page(), terms(2), terms(3)].iter().enumerate() {
            let mut content = if self.layout.is_scan() {
                let mut numbers = SeededNumbers::new(1 + self.number as u64);
                let text = page.recognized(&mut numbers);
                format!("q 612 0 0 792 0 0 cm /P Do Q {text}")
            } else {
                page.printed()
            };
            let mut entries = "/MediaBox [0 0 612 792]";
            if self.layout == ContractLayout::Turned && index == 0 {
                entries = "/MediaBox [0 0 612 792] /Rotate 90";
                content = format!("q 0 1 -1 0 612 0 cm {content} Q");
            }
            pdf.page_with(entries, &resources, &content);
        }

        pdf.build()
    }

    fn first_page(&self) -> PrintedPage {
        match self.layout {
            ContractLayout::Across => self.across(),
            ContractLayout::Stacked => self.stacked(),
            ContractLayout::Cells => self.cells(),
            ContractLayout::Columns => self.columns(),
            ContractLayout::Turned => self.turned(),
        }
    }

    fn text(&self, fact: &str) -> String {
        self.value(fact).unwrap()
    }

    /// Returns an amount with its sign and separators of thousands.
    fn money(&self, fact: &str) -> String {
        format!("${}", grouped(&self.text(fact), ","))
    }

    fn rate(&self) -> String {
        cents(self.apr)
    }

    fn across(&self) -> PrintedPage {
        let mut page = PrintedPage::default();
        page.sized(
            40,
            762,
            13,
            "RETAIL INSTALMENT CONTRACT AND SECURITY AGREEMENT",
        );
        for (x, y, label, value) in [
            (40, 738, "Contract Number", self.text("contract_number")),
            (330, 738, "Contract Date", slashes(self.date)),
            (40, 720, "Buyer Name", self.text("buyer")),
            (330, 720, "Seller-Creditor", self.text("seller")),
            (40, 702, "Assignee:", self.text("secured_party")),
        ] {
            page.at(x, y, label);
            page.at(x + 90, y, value);
        }
        page.sized(330, 702, 7, "Vehicle Identification Number");
        page.at(330, 690, self.vin());

        let columns = [45, 185, 325, 465];
        for (x, caption) in columns.into_iter().zip([
            [
                "ANNUAL",
                "PERCENTAGE RATE",
                "The cost of your credit",
                "as a yearly rate",
            ],
            [
                "FINANCE",
                "CHARGE",
                "The dollar amount the",
                "credit will cost you",
            ],
            [
                "Amount",
                "Financed",
                "The amount of credit",
                "provided to you",
            ],
            [
                "Total of",
                "Payments",
                "The amount you will have",
                "paid after all payments",
            ],
        ]) {
            for ((y, size), line) in [(660, 9), (649, 9), (634, 7), (626, 7)]
                .into_iter()
                .zip(caption)
            {
                page.sized(x, y, size, line);
            }
        }

        // The signs are printed, and the amounts are filled in apart from them.
        page.at(75, 606, self.rate());
        page.at(105, 606, "%");
        let amounts = ["finance_charge", "amount_financed", "total_of_payments"];
        for (x, fact) in columns.into_iter().skip(1).zip(amounts) {
            page.at(x, 606, "$");
            page.at(x + 45, 606, grouped(&self.text(fact), ","));
        }

        page.at(45, 580, "Your payment schedule will be:");
        for (x, caption, value) in [
            (45, "Number of Payments", self.text("number_of_payments")),
            (185, "Amount of Payments", self.money("payment_amount")),
            (325, "When Payments Are Due", slashes(self.first_payment)),
        ] {
            page.at(x, 564, caption);
            page.at(x + 10, 550, value);
        }
        if self.down.is_some() {
            page.at(45, 520, "Down Payment");
            page.at(185, 520, self.money("down_payment"));
        }
        page.at(
            45,
            480,
            "See the additional terms on the pages behind this one.",
        );
        page
    }

    fn stacked(&self) -> PrintedPage {
        let vin = self.vin();
        let mut lines = vec![
            ("Contract Number", self.text("contract_number")),
            ("Contract Date", spelled(self.date)),
            ("Buyer Name", self.text("buyer")),
            ("Seller Name", self.text("seller")),
            ("Secured Party:", self.text("secured_party")),
            (
                "Vehicle Identification Number",
                format!("{} {} {}", &vin[..5], &vin[5..11], &vin[11..]),
            ),
            ("ANNUAL PERCENTAGE RATE", format!("{} %", self.rate())),
            ("FINANCE CHARGE", self.money("finance_charge")),
            ("Amount Financed", self.money("amount_financed")),
            ("Total of Payments", self.money("total_of_payments")),
            ("Number of Payments", self.text("number_of_payments")),
            ("Payment Amount", self.money("payment_amount")),
            ("First Payment Due", spelled(self.first_payment)),
        ];
        if self.down.is_some() {
            lines.push(("Down Payment", self.money("down_payment")));
        }

        let mut page = PrintedPage::default();
        page.sized(60, 762, 13, "RETAIL INSTALMENT SALE CONTRACT");
        for (y, (label, value)) in (0..).map(|row| 730 - 24 * row).zip(lines) {
            page.at(60, y, label);
            page.at(330, y, value);
        }
        page.at(
            60,
            360,
            "Signed by the buyer and the seller as of the date above.",
        );
        page
    }

    fn cells(&self) -> PrintedPage {
        let down = self.down.map(|_| self.money("down_payment"));
        let cells = [
            ("1. CONTRACT NUMBER", self.text("contract_number")),
            ("2. DATE OF CONTRACT", slashes(self.date)),
            ("3. VIN", self.vin()),
            ("4. BUYER", self.text("buyer")),
            ("5. SELLER / CREDITOR", self.text("seller")),
            ("6. ASSIGNED TO", self.text("secured_party")),
            ("7. APR", format!("{}%", self.rate())),
            ("8. FINANCE CHARGE", self.money("finance_charge")),
            ("9. AMOUNT FINANCED", self.money("amount_financed")),
            ("10. TOTAL OF PAYMENTS", self.money("total_of_payments")),
            ("11. NUMBER OF PAYMENTS", self.text("number_of_payments")),
            ("12. EACH PAYMENT", self.money("payment_amount")),
            ("13. FIRST PAYMENT DUE", slashes(self.first_payment)),
            ("14. DOWN PAYMENT", down.unwrap_or_else(|| "None".into())),
        ];

        let mut page = PrintedPage::default();
        page.sized(40, 762, 13, "MOTOR VEHICLE INSTALMENT CONTRACT");
        for (index, (caption, value)) in (0..).zip(cells) {
            let (x, y) = (40 + 185 * (index % 3), 730 - 40 * (index / 3));
            page.sized(x, y, 6, caption);
            page.sized(x, y - 15, 10, value);
        }
        page.at(40, 520, "Signatures follow on the last page.");
        page
    }

    fn columns(&self) -> PrintedPage {
        let mut parties = vec![
            ("Contract No.:", self.text("contract_number")),
            ("Dated:", slashes(self.date)),
            ("Buyer:", self.text("buyer")),
            ("Seller:", self.text("seller")),
            ("Assignee:", self.text("secured_party")),
            ("VIN:", self.vin()),
        ];
        if self.down.is_some() {
            parties.push(("Down payment:", self.money("down_payment")));
        }
        let disclosures = vec![
            ("Annual Percentage Rate", format!("{}%", self.rate())),
            ("Finance Charge", self.money("finance_charge")),
            ("Amount Financed", self.money("amount_financed")),
            ("Total of Payments", self.money("total_of_payments")),
        ];

        let mut page = PrintedPage::default();
        page.sized(40, 762, 13, "CONTRACT OF SALE");
        for (x, value_x, lines) in [(40, 115, parties), (330, 480, disclosures)] {
            for (y, (label, value)) in (0..).map(|row| 730 - 18 * row).zip(lines) {
                page.sized(x, y, 8, label);
                page.sized(value_x, y, 8, value);
            }
        }
        let schedule = format!(
            "Your payments: {} payments of {} each, monthly, first due {}.",
            self.payments,
            self.money("payment_amount"),
            slashes(self.first_payment)
        );
        page.sized(40, 580, 8, schedule);
        page
    }

    /// Writes a page of 792 by 612 points.
    fn turned(&self) -> PrintedPage {
        let mut page = PrintedPage::default();
        page.sized(40, 580, 13, "RETAIL INSTALMENT SALE CONTRACT");
        let parties = [
            ("Deal No.", self.text("contract_number")),
            ("Dated", short(self.date)),
            ("Purchaser", self.text("buyer")),
            ("Dealer:", self.text("seller")),
            ("Lienholder", self.text("secured_party")),
        ];
        for (y, (label, value)) in (0..).map(|row| 550 - 20 * row).zip(parties) {
            page.at(40, y, label);
            page.at(110, y, value);
        }
        page.sized(40, 440, 7, "Serial No. (VIN)");
        page.at(40, 426, self.vin());

        let disclosures = [
            ("APR (yearly)", format!("{}%", self.rate())),
            ("Finance Charge", self.money("finance_charge")),
            ("Amount Financed", self.money("amount_financed")),
            ("Total of Payments", self.money("total_of_payments")),
        ];
        for (x, (caption, value)) in (0..).map(|column| 320 + 115 * column).zip(disclosures) {
            page.at(x, 550, caption);
            page.sized(x, 530, 11, value);
        }
        let schedule = [
            ("No. of Payments", self.text("number_of_payments")),
            ("Amount of Each", self.money("payment_amount")),
            ("First Due", short(self.first_payment)),
        ];
        for (x, (caption, value)) in (0..).map(|column| 320 + 115 * column).zip(schedule) {
            page.at(x, 490, caption);
            page.sized(x, 472, 11, value);
        }
        if self.down.is_some() {
            page.at(320, 440, "Cash Down");
            page.at(435, 440, self.money("down_payment"));
        }
        page
    }
}

fn terms(number: usize) -> PrintedPage {
    let mut page = PrintedPage::default();
    page.sized(40, 750, 10, format!("Additional terms, page {number}"));
    for row in 0..44 {
        let sentence = TERMS[(row + number) % TERMS.len()];
        page.sized(40, 730 - 15 * row as i32, 8, sentence);
    }
    page
}

fn cents(number: u64) -> String {
    format!("{}.{:02}", number / 100, number % 100)
}

/// Separates the thousands of an amount.
pub fn grouped(amount: &str, separator: &str) -> String {
    let (whole, places) = amount.split_once('.').unwrap();
    let groups = whole.as_bytes().rchunks(3).rev();
    let groups: Vec<&str> = groups
        .map(|group| std::str::from_utf8(group).unwrap())
        .collect();
    format!("{}.{places}", groups.join(separator))
}

fn slashes(date: Date) -> String {
    date.strftime("%m/%d/%Y").to_string()
}

fn spelled(date: Date) -> String {
    date.strftime("%B %-d, %Y").to_string()
}

fn short(date: Date) -> String {
    date.strftime("%d-%b-%Y").to_string()
}

/// Texts of a page, each with its place, in points from the lower left corner, and size.
#[derive(Default)]
struct PrintedPage(Vec<(i32, i32, i32, String)>);

impl PrintedPage {
    fn sized(&mut self, x: i32, y: i32, size: i32, text: impl Into<String>) {
        self.0.push((x, y, size, text.into()));
    }

    fn at(&mut self, x: i32, y: i32, text: impl Into<String>) {
        self.sized(x, y, 9, text);
    }

    fn printed(&self) -> String {
        let mut content = String::from("BT ");
        for (x, y, size, text) in &self.0 {
            let text = escaped(text);
            let _ = write!(content, "/F1 {size} Tf 1 0 0 1 {x} {y} Tm ({text}) Tj ");
        }
        content + "ET"
    }

    /// Returns invisible text as programs for text recognition write it: word by word, and not quite on a line.
    fn recognized(&self, numbers: &mut SeededNumbers) -> String {
        let mut content = String::from("BT 3 Tr ");
        for (x, y, size, text) in &self.0 {
            let mut left = f64::from(*x);
            for word in text.split(' ') {
                let mut near = |tenths: u64| {
                    numbers.below(2 * tenths + 1) as f64 / 10.0 - tenths as f64 / 10.0
                };
                let (across, up) = (left + near(2), f64::from(*y) + near(4));
                let word_text = escaped(word);
                let _ = write!(
                    content,
                    "/F2 {size} Tf 1 0 0 1 {across:.2} {up:.2} Tm ({word_text}) Tj "
                );
                // Glyphs of Courier are 0.6 em wide.
                left += (word.chars().count() + 1) as f64 * 0.6 * f64::from(*size);
            }
        }
        content + "ET"
    }
}

/// Writes a text as a PDF string in WinAnsiEncoding.
fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut string, character| {
        match character {
            '(' | ')' | '\\' => string.extend(['\\', character]),
            ' '..='~' => string.push(character),
            _ => {
                let _ = write!(string, "\\{:03o}", u32::from(character));
            }
        }
        string
    })
}
