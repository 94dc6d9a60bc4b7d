//! Protobuf's encoding, as far as plain requests use it: varints and length-delimited fields.
//!
//! It knows field numbers only from its callers, and no message.

/// The message is not one that is dealt with here. It may be perfectly valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotPlain;

/// A field's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Varint(u64),
    /// A string, bytes or a message.
    Delimited(&'a [u8]),
}

impl<'a> Value<'a> {
    pub(crate) fn u64(self) -> Result<u64, NotPlain> {
        match self {
            Value::Varint(value) => Ok(value),
            Value::Delimited(_) => Err(NotPlain),
        }
    }

    /// A `uint32`. Decoders cut longer ones; nobody sends them.
    pub(crate) fn u32(self) -> Result<u32, NotPlain> {
        u32::try_from(self.u64()?).map_err(|_| NotPlain)
    }

    /// An `int32` that is not negative.
    pub(crate) fn natural(self) -> Result<i32, NotPlain> {
        i32::try_from(self.u64()?).map_err(|_| NotPlain)
    }

    pub(crate) fn bytes(self) -> Result<&'a [u8], NotPlain> {
        match self {
            Value::Delimited(bytes) => Ok(bytes),
            Value::Varint(_) => Err(NotPlain),
        }
    }
}

/// The fields of a message, one after the other: number and contents. Ends after an error.
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(crate) fn new(message: &'a [u8]) -> Fields<'a> {
        Fields { rest: message }
    }

    #[inline]
    fn varint(&mut self) -> Result<u64, NotPlain> {
        let mut value = 0u64;
        for (i, &byte) in self.rest.iter().take(10).enumerate() {
            let bits = u64::from(byte & 0x7f);
            if i == 9 && bits > 1 {
                return Err(NotPlain);
            }
            value |= bits << (7 * i);
            if byte < 0x80 {
                self.rest = &self.rest[i + 1..];
                return Ok(value);
            }
        }
        Err(NotPlain)
    }

    #[inline]
    fn field(&mut self) -> Result<(u32, Value<'a>), NotPlain> {
        let tag = u32::try_from(self.varint()?).map_err(|_| NotPlain)?;
        let number = tag >> 3;
        if number == 0 {
            return Err(NotPlain);
        }
        match tag & 7 {
            0 => Ok((number, Value::Varint(self.varint()?))),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| NotPlain)?;
                let (bytes, rest) = self.rest.split_at_checked(length).ok_or(NotPlain)?;
                self.rest = rest;
                Ok((number, Value::Delimited(bytes)))
            }
            _ => Err(NotPlain),
        }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Value<'a>), NotPlain>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

/// Sets a field that occurs once. Decoders let the last one win, or merge messages; nobody sends two.
#[inline]
pub(crate) fn once<T>(place: &mut Option<T>, value: T) -> Result<(), NotPlain> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(NotPlain),
    }
}

/// Appends a varint.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a number, unless it is zero, which is what an absent one means.
pub(crate) fn put_number(out: &mut Vec<u8>, field: u32, value: u64) {
    if value != 0 {
        put_varint(out, u64::from(field << 3));
        put_varint(out, value);
    }
}

/// Appends bytes, even if there are none.
pub(crate) fn put_bytes(out: &mut Vec<u8>, field: u32, bytes: &[u8]) {
    put_varint(out, u64::from(field << 3 | 2));
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a message that `fill` writes.
pub(crate) fn put_message(out: &mut Vec<u8>, field: u32, fill: impl FnOnce(&mut Vec<u8>)) {
    put_varint(out, u64::from(field << 3 | 2));
    let start = out.len();
    out.push(0);
    fill(out);
    let length = out.len() - start - 1;
    if length < 0x80 {
        out[start] = length as u8;
    } else {
        let mut prefix = Vec::with_capacity(5);
        put_varint(&mut prefix, length as u64);
        out.splice(start..=start, prefix);
    }
}
