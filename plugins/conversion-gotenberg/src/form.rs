//! The form around the document (`multipart/form-data`, RFC 7578). The document itself stays with the host.

/// Form with one file.
pub(crate) struct FileForm {
    boundary: String,
}

impl FileForm {
    /// Makes a form with a boundary of random bytes: a file that contained it could add parts of its own,
    /// which are instructions for the service.
    pub(crate) fn with_boundary(random: &[u8]) -> Self {
        let mut boundary = "holdfast-".to_owned();
        for byte in random {
            boundary.push_str(&format!("{byte:02x}"));
        }

        Self { boundary }
    }

    /// Returns the content type of the request.
    pub(crate) fn content_type(&self) -> String {
        format!("multipart/form-data; boundary={}", self.boundary)
    }

    /// Returns what stands before the file. The name is the host's, and has no character to be escaped.
    pub(crate) fn head(&self, file_name: &str, media_type: &str) -> String {
        format!(
            "--{}\r\nContent-Disposition: form-data; name=\"files\"; filename=\"{file_name}\"\r\n\
             Content-Type: {media_type}\r\n\r\n",
            self.boundary
        )
    }

    /// Returns what stands after the file.
    pub(crate) fn tail(&self) -> String {
        format!("\r\n--{}--\r\n", self.boundary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_has_one_part_between_its_boundaries() {
        let form = FileForm::with_boundary(&[0xab, 0x01]);
        assert_eq!(
            form.content_type(),
            "multipart/form-data; boundary=holdfast-ab01"
        );
        assert_eq!(
            form.head("document.odt", "application/vnd.oasis.opendocument.text"),
            "--holdfast-ab01\r\nContent-Disposition: form-data; name=\"files\"; filename=\"document.odt\"\r\n\
             Content-Type: application/vnd.oasis.opendocument.text\r\n\r\n"
        );
        assert_eq!(form.tail(), "\r\n--holdfast-ab01--\r\n");
    }
}
