//! Variables in documents of word processors, which `holdfast-word` reads.

use crate::VariableValue;
use crate::error::Result;

/// Returns the names of the variables of a document.
pub fn find_variables(document: &[u8]) -> Result<Vec<String>> {
    Ok(holdfast_word::variables(document)?)
}

/// Returns a document with values in the place of its variables.
pub fn replace_variables(document: &[u8], values: Vec<VariableValue>) -> Result<Vec<u8>> {
    let values: Vec<(String, String)> = values
        .into_iter()
        .map(|one| (one.name, one.value))
        .collect();
    Ok(holdfast_word::replace_variables(document, &values)?)
}
