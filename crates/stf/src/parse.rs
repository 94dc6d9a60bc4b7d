//! Parses text to a [`Script`]. It never fails: it reports malformed lines and leaves them out.
//!
//! The format is line by line; `#` starts a comment. It knows no program.

use crate::script::{
    Call, Cell, Command, Comparison, CounterCheck, Line, Number, PacketPattern, Pattern, Problem,
    Rate, Script,
};

/// The most digits of a number: as many as the widest field has bits.
const MAX_DIGITS: usize = ir::Bits::MAX_WIDTH as usize;

type Parsed<T> = Result<T, String>;

/// Parses a script line by line. Returns its commands, and each line that is no valid command, with the reason.
pub fn parse(text: &str) -> (Script, Vec<Problem>) {
    let mut script = Script::default();
    let mut problems = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        match command(line) {
            Ok(command) => script.lines.push(Line { number, command }),
            Err(message) => problems.push(Problem { number, message }),
        }
    }
    (script, problems)
}

fn command(line: &str) -> Parsed<Command> {
    let (keyword, rest) = line
        .split_once(|c: char| c.is_ascii_whitespace())
        .unwrap_or((line, ""));
    let keyword = keyword.to_ascii_lowercase();
    match keyword.as_str() {
        "packet" => return packet(rest),
        "expect" => return expect(rest),
        _ => {}
    }
    let mut tokens = Tokens::new(rest)?;
    let command = match keyword.as_str() {
        "add" => add(&mut tokens)?,
        "setdefault" => Command::SetDefault {
            table: tokens.name("a table")?,
            action: call(&mut tokens)?,
        },
        "remove" => remove(&mut tokens)?,
        "no_packet" => Command::NoPacket,
        "wait" => {
            // Some scripts say how long; here it is always the same.
            tokens.at = tokens.list.len();
            Command::Wait
        }
        "check_counter" => check_counter(&mut tokens)?,
        "check_register" => Command::CheckRegister {
            register: tokens.name("a register")?,
            index: tokens.u64()?,
            comparison: tokens.comparison()?,
            value: tokens.number()?,
        },
        "check_digest" => Command::CheckDigest {
            digest: tokens.name("a digest")?,
            values: tokens.rest(Tokens::number)?,
        },
        _ => object_command(&keyword, &mut tokens)?,
    };
    tokens.end()?;
    Ok(command)
}

/// Parses a command that the command line of the reference target (BMv2) has too; `keyword` is its first word.
fn object_command(keyword: &str, tokens: &mut Tokens) -> Parsed<Command> {
    Ok(match keyword {
        "mirroring_add" => Command::MirroringAdd {
            session: tokens.u32()?,
            port: tokens.u32()?,
        },
        "mirroring_add_mc" => Command::MirroringAddMulticast {
            session: tokens.u32()?,
            group: tokens.u32()?,
        },
        "mirroring_delete" => Command::MirroringDelete {
            session: tokens.u32()?,
        },
        "mirroring_get" => Command::MirroringGet {
            session: tokens.u32()?,
        },
        "mc_mgrp_create" => Command::GroupCreate {
            group: tokens.u32()?,
        },
        "mc_node_create" => Command::NodeCreate {
            rid: u16::try_from(tokens.u32()?).map_err(|_| "a rid has 16 bits".to_string())?,
            ports: tokens.rest(Tokens::u32)?,
        },
        "mc_node_update" => Command::NodeUpdate {
            node: tokens.u32()?,
            ports: tokens.rest(Tokens::u32)?,
        },
        "mc_node_associate" => Command::NodeAssociate {
            group: tokens.u32()?,
            node: tokens.u32()?,
        },
        "counter_read" => Command::CounterRead {
            counter: tokens.name("a counter")?,
            index: tokens.u64()?,
        },
        "counter_write" => Command::CounterWrite {
            counter: tokens.name("a counter")?,
            index: tokens.u64()?,
            packets: tokens.u64()?,
            bytes: tokens.u64()?,
        },
        "register_read" => Command::RegisterRead {
            register: tokens.name("a register")?,
            index: tokens.u64()?,
        },
        "register_write" => Command::RegisterWrite {
            register: tokens.name("a register")?,
            index: tokens.u64()?,
            value: tokens.number()?,
        },
        "register_reset" => Command::RegisterReset {
            register: tokens.name("a register")?,
        },
        "meter_get_rates" => Command::MeterGetRates {
            meter: tokens.name("a meter")?,
            index: tokens.u64()?,
        },
        "meter_set_rates" => Command::MeterSetRates {
            meter: tokens.name("a meter")?,
            index: tokens.u64()?,
            rates: [tokens.rate()?, tokens.rate()?],
        },
        "meter_array_set_rates" => Command::MeterArraySetRates {
            meter: tokens.name("a meter")?,
            rates: [tokens.rate()?, tokens.rate()?],
        },
        _ => return Err(format!("unknown command `{keyword}`")),
    })
}

