//! Checks a P4Info in protobuf's text format: its form, the names of its fields and the ranges of their types, as in
//! p4info.proto of P4Runtime 1.5. It knows neither the meaning of the fields, nor which field belongs into which message;
//! `fuzz/p4runtime.py` and the tests of P4Runtime read with protobuf itself.

/// Fields that are messages.
const MESSAGES: &str = "pkg_info tables actions action_profiles counters direct_counters meters direct_meters
    controller_packet_metadata value_sets registers digests type_info platform_properties doc preamble structured_annotations
    expression_list expressions kv_pair_list kv_pairs value match_fields action_refs initial_default_action arguments params
    type_name sum_of_weights sum_of_members spec index_type_name metadata match type_spec bitstring bit int varbit bool tuple
    members struct header header_union header_stack header_union_stack enum error serializable_enum new_type structs headers
    header_unions enums serializable_enums new_types underlying_type original_type translated_type sdn_string";

/// Fields that are strings or bytes.
const STRINGS: &str = "name version arch organization contact url brief description alias annotations string_value key value uri
    members";

/// Fields that are words.
const WORDS: &str = "bool_value scope match_type idle_timeout_behavior unit is_const_table has_initial_entries with_selector";

/// Fields of type uint32.
const UINT32: &str =
    "id const_default_action_id action_id param_id implementation_id direct_resource_ids table_ids
    direct_table_id";

/// Fields of type int32, where nothing is negative.
const INT32: &str =
    "bitwidth max_bitwidth sdn_bitwidth max_group_size max_member_weight multicast_group_table_size
    multicast_group_table_total_replicas multicast_group_table_max_replicas_per_entry";

/// Messages whose size is of type int32; elsewhere it is int64.
const SMALL: &str = "value_sets registers header_stack header_union_stack";

fn is_in(name: &str, list: &str) -> bool {
    list.split_whitespace().any(|known| known == name)
}

/// Checks that the text of a P4Info can be read; the error says why not, with its line.
pub fn check(text: &str) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let wrong = |why: String| Err(format!("line {}: {why}: {line}", number + 1));
        let line = line.trim_start();
        if line == "}" {
            if open.pop().is_none() {
                return wrong("nothing is open".into());
            }
        } else if let Some(name) = line.strip_suffix(" {") {
            if !is_in(name, MESSAGES) {
                return wrong(format!("no message `{name}`"));
            }
            open.push(name);
        } else if let Some((name, value)) = line.split_once(": ") {
            if let Err(why) = field(name, value, open.last().copied()) {
                return wrong(why);
            }
        } else {
            return wrong("neither a field nor a message".into());
        }
    }
    match open.last() {
        None => Ok(()),
        Some(name) => Err(format!("`{name}` does not end")),
    }
}

fn field(name: &str, value: &str, message: Option<&str>) -> Result<(), String> {
    if value.starts_with('"') {
        let known = is_in(name, STRINGS);
        return (known && is_string(value))
            .then_some(())
            .ok_or("no such string".into());
    }
    let (least, greatest) = match name {
        _ if is_in(name, WORDS) => {
            let word = |c: char| c.is_ascii_alphabetic() || c == '_';
            return value
                .chars()
                .all(word)
                .then_some(())
                .ok_or("no word".into());
        }
        "int64_value" => (i128::from(i64::MIN), i128::from(i64::MAX)),
        "size" if message.is_some_and(|m| is_in(m, SMALL)) => (0, i128::from(i32::MAX)),
        "size" => (0, i128::from(i64::MAX)),
        _ if is_in(name, UINT32) => (0, i128::from(u32::MAX)),
        _ if is_in(name, INT32) => (0, i128::from(i32::MAX)),
        _ => return Err(format!("no field `{name}`")),
    };
    let number: i128 = value.parse().map_err(|_| "no number".to_string())?;
    let fits = (least..=greatest).contains(&number);
    fits.then_some(())
        .ok_or(format!("not from {least} to {greatest}"))
}

/// Returns whether a value is printable ASCII between quotes, with escapes of one letter or three octal digits.
fn is_string(value: &str) -> bool {
    let Some(inside) = value.strip_prefix('"').and_then(|v| v.strip_suffix('"')) else {
        return false;
    };
    let mut bytes = inside.bytes();
    while let Some(byte) = bytes.next() {
        let good = match byte {
            b'\\' => match bytes.next() {
                Some(b'"' | b'\\' | b'n' | b'r' | b't') => true,
                Some(b'0'..=b'3') => (0..2).all(|_| matches!(bytes.next(), Some(b'0'..=b'7'))),
                _ => false,
            },
            b'"' => false,
            byte => (b' '..=b'~').contains(&byte),
        };
        if !good {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn what_can_be_read_and_what_cannot() {
        let good = "pkg_info {\n  arch: \"v1\\303\\251\"\n}\ntables {\n  size: 2147483648\n  is_const_table: true\n}\n";
        assert_eq!(check(good), Ok(()));
        for wrong in [
            "tables {\n",
            "}\n",
            "tabels {\n}\n",
            "registers {\n  size: 2147483648\n}\n",
            "tables {\n  size: -1\n}\n",
            "pkg_info {\n  arch: \"\u{e9}\"\n}\n",
            "pkg_info {\n  arch: \"a\"b\"\n}\n",
            "platform_properties {\n  other: 1\n}\n",
            "preamble {\n  id: 4294967296\n}\n",
        ] {
            assert!(check(wrong).is_err(), "{wrong}");
        }
    }
}
