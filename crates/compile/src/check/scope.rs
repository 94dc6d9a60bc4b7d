//! Names in scope and their meanings. Types are only carried along.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use syntax::ast;
use syntax::source::Span;

use crate::errors;
use crate::hir::{ActionId, Expr, TableId, VarId};
use crate::types::{BlockId, BlockTypeId, DeclaredFunction, ExternId, FnSig, StructKind, Ty};

/// The meaning of a name.
#[derive(Clone, Debug)]
pub enum Symbol {
    /// A type.
    Type(TypeSymbol),
    /// A constant.
    Const(Rc<Expr>),
    /// A variable, parameter or instance.
    Var(VarId),
    /// Functions with this name.
    Functions(Vec<FnSymbol>),
    /// An action.
    Action(ActionId),
    /// A table.
    Table(TableId),
    /// A name whose declaration has an error; its uses are not reported.
    Missing,
}

impl Symbol {
    /// Returns a description of the symbol for messages, with an article, such as "a table".
    pub fn describe(&self) -> &'static str {
        match self {
            Symbol::Type(_) => "a type",
            Symbol::Const(_) => "a constant",
            Symbol::Var(_) => "a variable",
            Symbol::Functions(_) => "a function",
            Symbol::Action(_) => "an action",
            Symbol::Table(_) => "a table",
            Symbol::Missing => "unknown",
        }
    }
}

/// A named type.
#[derive(Clone, Debug)]
pub enum TypeSymbol {
    /// A type without type parameters.
    Plain(Ty),
    /// A generic struct, header or union.
    Generic(Rc<GenericStruct>),
    /// An extern object type.
    Extern(ExternId),
    /// A parser, control or package type without a body.
    BlockType(BlockTypeId),
    /// A parser or control with a body.
    Block(BlockId),
}

/// A generic struct, header or union before specialisation.
#[derive(Debug)]
pub struct GenericStruct {
    /// The declaration.
    pub decl: ast::StructLike,
    /// Its annotations.
    pub annotations: Rc<[ast::Annotation]>,
    /// Which of the three.
    pub kind: StructKind,
}

/// One of the functions that have a name.
#[derive(Clone, Debug)]
pub enum FnSymbol {
    /// An extern function.
    Extern(Rc<DeclaredFunction>),
    /// A function with a body.
    Template(Rc<FnTemplate>),
}

impl FnSymbol {
    /// Returns the signature of the function, an extern or one with a body.
    pub fn sig(&self) -> &Rc<FnSig> {
        match self {
            FnSymbol::Extern(declared) => &declared.sig,
            FnSymbol::Template(template) => &template.sig,
        }
    }
}

/// A function with a body, which is checked once for each list of type arguments.
#[derive(Debug)]
pub struct FnTemplate {
    /// Its signature.
    pub sig: Rc<FnSig>,
    /// The declaration.
    pub decl: ast::FunctionDecl,
    /// Position in the list of templates.
    pub index: usize,
    /// Number of scopes around its declaration.
    pub depth: usize,
}

/// The names of one scope.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    names: BTreeMap<Arc<str>, (Symbol, Span)>,
}

/// The scopes that are open at a place, outermost first.
#[derive(Debug, Default)]
pub struct Scopes {
    scopes: Vec<Scope>,
}

impl Scopes {
    /// Creates the scopes of a program, with the top-level scope only.
    pub fn new() -> Scopes {
        Scopes {
            scopes: vec![Scope::default()],
        }
    }

    /// Enters a new, empty scope inside the current one.
    pub fn push(&mut self) {
        self.scopes.push(Scope::default());
    }

    /// Closes the current scope and drops the names declared in it.
    pub fn pop(&mut self) {
        self.scopes.pop();
    }

    /// Returns the number of open scopes, including the top level.
    pub fn depth(&self) -> usize {
        self.scopes.len()
    }

    /// Removes and returns all scopes but the outermost `depth`, for [`Scopes::restore`].
    pub fn split_off(&mut self, depth: usize) -> Vec<Scope> {
        self.scopes.split_off(depth.min(self.scopes.len()))
    }

    /// Adds again the scopes that [`Scopes::split_off`] removed.
    pub fn restore(&mut self, scopes: Vec<Scope>) {
        self.scopes.extend(scopes);
    }

    /// Returns the meaning of a path: in the innermost scope that declares the name, or at the top level if
    /// the path begins with a dot, with the place of its declaration. `None` if there the name is not declared.
    pub fn lookup(&self, path: &ast::Path) -> Option<(&Symbol, Span)> {
        let name = path.name.as_str();
        let mut scopes = self.scopes.iter();
        let found = match path.absolute {
            true => scopes.next()?.names.get(name),
            false => scopes.rev().find_map(|s| s.names.get(name)),
        };
        found.map(|(symbol, place)| (symbol, *place))
    }

    /// Returns all names that are in scope with their meanings, the innermost first.
    pub fn visible(&self) -> Vec<(Arc<str>, Symbol)> {
        let names = self.scopes.iter().rev().flat_map(|s| s.names.iter());
        names
            .map(|(name, (symbol, _))| (name.clone(), symbol.clone()))
            .collect()
    }

    /// Returns whether a name is declared at the top level.
    pub fn has_global(&self, name: &str) -> bool {
        self.scopes
            .first()
            .is_some_and(|s| s.names.contains_key(name))
    }

    /// Declares `name` in the current scope, and returns `None`. If the scope has declared the name already,
    /// changes nothing and returns the place of that declaration, except that functions may share a name.
    pub fn declare(&mut self, name: Arc<str>, symbol: Symbol, span: Span) -> Option<Span> {
        let scope = self.scopes.last_mut()?;
        if let Some((existing, first)) = scope.names.get_mut(&name) {
            if let (Symbol::Functions(old), Symbol::Functions(new)) = (existing, &symbol) {
                old.extend(new.iter().cloned());
                return None;
            }
            return Some(*first);
        }
        scope.names.insert(name, (symbol, span));
        None
    }

    /// Returns the name in scope most similar to `name`; `None` if no name is similar enough (see [`errors::closest`]).
    pub fn similar(&self, name: &str) -> Option<Arc<str>> {
        let names = self.scopes.iter().flat_map(|s| s.names.keys());
        errors::closest(name, names.map(|n| &**n)).map(Arc::from)
    }
}
