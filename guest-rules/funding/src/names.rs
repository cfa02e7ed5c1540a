//! Comparison of names of parties and states.

/// Words that an assignment adds to the name of a party.
const ADDED: [&str; 3] = ["isaoa", "its successors and assigns", "and its successors"];

/// Whether two names are equal apart from case, punctuation and words about successors.
pub fn are_equal(left: &str, right: &str) -> bool {
    let (left, right) = (plain(left), plain(right));
    !left.is_empty() && left == right
}

fn plain(name: &str) -> String {
    let letters = name.chars().map(|character| match character {
        // `N.A.` equals `NA`, and `Smith-Jones` equals `Smith Jones`.
        '.' | '\'' | '’' => None,
        character if character.is_alphanumeric() => Some(character),
        _ => Some(' '),
    });
    let lower = letters.flatten().collect::<String>().to_lowercase();
    let mut words = lower.split_whitespace().collect::<Vec<_>>().join(" ");
    for added in ADDED {
        if let Some(rest) = words.strip_suffix(added) {
            words = rest.trim_end().to_owned();
        }
    }

    words
}

/// Returns the two letters of a state of the United States: of its code, of `US-OH` or of its name.
pub fn state_code(text: &str) -> Option<String> {
    let text = text.trim().to_uppercase();
    let text = text.strip_prefix("US-").unwrap_or(&text);
    let known = STATES
        .iter()
        .find(|(code, name)| *code == text || *name == text);

    known.map(|(code, _)| (*code).to_owned())
}

const STATES: [(&str, &str); 51] = [
    ("AL", "ALABAMA"),
    ("AK", "ALASKA"),
    ("AZ", "ARIZONA"),
    ("AR", "ARKANSAS"),
    ("CA", "CALIFORNIA"),
    ("CO", "COLORADO"),
    ("CT", "CONNECTICUT"),
    ("DE", "DELAWARE"),
    ("DC", "DISTRICT OF COLUMBIA"),
    ("FL", "FLORIDA"),
    ("GA", "GEORGIA"),
    ("HI", "HAWAII"),
    ("ID", "IDAHO"),
    ("IL", "ILLINOIS"),
    ("IN", "INDIANA"),
    ("IA", "IOWA"),
    ("KS", "KANSAS"),
    ("KY", "KENTUCKY"),
    ("LA", "LOUISIANA"),
    ("ME", "MAINE"),
    ("MD", "MARYLAND"),
    ("MA", "MASSACHUSETTS"),
    ("MI", "MICHIGAN"),
    ("MN", "MINNESOTA"),
    ("MS", "MISSISSIPPI"),
    ("MO", "MISSOURI"),
    ("MT", "MONTANA"),
    ("NE", "NEBRASKA"),
    ("NV", "NEVADA"),
    ("NH", "NEW HAMPSHIRE"),
    ("NJ", "NEW JERSEY"),
    ("NM", "NEW MEXICO"),
    ("NY", "NEW YORK"),
    ("NC", "NORTH CAROLINA"),
    ("ND", "NORTH DAKOTA"),
    ("OH", "OHIO"),
    ("OK", "OKLAHOMA"),
    ("OR", "OREGON"),
    ("PA", "PENNSYLVANIA"),
    ("RI", "RHODE ISLAND"),
    ("SC", "SOUTH CAROLINA"),
    ("SD", "SOUTH DAKOTA"),
    ("TN", "TENNESSEE"),
    ("TX", "TEXAS"),
    ("UT", "UTAH"),
    ("VT", "VERMONT"),
    ("VA", "VIRGINIA"),
    ("WA", "WASHINGTON"),
    ("WV", "WEST VIRGINIA"),
    ("WI", "WISCONSIN"),
    ("WY", "WYOMING"),
];