fn add(tokens: &mut Tokens) -> Parsed<Command> {
    let table = tokens.name("a table")?;
    let priority = tokens.priority()?;
    let matches = matches(tokens)?;
    let action = call(tokens)?;
    let id = if tokens.eat("=") {
        Some(tokens.name("an id")?.trim_start_matches('$').to_string())
    } else {
        None
    };
    Ok(Command::Add {
        table,
        priority,
        matches,
        action,
        id,
    })
}

fn remove(tokens: &mut Tokens) -> Parsed<Command> {
    let table = tokens.name("a table, or `all`")?;
    if table.eq_ignore_ascii_case("all") && tokens.peek().is_none() {
        return Ok(Command::RemoveAll);
    }
    Ok(Command::Remove {
        table,
        priority: tokens.priority()?,
        matches: matches(tokens)?,
    })
}

/// Parses a sequence of matches `FIELD:PATTERN`, up to the first token that does not begin one.
fn matches(tokens: &mut Tokens) -> Parsed<Vec<(String, Pattern)>> {
    let mut matches = Vec::new();
    while tokens.list.get(tokens.at + 1).is_some_and(|t| t == ":") {
        let field = tokens.name("a field")?;
        tokens.expect(":")?;
        let value = tokens.number()?;
        let pattern = if tokens.eat("/") {
            Pattern::Prefix(value, tokens.u32()?)
        } else if tokens.eat("&&&") {
            Pattern::Masked(value, tokens.number()?)
        } else if tokens.eat("->") {
            Pattern::Range(value, tokens.number()?)
        } else {
            Pattern::Number(value)
        };
        matches.push((field, pattern));
    }
    Ok(matches)
}

fn call(tokens: &mut Tokens) -> Parsed<Call> {
    let name = tokens.name("an action")?;
    let mut args = Vec::new();
    tokens.expect("(")?;
    while !tokens.eat(")") {
        if !args.is_empty() {
            tokens.expect(",")?;
        }
        let arg = tokens.name("an argument")?;
        tokens.expect(":")?;
        args.push((arg, tokens.number()?));
    }
    Ok(Call { name, args })
}

fn check_counter(tokens: &mut Tokens) -> Parsed<Command> {
    let counter = tokens.name("a counter")?;
    tokens.expect("(")?;
    let cell = match tokens.peek() {
        Some(t) if t.starts_with(|c: char| c.is_ascii_digit()) => Cell::Index(tokens.u64()?),
        _ => Cell::Entry(tokens.name("an id")?.trim_start_matches('$').to_string()),
    };
    tokens.expect(")")?;
    let check = match tokens.peek() {
        None => None,
        Some(_) => Some(CounterCheck {
            bytes: match tokens.name("`packets` or `bytes`")?.to_ascii_lowercase() {
                unit if unit == "packets" => false,
                unit if unit == "bytes" => true,
                other => return Err(format!("`{other}` is neither `packets` nor `bytes`")),
            },
            comparison: tokens.comparison()?,
            value: tokens.u64()?,
        }),
    };
    Ok(Command::CheckCounter {
        counter,
        cell,
        check,
    })
}

fn packet(rest: &str) -> Parsed<Command> {
    let (port, digits) = port_and_rest(rest)?;
    let mut data = Vec::new();
    let mut high = None;
    for c in digits.chars().filter(|c| !c.is_ascii_whitespace()) {
        let nibble = c.to_digit(16).ok_or_else(|| not_hex(c))? as u8;
        match high.take() {
            None => high = Some(nibble),
            Some(high) => data.push(high << 4 | nibble),
        }
    }
    if high.is_some() {
        return Err("a packet has two digits for each byte".into());
    }
    Ok(Command::Packet { port, data })
}

fn expect(rest: &str) -> Parsed<Command> {
    let (port, digits) = port_and_rest(rest)?;
    let mut pattern = PacketPattern::default();
    for c in digits.chars().filter(|c| !c.is_ascii_whitespace()) {
        if pattern.exact {
            return Err("nothing may follow `$`".into());
        }
        match c {
            '$' => pattern.exact = true,
            '*' => pattern.nibbles.push(None),
            _ => {
                let nibble = c.to_digit(16).ok_or_else(|| not_hex(c))?;
                pattern.nibbles.push(Some(nibble as u8));
            }
        }
    }
    Ok(Command::Expect { port, pattern })
}

fn port_and_rest(rest: &str) -> Parsed<(u32, &str)> {
    let rest = rest.trim_start();
    let end = rest
        .find(|c: char| c.is_ascii_whitespace())
        .unwrap_or(rest.len());
    let port = &rest[..end];
    let digits = port.bytes().all(|b| b.is_ascii_digit());
    let number = digits.then(|| port.parse().ok()).flatten();
    let number = number.ok_or_else(|| format!("`{port}` is not a port"))?;
    Ok((number, &rest[end..]))
}

fn not_hex(c: char) -> String {
    format!("`{c}` is not a hexadecimal digit")
}

/// The words and signs of a line.
struct Tokens {
    list: Vec<String>,
    at: usize,
}

/// Signs, longest first.
const SIGNS: [&str; 15] = [
    "&&&", "->", "==", "!=", "<=", ">=", "<", ">", "=", ":", ",", "(", ")", "/", "-",
];

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.' | '*' | '[' | ']')
}

