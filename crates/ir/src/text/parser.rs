//! Text to program: tokens, ids, constants, and everything outside of bodies. The grammar is in [`super`].

use super::lexer::{Lexer, Token, unescape};
use super::{COUNTER_UNITS, HASHES, MAX_TEXT_BYTES, VERSION, value_of};
use crate::architecture::{self, Description};
use crate::verify::{MAX_EXPR_WIDTH, MAX_STATEMENTS, MAX_TOTAL_LIMBS};
use crate::*;
use std::fmt;

/// The first error of a text that is no program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// The error.
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for ParseError {}

/// Parses a program from its text form. The program is not verified.
///
/// # Errors
///
/// The first error of the text, with its line and column.
pub fn parse(text: &str) -> Result<Program, ParseError> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(ParseError {
            line: 1,
            column: 1,
            message: format!("a program text has at most {MAX_TEXT_BYTES} bytes"),
        });
    }
    Parser::new(text)
        .and_then(|mut parser| parser.program())
        .map_err(|(at, message)| {
            let before = &text[..at];
            let line_start = before.rfind('\n').map_or(0, |i| i + 1);
            ParseError {
                line: 1 + before.bytes().filter(|&b| b == b'\n').count() as u32,
                column: 1 + before[line_start..].chars().count() as u32,
                message,
            }
        })
}

/// A result of parsing; an error is a byte position and a message.
pub(super) type Parsed<T> = Result<T, (usize, String)>;

