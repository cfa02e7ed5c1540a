//! Policy of a verifier about the witnesses of logs (C2SP `tlog-policy`): which cosignatures make a quorum.
//!
//! ```text
//! log vault.example/ledger+c7902100+AQ3k…
//! witness w1 witness.example/w1+aa4a09d1+BOpK…
//! witness w2 witness.example/w2+…
//! group all-of-them 2 w1 w2
//! quorum all-of-them
//! ```

use super::report::ReportFinding;
use holdfast_domain::checkpoint::{VerifierKey, WitnessKey, split_note};
use holdfast_domain::clock::Timestamp;

const CHECK: &str = "witnesses";

/// Witnesses that a verifier knows, and which of them have to cosign a head.
#[derive(Debug)]
pub struct WitnessPolicy {
    logs: Vec<VerifierKey>,
    /// Witnesses and groups by their names. A group has only members in front of it.
    rules: Vec<(String, PolicyRule)>,
    /// Index of the rule that has to hold; `None` if no cosignature is needed.
    quorum: Option<usize>,
}

#[derive(Debug)]
enum PolicyRule {
    Witness(WitnessKey),
    Group {
        threshold: usize,
        members: Vec<usize>,
    },
}

/// Why a policy cannot be used: a line, counted from 1, and its problem.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// A line cannot be used.
    #[error("line {0}: {1}")]
    Line(usize, String),
    /// Without a quorum, nothing would be demanded by mistake.
    #[error("it has no line `quorum NAME`")]
    NoQuorum,
}

impl WitnessPolicy {
    /// Parses a policy.
    ///
    /// # Errors
    /// The first line that cannot be used.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let mut policy = Self {
            logs: Vec::new(),
            rules: Vec::new(),
            quorum: None,
        };
        let mut has_quorum = false;
        for (line, number) in text.lines().zip(1..) {
            let words = line.split([' ', '\t', '\r']);
            let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
            let refused = |why: String| PolicyError::Line(number, why);
            match words.as_slice() {
                [] => {}
                [first, ..] if first.starts_with('#') => {}
                ["log", key] | ["log", key, _] => policy.add_log(key).map_err(refused)?,
                ["witness", name, key] | ["witness", name, key, _] => {
                    policy.add_witness(name, key).map_err(refused)?;
                }
                ["group", name, threshold, members @ ..] => {
                    policy
                        .add_group(name, threshold, members)
                        .map_err(refused)?;
                }
                ["quorum", _] if has_quorum => return Err(refused("a second quorum".into())),
                ["quorum", name] => {
                    has_quorum = true;
                    policy.quorum = policy.named_quorum(name).map_err(refused)?;
                }
                _ => return Err(refused("no line of a witness policy".into())),
            }
        }

        if has_quorum {
            Ok(policy)
        } else {
            Err(PolicyError::NoQuorum)
        }
    }

    /// Returns the logs that the policy names.
    pub(super) fn logs(&self) -> &[VerifierKey] {
        &self.logs
    }

    fn add_log(&mut self, key: &str) -> Result<(), String> {
        let key = VerifierKey::parse(key).ok_or_else(|| format!("not a verifier key: {key}"))?;
        if self.logs.contains(&key) {
            return Err(format!("the log {} is there twice", key.name()));
        }
        self.logs.push(key);
        Ok(())
    }

    fn add_witness(&mut self, name: &str, key: &str) -> Result<(), String> {
        let key = WitnessKey::parse(key).ok_or_else(|| format!("not a key of a witness: {key}"))?;
        // One key under two names would count twice.
        let is_same = |rule: &PolicyRule| match rule {
            PolicyRule::Witness(known) => known.public_key() == key.public_key(),
            PolicyRule::Group { .. } => false,
        };
        if self.rules.iter().any(|(_, rule)| is_same(rule)) {
            return Err(format!("the key of {name} is there twice"));
        }
        self.add(name, PolicyRule::Witness(key))
    }

    fn add_group(&mut self, name: &str, threshold: &str, members: &[&str]) -> Result<(), String> {
        let mut found: Vec<usize> = Vec::new();
        for member in members {
            let index = self.find(member)?;
            // A member of two groups would count twice.
            let mut groups = self.rules.iter();
            let is_member = groups.any(|(_, rule)| match rule {
                PolicyRule::Group { members, .. } => members.contains(&index),
                PolicyRule::Witness(_) => false,
            });
            if is_member || found.contains(&index) {
                return Err(format!("{member} is a member twice"));
            }
            found.push(index);
        }

        let threshold = match threshold {
            "any" => Some(1),
            "all" => Some(found.len()),
            number => number.parse().ok(),
        };
        let threshold = threshold.filter(|threshold| (1..=found.len()).contains(threshold));
        let threshold =
            threshold.ok_or("a group needs any, all, or a number up to that of its members")?;
        let group = PolicyRule::Group {
            threshold,
            members: found,
        };
        self.add(name, group)
    }

    fn add(&mut self, name: &str, rule: PolicyRule) -> Result<(), String> {
        if name == "none" || self.find(name).is_ok() {
            return Err(format!("the name {name} is taken"));
        }
        self.rules.push((name.to_owned(), rule));
        Ok(())
    }

    fn find(&self, name: &str) -> Result<usize, String> {
        let mut rules = self.rules.iter();
        let index = rules.position(|(known, _)| known == name);
        index.ok_or_else(|| format!("no witness or group in front of it is called {name}"))
    }

    fn named_quorum(&self, name: &str) -> Result<Option<usize>, String> {
        match name {
            "none" => Ok(None),
            name => self.find(name).map(Some),
        }
    }

    /// Checks that the quorum has cosigned a head.
    pub(super) fn finding(&self, note: &str) -> ReportFinding {
        let Some(quorum) = self.quorum else {
            return ReportFinding::holds(CHECK, "the given policy demands no cosignature");
        };
        let (text, lines) = split_note(note).unwrap_or_default();

        // A group comes behind its members, so one pass is enough.
        let mut has_cosigned: Vec<bool> = Vec::new();
        let (mut by, mut missing) = (Vec::new(), Vec::new());
        for (name, rule) in &self.rules {
            let holds = match rule {
                PolicyRule::Witness(key) => {
                    let found = key.cosignature(text, lines);
                    match &found {
                        Some(cosignature) => by.push(format!("{name} at {}", time(cosignature.at))),
                        None => missing.push(name.as_str()),
                    }
                    found.is_some()
                }
                PolicyRule::Group { threshold, members } => {
                    let of_group = members
                        .iter()
                        .filter_map(|member| has_cosigned.get(*member));
                    of_group.filter(|has| **has).count() >= *threshold
                }
            };
            has_cosigned.push(holds);
        }

        let by = match by.as_slice() {
            [] => "no witness of the given policy".to_owned(),
            by => by.join(", "),
        };
        if has_cosigned.get(quorum) == Some(&true) {
            let why = format!("the head has the quorum of the given policy: cosigned by {by}");
            return ReportFinding::holds(CHECK, why);
        }
        let missing = missing.join(", ");
        let why = format!(
            "the head lacks the quorum of the given policy: cosigned by {by}; not by {missing}"
        );
        ReportFinding::fails(CHECK, why)
    }
}

