//! Conversion of columns to domain values; errors name the inconsistent row.

use serde::de::DeserializeOwned;
use sqlx::Row as _;
use sqlx::any::AnyRow;

use super::StoreError;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{KeptFile, StoredFile};
use holdfast_domain::id::{EnvelopeId, OrgId};

/// Envelope with its organization, for work across all organizations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedEnvelope {
    pub org: OrgId,
    pub envelope: EnvelopeId,
}

/// Row with the name of its table.
pub(super) struct RowColumns<'r> {
    pub row: &'r AnyRow,
    pub table: &'static str,
    /// Column that identifies the row in errors.
    pub id: &'static str,
}

impl RowColumns<'_> {
    pub fn text(&self, column: &str) -> Result<String, StoreError> {
        Ok(self.row.try_get(column)?)
    }

    pub fn optional_text(&self, column: &str) -> Result<Option<String>, StoreError> {
        Ok(self.row.try_get(column)?)
    }

    pub fn number(&self, column: &str) -> Result<i64, StoreError> {
        Ok(self.row.try_get(column)?)
    }

    pub fn optional_number(&self, column: &str) -> Result<Option<i64>, StoreError> {
        Ok(self.row.try_get(column)?)
    }

    pub fn flag(&self, column: &str) -> Result<bool, StoreError> {
        Ok(self.number(column)? != 0)
    }

    pub fn time(&self, column: &str) -> Result<Timestamp, StoreError> {
        self.parsed(column, Timestamp::parse)
    }

    pub fn optional_time(&self, column: &str) -> Result<Option<Timestamp>, StoreError> {
        self.optional_parsed(column, Timestamp::parse)
    }

    /// Parses a column. Unknown text is an inconsistency, never a default.
    pub fn parsed<T>(
        &self,
        column: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, StoreError> {
        let text = self.text(column)?;
        parse(&text).ok_or_else(|| self.inconsistent(format!("{column} holds {text:?}")))
    }

    pub fn optional_parsed<T>(
        &self,
        column: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, StoreError> {
        match self.optional_text(column)? {
            None => Ok(None),
            Some(text) => parse(&text)
                .map(Some)
                .ok_or_else(|| self.inconsistent(format!("{column} holds {text:?}"))),
        }
    }

    pub fn json<T: DeserializeOwned>(&self, column: &str) -> Result<T, StoreError> {
        let text = self.text(column)?;
        serde_json::from_str(&text).map_err(|error| self.inconsistent(format!("{column}: {error}")))
    }

    pub fn optional_json<T: DeserializeOwned>(
        &self,
        column: &str,
    ) -> Result<Option<T>, StoreError> {
        match self.optional_text(column)? {
            None => Ok(None),
            Some(text) => serde_json::from_str(&text)
                .map(Some)
                .map_err(|error| self.inconsistent(format!("{column}: {error}"))),
        }
    }

    pub fn optional_file(&self, column: &str) -> Result<Option<StoredFile>, StoreError> {
        let file: Option<KeptFile> = self.optional_json(column)?;
        Ok(file.map(|file| file.0))
    }

    /// Returns the envelope that the row belongs to.
    pub fn envelope(&self) -> Result<OwnedEnvelope, StoreError> {
        Ok(OwnedEnvelope {
            org: self.parsed("org_id", OrgId::parse)?,
            envelope: self.parsed("envelope_id", EnvelopeId::parse)?,
        })
    }

    fn inconsistent(&self, why: String) -> StoreError {
        StoreError::Inconsistent {
            table: self.table,
            // Best effort: the error must not hide behind a second one.
            id: self.row.try_get(self.id).unwrap_or_default(),
            why,
        }
    }
}

/// Serializes a stored file for a column.
pub(super) fn file_json(file: Option<&StoredFile>) -> Option<String> {
    file.map(|file| json_text(&KeptFile(file.clone())))
}

/// Serializes a value for a text column.
pub(super) fn json_text(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".into())
}
