//! Names and kinds of the fields of P4Info's messages.

/// A message's name, and its fields: number, name and kind.
pub(crate) struct Message {
    pub name: &'static str,
    pub fields: &'static [(u32, &'static str, Kind)],
}

/// The type of a field, as far as its text depends on it.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// A number with sign.
    Signed,
    /// A number without sign.
    Unsigned,
    Bool,
    /// A string or byte string.
    Bytes,
    /// Numbers and words.
    Enum(&'static [(i32, &'static str)]),
    /// Its position in the list of messages.
    Message(usize),
}

include!("generated/fields.rs");

/// Returns the message with this name. Returns `None` if there is no such message.
pub(crate) fn message(name: &str) -> Option<&'static Message> {
    MESSAGES.iter().find(|message| message.name == name)
}

/// Returns the message at a position that [`Kind::Message`] tells.
pub(crate) fn at(position: usize) -> &'static Message {
    &MESSAGES[position]
}