pub(super) struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The token to be consumed next, and where it begins.
    pub(super) token: Token<'a>,
    pub(super) at: usize,
    /// The number of limbs that constants may still allocate.
    limbs_left: u64,
    statements_left: u64,
    /// The number of statements and operators around the next token.
    pub(super) nesting: u32,
    pub(super) depth: u32,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Parsed<Parser<'a>> {
        let mut parser = Parser {
            lexer: Lexer::new(text),
            token: Token::End,
            at: 0,
            limbs_left: MAX_TOTAL_LIMBS,
            statements_left: MAX_STATEMENTS,
            nesting: 0,
            depth: 0,
        };
        parser.advance()?;
        Ok(parser)
    }

    // Tokens.

    fn advance(&mut self) -> Parsed<()> {
        (self.at, self.token) = self.lexer.next()?;
        Ok(())
    }

    pub(super) fn fail<T>(&self, message: impl Into<String>) -> Parsed<T> {
        Err((self.at, message.into()))
    }

    pub(super) fn expected<T>(&self, what: &str) -> Parsed<T> {
        self.fail(match self.token {
            Token::Word(found) | Token::Number(found) => {
                let shown: String = found.chars().take(40).collect();
                format!("expected {what}, found {shown}")
            }
            Token::String(_) => format!("expected {what}, found a string"),
            Token::Mark(found) => format!("expected {what}, found {found:?}"),
            Token::DotDot => format!("expected {what}, found \"..\""),
            Token::End => format!("expected {what}, found the end of the text"),
        })
    }

    pub(super) fn eat_word(&mut self, word: &str) -> Parsed<bool> {
        let found = self.token == Token::Word(word);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    pub(super) fn word(&mut self, word: &str) -> Parsed<()> {
        if self.eat_word(word)? {
            return Ok(());
        }
        self.expected(&format!("{word:?}"))
    }

    pub(super) fn is_mark(&self, mark: char) -> bool {
        self.token == Token::Mark(mark)
    }

    pub(super) fn eat_mark(&mut self, mark: char) -> Parsed<bool> {
        let found = self.is_mark(mark);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    pub(super) fn mark(&mut self, mark: char) -> Parsed<()> {
        if self.eat_mark(mark)? {
            return Ok(());
        }
        self.expected(&format!("{mark:?}"))
    }

    pub(super) fn dots(&mut self) -> Parsed<()> {
        if self.token != Token::DotDot {
            return self.expected("\"..\"");
        }
        self.advance()
    }

    /// Reads one of `words`, and returns the value that belongs to it. `what` describes the words in an error.
    pub(super) fn choice<T: Copy>(&mut self, words: &super::Words<T>, what: &str) -> Parsed<T> {
        if let Token::Word(word) = self.token
            && let Some(value) = value_of(words, word)
        {
            self.advance()?;
            return Ok(value);
        }
        self.expected(what)
    }

    pub(super) fn number<T: std::str::FromStr>(&mut self) -> Parsed<T> {
        let Token::Number(text) = self.token else {
            return self.expected("a number");
        };
        match text.parse() {
            Ok(value) => {
                self.advance()?;
                Ok(value)
            }
            Err(_) => self.expected("a smaller decimal number"),
        }
    }

    pub(super) fn string(&mut self) -> Parsed<String> {
        let Token::String(text) = self.token else {
            return self.expected("a string");
        };
        let value = unescape(text).map_err(|message| (self.at, message))?;
        self.advance()?;
        Ok(value)
    }

    pub(super) fn slot(&mut self) -> Parsed<SlotId> {
        if !self.eat_mark('%')? {
            return self.expected("a slot");
        }
        Ok(SlotId(self.number()?))
    }

    /// Reads an id such as `t3`, made of `letter` and a number, and returns the number.
    pub(super) fn id(&mut self, letter: char, what: &str) -> Parsed<u32> {
        if let Token::Word(word) = self.token
            && let Some(digits) = word.strip_prefix(letter)
            && digits.bytes().all(|b| b.is_ascii_digit())
            && let Ok(id) = digits.parse()
        {
            self.advance()?;
            return Ok(id);
        }
        self.expected(&format!("{what}, {letter} and a number"))
    }

    /// Reads the id of a declaration. Ids of a kind count up from 0, so it must be `count`, the number of
    /// declarations of this kind before it.
    fn new_id(&mut self, letter: char, what: &str, count: usize) -> Parsed<()> {
        let at = self.at;
        let found = match letter {
            '%' => self.slot()?.0,
            ' ' => self.number()?,
            _ => self.id(letter, what)?,
        };
        if found as usize != count {
            return Err((at, format!("the next {what} has the number {count}")));
        }
        Ok(())
    }

    /// Reads a list of items separated by commas between `open` and `close`; it may be empty.
    pub(super) fn list<T>(
        &mut self,
        open: char,
        close: char,
        mut item: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        self.mark(open)?;
        let mut items = Vec::new();
        if self.eat_mark(close)? {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.eat_mark(close)? {
                return Ok(items);
            }
            self.mark(',')?;
        }
    }

    // Budgets.

    pub(super) fn spend_limbs(&mut self, limbs: u64) -> Parsed<()> {
        match self.limbs_left.checked_sub(limbs) {
            Some(left) => self.limbs_left = left,
            None => return self.fail("the values of the program are too large in all"),
        }
        Ok(())
    }

    pub(super) fn spend_statement(&mut self) -> Parsed<()> {
        match self.statements_left.checked_sub(1) {
            Some(left) => self.statements_left = left,
            None => return self.fail("too many statements"),
        }
        Ok(())
    }

    /// Reads a constant with its width, such as `8w0x1f`.
    pub(super) fn bits(&mut self) -> Parsed<Bits> {
        if let Token::Number(text) = self.token
            && let Some((width, digits)) = text.split_once('w')
            && let Ok(width) = width.parse::<u32>()
            && (1..=MAX_EXPR_WIDTH).contains(&width)
        {
            self.spend_limbs(u64::from(width.div_ceil(64)))?;
            let Some(value) = bits_of(width, digits) else {
                return self.fail(format!("these digits are no value of {width} bits"));
            };
            self.advance()?;
            return Ok(value);
        }
        self.expected("a constant with its width")
    }

    // Items.

    fn program(&mut self) -> Parsed<Program> {
        self.word("holdfast_ir")?;
        let at = self.at;
        let version: u32 = self.number()?;
        if version != VERSION {
            return Err((
                at,
                format!("version {version} of the text form; this reads version {VERSION}"),
            ));
        }
        self.word("program")?;
        let name = self.string()?;
        let files = self.items("file", ' ', Self::string)?;
        let slots = self.items("slot", '%', Self::slot_item)?;
        let architecture = self.architecture()?;
        let description = architecture.description();
        Ok(Program {
            name,
            files,
            slots,
            architecture,
            errors: self.items("error", ' ', Self::string)?,
            headers: self.items("header", 'h', Self::header)?,
            registers: self.items("register", 'r', Self::register)?,
            counters: self.items("counter", 'c', Self::counter)?,
            meters: self.items("meter", 'm', Self::meter)?,
            digests: self.items("digest", 'd', Self::digest)?,
            value_sets: self.items("value_set", 'v', Self::value_set)?,
            controller_headers: self.items("controller_header", 'k', Self::controller_header)?,
            action_profiles: self.items("action_profile", 'p', Self::action_profile)?,
            field_lists: self.items("field_list", 'l', |p| {
                let slots = p.list('(', ')', Self::slot)?;
                Ok(FieldList { slots })
            })?,
            actions: self.items("action", 'a', Self::action)?,
            tables: self.items("table", 't', Self::table)?,
            states: self.items("state", 's', Self::state)?,
            blocks: self.blocks(description)?,
        })
    }

    /// Reads the start states of the parsers except the first, which starts with the first state, and all
    /// controls, to the end of the text.
    fn blocks(&mut self, description: &Description) -> Parsed<Vec<Block>> {
        let mut blocks = Vec::new();
        for (i, stage) in description.stages.iter().enumerate() {
            blocks.push(match (stage.is_parser(), i) {
                (true, 0) => Block::Parser(StateId(0)),
                (true, _) => {
                    self.word(stage.name)?;
                    Block::Parser(StateId(self.id('s', "a state")?))
                }
                (false, _) => Block::Control(Vec::new()),
            });
        }
        for ((id, stage), block) in description.blocks().zip(&mut blocks) {
            let Block::Control(body) = block else {
                continue;
            };
            let empty = description.empty_controls.iter();
            for (name, _) in empty.filter(|(_, before)| *before == id) {
                if !self.control(name)?.is_empty() {
                    return self.fail(format!("{} has no control {name}", description.title));
                }
            }
            if !description.may_be_left_out(id) || self.is_at_control(stage.name) {
                *body = self.control(stage.name)?;
            }
        }
        match self.token {
            Token::End => Ok(blocks),
            _ => self.expected("the end of the text"),
        }
    }

    /// Reads all declarations that begin with `keyword` and an id; the ids must count up from zero.
    fn items<T>(
        &mut self,
        keyword: &str,
        letter: char,
        mut item: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        while self.eat_word(keyword)? {
            self.new_id(letter, keyword, items.len())?;
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn slot_item(&mut self) -> Parsed<Slot> {
        let name = self.string()?;
        self.mark(':')?;
        let width = self.number()?;
        Ok(Slot { name, width })
    }

    fn architecture(&mut self) -> Parsed<Architecture> {
        let word = self.token;
        let mut known = architecture::ALL.iter();
        let named = known.find(|d| word == Token::Word(d.keyword));
        let Some(description) = named.copied() else {
            return self.expected("the metadata of an architecture");
        };
        self.word(description.keyword)?;
        self.mark('{')?;
        let architecture = Architecture::from_names(description, |name| {
            // Names have dots, which are no part of a word.
            for (i, word) in name.split('.').enumerate() {
                if i > 0 {
                    self.mark('.')?;
                }
                self.word(word)?;
            }
            self.mark('=')?;
            self.slot()
        })?;
        self.mark('}')?;
        Ok(architecture)
    }

    fn header(&mut self) -> Parsed<Header> {
        let name = self.string()?;
        self.word("valid")?;
        let valid = self.slot()?;
        self.mark('{')?;
        let mut fields = Vec::new();
        while !self.eat_mark('}')? {
            let slot = self.slot()?;
            let varbit_length = self.optional("length", Self::slot)?;
            fields.push(Field {
                slot,
                varbit_length,
            });
        }
        Ok(Header {
            name,
            valid,
            fields,
        })
    }

    /// Reads `word item` if the next token is `word`, and returns the item; else `None`.
    pub(super) fn optional<T>(
        &mut self,
        word: &str,
        item: impl FnOnce(&mut Self) -> Parsed<T>,
    ) -> Parsed<Option<T>> {
        if self.eat_word(word)? {
            return item(self).map(Some);
        }
        Ok(None)
    }

    /// Reads `string "id" number`: a control-plane name and a P4Runtime id.
    fn named(&mut self) -> Parsed<(String, u32)> {
        let name = self.string()?;
        self.word("id")?;
        Ok((name, self.number()?))
    }

    fn register(&mut self) -> Parsed<Register> {
        let (name, id) = self.named()?;
        self.mark(':')?;
        let width = self.number()?;
        self.word("size")?;
        let size = self.number()?;
        let port_state = self.eat_word("port_state")?;
        Ok(Register {
            name,
            id,
            width,
            size,
            port_state,
        })
    }

    fn action_profile(&mut self) -> Parsed<ActionProfile> {
        let (name, id) = self.named()?;
        self.word("size")?;
        let size = self.number()?;
        let selector = self.optional("selector", Self::selector)?;
        Ok(ActionProfile {
            name,
            id,
            size,
            selector,
        })
    }

    fn selector(&mut self) -> Parsed<Selector> {
        let algorithm = self.choice(HASHES, "a hash algorithm")?;
        self.mark(':')?;
        let width = self.number()?;
        self.word("max_group_size")?;
        Ok(Selector {
            algorithm,
            width,
            max_group_size: self.number()?,
            sum_of_members: self.eat_word("sum_of_members")?,
        })
    }

    fn counter(&mut self) -> Parsed<Counter> {
        let (name, id) = self.named()?;
        let unit = self.choice(COUNTER_UNITS, "a unit")?;
        let size = self.size()?;
        Ok(Counter {
            name,
            id,
            unit,
            size,
        })
    }

    fn meter(&mut self) -> Parsed<Meter> {
        let (name, id) = self.named()?;
        let bytes = self.choice(&[("bytes", true), ("packets", false)], "a unit")?;
        let size = self.size()?;
        Ok(Meter {
            name,
            id,
            bytes,
            size,
        })
    }

    fn size(&mut self) -> Parsed<Option<u64>> {
        if self.eat_word("direct")? {
            return Ok(None);
        }
        self.word("size")?;
        self.number().map(Some)
    }

    fn digest(&mut self) -> Parsed<Digest> {
        let (name, id) = self.named()?;
        let widths = self.list('(', ')', Self::number)?;
        Ok(Digest { name, id, widths })
    }

    fn value_set(&mut self) -> Parsed<ValueSet> {
        let (name, id) = self.named()?;
        let widths = self.list('(', ')', Self::number)?;
        self.word("size")?;
        let size = self.number()?;
        Ok(ValueSet {
            name,
            id,
            widths,
            size,
        })
    }

    fn controller_header(&mut self) -> Parsed<ControllerHeader> {
        let (name, id) = self.named()?;
        let fields = self.list('(', ')', |p| {
            let id = p.number()?;
            p.mark(':')?;
            let width = p.number()?;
            Ok(ControllerField { id, width })
        })?;
        Ok(ControllerHeader { name, id, fields })
    }

    fn action(&mut self) -> Parsed<Action> {
        let (name, id) = self.named()?;
        let params = self.list('(', ')', |p| {
            let slot = p.slot()?;
            let (name, id) = p.named()?;
            Ok(ActionParam { name, id, slot })
        })?;
        let body = self.body()?;
        Ok(Action {
            name,
            id,
            params,
            body,
        })
    }

    fn table(&mut self) -> Parsed<Table> {
        let (name, id) = self.named()?;
        self.mark('{')?;
        let mut keys = Vec::new();
        while self.eat_word("key")? {
            keys.push(self.key()?);
        }
        let mut actions = Vec::new();
        while self.eat_word("action")? {
            actions.push(self.table_action()?);
        }
        self.word("default")?;
        let default_action = self.call()?;
        let const_default_action = self.eat_word("const_default_action")?;
        let mut entries = Vec::new();
        while self.eat_word("entry")? {
            entries.push(self.entry()?);
        }
        let const_entries = self.eat_word("const_entries")?;
        self.word("size")?;
        let table = Table {
            name,
            id,
            keys,
            actions,
            default_action,
            const_default_action,
            entries,
            const_entries,
            size: self.number()?,
            direct_counter: self
                .optional("direct_counter", |p| Ok(CounterId(p.id('c', "a counter")?)))?,
            direct_meter: self.optional("direct_meter", |p| Ok(MeterId(p.id('m', "a meter")?)))?,
            implementation: self.optional("implementation", |p| {
                Ok(ActionProfileId(p.id('p', "an action profile")?))
            })?,
            support_timeout: self.eat_word("support_timeout")?,
            hidden: self.eat_word("hidden")?,
        };
        self.mark('}')?;
        Ok(table)
    }

    fn key(&mut self) -> Parsed<Key> {
        let (name, id) = self.named()?;
        self.mark(':')?;
        let width = self.number()?;
        let kinds = MatchKind::ALL.map(|kind| (kind.name(), kind));
        let kind = self.choice(&kinds, "a match kind")?;
        Ok(Key {
            name,
            id,
            width,
            kind,
        })
    }

    fn table_action(&mut self) -> Parsed<TableAction> {
        let action = ActionId(self.id('a', "an action")?);
        let scope = if self.eat_word("table_only")? {
            ActionScope::TableOnly
        } else if self.eat_word("default_only")? {
            ActionScope::DefaultOnly
        } else {
            ActionScope::Both
        };
        Ok(TableAction { action, scope })
    }

    fn call(&mut self) -> Parsed<ActionCall> {
        let action = ActionId(self.id('a', "an action")?);
        let args = self.list('(', ')', Self::bits)?;
        Ok(ActionCall { action, args })
    }

    fn entry(&mut self) -> Parsed<ConstEntry> {
        let matches = self.list('(', ')', Self::key_match)?;
        let priority = self.optional("priority", Self::priority)?.unwrap_or(0);
        let action = self.call()?;
        let is_const = self.eat_word("const")?;
        Ok(ConstEntry {
            matches,
            priority,
            action,
            is_const,
        })
    }

    fn priority(&mut self) -> Parsed<i32> {
        let at = self.at;
        let negative = self.eat_mark('-')?;
        let size: i64 = i64::from(self.number::<u32>()?);
        let value = if negative { -size } else { size };
        i32::try_from(value).map_err(|_| (at, "a priority has 32 bits".into()))
    }

    fn key_match(&mut self) -> Parsed<KeyMatch> {
        if self.eat_word("_")? {
            self.spend_limbs(1)?;
            return Ok(KeyMatch::Any);
        }
        let first = self.bits()?;
        Ok(if self.eat_mark('/')? {
            KeyMatch::Prefix {
                value: first,
                prefix_len: self.number()?,
            }
        } else if self.eat_mark('&')? {
            KeyMatch::Masked {
                value: first,
                mask: self.bits()?,
            }
        } else if self.token == Token::DotDot {
            self.dots()?;
            KeyMatch::Range {
                low: first,
                high: self.bits()?,
            }
        } else {
            KeyMatch::Value(first)
        })
    }

    fn control(&mut self, name: &str) -> Parsed<Vec<Stmt>> {
        self.word("control")?;
        self.word(name)?;
        self.body()
    }

    /// Returns whether the next tokens are `control` and `name`.
    fn is_at_control(&self, name: &str) -> bool {
        let mut ahead = self.lexer.clone();
        let next = ahead.next().map(|(_, token)| token);
        self.token == Token::Word("control") && next == Ok(Token::Word(name))
    }
}

/// Returns the value of the digits `0xHEX` or `DECIMAL` in `width` bits; `None` if they are malformed or have
/// more bits, or if a decimal number exceeds 64 bits.
fn bits_of(width: u32, digits: &str) -> Option<Bits> {
    let Some(hex) = digits.strip_prefix("0x") else {
        let good = digits.bytes().all(|b| b.is_ascii_digit());
        let value: u64 = good.then(|| digits.parse().ok())??;
        let fits = width >= 64 || value >> width == 0;
        return fits.then(|| Bits::from_u64(width, value));
    };
    if hex.is_empty() || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let hex = hex.trim_start_matches('0').as_bytes();
    if hex.len() > width.div_ceil(4) as usize {
        return None;
    }
    let limbs: Option<Vec<u64>> = hex
        .rchunks(16)
        .map(|chunk| u64::from_str_radix(std::str::from_utf8(chunk).ok()?, 16).ok())
        .collect();
    let limbs = limbs?;
    let value = Bits::from_limbs(width, &limbs);
    // The highest digit may be cut.
    let whole = limbs
        .last()
        .is_none_or(|top| value.limbs().get(limbs.len() - 1) == Some(top));
    whole.then_some(value)
}
