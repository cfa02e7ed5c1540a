//! Amounts of money, with the sign or the code of their currency.

use crate::numbers::{self, DecimalMark, NumberProblem, WrittenNumber};
use crate::{Notation, collapsed};

/// Currencies (ISO 4217) with the symbols that stand for them.
const CURRENCIES: [(&str, &[&str]); 12] = [
    ("USD", &["US$", "$"]),
    ("CAD", &["CA$", "C$", "$"]),
    ("AUD", &["AU$", "A$", "$"]),
    ("NZD", &["NZ$", "$"]),
    ("MXN", &["MX$", "$"]),
    ("EUR", &["€"]),
    ("GBP", &["£"]),
    ("JPY", &["¥"]),
    ("CNY", &["¥"]),
    ("INR", &["₹"]),
    ("CHF", &["Fr."]),
    ("BRL", &["R$"]),
];
/// Letters of a code.
const CODE: usize = 3;

/// An amount of money.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenAmount {
    /// The number.
    pub number: WrittenNumber,
    /// ISO 4217 codes that the sign or code can stand for; empty without one.
    pub currencies: Vec<String>,
}

/// Why words are no amount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AmountProblem {
    /// The number cannot be read.
    Number(NumberProblem),
    /// The amount is in another currency than the expected one.
    OtherCurrency(String),
    /// The amount names two currencies.
    TwoCurrencies,
}

impl From<NumberProblem> for AmountProblem {
    fn from(problem: NumberProblem) -> Self {
        Self::Number(problem)
    }
}

/// Reads an amount. In words of a document, codes without a symbol in the table count only if they are expected: three
/// capital letters can be anything.
///
/// # Errors
/// The words are no amount, or one in another currency than the expected one.
pub fn amount(
    words: &str,
    expected: Option<&str>,
    mark: DecimalMark,
    notation: Notation,
) -> Result<WrittenAmount, AmountProblem> {
    let words = collapsed(words);
    let (bare, outer) = numbers::without_brackets(&words);
    let (bare, before) = numbers::without_sign(bare);
    let (bare, currencies) = without_currency(bare, expected, notation);
    // Brackets and a sign may stand on either side of the currency.
    let (bare, inner) = numbers::without_brackets(bare);
    let (bare, behind) = numbers::without_sign(bare);

    if let Some(currencies) = &currencies {
        let first = currencies.first().ok_or(AmountProblem::TwoCurrencies)?;
        let is_other = |expected: &str| !currencies.iter().any(|code| code == expected);
        if expected.is_some_and(is_other) {
            return Err(AmountProblem::OtherCurrency(first.clone()));
        }
    }

    let signs = [outer.then_some(true), inner.then_some(true), before, behind];
    Ok(WrittenAmount {
        number: numbers::signed(bare, &signs, mark, notation)?,
        currencies: currencies.unwrap_or_default(),
    })
}

/// Returns whether words are nothing but the symbol or the code of a currency.
pub fn is_currency(words: &str) -> bool {
    CURRENCIES
        .iter()
        .any(|(code, symbols)| *code == words || symbols.contains(&words))
}

/// Takes a currency off, before or behind. Returns the codes that it can stand for: none without a currency, and an empty
/// list for two names that stand for no currency together.
fn without_currency<'a>(
    words: &'a str,
    expected: Option<&str>,
    notation: Notation,
) -> (&'a str, Option<Vec<String>>) {
    let (mut rest, mut codes): (&str, Option<Vec<String>>) = (words, None);
    // Some write both the symbol and the code: `$12.00 USD`.
    for _ in 0..2 {
        let Some((found, bare)) = named(rest, expected, notation) else {
            break;
        };
        rest = bare;
        codes = Some(match codes {
            None => found,
            Some(before) => before
                .into_iter()
                .filter(|code| found.contains(code))
                .collect(),
        });
    }
    (rest, codes)
}

