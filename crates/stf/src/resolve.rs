//! Resolves a script's names and numbers in the program.
//!
//! A name may omit the part in front of a dot if it stays unambiguous. It changes no state.

use crate::script::{Call, Number, Pattern};
use ir::{Action, ActionId, Bits, Form, Key, KeyMatch, Program, TableId};

/// A result whose error is a message for the author of the script.
pub(crate) type Resolved<T> = Result<T, String>;

/// Returns the position in `names` of the name `wanted`, or else of the only name that ends with a dot and
/// `wanted`, or else of the only name that ends with `wanted`. `Err` names two candidates, or says that
/// there is none; `what` describes the object in it.
pub(crate) fn find<'a>(
    what: &str,
    wanted: &str,
    names: impl Iterator<Item = &'a str> + Clone,
) -> Resolved<usize> {
    if let Some(position) = names.clone().position(|n| n == wanted) {
        return Ok(position);
    }
    let dotted = format!(".{wanted}");
    for end in [dotted.as_str(), wanted] {
        let mut candidates = names.clone().enumerate().filter(|(_, n)| n.ends_with(end));
        match (candidates.next(), candidates.next()) {
            (Some((position, _)), None) => return Ok(position),
            (Some((_, first)), Some((_, second))) => {
                return Err(format!("{what} `{wanted}` may be `{first}` or `{second}`"));
            }
            (None, _) => {}
        }
    }
    Err(format!("there is no {what} `{wanted}`"))
}

/// Finds the table called `name` in a program. `Err` if there is none or more than one.
pub(crate) fn table(program: &Program, name: &str) -> Resolved<TableId> {
    let names = program.tables.iter().map(|t| t.name.as_str());
    Ok(TableId(find("table", name, names)? as u32))
}

/// Finds the action of a table that `call` names. Returns its id and the arguments in the order of its parameters.
/// `Err` if the table has no such action, or if the arguments do not fit its parameters.
pub(crate) fn call(
    program: &Program,
    table: TableId,
    call: &Call,
) -> Resolved<(ActionId, Vec<Bits>)> {
    let actions = &program.tables[table.index()].actions;
    let names = actions
        .iter()
        .map(|a| program.actions[a.action.index()].name.as_str());
    let id = actions[find("action", &call.name, names)?].action;
    let action = &program.actions[id.index()];
    let args = arguments(program, action, &call.args)?;
    Ok((id, args))
}

fn arguments(
    program: &Program,
    action: &Action,
    given: &[(String, Number)],
) -> Resolved<Vec<Bits>> {
    for (name, _) in given {
        if !action.params.iter().any(|p| p.name == *name) {
            return Err(format!("{} has no parameter `{name}`", action.name));
        }
    }
    let mut args = Vec::new();
    for param in &action.params {
        let width = program.slots[param.slot.index()].width;
        let (_, number) = given
            .iter()
            .find(|(name, _)| *name == param.name)
            .ok_or_else(|| format!("{} needs `{}`", action.name, param.name))?;
        args.push(exact(number, width, &param.name)?);
    }
    Ok(args)
}

/// Returns the matches of all key fields of a table. A field without a match in `given` matches any value.
pub(crate) fn matches(
    program: &Program,
    table: TableId,
    given: &[(String, Pattern)],
) -> Resolved<Vec<KeyMatch>> {
    let keys = &program.tables[table.index()].keys;
    let mut matches: Vec<KeyMatch> = keys.iter().map(anything).collect();
    for (name, pattern) in given {
        let position = field(keys, name)?;
        matches[position] = key_match(&keys[position], pattern)?;
    }
    Ok(matches)
}

/// Finds the key field called `name`. The name may also be written as `h$0.f` for `h[0].f`, and as
/// `h.$valid$` for `h.isValid()`.
fn field(keys: &[Key], name: &str) -> Resolved<usize> {
    let bracketed = brackets(name);
    let names = keys.iter().map(|k| k.name.as_str());
    let found = find("key field", &bracketed, names.clone());
    for valid in [".$valid$", ".$valid", "$valid$", ".valid", "$valid"] {
        if let Some(header) = bracketed.strip_suffix(valid) {
            let wanted = format!("{header}.isValid()");
            return found.or_else(|_| find("key field", wanted.trim_start_matches('.'), names));
        }
    }
    found
}

/// Rewrites a name in the reference compiler's form for stack elements: `a$0.b` becomes `a[0].b`. Other names stay.
fn brackets(name: &str) -> String {
    let parts = name.split('.').map(|part| match part.split_once('$') {
        Some((stack, index)) if !index.is_empty() && index.bytes().all(|b| b.is_ascii_digit()) => {
            format!("{stack}[{index}]")
        }
        _ => part.to_string(),
    });
    parts.collect::<Vec<_>>().join(".")
}

/// Returns the match of a field that a script does not mention: any value, or zero if entries have to state a value.
fn anything(key: &Key) -> KeyMatch {
    let zero = || KeyMatch::Value(Bits::zero(key.width));
    key.kind.any(key.width).unwrap_or_else(zero)
}