fn time(seconds: u64) -> Timestamp {
    let millis = i64::try_from(seconds).unwrap_or(i64::MAX);
    Timestamp::from_millis(millis.saturating_mul(1000))
}

#[cfg(test)]
mod tests {
    use holdfast_domain::checkpoint::{Checkpoint, CheckpointSigner};

    use super::*;

    fn signer(seed: u8) -> CheckpointSigner {
        CheckpointSigner::new(&[seed; 32]).unwrap()
    }

    fn key(seed: u8) -> String {
        signer(seed)
            .witness(&format!("w{seed}.example"))
            .to_string()
    }

    /// Returns a head with the cosignatures of these witnesses.
    fn cosigned(by: &[u8]) -> String {
        let head = Checkpoint {
            origin: "vault.example/ledger".into(),
            size: 7,
            root: [9; 32],
        };
        let note = signer(100).sign(&head);
        let (text, _) = split_note(&note).unwrap();
        let lines = by.iter().map(|seed| {
            let name = format!("w{seed}.example");
            signer(*seed).cosign(&name, text, 1_679_315_147)
        });
        let lines: String = lines.collect();
        format!("{note}{lines}")
    }

    /// Two of three witnesses of one operator, and one of two of another.
    fn of_two_operators() -> WitnessPolicy {
        let mut text = String::from("# two operators\n\n");
        for seed in 1..=5 {
            text += &format!("witness W{seed} {} https://w{seed}.example/\n", key(seed));
        }
        text += "group first 2 W1 W2 W3\ngroup\tsecond any W4  W5\n\
                 group both all first second\nquorum both\n";
        WitnessPolicy::parse(&text).unwrap()
    }