/// Takes the longest name of a currency off: `CA$` ends with the symbol of another one.
fn named<'a>(
    words: &'a str,
    expected: Option<&str>,
    notation: Notation,
) -> Option<(Vec<String>, &'a str)> {
    let is_here = |name: &&str| words.starts_with(*name) || words.ends_with(*name);
    let of_table = CURRENCIES
        .iter()
        .flat_map(|(code, symbols)| std::iter::once(*code).chain(symbols.iter().copied()));
    let longest = of_table.filter(is_here).max_by_key(|name| name.len());
    let name = match (longest, expected.filter(is_here)) {
        (Some(one), Some(other)) if other.len() > one.len() => Some(other),
        (None, other) => other,
        (one, _) => one,
    };
    if let Some(name) = name {
        let rest = words
            .strip_prefix(name)
            .or_else(|| words.strip_suffix(name))?;
        let mut codes: Vec<String> = CURRENCIES
            .iter()
            .filter(|(code, symbols)| *code == name || symbols.contains(&name))
            .map(|(code, _)| (*code).to_owned())
            .collect();
        if codes.is_empty() {
            codes.push(name.to_owned());
        }
        return Some((codes, rest.trim()));
    }

    if notation == Notation::Words {
        return None;
    }
    let is_code = |text: &&str| text.bytes().all(|one| one.is_ascii_uppercase());
    let before = words.get(..CODE).filter(is_code);
    let behind = words
        .len()
        .checked_sub(CODE)
        .and_then(|start| words.get(start..))
        .filter(is_code);
    let code = before.or(behind)?;
    let rest = words
        .strip_prefix(code)
        .or_else(|| words.strip_suffix(code))?;
    Some((vec![code.to_owned()], rest.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use DecimalMark::{Comma, Point};
    use Notation::{Cell, Words};

    fn dollars(words: &str, notation: Notation) -> Result<String, AmountProblem> {
        amount(words, Some("USD"), Point, notation).map(|read| read.number.text(2))
    }

    #[test]
    fn amounts_have_symbols_codes_signs_and_brackets() {
        for (words, value) in [
            ("$21,500.00", "21500.00"),
            ("$ 21,500", "21500.00"),
            ("21500", "21500.00"),
            ("USD 21,500.5", "21500.50"),
            ("US$1.00", "1.00"),
            ("1,000.00 USD", "1000.00"),
            ("$12.00 USD", "12.00"),
            ("(1,000.00)", "-1000.00"),
            ("($1,000.00)", "-1000.00"),
            ("$(1,000.00)", "-1000.00"),
            ("1,000.00-", "-1000.00"),
            ("-$1,000.00", "-1000.00"),
            ("$-1,000.00", "-1000.00"),
            ("\u{2212}5", "-5.00"),
            ("+7.10", "7.10"),
            ("0.00-", "0.00"),
            (".5", "0.50"),
            ("7.", "7.00"),
            ("007", "7.00"),
            ("1'234.50", "1234.50"),
            ("0.12500", "0.125"),
            ("1,234,567.8", "1234567.80"),
        ] {
            for notation in [Words, Cell] {
                assert_eq!(dollars(words, notation).as_deref(), Ok(value), "{words}");
            }
        }
        assert_eq!(dollars("$ 21 500.00", Cell).as_deref(), Ok("21500.00"));
    }

    #[test]
    fn words_that_are_no_amount_say_why() {
        let number = AmountProblem::Number;
        for (words, problem) in [
            ("", number(NumberProblem::NoNumber)),
            ("$", number(NumberProblem::NoNumber)),
            ("NaN", number(NumberProblem::NoNumber)),
            ("abc", number(NumberProblem::NoNumber)),
            ("5)", number(NumberProblem::NoNumber)),
            ("--5", number(NumberProblem::TwoSigns)),
            ("(-5)", number(NumberProblem::TwoSigns)),
            ("1.234,50", number(NumberProblem::OtherMark)),
            ("1,00.00", number(NumberProblem::Grouping)),
            ("€5", AmountProblem::OtherCurrency("EUR".into())),
            ("CA$5", AmountProblem::OtherCurrency("CAD".into())),
            ("€5 USD", AmountProblem::TwoCurrencies),
        ] {
            for notation in [Words, Cell] {
                assert_eq!(dollars(words, notation), Err(problem.clone()), "{words}");
            }
        }
    }

    #[test]
    fn a_currency_without_a_symbol_has_its_code() {
        for words in ["SEK 1,000", "1,000 SEK", "1,000"] {
            let read = amount(words, Some("SEK"), Point, Words).unwrap();
            assert_eq!(read.number.text(2), "1000.00");
        }
        assert!(amount("USD 1,000", Some("SEK"), Point, Words).is_err());
        // Three capital letters of a document can be anything.
        assert!(amount("APR 7", None, Point, Words).is_err());
        let read = amount("SEK 7", None, Point, Cell).unwrap();
        assert_eq!(read.currencies, ["SEK"]);
    }

    #[test]
    fn an_amount_names_the_currencies_that_it_can_be_in() {
        let currencies = |words: &str| amount(words, None, Point, Cell).unwrap().currencies;
        assert_eq!(currencies("CAD 12.00"), ["CAD"]);
        assert_eq!(currencies("12,000 €"), ["EUR"]);
        assert_eq!(currencies("£1"), ["GBP"]);
        assert_eq!(currencies("$12 CAD"), ["CAD"]);
        assert_eq!(currencies("$12").len(), 5);
        assert!(currencies("12").is_empty());
    }

    #[test]
    fn a_comma_separates_decimals_where_it_is_said() {
        for (words, value) in [
            ("1.234,50 €", "1234.50"),
            ("1 234,50", "1234.50"),
            ("12,5", "12.50"),
        ] {
            let read = amount(words, Some("EUR"), Comma, Words).unwrap();
            assert_eq!(read.number.text(2), value);
        }
        assert!(amount("1,234.50", Some("EUR"), Comma, Words).is_err());
    }

    #[test]
    fn a_currency_alone_is_known() {
        assert!(is_currency("$") && is_currency("EUR") && is_currency("Fr."));
        assert!(!is_currency("") && !is_currency("APR"));
    }
}
