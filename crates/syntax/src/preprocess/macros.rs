//! Macros: `#define`, `#undef` and expansion.
//!
//! Expansion follows the C standard through Prosser's algorithm: each token carries the set of macros it may no longer
//! name, so that a macro that mentions itself does not expand forever. Only the size still needs a bound: a
//! program whose expansion is too large ends with an error. Tokens from a macro's body get the place of its use;
//! tokens from arguments keep their own.

use std::rc::Rc;
use std::sync::Arc;

use super::Preprocessor;
use crate::errors;
use crate::lexer;
use crate::source::{Expansion, Span};
use crate::token::{Token, TokenKind as T};

/// The most tokens that macros may produce in all.
const MAX_PRODUCED: usize = 1_000_000;
/// The most bytes of text that `#` and `##` may produce in all. They need a limit of their own, since each use can
/// double the length of a token.
const MAX_PRODUCED_BYTES: usize = 16 << 20;
/// The deepest nesting of macro uses in arguments of macros.
const MAX_ARGUMENT_DEPTH: usize = 100;

/// The macros that are always defined, as in the reference compiler's preprocessor. `__DATE__` and `__TIME__` are not
/// among them, so that the result of a compilation depends on the program alone.
const PREDEFINED: [&str; 9] = [
    "__ASSEMBLER__",
    "__BASE_FILE__",
    "__COUNTER__",
    "__FILE__",
    "__INCLUDE_LEVEL__",
    "__LINE__",
    "__STDC__",
    "__STDC_HOSTED__",
    "__has_include",
];

/// The definition of a macro.
pub(crate) struct Macro {
    id: u32,
    name: Arc<str>,
    definition: Span,
    /// The parameters; `None` for a macro without parentheses.
    params: Option<Vec<Arc<str>>>,
    /// True if the last parameter takes all remaining arguments.
    variadic: bool,
    body: Vec<Token>,
}

impl Macro {
    fn param(&self, token: &Token) -> Option<usize> {
        let params = self.params.as_ref()?;
        if token.kind.is_word() {
            params.iter().position(|p| *p == token.text)
        } else {
            None
        }
    }

    fn same_as(&self, other: &Macro) -> bool {
        let texts = |m: &Macro| m.body.iter().map(|t| t.text.clone()).collect::<Vec<_>>();
        self.params == other.params
            && self.variadic == other.variadic
            && texts(self) == texts(other)
    }
}

/// The ids, sorted, of the macros that are not expanded again in a token, since it comes from their expansion.
#[derive(Clone, Default)]
struct Hidden(Option<Rc<Vec<u32>>>);

impl Hidden {
    fn ids(&self) -> &[u32] {
        self.0.as_deref().map_or(&[], |ids| ids)
    }

    fn contains(&self, id: u32) -> bool {
        self.ids().binary_search(&id).is_ok()
    }

    fn and(&self, other: &Hidden) -> Hidden {
        Hidden::from(
            self.ids()
                .iter()
                .copied()
                .filter(|id| other.contains(*id))
                .collect(),
        )
    }

    fn or(&self, other: &Hidden) -> Hidden {
        // Most tokens come straight from a body, and all of them can share one set.
        if self.0.is_none() {
            return other.clone();
        }
        if other.ids().iter().all(|id| self.contains(*id)) {
            return self.clone();
        }
        if let [id] = other.ids() {
            let mut ids = self.ids().to_vec();
            let place = ids.partition_point(|other| other < id);
            ids.insert(place, *id);
            return Hidden::from(ids);
        }
        let mut ids = [self.ids(), other.ids()].concat();
        ids.sort_unstable();
        ids.dedup();
        Hidden::from(ids)
    }

    fn from(ids: Vec<u32>) -> Hidden {
        Hidden(if ids.is_empty() {
            None
        } else {
            Some(Rc::new(ids))
        })
    }
}

/// A token during macro expansion, with the macros that are not expanded again in it.
#[derive(Clone)]
struct Live {
    token: Token,
    hidden: Hidden,
}

impl Live {
    fn new(token: &Token) -> Live {
        Live {
            token: token.clone(),
            hidden: Hidden::default(),
        }
    }
}

/// A use of a macro whose arguments continue after a directive.
pub(crate) struct OpenUse {
    used: Rc<Macro>,
    name: Live,
    /// The tokens after the macro's name that have been read so far.
    rest: Vec<Live>,
    /// The number of parentheses that are open.
    depth: usize,
}

