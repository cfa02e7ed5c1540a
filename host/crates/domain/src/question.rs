//! Questions of signers to the sender.

use super::clock::Timestamp;
use super::id::{QuestionId, SignerId};

/// Maximum length of a question or an answer, in characters.
pub const LONGEST_TEXT: usize = 2_000;
/// Most questions of one signer about an envelope.
pub const MOST_QUESTIONS: usize = 5;

/// Question of a signer, who is described as of that time: another person may take the place later.
#[derive(Clone, Debug)]
pub struct SignerQuestion {
    pub id: QuestionId,
    pub signer: SignerId,
    /// Place of the signer in the envelope, from 0.
    pub position: i64,
    pub name: String,
    pub email: String,
    pub role: String,
    pub text: String,
    pub asked_at: Timestamp,
    /// None of an open question, for which the envelope waits.
    pub closing: Option<QuestionClosing>,
}

/// End of a question.
#[derive(Clone, Debug)]
pub struct QuestionClosing {
    /// None if the sender dismissed the question.
    pub answer: Option<String>,
    /// Actor of the sender's organization.
    pub by: String,
    pub at: Timestamp,
}

impl SignerQuestion {
    /// Returns the sender's answer, if there is one.
    pub fn answer(&self) -> Option<&str> {
        self.closing.as_ref()?.answer.as_deref()
    }
}
