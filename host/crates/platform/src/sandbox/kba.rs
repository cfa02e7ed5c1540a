//! Identity sandbox: three questions; the right answer to each has the id `correct`. Addresses with
//! `+nohistory` before the @ simulate a person without a history. Nothing is stored.

use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};

use holdfast_components::ComponentError;
use holdfast_components::providers::kba::{Choice, IdentityField, Progress, Question, Step};
use holdfast_components::providers::{KbaProvider, ProviderError};
use holdfast_domain::token::random;

/// Id, question and answers; the first answer is right.
const QUESTIONS: [(&str, &str, [&str; 4]); 3] = [
    (
        "q1",
        "Which of these streets have you lived on?",
        ["Birch Lane", "Harbor Road", "Mill Street", "None of these"],
    ),
    (
        "q2",
        "Which of these lenders have you had a car loan with?",
        [
            "First Example Bank",
            "Northern Credit",
            "Valley Finance",
            "None of these",
        ],
    ),
    (
        "q3",
        "In which of these counties have you owned property?",
        ["Travis", "Cook", "King", "None of these"],
    ),
];

const RIGHT: &str = "correct";

/// Provider that asks every signer the same questions.
pub(super) struct SandboxKba;

type Answer<'a> = BoxFuture<'a, Result<Progress, ProviderError>>;

impl KbaProvider for SandboxKba {
    fn required_identity(&self) -> BoxFuture<'_, Result<Vec<IdentityField>, ComponentError>> {
        ready(Ok(Vec::new())).boxed()
    }

    fn start(&self, identity: Vec<(String, String)>) -> Answer<'_> {
        let session = format!("evf_{}", hex::encode(random::<8>()));
        let email = identity.iter().find(|(name, _)| name == "email");
        let local = email.and_then(|(_, email)| email.rsplit_once('@'));
        let step = match local {
            Some((local, _)) if local.ends_with("+nohistory") => Step::Unavailable,
            _ => Step::Questions(questions()),
        };
        progress(session, step)
    }

    fn submit_code<'a>(&'a self, _: &'a str, _: &'a str) -> Answer<'a> {
        let why = "the sandbox sends no codes".to_owned();
        ready(Err(ProviderError::Rejected(why))).boxed()
    }

    fn submit_answers<'a>(&'a self, state: &'a str, answers: Vec<(String, String)>) -> Answer<'a> {
        let right = |(question, ..): &(&str, &str, [&str; 4])| {
            let given = answers.iter().filter(|(asked, _)| asked == question);
            given.into_iter().any(|(_, answer)| answer == RIGHT)
        };
        // Each question of the sandbox has to be answered. A list that repeats one right answer does not
        // pass.
        let step = if QUESTIONS.iter().all(right) {
            Step::Passed
        } else {
            Step::Failed
        };

        progress(state.to_owned(), step)
    }
}

fn progress(session: String, step: Step) -> Answer<'static> {
    ready(Ok(Progress {
        // The sandbox keeps no sessions, so the id is the whole state.
        state: session.clone(),
        session_id: session,
        step,
    }))
    .boxed()
}

/// Builds the questions, with the right answer at varying positions.
fn questions() -> Vec<Question> {
    let question = |(number, (id, text, answers)): (usize, &(&str, &str, [&str; 4]))| {
        let choice = |(index, text): (usize, &&str)| Choice {
            id: match index {
                0 => RIGHT.to_owned(),
                _ => format!("wrong{index}"),
            },
            text: (*text).to_owned(),
        };
        let mut choices: Vec<Choice> = answers.iter().enumerate().map(choice).collect();
        // "None of these" stays last, where people expect it.
        choices[..3].rotate_right(number);

        Question {
            id: (*id).to_owned(),
            text: (*text).to_owned(),
            choices,
        }
    };

    QUESTIONS.iter().enumerate().map(question).collect()
}