impl OpenUse {
    /// Adds `tokens` to the unfinished argument list of a macro. Returns whether the list ends within `tokens`.
    fn add(&mut self, tokens: &[Token]) -> bool {
        self.rest.extend(tokens.iter().map(Live::new));
        for token in tokens {
            match token.kind {
                T::LParen => self.depth += 1,
                T::RParen if self.depth == 1 => return true,
                T::RParen => self.depth -= 1,
                _ => {}
            }
        }
        false
    }
}

/// The arguments of one use of a macro.
struct Actuals {
    list: Vec<Vec<Live>>,
    close: Live,
}

impl Preprocessor<'_> {
    // -- Definition ---------------------------------------------------------------------------------------------------

    pub(crate) fn is_defined(&self, name: &str) -> bool {
        self.macros.contains_key(name) || PREDEFINED.contains(&name)
    }

    pub(crate) fn define_macro(&mut self, word: &Token, args: &[Token]) {
        let Some((name, rest)) = args
            .split_first()
            .filter(|(n, _)| n.kind.is_word() && &*n.text != "defined")
        else {
            let span = args.first().map_or(word.span, |t| t.span);
            self.sink.push(errors::macro_name_expected(span, "define"));
            return;
        };
        let (params, variadic, body) = match rest.first() {
            Some(open) if open.kind == T::LParen && !open.space_before => {
                match macro_params(&rest[1..]) {
                    Some((params, variadic, used)) => (Some(params), variadic, &rest[1 + used..]),
                    None => {
                        self.sink
                            .push(errors::malformed_macro_params(open.span, &name.text));
                        return;
                    }
                }
            }
            _ => (None, false, rest),
        };
        let id = self.next_macro;
        self.next_macro += 1;
        let body = body.to_vec();
        let new = Macro {
            id,
            name: name.text.clone(),
            definition: name.span,
            params,
            variadic,
            body,
        };
        if !self.check_body(&new) {
            return;
        }
        if let Some(old) = self.macros.get(&name.text).filter(|old| !old.same_as(&new)) {
            self.sink.push(errors::macro_redefined(
                name.span,
                &name.text,
                old.definition,
            ));
        }
        self.macros.insert(name.text.clone(), Rc::new(new));
    }

    /// Reports a `##` at the start or end of a macro's body, and returns false. Warns of a `#` that no
    /// parameter follows, and returns true, as for a correct body.
    fn check_body(&mut self, new: &Macro) -> bool {
        let ends = [new.body.first(), new.body.last()];
        if let Some(paste) = ends.into_iter().flatten().find(|t| t.kind == T::HashHash) {
            self.sink.push(errors::paste_at_edge(paste.span));
            return false;
        }
        if new.params.is_some() {
            for (i, token) in new.body.iter().enumerate() {
                let operand = new.body.get(i + 1);
                if token.kind == T::Hash && operand.is_none_or(|t| new.param(t).is_none()) {
                    self.sink.push(errors::stringify_needs_param(token.span));
                }
            }
        }
        true
    }

    pub(crate) fn undefine(&mut self, word: &Token, args: &[Token]) {
        match args {
            [name, ..] if name.kind.is_word() => {
                self.macros.remove(&name.text);
            }
            _ => self
                .sink
                .push(errors::macro_name_expected(word.span, "undef")),
        }
    }

    // -- Expansion ----------------------------------------------------------------------------------------------------

    /// Expands all macros in `tokens`, and returns the result.
    pub(crate) fn expand(&mut self, tokens: &[Token]) -> Vec<Token> {
        if !tokens.iter().any(|t| self.may_expand(t)) {
            return tokens.to_vec();
        }
        let live = self.expand_live(tokens.iter().map(Live::new).collect());
        live.into_iter().map(|l| l.token).collect()
    }

    fn may_expand(&self, token: &Token) -> bool {
        token.kind.is_word() && self.is_defined(&token.text)
    }

    /// Expands the macros of a condition, except in the operands of `defined` and `__has_include`.
    pub(crate) fn expand_condition(&mut self, tokens: &[Token]) -> Vec<Token> {
        self.in_condition = true;
        let expanded = self.expand(tokens);
        self.in_condition = false;
        expanded
    }

    /// Expands the macros in lines of text. If the argument list of a macro does not end in these lines, keeps it,
    /// and continues it with the next lines, since directives may stand between arguments.
    pub(crate) fn expand_lines(&mut self, tokens: &[Token]) -> Vec<Token> {
        if self.open_use.is_none() && !tokens.iter().any(|t| self.may_expand(t)) {
            return tokens.to_vec();
        }
        let mut done = Vec::new();
        let todo = match self.open_use.take() {
            None => tokens.iter().rev().map(Live::new).collect(),
            Some(mut open) => {
                if !open.add(tokens) {
                    self.open_use = Some(open);
                    return Vec::new();
                }
                self.resume(open, &mut done)
            }
        };
        self.in_lines = true;
        self.expand_into(todo, &mut done);
        self.in_lines = false;
        done.into_iter().map(|l| l.token).collect()
    }

    /// Ends a macro's argument list that is unfinished at the end of a file: reports the missing parenthesis, and
    /// returns the tokens.
    pub(crate) fn close_lines(&mut self) -> Vec<Token> {
        let Some(open) = self.open_use.take() else {
            return Vec::new();
        };
        let mut done = Vec::new();
        let todo = self.resume(open, &mut done);
        self.expand_into(todo, &mut done);
        done.into_iter().map(|l| l.token).collect()
    }

    /// Expands a macro whose argument list was unfinished before and is now complete. Appends tokens that are done to
    /// `done`, and returns those that are still to be expanded, the last token first.
    fn resume(&mut self, open: OpenUse, done: &mut Vec<Live>) -> Vec<Live> {
        let mut todo = open.rest;
        todo.reverse();
        self.use_macro(&open.used, open.name, &mut todo, done);
        todo
    }

    fn expand_live(&mut self, mut todo: Vec<Live>) -> Vec<Live> {
        let mut done = Vec::with_capacity(todo.len());
        todo.reverse();
        self.expand_into(todo, &mut done);
        done
    }

    /// Expands the macros in `todo`, a list of tokens in reverse order, and appends the result to `done`.
    fn expand_into(&mut self, mut todo: Vec<Live>, done: &mut Vec<Live>) {
        while let Some(live) = todo.pop() {
            let expands = |m: &&Rc<Macro>| {
                let called = todo.last().is_some_and(|next| next.token.kind == T::LParen);
                !live.hidden.contains(m.id) && (called || m.params.is_none())
            };
            let used = match live.token.kind.is_word() {
                true => self.macros.get(&live.token.text).filter(expands).cloned(),
                false => None,
            };
            match used {
                Some(used) if self.in_lines && used.params.is_some() && !is_closed(&todo) => {
                    self.leave_open(used, live, &mut todo);
                }
                Some(used) => self.use_macro(&used, live, &mut todo, done),
                None => {
                    let operand = match self.in_condition && self.argument_depth == 0 {
                        true => operand_of(&live.token.text, &todo),
                        false => 0,
                    };
                    let live = self.predefined(live);
                    done.push(live);
                    done.extend(todo.drain(todo.len() - operand..).rev());
                }
            }
        }
    }

    /// Keeps the unfinished argument list of the macro `used`, named by the token `name`, with the tokens of `todo`;
    /// the following lines continue it.
    fn leave_open(&mut self, used: Rc<Macro>, name: Live, todo: &mut Vec<Live>) {
        let parens = |kind| todo.iter().filter(|l| l.token.kind == kind).count();
        self.open_use = Some(OpenUse {
            used,
            name,
            depth: parens(T::LParen) - parens(T::RParen),
            rest: todo.drain(..).rev().collect(),
        });
    }

    /// Expands one macro, whose name has just been removed from `todo`, with the arguments that follow in `todo`.
    fn use_macro(
        &mut self,
        used: &Rc<Macro>,
        name: Live,
        todo: &mut Vec<Live>,
        done: &mut Vec<Live>,
    ) {
        let mut site = name.token.span;
        let mut hidden = name.hidden.clone();
        let mut args = Vec::new();
        if let Some(params) = &used.params {
            let closed = is_closed(todo);
            let Some(actuals) = closed
                .then(|| collect_actuals(used, params.len(), todo))
                .flatten()
            else {
                self.sink
                    .push(errors::unterminated_macro_use(site, &used.name));
                done.push(name);
                // What follows must have been meant as arguments, up to the end of the statement.
                while todo.pop_if(|l| l.token.kind != T::Semi).is_some() {}
                return;
            };
            site = site.to(actuals.close.token.span);
            let given = actuals.list.len();
            if given != params.len() {
                self.sink.push(errors::wrong_macro_args(
                    site,
                    &used.name,
                    params.len(),
                    given,
                    used.definition,
                ));
                // The bare name reads as a value, so that the parser finds nothing else to say.
                done.push(name);
                return;
            }
            hidden = hidden.and(&actuals.close.hidden);
            args = actuals.list;
        }
        let hidden = hidden.or(&Hidden::from(vec![used.id]));
        self.put_replacement(used, &name.token, (&args, site, hidden), todo);
    }

    /// Puts the body of `used`, with the arguments in place of its parameters, onto `todo`, to be expanded further.
    /// Stops the preprocessor if macros have produced more than `MAX_PRODUCED` tokens.
    fn put_replacement(
        &mut self,
        used: &Macro,
        name: &Token,
        (args, site, hidden): (&[Vec<Live>], Span, Hidden),
        todo: &mut Vec<Live>,
    ) {
        let mut replacement = self.substitute(used, args, site);
        self.produced += replacement.len();
        if self.produced > MAX_PRODUCED {
            todo.clear();
            self.stop(site);
            return;
        }
        for live in &mut replacement {
            live.hidden = live.hidden.or(&hidden);
        }
        if let Some(first) = replacement.first_mut() {
            first.token.line_start = name.line_start;
            first.token.space_before = name.space_before;
            let (macro_name, definition) = (used.name.clone(), used.definition);
            self.sources.add_expansion(Expansion {
                site,
                macro_name,
                definition,
            });
        }
        todo.extend(replacement.into_iter().rev());
    }

    /// Replaces the name of a predefined macro, such as `__LINE__`, by its value. Returns any other token unchanged.
    fn predefined(&mut self, mut live: Live) -> Live {
        if !live.token.text.starts_with("__") {
            return live;
        }
        let text = match &*live.token.text {
            "__LINE__" => self.sources.location(live.token.span).line.to_string(),
            "__FILE__" => quote(&self.sources.location(live.token.span).file),
            "__BASE_FILE__" => quote(&self.main_file),
            "__INCLUDE_LEVEL__" => self.include_level().to_string(),
            "__COUNTER__" => {
                self.counter += 1;
                (self.counter - 1).to_string()
            }
            "__ASSEMBLER__" | "__STDC__" | "__STDC_HOSTED__" => "1".to_string(),
            _ => return live,
        };
        live.token.kind = if text.starts_with('"') {
            T::Str
        } else {
            T::Int
        };
        live.token.text = self.interner.intern(&text);
        live
    }

    /// Returns the body of the macro `used` with `args` in place of its parameters.
    fn substitute(&mut self, used: &Macro, args: &[Vec<Live>], site: Span) -> Vec<Live> {
        let mut expanded: Vec<Option<Vec<Live>>> = vec![None; args.len()];
        let mut out: Vec<Live> = Vec::new();
        let mut i = 0;
        while i < used.body.len() {
            let group_end = paste_group(used, i);
            let group = &used.body[i..group_end];
            let param = used.param(&group[0]);
            if let (1, Some(p)) = (group.len(), param) {
                if expanded[p].is_none() {
                    expanded[p] = Some(self.expand_argument(args[p].clone(), site));
                }
                let mut arg = expanded[p].clone().unwrap_or_default();
                if let Some(first) = arg.first_mut() {
                    first.token.space_before = group[0].space_before;
                }
                out.extend(arg);
            } else {
                let pasted = self.paste(used, group, args, site);
                out.extend(pasted);
            }
            i = group_end;
            if out.len() > MAX_PRODUCED {
                break;
            }
        }
        for live in &mut out {
            live.token.line_start = false;
        }
        out
    }

    fn expand_argument(&mut self, arg: Vec<Live>, site: Span) -> Vec<Live> {
        if self.argument_depth >= MAX_ARGUMENT_DEPTH {
            self.stop(site);
            return arg;
        }
        self.argument_depth += 1;
        let expanded = self.expand_live(arg);
        self.argument_depth -= 1;
        expanded
    }

    /// Joins a sequence of operands with `##` between them to one. If `group` is a single operand, returns its tokens
    /// or, for `# param`, the string literal made of the argument.
    fn paste(
        &mut self,
        used: &Macro,
        group: &[Token],
        args: &[Vec<Live>],
        site: Span,
    ) -> Vec<Live> {
        let mut out: Vec<Live> = Vec::new();
        let operands = group.split(|t| t.kind == T::HashHash);
        for operand in operands {
            let right = match operand {
                [hash, param] if hash.kind == T::Hash => {
                    vec![self.stringify(used.param(param).map_or(&[], |p| &args[p]), hash, site)]
                }
                _ => operand
                    .iter()
                    .flat_map(|t| self.raw_operand(used, t, args, site))
                    .collect(),
            };
            let takes_rest = operand
                .last()
                .and_then(|t| used.param(t))
                .is_some_and(|p| p + 1 == args.len());
            let after_comma = out.last().is_some_and(|l| l.token.kind == T::Comma);
            if used.variadic && takes_rest && after_comma {
                // `, ## __VA_ARGS__`: the comma goes away with the arguments.
                if right.is_empty() {
                    out.pop();
                }
                out.extend(right);
            } else {
                self.join(used, &mut out, right, site);
            }
        }
        out
    }

    /// Returns the operand of a `##`: `token`, from the body of `used`, or the argument, without expansion, if
    /// `token` is a parameter.
    fn raw_operand(
        &self,
        used: &Macro,
        token: &Token,
        args: &[Vec<Live>],
        site: Span,
    ) -> Vec<Live> {
        let Some(p) = used.param(token) else {
            let mut own = Live::new(token);
            own.token.span = site;
            return vec![own];
        };
        let mut arg = args.get(p).cloned().unwrap_or_default();
        // Macros in it, and so `__LINE__`, are expanded in this macro's place, unlike in an argument that is expanded before.
        for live in arg.iter_mut().filter(|l| self.may_expand(&l.token)) {
            live.token.span = site;
        }
        arg
    }

    /// Appends `right` to `left`, and joins the last token of `left` and the first of `right` to one token.
    /// If the two make no valid token, both stay, as in the reference compiler's preprocessor, which runs
    /// in its mode for assembler.
    fn join(&mut self, used: &Macro, left: &mut Vec<Live>, right: Vec<Live>, site: Span) {
        let mut right = right.into_iter();
        if let (Some(last), Some(first)) = (left.last_mut(), right.as_slice().first()) {
            let bytes = last.token.text.len() + first.token.text.len();
            if !self.has_room_for(bytes, site) {
                return;
            }
            let text = format!("{}{}", last.token.text, first.token.text);
            match lexer::single(&text) {
                Some(kind) => {
                    last.token.kind = kind;
                    last.token.text = self.interner.intern(&text);
                    last.token.span = site;
                    last.hidden = last.hidden.and(&first.hidden);
                    right.next();
                }
                // Two halves of a shift are no token here, but one in C.
                None if last.token.kind == T::Gt && first.token.text.starts_with('>') => {
                    last.token.joint = true;
                }
                None => {
                    if self.bad_pastes.insert(used.id) {
                        self.sink.push(errors::bad_paste(site, &text));
                    }
                }
            }
        }
        left.extend(right);
    }

    /// Counts `bytes` more bytes of text that `#` and `##` make, and returns whether the limit allows them. If not,
    /// stops the preprocessor.
    fn has_room_for(&mut self, bytes: usize, site: Span) -> bool {
        self.produced_bytes = self.produced_bytes.saturating_add(bytes);
        let fits = self.produced_bytes <= MAX_PRODUCED_BYTES;
        if !fits {
            self.stop(site);
        }
        fits
    }

    /// Makes a string literal of the text of an argument. Quotes and backslashes are escaped only inside
    /// string literals (ISO C 6.10.3.2).
    fn stringify(&mut self, arg: &[Live], hash: &Token, site: Span) -> Live {
        // Escaping at most doubles a text; a blank and the quotes come to it.
        let bytes = arg.iter().map(|live| 2 * live.token.text.len() + 1).sum();
        let arg = if self.has_room_for(bytes, site) {
            arg
        } else {
            &[]
        };
        let mut text = String::from("\"");
        for (i, live) in arg.iter().enumerate() {
            if i > 0 && live.token.space_before {
                text.push(' ');
            }
            match live.token.kind {
                T::Str | T::OpenStr => text.push_str(&escape(&live.token.text)),
                _ => text.push_str(&live.token.text),
            }
        }
        // A backslash would take the closing quote into the string.
        let backslashes = text.len() - text.trim_end_matches('\\').len();
        text.truncate(text.len() - backslashes % 2);
        text.push('"');
        Live {
            token: Token {
                kind: T::Str,
                text: self.interner.intern(&text),
                span: site,
                ..hash.clone()
            },
            hidden: Hidden::default(),
        }
    }
}

