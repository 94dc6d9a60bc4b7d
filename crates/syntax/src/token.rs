//! Tokens. The lexer makes them, the preprocessor rewrites them and the parser reads them.
//!
//! One token type serves all three. To the preprocessor a keyword is a word like any other.

use std::collections::HashSet;
use std::sync::Arc;

use crate::source::Span;

/// A token. Its text is shared, so cloning is cheap.
#[derive(Clone, Debug)]
pub struct Token {
    /// The kind of token.
    pub kind: TokenKind,
    /// The text: as written, or as made by a macro.
    pub text: Arc<str>,
    /// Its place in the source, or the place where the macro it came from was used.
    pub span: Span,
    /// True if it is the first on its line.
    pub line_start: bool,
    /// True if blanks or a comment stand before it.
    pub space_before: bool,
    /// True if it is a `>` with another `>` right behind it: half a shift, or the end of nested type arguments.
    pub joint: bool,
}

macro_rules! token_kinds {
    (
        classes { $($class:ident: $what:literal),* $(,)? }
        words { $($word:ident: $spelling:literal),* $(,)? }
        symbols { $($symbol:ident: $text:literal),* $(,)? }
    ) => {
        /// The kinds of [`Token`].
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[allow(missing_docs)]
        pub enum TokenKind { $($class,)* $($word,)* $($symbol,)* }

        impl TokenKind {
            /// Returns the keyword with the spelling `text`; `None` if `text` is no keyword.
            pub fn keyword(text: &str) -> Option<TokenKind> {
                match text { $($spelling => Some(TokenKind::$word),)* _ => None }
            }

            /// Returns whether the token is a keyword, reserved or not.
            pub fn is_keyword(self) -> bool {
                matches!(self, $(TokenKind::$word)|*)
            }

            /// Returns the name of the kind of token for messages, in backquotes if it is a word or symbol.
            pub fn describe(self) -> &'static str {
                match self {
                    $(TokenKind::$class => $what,)*
                    $(TokenKind::$word => concat!("`", $spelling, "`"),)*
                    $(TokenKind::$symbol => concat!("`", $text, "`"),)*
                }
            }
        }

        /// All symbols with their kinds, longer symbols first, so that the lexer finds them first.
        pub(crate) const SYMBOLS: &[(&str, TokenKind)] = &[$(($text, TokenKind::$symbol),)*];
    };
}

token_kinds! {
    classes {
        Eof: "the end of the file",
        Ident: "a name",
        Int: "an integer",
        Str: "a string",
        // A quote without its partner, to the end of the line.
        OpenStr: "an unterminated string",
        // The first line of a string that a directive interrupts.
        SplitStr: "a string",
        // A `/*` without its partner, to the end of the file.
        OpenComment: "an unterminated comment",
        // A character no P4 token starts with.
        Unknown: "an unexpected character",
    }
    words {
        Abstract: "abstract", Action: "action", Actions: "actions", Apply: "apply", Bit: "bit", Bool: "bool",
        Break: "break", Const: "const", Continue: "continue", Control: "control", Default: "default", Else: "else",
        Entries: "entries", Enum: "enum", Error: "error", Exit: "exit", Extern: "extern", False: "false", For: "for",
        Header: "header", HeaderUnion: "header_union", If: "if", In: "in", Inout: "inout", IntWord: "int", Key: "key",
        List: "list", MatchKind: "match_kind", Out: "out", Package: "package", Parser: "parser",
        Priority: "priority", Return: "return", Select: "select", State: "state", StringWord: "string",
        Struct: "struct", Switch: "switch", Table: "table", This: "this", Transition: "transition", True: "true",
        Tuple: "tuple", Type: "type", Typedef: "typedef", ValueSet: "value_set", Varbit: "varbit", Void: "void",
        Underscore: "_",
    }
    symbols {
        SatAddAssign: "|+|=", SatSubAssign: "|-|=",
        Mask: "&&&", Dots: "...", ShlAssign: "<<=", SatAdd: "|+|", SatSub: "|-|", InvalidHeader: "{#}",
        HashHash: "##", Range: "..", Shl: "<<", And: "&&", Or: "||", EqEq: "==", Ne: "!=", Ge: ">=", Le: "<=",
        Concat: "++", AddAssign: "+=", SubAssign: "-=", MulAssign: "*=", DivAssign: "/=", ModAssign: "%=",
        AndAssign: "&=", OrAssign: "|=", XorAssign: "^=", PlusColon: "+:",
        Plus: "+", Minus: "-", Star: "*", Slash: "/", Percent: "%", Pipe: "|", Amp: "&", Caret: "^", Tilde: "~",
        LParen: "(", RParen: ")", LBracket: "[", RBracket: "]", LBrace: "{", RBrace: "}", Lt: "<", Gt: ">",
        Not: "!", Colon: ":", Comma: ",", Question: "?", Dot: ".", Assign: "=", Semi: ";", At: "@", Hash: "#",
    }
}

impl TokenKind {
    /// Returns whether the token is an identifier or a keyword.
    pub fn is_word(self) -> bool {
        self == TokenKind::Ident || self.is_keyword()
    }

    /// Returns whether the token can be a declared name: an identifier, or a keyword that is reserved only
    /// in some places.
    pub fn is_name(self) -> bool {
        self.is_value_name() || self == TokenKind::List
    }

    /// Returns whether the token can be a name in an expression: an identifier, or one of the keywords that
    /// are reserved only in some places.
    pub fn is_value_name(self) -> bool {
        use TokenKind::*;
        matches!(
            self,
            Ident | Apply | Key | Actions | State | Entries | Type | Priority
        )
    }
}

/// Stores each token text only once.
#[derive(Default)]
pub(crate) struct Interner {
    texts: HashSet<Arc<str>>,
}

impl Interner {
    pub(crate) fn intern(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return known.clone();
        }
        let new: Arc<str> = text.into();
        self.texts.insert(new.clone());
        new
    }
}
