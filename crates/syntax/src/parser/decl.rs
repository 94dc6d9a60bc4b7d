//! Parses declarations.

use super::types::starts_base_type;
use super::{Failed, Outcome, Parser};
use crate::ast::{
    ActionDecl, Annotation, Block, BlockType, ConstDecl, ControlDecl, Decl, DeclKind, EnumDecl,
    EnumMember, ExternDecl, ExternMember, ExternMemberKind, Field, FunctionDecl, Instantiation,
    Name, NewTypeDecl, Param, ParserDecl, ParserState, Program, SelectCase, Signature, Stmt,
    StructLike, Transition, TransitionKind, Type, TypeKind, TypedefDecl, TypedefTarget,
    ValueSetDecl, VarDecl,
};
use crate::errors;
use crate::source::Span;
use crate::token::TokenKind as T;

/// Where a declaration stands, which decides what may be declared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    TopLevel,
    Parser,
    Control,
    Block,
    /// The body of an instantiation.
    Object,
}

impl Place {
    fn describe(self) -> &'static str {
        match self {
            Place::TopLevel => "at the top level",
            Place::Parser => "in a parser",
            Place::Control => "in a control",
            Place::Block => "among statements",
            Place::Object => "in the body of an instantiation",
        }
    }

    /// Checks that a declaration of `kind` is allowed at this place. `Err` holds a description of the
    /// declaration and one of the places where it is allowed.
    fn allows(self, kind: &DeclKind) -> Result<(), (&'static str, &'static str)> {
        use DeclKind::*;
        let (what, belongs, allowed) = match kind {
            Const(_) => ("a constant", "", self != Place::Object),
            Var(_) => (
                "a variable",
                "in a parser, a control or a block",
                self.is_local(),
            ),
            Instantiation(_) => ("an instantiation", "", true),
            Function(_) => {
                let allowed = matches!(self, Place::TopLevel | Place::Object);
                ("a function", "at the top level", allowed)
            }
            Action(_) => {
                let allowed = matches!(self, Place::TopLevel | Place::Control);
                ("an action", "in a control or at the top level", allowed)
            }
            Table(_) => (
                "a table",
                "in a control, before its `apply`",
                self == Place::Control,
            ),
            ValueSet(_) => (
                "a value set",
                "in a parser, before its states",
                self == Place::Parser,
            ),
            _ => (global(kind), "at the top level", self == Place::TopLevel),
        };
        if allowed {
            Ok(())
        } else {
            Err((what, belongs))
        }
    }

    fn is_local(self) -> bool {
        matches!(self, Place::Parser | Place::Control | Place::Block)
    }
}

/// Returns the description, for messages, of a kind of declaration that is only allowed at the top level.
fn global(kind: &DeclKind) -> &'static str {
    match kind {
        DeclKind::Parser(_) | DeclKind::ParserType(_) => "a parser",
        DeclKind::Control(_) | DeclKind::ControlType(_) => "a control",
        DeclKind::Package(_) => "a package",
        DeclKind::Extern(_) | DeclKind::ExternFunction(_) => "an extern",
        DeclKind::Error(_) => "a list of errors",
        DeclKind::MatchKind(_) => "a list of match kinds",
        _ => "a type",
    }
}

/// Returns whether a word is `control`, `parser` or `action` with one letter missing. Such a word before a
/// name and parameters looks like the type of a function.
fn is_misspelt(word: &str) -> bool {
    ["control", "parser", "action"].iter().any(|keyword| {
        let without = |i: usize| keyword[..i] == word[..i] && keyword[i + 1..] == word[i..];
        word.is_ascii() && keyword.len() == word.len() + 1 && (0..keyword.len()).any(without)
    })
}