/// Returns how many of the next tokens of `todo` are the operand of `word` and must not be expanded, if it is
/// `defined` or `__has_include`. Returns 0 for any other word.
fn operand_of(word: &str, todo: &[Live]) -> usize {
    let kind = |ahead: usize| {
        let index = todo.len().checked_sub(ahead + 1)?;
        Some(todo[index].token.kind)
    };
    match (word, kind(0), kind(1)) {
        ("defined", Some(T::LParen), Some(_)) => 2,
        ("defined", Some(_), _) => 1,
        ("__has_include", Some(T::LParen), Some(T::Lt)) => {
            let close = todo.iter().rev().position(|l| l.token.kind == T::RParen);
            close.unwrap_or(0)
        }
        _ => 0,
    }
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

fn quote(text: &str) -> String {
    format!("\"{}\"", escape(text))
}

/// Parses the parameters of a macro after the opening parenthesis. Returns their names, whether the last
/// one is variadic (`...`), and the number of tokens read; `None` if the list is malformed.
fn macro_params(tokens: &[Token]) -> Option<(Vec<Arc<str>>, bool, usize)> {
    let mut params: Vec<Arc<str>> = Vec::new();
    let mut i = 0;
    if tokens.first()?.kind == T::RParen {
        return Some((params, false, 1));
    }
    loop {
        let token = tokens.get(i)?;
        let mut variadic = token.kind == T::Dots;
        if variadic {
            params.push("__VA_ARGS__".into());
        } else if token.kind.is_word() && !params.contains(&token.text) {
            params.push(token.text.clone());
            if tokens.get(i + 1)?.kind == T::Dots {
                variadic = true;
                i += 1;
            }
        } else {
            return None;
        }
        i += 2;
        match tokens.get(i - 1)?.kind {
            T::RParen => return Some((params, variadic, i)),
            T::Comma if !variadic => {}
            _ => return None,
        }
    }
}

/// Returns whether the opening parenthesis that is the next token in `todo` has its closing parenthesis in `todo`.
fn is_closed(todo: &[Live]) -> bool {
    let mut depth = 0;
    todo.iter().rev().any(|live| {
        depth += i32::from(live.token.kind == T::LParen) - i32::from(live.token.kind == T::RParen);
        depth == 0
    })
}

/// Removes the argument list of a macro from `todo`, from the opening to the closing parenthesis, and returns the
/// arguments; `None` if there is no closing parenthesis.
fn collect_actuals(used: &Macro, wanted: usize, todo: &mut Vec<Live>) -> Option<Actuals> {
    todo.pop();
    let mut list: Vec<Vec<Live>> = Vec::new();
    let mut arg = Vec::new();
    let mut depth = 0;
    loop {
        let live = todo.pop()?;
        let in_rest = used.variadic && list.len() + 1 >= wanted;
        match live.token.kind {
            T::RParen if depth == 0 => {
                let nothing = list.is_empty() && arg.is_empty() && wanted == 0;
                if !nothing {
                    list.push(arg);
                }
                if used.variadic && list.len() + 1 == wanted {
                    list.push(Vec::new());
                }
                return Some(Actuals { list, close: live });
            }
            T::Comma if depth == 0 && !in_rest => list.push(std::mem::take(&mut arg)),
            kind => {
                depth += i32::from(kind == T::LParen) - i32::from(kind == T::RParen);
                arg.push(live);
            }
        }
    }
}

/// Returns the position after the sequence of operands joined by `##` that starts at `start`. `# param`
/// counts as one operand.
fn paste_group(used: &Macro, start: usize) -> usize {
    let operand_end = |i: usize| {
        let hash = used.body.get(i).is_some_and(|t| t.kind == T::Hash);
        let stringify = hash
            && used
                .body
                .get(i + 1)
                .is_some_and(|t| used.param(t).is_some());
        if stringify { i + 2 } else { i + 1 }
    };
    let mut end = operand_end(start);
    while used.body.get(end).is_some_and(|t| t.kind == T::HashHash) && end + 1 < used.body.len() {
        end = operand_end(end + 1);
    }
    end.min(used.body.len())
}