    #[test]
    fn the_groups_of_a_policy_make_its_quorum() {
        let policy = of_two_operators();
        for (by, holds) in [
            (&[1, 2, 4][..], true),
            (&[1, 3, 5], true),
            (&[1, 2, 3, 4, 5], true),
            (&[1, 2, 3], false),
            (&[1, 4, 5], false),
            (&[], false),
            // A witness that the policy does not know, and one line twice.
            (&[1, 6, 4], false),
            (&[1, 1, 4], false),
        ] {
            let finding = policy.finding(&cosigned(by));
            assert_eq!(finding.ok, Some(holds), "{by:?}: {}", finding.detail);
        }
    }

    #[test]
    fn a_finding_about_a_quorum_names_the_witnesses() {
        let text = format!("witness W1 {}\nwitness W2 {}\n", key(1), key(2));
        let all = format!("{text}group all all W1 W2\nquorum all\n");
        let policy = WitnessPolicy::parse(&all).unwrap();
        assert_eq!(
            policy.finding(&cosigned(&[1])).detail,
            "the head lacks the quorum of the given policy: cosigned by W1 at \
             2023-03-20T12:25:47.000Z; not by W2"
        );
        assert_eq!(
            policy.finding(&cosigned(&[])).detail,
            "the head lacks the quorum of the given policy: cosigned by no witness of the given \
             policy; not by W1, W2"
        );

        let one = WitnessPolicy::parse(&format!("{text}quorum W2\n")).unwrap();
        assert_eq!(
            one.finding(&cosigned(&[2])).detail,
            "the head has the quorum of the given policy: cosigned by W2 at \
             2023-03-20T12:25:47.000Z"
        );
        let none = WitnessPolicy::parse("quorum none\n").unwrap();
        assert_eq!(none.finding(&cosigned(&[])).ok, Some(true));
    }

    /// The signature of another witness under the name and id of a known one.
    #[test]
    fn a_cosignature_of_another_head_is_none() {
        let text = format!("witness W1 {}\nquorum W1\n", key(1));
        let policy = WitnessPolicy::parse(&text).unwrap();
        let other = cosigned(&[1]).replace("\n7\n", "\n8\n");
        assert_eq!(policy.finding(&other).ok, Some(false));
    }

    #[test]
    fn a_policy_that_cannot_be_used_is_refused_with_its_line() {
        let (one, two) = (key(1), key(2));
        let log = signer(100).verifier("vault.example/ledger").to_string();
        for (text, line, why) in [
            ("anything".to_owned(), 1, "no line of a witness policy"),
            (
                format!("witness W1 {log}"),
                1,
                "not a key of a witness: vault",
            ),
            (format!("log {one}"), 1, "not a verifier key: w1.example+"),
            (format!("log {log}\nlog {log} url"), 2, "is there twice"),
            (
                format!("witness W1 {one}\nwitness W2 {one}"),
                2,
                "the key of W2 is there twice",
            ),
            (
                format!("witness W1 {one}\nwitness W1 {two}"),
                2,
                "the name W1 is taken",
            ),
            (format!("witness none {one}"), 1, "the name none is taken"),
            (
                format!("witness W1 {one}\ngroup g 2 W1"),
                2,
                "a group needs any, all",
            ),
            (
                format!("witness W1 {one}\ngroup g 0 W1"),
                2,
                "a group needs any, all",
            ),
            (
                format!("witness W1 {one}\ngroup g all"),
                2,
                "a group needs any, all",
            ),
            (
                format!("witness W1 {one}\ngroup g any W1 W1"),
                2,
                "W1 is a member twice",
            ),
            (
                format!("witness W1 {one}\ngroup g any W1\ngroup h any W1"),
                3,
                "W1 is a member twice",
            ),
            (format!("quorum W1\nwitness W1 {one}"), 1, "is called W1"),
            ("quorum none\nquorum none".to_owned(), 2, "a second quorum"),
        ] {
            let error = WitnessPolicy::parse(&text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("line {line}: ")), "{error}");
            assert!(error.contains(why), "{text}: {error}");
        }

        let unfinished = WitnessPolicy::parse(&format!("witness W1 {one}\n"));
        assert_eq!(unfinished.unwrap_err(), PolicyError::NoQuorum);
    }
}
