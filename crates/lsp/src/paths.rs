//! Paths of files and the URIs by which clients name them.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use lsp_types::Uri;

/// Returns the path of a document. One that is no file, such as an unsaved one, has its URI as path.
pub(crate) fn path_of(uri: &Uri) -> PathBuf {
    let text = uri.as_str();
    let Some(rest) = text.strip_prefix("file://") else {
        return PathBuf::from(text);
    };
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    normal(Path::new(&OsString::from_vec(decoded(path))))
}

/// Returns the URI of a path that [`path_of`] returned, or of a file; `None` if a URI cannot name it.
pub(crate) fn uri_of(path: &Path) -> Option<Uri> {
    if !path.is_absolute() {
        return Uri::from_str(path.to_str()?).ok();
    }
    let mut text = String::from("file://");
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' => text.push(char::from(*byte)),
            b if b.is_ascii_alphanumeric() => text.push(char::from(*b)),
            b => text.push_str(&format!("%{b:02X}")),
        }
    }
    Uri::from_str(&text).ok()
}

fn decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = match first {
            b'%' => after.get(..2).and_then(|d| std::str::from_utf8(d).ok()),
            _ => None,
        };
        match digits.and_then(|d| u8::from_str_radix(d, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    bytes
}

/// Returns a path without `.` and `..`, as far as its text tells.
pub(crate) fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir
                if matches!(out.components().next_back(), Some(Component::Normal(_))) =>
            {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_files_with_any_letters() {
        let path = Path::new("/a b/ü%/x.p4");
        let uri = uri_of(path);
        assert_eq!(
            uri.as_ref().map(|uri| uri.as_str()),
            Some("file:///a%20b/%C3%BC%25/x.p4")
        );
        assert_eq!(uri.as_ref().map(path_of).as_deref(), Some(path));
        assert_eq!(normal(Path::new("/a/./b/../c/..")), Path::new("/a"));
    }
}
