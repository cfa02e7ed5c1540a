//! Facts that the columns of a tape probably hold, by the names of the columns. A person confirms or changes them.

use super::map::{CONTRACT_DATE, CONTRACT_NUMBER, ENVELOPE_ID, EXTERNAL_ID, VIN};

/// Facts by which rows find their records.
pub const KEY_FACTS: [&str; 5] = [
    CONTRACT_NUMBER,
    VIN,
    CONTRACT_DATE,
    ENVELOPE_ID,
    EXTERNAL_ID,
];

/// Usual names of columns in tapes, beside those of the facts themselves.
const USUAL: [(&str, &[&str]); 10] = [
    (
        CONTRACT_NUMBER,
        &[
            "contract no",
            "contract id",
            "contract",
            "loan number",
            "loan no",
            "loan id",
            "loan",
            "account number",
            "account no",
            "deal number",
        ],
    ),
    (
        VIN,
        &["vin number", "vehicle identification number", "vehicle id"],
    ),
    (
        CONTRACT_DATE,
        &[
            "date of contract",
            "origination date",
            "note date",
            "loan date",
        ],
    ),
    (ENVELOPE_ID, &["record id", "record"]),
    (EXTERNAL_ID, &["deal id", "deal", "reference"]),
    (
        "amount_financed",
        &[
            "amt financed",
            "financed amount",
            "original balance",
            "original amount",
            "amount",
        ],
    ),
    ("apr", &["annual percentage rate"]),
    ("payment_amount", &["monthly payment", "payment"]),
    (
        "number_of_payments",
        &["term", "original term", "term months"],
    ),
    ("first_payment_date", &["first payment", "first due date"]),
];

/// Returns for each column the fact that it probably holds. No fact is there twice: the first column has it.
pub fn guessed(columns: &[String], facts: &[String]) -> Vec<Option<String>> {
    let mut taken: Vec<&str> = Vec::new();
    let mut guesses = Vec::with_capacity(columns.len());
    for column in columns {
        let words = words_of(column);
        let fact = facts.iter().map(String::as_str).find(|fact| {
            !taken.contains(fact) && (words_of(fact) == words || is_usual(fact, &words))
        });
        taken.extend(fact);
        guesses.push(fact.map(str::to_owned));
    }
    guesses
}

fn is_usual(fact: &str, words: &str) -> bool {
    let names = USUAL.iter().find(|(known, _)| *known == fact);
    names.is_some_and(|(_, names)| names.contains(&words))
}

/// Returns the words of a name in small letters: `Contract_No.` as `contract no`.
fn words_of(name: &str) -> String {
    let name = name.to_lowercase().replace('#', " number ");
    let words = name.split(|one: char| !one.is_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_guessed_by_their_names() {
        let facts: Vec<String> = KEY_FACTS
            .iter()
            .chain(&["amount_financed", "apr", "buyer"])
            .map(|fact| (*fact).to_owned())
            .collect();
        let columns = [
            "Loan #",
            "Loan Number",
            "V.I.N.",
            "VIN",
            "Amount Financed",
            "APR (%)",
            "apr",
            "Buyer",
            "Colour",
        ];
        let columns = columns.map(str::to_owned);
        let found = guessed(&columns, &facts);
        let found: Vec<&str> = found
            .iter()
            .map(|fact| fact.as_deref().unwrap_or("-"))
            .collect();
        assert_eq!(
            found,
            [
                "contract_number",
                "-",
                "-",
                "vin",
                "amount_financed",
                "apr",
                "-",
                "buyer",
                "-"
            ]
        );
    }
}
