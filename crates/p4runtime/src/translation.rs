//! Translated types (specification, "PSA Metadata Translation"): the controller's values and the switch's, one to one.
//!
//! Which value means which comes from outside P4Runtime ([`Mappings`], by the URI of `@p4runtime_translation`). Without that, numbers
//! mean themselves, and strings are given numbers as they come: a decimal number that is still free its own, others the lowest free
//! one above zero. The meaning of a string stays as long as pipelines are reconciled.

use crate::errors::invalid;
use crate::values;
use bytes::Bytes;
use engine::control::ControlError;
use engine::refuse;
use ir::Bits;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

const MAX_STRINGS: usize = 1 << 20;
/// The most strings that may be made up for numbers that packets bring; the rest is reserved for clients.
const MAX_NAMED: usize = 1 << 16;
const MAX_OWN_NUMBER: u64 = 1 << 16;

/// For each URI, the switch's values by the controller's, which are strings or the shortest byte strings of numbers.
pub type Mappings = BTreeMap<String, BTreeMap<Vec<u8>, u64>>;

/// The translation between the controller's and the switch's values of the types with one URI.
#[derive(Debug)]
pub(crate) struct Translation {
    pub uri: String,
    /// The width of the controller's numbers in bits; 0 for strings.
    pub width: u32,
    is_given: bool,
    known: Mutex<Known>,
}

#[derive(Clone, Debug, Default)]
struct Known {
    to_switch: BTreeMap<Vec<u8>, u64>,
    to_controller: BTreeMap<u64, Vec<u8>>,
    lowest: u64,
    /// The number of strings that were made up for numbers from the program.
    named: usize,
}

impl Translation {
    pub fn new(
        uri: &str,
        width: u32,
        given: Option<&BTreeMap<Vec<u8>, u64>>,
    ) -> Result<Translation, ControlError> {
        let to_switch = given.cloned().unwrap_or_default();
        let pairs = to_switch.iter().map(|(own, number)| (*number, own.clone()));
        let to_controller: BTreeMap<u64, Vec<u8>> = pairs.collect();
        refuse!(
            to_controller.len() != to_switch.len() => InvalidArgument,
            "translation '{uri}': two of the controller's values are the same one of the switch"
        );
        Ok(Translation {
            uri: uri.to_owned(),
            width,
            is_given: given.is_some(),
            known: Mutex::new(Known {
                to_switch,
                to_controller,
                lowest: 1,
                named: 0,
            }),
        })
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies the assignment of strings to numbers from another translation, if both have the same width and no
    /// mapping is given for this one.
    pub fn inherit(&self, other: &Translation) {
        if !self.is_given && self.width == other.width {
            let theirs = other.known().clone();
            *self.known() = Known {
                lowest: 1,
                ..theirs
            };
        }
    }

    /// Translates a client's value into the switch's number. A string that is new gets a number, unless a mapping is
    /// given. Fails with INVALID_ARGUMENT if the value has no number; `what` names the field or parameter in the
    /// message.
    pub fn to_switch(&self, bytes: &[u8], what: &dyn Fn() -> String) -> Result<u64, ControlError> {
        let wrong = |why: String| invalid(format!("{}: {why}", what()));
        let value = if self.width == 0 {
            let text = std::str::from_utf8(bytes);
            match text.map_err(|_| wrong("the string is not UTF-8".into()))? {
                "" => return Err(wrong("the string is empty".into())),
                text => text.as_bytes(),
            }
        } else {
            values::number(bytes, self.width, self.width).map_err(wrong)?;
            values::canonical(bytes)
        };
        let mut known = self.known();
        match known.to_switch.get(value) {
            Some(number) => Ok(*number),
            None if self.is_given => {
                let value = match self.width {
                    0 => format!("'{}'", String::from_utf8_lossy(value)),
                    width => values::number(value, width, width)
                        .ok()
                        .and_then(|bits| bits.to_u64())
                        .map_or_else(|| "the value".into(), |number| number.to_string()),
                };
                let uri = &self.uri;
                Err(wrong(format!("{value} is not translated ('{uri}')")))
            }
            None => known.assign(value, &self.uri),
        }
    }

    /// Translates a number of the switch into the client's value. If no client has written the number and the type's
    /// values are strings, the string is the number in decimal.
    pub fn to_controller(&self, number: &Bits) -> Bytes {
        let Some(small) = number.to_u64() else {
            return values::bytestring(number);
        };
        let mut known = self.known();
        match known.to_controller.get(&small) {
            Some(value) => Bytes::copy_from_slice(value),
            None if self.width != 0 => values::bytestring(number),
            None => known.name(small, self.is_given),
        }
    }
}

impl Known {
    fn assign(&mut self, text: &[u8], uri: &str) -> Result<u64, ControlError> {
        refuse!(
            self.to_switch.len() >= MAX_STRINGS => ResourceExhausted,
            "'{uri}' has {MAX_STRINGS} strings already"
        );
        let own = std::str::from_utf8(text).ok();
        let own = own.and_then(|text| Some((text, text.parse::<u64>().ok()?)));
        let own = own.filter(|(text, number)| *text == number.to_string());
        let own = own
            .map(|(_, number)| number)
            .filter(|number| *number < MAX_OWN_NUMBER && !self.to_controller.contains_key(number));
        let number = own.unwrap_or_else(|| {
            while self.to_controller.contains_key(&self.lowest) {
                self.lowest += 1;
            }
            self.lowest
        });
        self.to_switch.insert(text.to_vec(), number);
        self.to_controller.insert(number, text.to_vec());
        Ok(number)
    }

    /// Returns a string for a number that came from the program, and keeps it, so that clients can refer to it. If
    /// the mapping is given by the user (`is_given`), or [`MAX_NAMED`] numbers have names, the string is not kept:
    /// packets could bring any number of values.
    fn name(&mut self, number: u64, is_given: bool) -> Bytes {
        let mut text = number.to_string();
        while self.to_switch.contains_key(text.as_bytes()) {
            text.insert(0, '#');
        }
        if !is_given && self.named < MAX_NAMED {
            self.named += 1;
            self.to_switch.insert(text.clone().into_bytes(), number);
            let bytes = text.clone().into_bytes();
            self.to_controller.insert(number, bytes);
        }
        Bytes::from(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_packets_take_a_bounded_number_of_names() {
        let translation = Translation::new("p4.org/psa/v1/PortId_t", 0, None).unwrap();
        let own = |number: u64| translation.to_controller(&Bits::from_u64(64, number));
        for number in 0..2 * MAX_NAMED as u64 {
            assert_eq!(own(number), number.to_string().as_bytes());
        }
        assert_eq!(translation.known().to_switch.len(), MAX_NAMED);
        let what = || "a port".to_string();
        assert_eq!(translation.to_switch(b"7", &what), Ok(7));
        let client = translation.to_switch(b"eth7", &what).unwrap();
        assert_eq!(own(client), b"eth7".as_slice());
    }
}