fn key_match(key: &Key, pattern: &Pattern) -> Resolved<KeyMatch> {
    // `*`, `0x*` and `0b***`: any value, of whatever kind the key is, as p4testgen and p4c's own scripts write it.
    if let Pattern::Number(number) = pattern
        && key.kind.has_any()
        && number.is_anything()
    {
        return Ok(anything(key));
    }
    let width = key.width;
    let value_of = |number: &Number| value(number, width, &key.name);
    let exact_of = |number: &Number| exact(number, width, &key.name);
    Ok(match (key.kind.form(), pattern) {
        (Form::Value, Pattern::Number(number)) if key.kind.has_any() && number.has_wildcard() => {
            return Err(partial(key));
        }
        (Form::Value, Pattern::Number(number)) => KeyMatch::Value(exact_of(number)?),
        (Form::Range, Pattern::Number(number)) => KeyMatch::Range {
            low: exact_of(number)?,
            high: exact_of(number)?,
        },
        (Form::Range, Pattern::Range(low, high)) => KeyMatch::Range {
            low: exact_of(low)?,
            high: exact_of(high)?,
        },
        (Form::Value, Pattern::Masked(number, mask)) => {
            let mask = exact_of(mask)?;
            match (key.kind.has_any(), mask == Bits::ones(width)) {
                (_, true) => KeyMatch::Value(exact_of(number)?),
                (true, _) if mask.is_zero() => KeyMatch::Any,
                (true, _) => return Err(partial(key)),
                (false, _) => return Err(no_match(key)),
            }
        }
        (Form::Prefix, Pattern::Masked(number, mask)) => {
            let mask = exact_of(mask)?;
            let length = mask.count_ones();
            match mask == Bits::prefix_mask(width, length) {
                true => prefix(key, exact_of(number)?, length)?,
                false => {
                    return Err(format!(
                        "the mask of `{}`, which is {}, is no prefix",
                        key.name,
                        key.kind.name()
                    ));
                }
            }
        }
        (Form::Masked, Pattern::Number(number)) => masked(value_of(number)?, number.mask(width)),
        (Form::Masked, Pattern::Masked(number, mask)) => masked(exact_of(number)?, exact_of(mask)?),
        (Form::Masked, Pattern::Prefix(number, length)) => {
            let mask = prefix_mask(key, *length)?;
            masked(exact_of(number)?, mask)
        }
        (Form::Prefix, Pattern::Prefix(number, length)) => prefix(key, exact_of(number)?, *length)?,
        (Form::Prefix, Pattern::Number(number)) if !number.is_prefix() => {
            return Err(format!(
                "`{}` is {}: no digit may stand behind a `*`",
                key.name,
                key.kind.name()
            ));
        }
        (Form::Prefix, Pattern::Number(number)) => {
            let length = match number.bits_per_digit() {
                Some(per_digit) => {
                    let given = number.digits.iter().filter(|d| d.is_some()).count();
                    (given as u32 * per_digit).min(width)
                }
                None => width,
            };
            prefix(key, value_of(number)?, length)?
        }
        _ => return Err(no_match(key)),
    })
}

fn no_match(key: &Key) -> String {
    format!(
        "this is no match for `{}`, which is {}",
        key.name,
        key.kind.name()
    )
}

/// Returns the error message for a match of an `optional` key that compares only some of its bits.
fn partial(key: &Key) -> String {
    format!(
        "`{}` is {}: all of its bits count, or none",
        key.name,
        key.kind.name()
    )
}

fn masked(value: Bits, mask: Bits) -> KeyMatch {
    KeyMatch::Masked { value, mask }.normal()
}

fn prefix(key: &Key, value: Bits, prefix_len: u32) -> Resolved<KeyMatch> {
    let value = value.and(&prefix_mask(key, prefix_len)?);
    Ok(KeyMatch::Prefix { value, prefix_len })
}

fn prefix_mask(key: &Key, length: u32) -> Resolved<Bits> {
    if length > key.width {
        return Err(format!(
            "`{}` has {} bits, the prefix {length}",
            key.name, key.width
        ));
    }
    Ok(Bits::prefix_mask(key.width, length))
}

/// Returns the value of `number` in `width` bits, with each `*` digit as zero. `Err` if it has more bits;
/// `name` is the field's name in the message.
fn value(number: &Number, width: u32, name: &str) -> Resolved<Bits> {
    number
        .to_bits(width)
        .ok_or_else(|| format!("the value of `{name}` has more than {width} bits"))
}

/// Returns the value of `number` in `width` bits. `Err` if it contains a `*` digit or has more bits.
pub(crate) fn exact(number: &Number, width: u32, name: &str) -> Resolved<Bits> {
    if number.has_wildcard() {
        return Err(format!("`{name}` needs a number without `*`"));
    }
    value(number, width, name)
}