impl Tokens {
    fn new(line: &str) -> Parsed<Tokens> {
        let mut list = Vec::new();
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let length = if first == '"' {
                let end = rest[1..].find('"').ok_or("a quoted name does not end")?;
                end + 2
            } else if is_word(first) {
                rest.find(|c| !is_word(c)).unwrap_or(rest.len())
            } else {
                let sign = SIGNS.iter().find(|s| rest.starts_with(**s));
                sign.ok_or_else(|| format!("unexpected `{first}`"))?.len()
            };
            list.push(rest[..length].to_string());
            rest = rest[length..].trim_start();
        }
        Ok(Tokens { list, at: 0 })
    }

    fn peek(&self) -> Option<&str> {
        self.list.get(self.at).map(String::as_str)
    }

    fn next(&mut self, what: &str) -> Parsed<&str> {
        self.at += 1;
        match self.list.get(self.at - 1) {
            Some(token) => Ok(token),
            None => Err(format!("the line ends where {what} is expected")),
        }
    }

    fn eat(&mut self, sign: &str) -> bool {
        let found = self.peek() == Some(sign);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Parsed<()> {
        let token = self.next(&format!("`{sign}`"))?;
        if token == sign {
            return Ok(());
        }
        Err(format!("`{token}` where `{sign}` is expected"))
    }

    fn end(&self) -> Parsed<()> {
        match self.peek() {
            None => Ok(()),
            Some(token) => Err(format!("`{token}` where the line should end")),
        }
    }

    fn name(&mut self, what: &str) -> Parsed<String> {
        let token = self.next(what)?;
        if let Some(quoted) = token.strip_prefix('"') {
            return Ok(quoted.trim_end_matches('"').to_string());
        }
        let starts = |c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '$' | '.');
        if token.starts_with(starts) {
            return Ok(token.to_string());
        }
        Err(format!("`{token}` where {what} is expected"))
    }

    /// Reads the decimal number of a priority; `None` if the next token is no decimal number.
    fn priority(&mut self) -> Parsed<Option<u32>> {
        let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
        if self.peek().is_some_and(digits) {
            return self.u32().map(Some);
        }
        Ok(None)
    }

    fn number(&mut self) -> Parsed<Number> {
        let token = self.next("a number")?;
        number(token).ok_or_else(|| format!("`{token}` is not a number"))
    }

    fn u64(&mut self) -> Parsed<u64> {
        let number = self.number()?;
        number
            .to_u64()
            .ok_or_else(|| "the number is too large".to_string())
    }

    fn u32(&mut self) -> Parsed<u32> {
        u32::try_from(self.u64()?).map_err(|_| "the number is too large".to_string())
    }

    fn rest<T>(&mut self, item: impl Fn(&mut Tokens) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        while self.peek().is_some() {
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn comparison(&mut self) -> Parsed<Comparison> {
        Ok(match self.next("a comparison")? {
            "==" => Comparison::Eq,
            "!=" => Comparison::Ne,
            "<" => Comparison::Lt,
            "<=" => Comparison::Le,
            ">" => Comparison::Gt,
            ">=" => Comparison::Ge,
            other => return Err(format!("`{other}` is not a comparison")),
        })
    }

    /// Reads `RATE:BURST`. The rate is a decimal number, in packets or bytes per microsecond.
    fn rate(&mut self) -> Parsed<Rate> {
        let token = self.next("a rate")?;
        let per_second = per_second(token)
            .ok_or_else(|| format!("`{token}` is not a rate in whole units per second"))?;
        self.expect(":")?;
        let burst = self.u64()?;
        Ok(Rate { per_second, burst })
    }
}

fn number(token: &str) -> Option<Number> {
    let prefix = token.get(..2).map(str::to_ascii_lowercase);
    let (radix, digits) = match prefix.as_deref() {
        Some("0x") => (16, &token[2..]),
        Some("0b") => (2, &token[2..]),
        Some("0o") => (8, &token[2..]),
        _ => (10, token),
    };
    if token == "*" {
        return Some(Number {
            radix: 2,
            digits: vec![None],
        });
    }
    if digits.is_empty() || digits.len() > MAX_DIGITS {
        return None;
    }
    let digits = digits
        .chars()
        .map(|c| match c {
            '*' if radix != 10 => Some(None),
            _ => c.to_digit(radix).map(|d| Some(d as u8)),
        })
        .collect::<Option<_>>()?;
    Some(Number {
        radix: radix as u8,
        digits,
    })
}

/// Converts a decimal number of units per microsecond to units per second, without rounding; `None` if
/// the result is no whole number or exceeds 64 bits.
fn per_second(token: &str) -> Option<u64> {
    let (whole, fraction) = token.split_once('.').unwrap_or((token, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || fraction.len() > 6 || !digits(whole) || !digits(fraction) {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let fraction: u64 = format!("{fraction:0<6}").parse().ok()?;
    whole.checked_mul(1_000_000)?.checked_add(fraction)
}

#[cfg(test)]
mod tests;
