//! The details of a batch's error (specification, "Error Reporting Messages"): one `p4.v1.Error` for each element, in order.

use crate::plan::Failure;
use prost::encoding::{encode_varint, encoded_len_varint, int32};
use std::borrow::Cow;

/// An element of a batch that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedElement {
    /// Its position in the batch.
    pub at: usize,
    /// The name of its gRPC status, as in `"NOT_FOUND"`.
    pub code: Cow<'static, str>,
    /// The number of the status.
    pub number: i32,
    /// The reason in words.
    pub message: String,
}

impl From<Failure> for FailedElement {
    fn from((at, error): Failure) -> FailedElement {
        FailedElement {
            at,
            code: error.code.name().into(),
            number: error.code.number(),
            message: error.message,
        }
    }
}

const TYPE_URL: &str = "type.googleapis.com/p4.v1.Error";
const SPACE: &str = "holdfast";

/// The details of a batch's error, shortened to what fits into the answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Details {
    /// The field `details`, once per element, of a serialized `google.rpc.Status`.
    pub encoded: Vec<u8>,
    /// The number of elements in it, from the first one on.
    pub elements: usize,
    /// True if the refused elements in it have their messages.
    pub with_messages: bool,
}

/// Returns the error details for `count` elements, some of which failed, in at most `most_bytes` bytes. If they do not
/// fit, messages are omitted first, then the last elements. Does no more work than the part that fits requires.
pub fn error_details(failures: &[FailedElement], count: usize, most_bytes: usize) -> Details {
    [true, false]
        .into_iter()
        .map(|with_messages| details(failures, count, most_bytes, with_messages))
        .find(|found| found.elements == count || !found.with_messages)
        .unwrap_or_else(|| details(&[], 0, 0, false))
}

fn details(
    failures: &[FailedElement],
    count: usize,
    most_bytes: usize,
    with_messages: bool,
) -> Details {
    let mut encoded = Vec::new();
    let mut failures = failures.iter().peekable();
    let (mut error, mut elements) = (Vec::new(), 0);
    while elements < count {
        error.clear();
        let failure = failures.next_if(|failure| failure.at == elements);
        if let Some(failure) = failure {
            int32::encode(1, &failure.number, &mut error);
            if with_messages && !failure.message.is_empty() {
                put_bytes(2, failure.message.as_bytes(), &mut error);
            }
            put_bytes(3, SPACE.as_bytes(), &mut error);
        }
        let before = encoded.len();
        put_any(&error, &mut encoded);
        if encoded.len() > most_bytes {
            encoded.truncate(before);
            break;
        }
        elements += 1;
    }
    Details {
        encoded,
        elements,
        with_messages,
    }
}

/// Appends one element of the field `details` (number 3) of a `google.rpc.Status` to `out`: an `Any` that contains
/// `error`, a serialized `p4.v1.Error`.
fn put_any(error: &[u8], out: &mut Vec<u8>) {
    let field = |contents: usize| 1 + encoded_len_varint(contents as u64) + contents;
    let value = if error.is_empty() {
        0
    } else {
        field(error.len())
    };
    out.push(3 << 3 | 2);
    encode_varint((field(TYPE_URL.len()) + value) as u64, out);
    put_bytes(1, TYPE_URL.as_bytes(), out);
    if !error.is_empty() {
        put_bytes(2, error, out);
    }
}

/// Appends a field of a serialized message to `out`: its number `tag`, the length in bytes, and `contents`, a string
/// or bytes. The number must be below 16.
fn put_bytes(tag: u8, contents: &[u8], out: &mut Vec<u8>) {
    out.push(tag << 3 | 2);
    encode_varint(contents.len() as u64, out);
    out.extend_from_slice(contents);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_much_as_fits() {
        let failed = |at, number, message: &str| FailedElement {
            at,
            code: "".into(),
            number,
            message: message.to_owned(),
        };
        let failures = vec![failed(1, 5, "there is none"), failed(3, 6, "")];
        let all = error_details(&failures, 5, 1 << 20);
        assert_eq!((all.elements, all.with_messages), (5, true));
        for most in 0..=all.encoded.len() {
            let found = error_details(&failures, 5, most);
            assert!(found.encoded.len() <= most);
            assert_eq!(found.with_messages, most == all.encoded.len());
        }
        let bare = error_details(&failures, 5, all.encoded.len() - 1);
        assert_eq!((bare.elements, bare.with_messages), (5, false));
        assert_eq!(error_details(&failures, 5, 40).elements, 1);
        assert_eq!(error_details(&failures, 0, 40).elements, 0);
    }
}