impl Parser<'_> {
    /// Reads the whole program, up to the end of the tokens.
    pub(super) fn program(mut self) -> Program {
        let mut program = Program::default();
        // Once something stands outside of where it belongs, a misplaced brace is to blame for what follows it too.
        let mut strayed = false;
        while !self.at(T::Eof) {
            let start = self.pos;
            let (gaps, errors) = (self.gaps.len(), self.sink.errors());
            if self.eat(T::Semi) {
                continue;
            }
            if self.at_stray() {
                if !strayed {
                    let (span, text) = (self.span(), self.token().text.clone());
                    self.report(errors::stray(span, &text));
                }
                strayed = true;
                self.bump();
                self.skip_stray();
                self.leave_gap(start);
                self.lose(&mut program, gaps);
                continue;
            }
            match self.decl(Place::TopLevel) {
                Ok(decl) => {
                    strayed = false;
                    let before = (&mut program.damage, &program.decls[..]);
                    if let Some(broken) = self.broken(start, (gaps, errors), before) {
                        program.damage.broken.insert(program.decls.len(), broken);
                    }
                    program.decls.push(decl);
                }
                Err(Failed) => {
                    self.skip_item(start);
                    self.lose(&mut program, gaps);
                }
            }
            if !self.at(T::RBrace) {
                self.progress(start);
            }
        }
        program.damage.hopeless = self.aborted;
        program
    }

    /// Returns whether the current token begins something that is only allowed inside of a declaration, such as a
    /// statement or a `}`.
    fn at_stray(&self) -> bool {
        let brace_follows = self.kind_at(1) == T::LBrace || self.kind_at(2) == T::LBrace;
        match self.kind() {
            T::RBrace
            | T::If
            | T::Else
            | T::Switch
            | T::Return
            | T::Exit
            | T::For
            | T::Transition => true,
            T::Apply => self.kind_at(1) == T::LBrace,
            T::State | T::Table => brace_follows && !self.balanced,
            _ => false,
        }
    }

    /// Skips the rest of something that stands outside of the declaration where it belongs, and whose first token has
    /// just been read. A `}` is skipped alone.
    fn skip_stray(&mut self) {
        if self.token_index(self.pos - 1).kind != T::RBrace {
            self.skip_item(self.pos - 1);
        }
    }

    /// Reads one declaration, which must be allowed at `place`.
    pub(super) fn decl(&mut self, place: Place) -> Outcome<Decl> {
        let annotations = self.annotations()?;
        self.decl_after(annotations, place)
    }

    /// Reads a declaration, which must be allowed at `place`, after its annotations have been read.
    pub(super) fn decl_after(
        &mut self,
        annotations: Vec<Annotation>,
        place: Place,
    ) -> Outcome<Decl> {
        self.deeper(|p| {
            let first = p.span();
            let start = annotations.first().map_or(first, |a| a.span);
            let outer_error = p.last_error;
            let (start_pos, gaps) = (p.pos, p.gaps.len());
            let kind = p.decl_kind(place)?;
            let has_parts = matches!(
                kind,
                DeclKind::Control(_)
                    | DeclKind::Parser(_)
                    | DeclKind::Action(_)
                    | DeclKind::Function(_)
                    | DeclKind::Table(_)
            );
            if !has_parts {
                p.doubt(start_pos, gaps);
            }
            if let Err((what, belongs)) = place.allows(&kind)
                && p.last_error == outer_error
            {
                p.sink
                    .push(errors::misplaced(first, what, place.describe(), belongs));
            }
            let decl = Decl {
                annotations,
                kind,
                span: p.since(start),
            };
            p.declare(&decl);
            Ok(decl)
        })
    }

    /// Enters the name of a declaration into the current scope, as a type or as a value.
    fn declare(&mut self, decl: &Decl) {
        use DeclKind::*;
        let is_type = !matches!(
            decl.kind,
            Const(_)
                | Var(_)
                | Instantiation(_)
                | Function(_)
                | ExternFunction(_)
                | Action(_)
                | Table(_)
                | ValueSet(_)
        );
        if let Some(name) = decl.name() {
            self.scopes.declare(name, is_type);
        }
        if let Typedef(TypedefDecl {
            target: TypedefTarget::Decl(inner),
            ..
        }) = &decl.kind
        {
            self.declare(inner);
        }
    }

    fn decl_kind(&mut self, place: Place) -> Outcome<DeclKind> {
        match self.kind() {
            T::Const => self.constant(),
            T::Extern => self.extern_decl(),
            T::Action => self.action(),
            T::Parser => self.parser_decl(),
            T::Control => self.control_decl(),
            T::Package => {
                self.bump();
                let ty = self.scoped(Self::block_type)?;
                self.semi("the package")?;
                Ok(DeclKind::Package(ty))
            }
            T::Header | T::HeaderUnion | T::Struct | T::Enum => self.derived_type(),
            T::Typedef => self.typedef(),
            T::Type if place == Place::TopLevel => self.new_type(),
            T::Error if self.kind_at(1) == T::LBrace => {
                self.bump();
                Ok(DeclKind::Error(self.braced_names(false)?))
            }
            T::MatchKind if self.kind_at(1) == T::LBrace => {
                self.bump();
                Ok(DeclKind::MatchKind(self.braced_names(true)?))
            }
            T::ValueSet => self.value_set(),
            T::Table => Ok(DeclKind::Table(self.table()?)),
            kind if starts_base_type(kind)
                || matches!(kind, T::Ident | T::Dot | T::Error | T::List) =>
            {
                self.typed_decl()
            }
            _ => Err(self.expected("a declaration")),
        }
    }

    // -- Declarations that start with a type --------------------------------------------------------------------------

    /// Reads a declaration that begins with a type: a variable, an instantiation or a function.
    fn typed_decl(&mut self) -> Outcome<DeclKind> {
        let start = self.span();
        let ty = self.ty()?;
        if self.at(T::LParen) {
            return self.instantiation(ty);
        }
        let word = self.token_index(self.pos - 1);
        let is_named = matches!(ty.kind, TypeKind::Named(_));
        let name = if is_named && self.at(T::LBrace) {
            None
        } else {
            Some(self.name("a name")?)
        };
        let Some(name) = name.filter(|_| !is_named || !self.at(T::LBrace)) else {
            return Err(self.fail(errors::unknown_declaration(ty.span, &word.text)));
        };
        if self.at(T::LParen) || self.at(T::Lt) {
            if is_named && self.at(T::LParen) && is_misspelt(&word.text) {
                return Err(self.fail(errors::unknown_declaration(ty.span, &word.text)));
            }
            return self.scoped(|p| p.function(start, ty, name));
        }
        self.check_no_array(ty.span)?;
        let init = if self.eat(T::Assign) {
            Some(self.expr()?)
        } else {
            None
        };
        self.semi("the declaration")?;
        Ok(DeclKind::Var(VarDecl { ty, name, init }))
    }

    /// Reports an array size after a declared name, as C writes it (`T name[4]`), and fails; succeeds if there is
    /// none.
    fn check_no_array(&mut self, ty: Span) -> Outcome<()> {
        if self.at(T::LBracket) {
            Err(self.fail(errors::size_after_name(self.span(), ty)))
        } else {
            Ok(())
        }
    }

    fn function(&mut self, start: Span, return_type: Type, name: Name) -> Outcome<DeclKind> {
        let signature = self.signature_after(start, return_type, name)?;
        if self.at(T::Semi) {
            return Err(self.fail(errors::function_without_body(
                signature.span,
                signature.name.as_str(),
            )));
        }
        let body = self.body("function")?;
        Ok(DeclKind::Function(FunctionDecl { signature, body }))
    }

    /// Reads the rest of a function's signature, from the type parameters to the closing parenthesis.
    fn signature_after(
        &mut self,
        start: Span,
        return_type: Type,
        name: Name,
    ) -> Outcome<Signature> {
        let type_params = self.type_params()?;
        let params = self.params()?;
        Ok(Signature {
            return_type,
            name,
            type_params,
            params,
            span: self.since(start),
        })
    }

    fn signature(&mut self) -> Outcome<Signature> {
        let start = self.span();
        let return_type = self.ty()?;
        let name = self.name("a function's name")?;
        self.signature_after(start, return_type, name)
    }

    fn instantiation(&mut self, ty: Type) -> Outcome<DeclKind> {
        let args = self.arguments()?;
        let name = self.name("an instance's name")?;
        self.check_no_array(ty.span)?;
        let body = if self.eat(T::Assign) {
            Some(self.scoped(|p| p.braced_items("instantiation", |p| p.decl(Place::Object)))?)
        } else {
            None
        };
        self.semi("the instantiation")?;
        Ok(DeclKind::Instantiation(Instantiation {
            ty,
            args,
            name,
            body,
        }))
    }

    fn constant(&mut self) -> Outcome<DeclKind> {
        self.bump();
        let ty = self.ty()?;
        let name = self.name("a constant's name")?;
        self.expect(T::Assign)?;
        let value = self.expr()?;
        self.semi("the constant")?;
        Ok(DeclKind::Const(ConstDecl { ty, name, value }))
    }

    fn value_set(&mut self) -> Outcome<DeclKind> {
        self.bump();
        self.expect(T::Lt)?;
        let ty = self.bracketed(Self::ty)?;
        self.expect(T::Gt)?;
        self.expect(T::LParen)?;
        let size = self.expr()?;
        self.expect(T::RParen)?;
        let name = self.name("a value set's name")?;
        self.semi("the value set")?;
        Ok(DeclKind::ValueSet(ValueSetDecl { ty, size, name }))
    }

    fn action(&mut self) -> Outcome<DeclKind> {
        self.bump();
        let name = self.name("an action's name")?;
        self.scoped(|p| {
            let params = p.params()?;
            let body = p.body("action")?;
            Ok(DeclKind::Action(ActionDecl { name, params, body }))
        })
    }

    // -- Externs ------------------------------------------------------------------------------------------------------

    fn extern_decl(&mut self) -> Outcome<DeclKind> {
        self.bump();
        let after_name = match self.kind_at(1) {
            T::Lt => self.after_type_args(self.pos + 1),
            _ => Some(self.pos + 1),
        };
        let is_object = self.kind().is_name()
            && after_name.is_some_and(|i| self.token_index(i).kind == T::LBrace);
        self.scoped(|p| {
            if is_object {
                return p.extern_object();
            }
            let signature = p.signature()?;
            p.semi("the extern function")?;
            Ok(DeclKind::ExternFunction(signature))
        })
    }

    fn extern_object(&mut self) -> Outcome<DeclKind> {
        let name = self.name("an extern's name")?;
        self.scopes.declare(&name, true);
        let type_params = self.type_params()?;
        let members = self.braced_items("extern", |p| p.scoped(|p| p.extern_member(&name)))?;
        Ok(DeclKind::Extern(ExternDecl {
            name,
            type_params,
            members,
        }))
    }

    fn extern_member(&mut self, object: &Name) -> Outcome<ExternMember> {
        let start = self.span();
        let annotations = self.annotations()?;
        let is_abstract = self.eat(T::Abstract);
        let nameless = self.kind().is_name() && self.kind_at(1) == T::LParen;
        let kind = if nameless && self.token().text == object.text && !is_abstract {
            let name = self.name("a constructor")?;
            ExternMemberKind::Constructor {
                name,
                params: self.params()?,
            }
        } else if nameless {
            let name = self.name("a method")?;
            self.report(errors::method_without_type(
                name.span,
                name.as_str(),
                object.as_str(),
            ));
            let return_type = Type {
                kind: TypeKind::Missing,
                span: name.span,
            };
            ExternMemberKind::Method {
                is_abstract,
                signature: self.signature_after(name.span, return_type, name)?,
            }
        } else {
            ExternMemberKind::Method {
                is_abstract,
                signature: self.signature()?,
            }
        };
        self.semi("the method")?;
        Ok(ExternMember {
            annotations,
            kind,
            span: self.since(start),
        })
    }

    // -- Types --------------------------------------------------------------------------------------------------------

    fn derived_type(&mut self) -> Outcome<DeclKind> {
        match self.bump().kind {
            T::Header => Ok(DeclKind::Header(self.struct_like("header")?)),
            T::HeaderUnion => Ok(DeclKind::HeaderUnion(self.struct_like("header union")?)),
            T::Struct => Ok(DeclKind::Struct(self.struct_like("struct")?)),
            _ => self.enum_decl(),
        }
    }

    fn struct_like(&mut self, what: &str) -> Outcome<StructLike> {
        let name = self.name(&format!("a {what}'s name"))?;
        self.scoped(|p| {
            let type_params = p.type_params()?;
            let fields = p.braced_items(what, Self::field)?;
            Ok(StructLike {
                name,
                type_params,
                fields,
            })
        })
    }

    fn field(&mut self) -> Outcome<Field> {
        let start = self.span();
        let annotations = self.annotations()?;
        let ty = self.ty()?;
        let name = self.name("a field's name")?;
        self.check_no_array(ty.span)?;
        self.semi("the field")?;
        Ok(Field {
            annotations,
            ty,
            name,
            span: self.since(start),
        })
    }

    fn enum_decl(&mut self) -> Outcome<DeclKind> {
        let plain = self.kind().is_name() && self.kind_at(1) == T::LBrace;
        let underlying = if plain { None } else { Some(self.ty()?) };
        let name = self.name("an enum's name")?;
        self.open_brace()?;
        let valued = underlying.is_some();
        let members = self.comma_list(T::RBrace, true, |p| p.enum_member(valued))?;
        self.expect(T::RBrace)?;
        if members.is_empty() {
            self.report(errors::empty_enum(name.span, name.as_str()));
        }
        Ok(DeclKind::Enum(EnumDecl {
            name,
            underlying,
            members,
        }))
    }

    fn enum_member(&mut self, valued: bool) -> Outcome<EnumMember> {
        let name = self.name("an enum member's name")?;
        let value = if self.at(T::Assign) {
            if !valued {
                let span = self.span();
                self.report(errors::value_in_plain_enum(span, name.as_str()));
            }
            self.bump();
            Some(self.expr()?)
        } else {
            if valued {
                self.report(errors::enum_member_without_value(name.span, name.as_str()));
            }
            None
        };
        Ok(EnumMember { name, value })
    }

    fn braced_names(&mut self, trailing_comma: bool) -> Outcome<Vec<Name>> {
        self.open_brace()?;
        let names = self.comma_list(T::RBrace, trailing_comma, |p| p.name("a name"))?;
        self.expect(T::RBrace)?;
        Ok(names)
    }

    fn typedef(&mut self) -> Outcome<DeclKind> {
        self.bump();
        let start = self.span();
        let annotations = self.annotations()?;
        let target = if matches!(
            self.kind(),
            T::Header | T::HeaderUnion | T::Struct | T::Enum
        ) {
            let kind = self.derived_type()?;
            TypedefTarget::Decl(Box::new(Decl {
                annotations,
                kind,
                span: self.since(start),
            }))
        } else {
            TypedefTarget::Type(self.ty()?)
        };
        let name = self.name("a type's name")?;
        self.semi("the typedef")?;
        Ok(DeclKind::Typedef(TypedefDecl { name, target }))
    }

    fn new_type(&mut self) -> Outcome<DeclKind> {
        self.bump();
        let ty = self.ty()?;
        let name = self.name("a type's name")?;
        self.semi("the type")?;
        Ok(DeclKind::NewType(NewTypeDecl { name, ty }))
    }

    // -- Parsers and controls -----------------------------------------------------------------------------------------

    /// Reads the name, the type parameters and the parameters of a parser, control or package.
    fn block_type(&mut self) -> Outcome<BlockType> {
        let name = self.name("a name")?;
        let type_params = self.type_params()?;
        let params = self.params()?;
        Ok(BlockType {
            name,
            type_params,
            params,
        })
    }

    fn constructor_params(&mut self) -> Outcome<Vec<Param>> {
        if self.at(T::LParen) {
            self.params()
        } else {
            Ok(Vec::new())
        }
    }

    fn parser_decl(&mut self) -> Outcome<DeclKind> {
        self.bump();
        self.scoped(|p| {
            let ty = p.block_type()?;
            if p.eat(T::Semi) {
                return Ok(DeclKind::ParserType(ty));
            }
            let constructor_params = p.constructor_params()?;
            let open = p.open_brace()?;
            let errors = p.sink.errors();
            let (locals, states) = p.parser_body(open);
            if states.is_empty() && p.sink.errors() == errors {
                p.report(errors::parser_without_states(
                    ty.name.span,
                    ty.name.as_str(),
                ));
            }
            Ok(DeclKind::Parser(ParserDecl {
                ty,
                constructor_params,
                locals,
                states,
            }))
        })
    }

    fn parser_body(&mut self, open: Span) -> (Vec<Decl>, Vec<ParserState>) {
        let mut locals = Vec::new();
        let mut states = Vec::new();
        while !self.closes(open, "parser") {
            let start = self.pos;
            match self.parser_item() {
                Ok(ParserItem::State(state)) => states.push(state),
                Ok(ParserItem::Local(decl)) => {
                    if !states.is_empty() {
                        self.sink.push(errors::local_after_state(decl.span));
                    }
                    locals.push(decl);
                }
                Err(Failed) => self.skip_item(start),
            }
            self.progress(start);
        }
        (locals, states)
    }

    fn parser_item(&mut self) -> Outcome<ParserItem> {
        let start = self.span();
        let annotations = self.annotations()?;
        if !self.at(T::State) {
            return Ok(ParserItem::Local(
                self.decl_after(annotations, Place::Parser)?,
            ));
        }
        self.bump();
        let name = self.name("a state's name")?;
        let open = self.open_brace()?;
        let outer = std::mem::replace(&mut self.in_state, true);
        let (body, transition) = self.scoped(|p| p.state_body(open));
        self.in_state = outer;
        Ok(ParserItem::State(ParserState {
            annotations,
            name,
            body,
            transition,
            span: self.since(start),
        }))
    }

    fn state_body(&mut self, open: Span) -> (Vec<Stmt>, Option<Transition>) {
        let mut body = Vec::new();
        let mut transition: Option<Transition> = None;
        while !self.closes(open, "state") {
            let start = self.pos;
            if let Some(last) = &transition {
                let span = self.span();
                self.report(errors::after_transition(span, last.span));
                self.skip_item(start);
                self.progress(start);
                continue;
            }
            let outcome = if self.at(T::Transition) {
                self.transition().map(|t| transition = Some(t))
            } else {
                self.stmt().map(|s| body.push(s))
            };
            if outcome.is_err() {
                self.skip_item(start);
            }
            self.progress(start);
        }
        (body, transition)
    }

    fn transition(&mut self) -> Outcome<Transition> {
        let start = self.expect(T::Transition)?;
        let kind = if self.eat(T::Select) {
            self.expect(T::LParen)?;
            let args = self.comma_list(T::RParen, false, Self::expr)?;
            self.expect(T::RParen)?;
            let cases = self.braced_items("select", Self::select_case)?;
            TransitionKind::Select { args, cases }
        } else {
            let state = self.name("a state or `select`")?;
            self.semi("the transition")?;
            TransitionKind::State(state)
        };
        Ok(Transition {
            kind,
            span: self.since(start),
        })
    }

    fn select_case(&mut self) -> Outcome<SelectCase> {
        let start = self.span();
        let keysets = self.keysets()?;
        self.expect(T::Colon)?;
        let state = self.name("a state")?;
        self.semi("the case")?;
        Ok(SelectCase {
            keysets,
            state,
            span: self.since(start),
        })
    }

    fn control_decl(&mut self) -> Outcome<DeclKind> {
        self.bump();
        self.scoped(|p| {
            let ty = p.block_type()?;
            if p.eat(T::Semi) {
                return Ok(DeclKind::ControlType(ty));
            }
            let constructor_params = p.constructor_params()?;
            let open = p.open_brace()?;
            let errors = p.sink.errors();
            let (locals, apply) = p.control_body(open);
            let apply = apply.unwrap_or_else(|| {
                let ends_early = !p.balanced && p.at_stray();
                let name = &ty.name;
                // A broken `apply`, or what was taken for something else, has been reported.
                if p.sink.errors() == errors {
                    p.report(errors::control_without_apply(
                        name.span,
                        name.as_str(),
                        ends_early,
                    ));
                }
                Block {
                    annotations: Vec::new(),
                    stmts: Vec::new(),
                    span: p.last_span().after(),
                }
            });
            Ok(DeclKind::Control(ControlDecl {
                ty,
                constructor_params,
                locals,
                apply,
            }))
        })
    }

    fn control_body(&mut self, open: Span) -> (Vec<Decl>, Option<Block>) {
        let mut locals = Vec::new();
        let mut apply: Option<Block> = None;
        while !self.closes(open, "control") {
            let start = self.pos;
            let outcome = match &apply {
                None if self.at(T::Apply)
                    && (matches!(self.kind_at(1), T::LBrace | T::At) || self.missing_opens > 0) =>
                {
                    self.bump();
                    self.body("control's `apply`")
                        .map(|block| apply = Some(block))
                }
                None => self.decl(Place::Control).map(|decl| locals.push(decl)),
                Some(_) if self.lacks_close && self.token().line_start => {
                    self.report(errors::unclosed_brace(self.span(), "control", open));
                    break;
                }
                Some(block) => {
                    let span = block.span;
                    let here = self.span();
                    Err(self.fail(errors::after_apply(here, span)))
                }
            };
            if outcome.is_err() {
                self.skip_item(start);
            }
            self.progress(start);
        }
        (locals, apply)
    }
}

enum ParserItem {
    State(ParserState),
    Local(Decl),
}
