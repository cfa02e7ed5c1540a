//! Vehicle identification numbers (49 CFR part 565).

/// Length, and the place of the check digit from 0.
const LENGTH: usize = 17;
const CHECKED: usize = 8;
/// Weight of each place (49 CFR 565.15(c), table IV).
const WEIGHTS: [u32; LENGTH] = [8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2];

/// Returns the check digit that belongs to a VIN; none if it does not consist of 17 permitted characters.
pub fn check_digit(vin: &str) -> Option<char> {
    let mut sum = 0;
    let mut places = 0;
    for (character, weight) in vin.chars().zip(WEIGHTS) {
        sum += value(character)? * weight;
        places += 1;
    }

    if places != LENGTH || vin.len() != LENGTH {
        return None;
    }
    match sum % 11 {
        10 => Some('X'),
        rest => char::from_digit(rest, 10),
    }
}

/// Returns the check digit that stands in a VIN.
pub fn written_digit(vin: &str) -> Option<char> {
    vin.chars().nth(CHECKED)
}

/// Value of a character (table III). I, O and Q do not occur.
fn value(character: char) -> Option<u32> {
    match character {
        '0'..='9' => character.to_digit(10),
        'A' | 'J' => Some(1),
        'B' | 'K' | 'S' => Some(2),
        'C' | 'L' | 'T' => Some(3),
        'D' | 'M' | 'U' => Some(4),
        'E' | 'N' | 'V' => Some(5),
        'F' | 'W' => Some(6),
        'G' | 'P' | 'X' => Some(7),
        'H' | 'Y' => Some(8),
        'R' | 'Z' => Some(9),
        _ => None,
    }
}
