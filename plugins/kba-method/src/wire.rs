//! Responses of Method and the meaning of its errors.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Parses a response: the object itself, or `{success, data, message}` around it. Returns `None` if
/// it is neither.
pub(crate) fn read<T: DeserializeOwned>(body: &[u8]) -> Option<T> {
    serde_json::from_value(unwrapped(serde_json::from_slice(body).ok()?)).ok()
}

fn unwrapped(answer: Value) -> Value {
    match answer {
        Value::Object(mut members) if members.contains_key("success") => {
            members.remove("data").unwrap_or_default()
        }
        other => other,
    }
}

/// A person.
#[derive(Debug, Deserialize)]
pub(crate) struct WireEntity {
    pub id: String,
    #[serde(default)]
    pub verification: WireVerification,
}

/// Verification status of a person.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct WireVerification {
    #[serde(default)]
    pub identity: VerificationStatus,
    #[serde(default)]
    pub phone: VerificationStatus,
}

/// Verification status of identity or phone.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct VerificationStatus {
    #[serde(default)]
    pub verified: bool,
    /// Methods that can verify it.
    #[serde(default)]
    pub methods: Vec<String>,
}

/// A verification session.
#[derive(Debug, Deserialize)]
pub(crate) struct WireSession {
    pub id: String,
    pub status: String,
    #[serde(default)]
    pub kba: WireKba,
    #[serde(default)]
    pub error: Option<WireFailure>,
}

/// The questions of a session.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct WireKba {
    #[serde(default)]
    pub questions: Vec<WireQuestion>,
    #[serde(default)]
    pub authenticated: Option<bool>,
}

/// One question.
#[derive(Debug, Deserialize)]
pub(crate) struct WireQuestion {
    pub id: String,
    pub text: String,
    pub answers: Vec<WireAnswer>,
}

/// A possible answer.
#[derive(Debug, Deserialize)]
pub(crate) struct WireAnswer {
    pub id: String,
    pub text: String,
}

/// An error, as a response or within a session.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct WireFailure {
    #[serde(default)]
    pub code: Option<i64>,
    #[serde(default)]
    pub sub_type: Option<String>,
    #[serde(default, rename = "type")]
    pub kind: Option<String>,
}

/// Meaning of an error for the plugin.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ErrorMeaning {
    /// The session timed out: a new one is needed.
    Expired,
    /// A wrong answer, or a missing one.
    WrongAnswer,
    WrongCode,
    /// Too little is known about the person.
    NoHistory,
    /// Too many codes were requested.
    TooMany,
    /// Phone or person is already verified.
    DoneBefore,
    Other,
}

impl WireFailure {
    /// Returns the error in a response, if it has one.
    pub fn of(body: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct WireEnvelope {
            error: WireFailure,
        }
        read::<WireEnvelope>(body).map(|wrapped| wrapped.error)
    }

    pub fn meaning(&self) -> ErrorMeaning {
        match (self.sub_type.as_deref(), self.code) {
            (Some("VERIFICATION_SESSION_EXPIRED"), _) | (None, Some(19001)) => {
                ErrorMeaning::Expired
            }
            (Some("VERIFICATION_SESSION_FAILED_INCORRECT_SMS_CODE"), _) | (None, Some(19002)) => {
                ErrorMeaning::WrongCode
            }
            (Some("VERIFICATION_SESSION_FAILED_INVALID_ANSWER"), _) | (None, Some(19004)) => {
                ErrorMeaning::WrongAnswer
            }
            (Some("MISSING_IDENTITY_MATCH" | "UNAUTHORIZED_VERIFICATION_METHOD"), _) => {
                ErrorMeaning::NoHistory
            }
            (Some("ENTITY_PHONE_VERIFICATION_MAX_ATTEMPTS"), _) => ErrorMeaning::TooMany,
            (Some("EXISTING_VERIFIED_SESSION"), _) => ErrorMeaning::DoneBefore,
            _ => ErrorMeaning::Other,
        }
    }

    /// Returns the name from the vendor's list of errors. The message is not used, as it may quote
    /// the request.
    pub fn name(&self) -> String {
        let named = self.sub_type.clone().or_else(|| self.kind.clone());
        named.unwrap_or_else(|| "an error without a name".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meaning(body: &str) -> ErrorMeaning {
        WireFailure::of(body.as_bytes()).unwrap().meaning()
    }

    #[test]
    fn responses_are_read_with_and_without_a_data_wrapper() {
        let session = r#"{"id":"evf_1","status":"in_progress","type":"identity","method":"kba",
            "kba":{"questions":[{"id":"qtn_1","text":"Which?","answers":[{"id":"ans_1","text":"This"}]}],
            "authenticated":null},"error":null}"#;

        let wrapped = format!(r#"{{"success":true,"data":{session},"message":null}}"#);
        for body in [session, &wrapped] {
            let session: WireSession = read(body.as_bytes()).unwrap();
            assert_eq!(
                (session.id.as_str(), session.status.as_str()),
                ("evf_1", "in_progress")
            );
            assert_eq!(session.kba.questions[0].answers[0].id, "ans_1");
            assert_eq!(session.kba.authenticated, None);
        }

        for wrong in ["", "[]", "{}", r#"{"success":true}"#] {
            assert!(read::<WireSession>(wrong.as_bytes()).is_none(), "{wrong}");
        }

        let entity: WireEntity = read(
            br#"{"id":"ent_1","verification":{"phone":{"verified":false,"methods":["sms"]}}}"#,
        )
        .unwrap();
        assert_eq!(entity.id, "ent_1");
        assert!(!entity.verification.phone.verified && !entity.verification.identity.verified);
    }

    #[test]
    fn every_documented_vendor_error_is_mapped() {
        for (name, expected) in [
            ("VERIFICATION_SESSION_EXPIRED", ErrorMeaning::Expired),
            (
                "VERIFICATION_SESSION_FAILED_INCORRECT_SMS_CODE",
                ErrorMeaning::WrongCode,
            ),
            (
                "VERIFICATION_SESSION_FAILED_INVALID_ANSWER",
                ErrorMeaning::WrongAnswer,
            ),
            ("MISSING_IDENTITY_MATCH", ErrorMeaning::NoHistory),
            ("UNAUTHORIZED_VERIFICATION_METHOD", ErrorMeaning::NoHistory),
            (
                "ENTITY_PHONE_VERIFICATION_MAX_ATTEMPTS",
                ErrorMeaning::TooMany,
            ),
            ("EXISTING_VERIFIED_SESSION", ErrorMeaning::DoneBefore),
            ("MISSING_PHONE_VERIFICATION", ErrorMeaning::Other),
            ("SOMETHING_NEW", ErrorMeaning::Other),
        ] {
            let error = format!(r#"{{"error":{{"type":"T","sub_type":"{name}"}}}}"#);
            assert_eq!(meaning(&error), expected, "{name}");
            let wrapped = format!(r#"{{"success":false,"data":{error}}}"#);
            assert_eq!(meaning(&wrapped), expected, "{name}");
        }

        for (code, expected) in [
            (19001, ErrorMeaning::Expired),
            (19002, ErrorMeaning::WrongCode),
            (19004, ErrorMeaning::WrongAnswer),
            (1, ErrorMeaning::Other),
        ] {
            assert_eq!(
                meaning(&format!(r#"{{"error":{{"code":{code}}}}}"#)),
                expected
            );
        }

        assert!(WireFailure::of(b"Bad gateway").is_none());
    }
}
