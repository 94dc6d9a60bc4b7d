//! The type checker: tree to checked program.
//!
//! One walk in source order, since P4 names must be declared before use: declarations enter the scope as they are
//! checked. An expression is checked in two steps: [`Checker::infer`] finds its type, with a wanted type as a hint, and
//! [`Checker::coerce`] applies the implicit casts to what the context demands. An expression with a reported error has type
//! [`Ty::Missing`], about which everything else stays silent.

mod annotation;
mod block;
mod call;
mod convert;
mod damage;
mod declare;
mod expr;
mod infer;
mod instance;
mod method;
mod ops;
mod record;
mod rules;
pub mod scope;
mod select;
mod stmt;
mod table;
mod types;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::sync::Arc;

use syntax::ast;
use syntax::source::{SourceMap, Span};
use syntax::{Diagnostic, Sink};

use crate::errors;
use crate::externs::Origins;
use crate::hir::{self, Expr, FuncId, Module, Var, VarId, VarKind};
use crate::names::Names;
use crate::types::{BlockKind, StructId, Ty, TypeParamId};
use scope::{Scopes, Symbol, TypeSymbol};

/// Checks the types and names of a program, and returns the checked module and all diagnostics. The module
/// is complete only if no diagnostic is an error.
pub fn check(program: &ast::Program, sources: &SourceMap) -> (Module, Vec<Diagnostic>) {
    let (module, diagnostics, _) = check_and_record(program, sources, None);
    (module, diagnostics)
}

/// Does what [`check`] does, and enters what it finds out about names into `names`.
pub fn check_and_record(
    program: &ast::Program,
    sources: &SourceMap,
    names: Option<Names>,
) -> (Module, Vec<Diagnostic>, Option<Names>) {
    let mut checker = Checker::new(Origins::find(program, sources));
    checker.names = names;
    checker.enter_errors(program);
    match program.damage.is_none() {
        true => program.decls.iter().for_each(|d| checker.declaration(d)),
        false if program.damage.hopeless => {}
        false => checker.damaged(program),
    }
    let checked = checker.checked;
    let diagnostics = checked.diagnostics.into_vec();
    (checked.module, diagnostics, checked.names)
}

/// The kind of body in which a statement or expression is, which limits what is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Outside of any body.
    Declaration,
    /// A function's body.
    Function,
    /// An action's body.
    Action,
    /// The body of a control's `apply`.
    Apply,
    /// A parser state.
    State,
    /// A table's properties.
    Table,
}

#[derive(Clone, Debug)]
struct Context {
    place: Place,
    /// The type of the value that `return` needs.
    ret: Ty,
    /// The number of loops around.
    loops: u32,
    /// The parser or control around, if there is one.
    block: Option<BlockKind>,
}

/// The program as far as it is checked, and what is wrong with it. It knows no names in scope.
struct Checked {
    module: Module,
    /// The files that give externs a meaning.
    origins: Origins,
    diagnostics: Sink,
    /// Diagnostics that may be wrong only because pieces of the program could not be parsed. They are
    /// counted, and not shown.
    doubtful: Sink,
    /// The errors of the whole program. Those of the core library have their positions whether it is included or not.
    known_errors: BTreeSet<Arc<str>>,
    /// The pieces of the program that could not be parsed.
    missing: damage::Missing,
    /// The declarations and uses of names, which the checker enters if a caller gave a table.
    names: Option<Names>,
}

/// The state of the walk.
struct Checker {
    checked: Checked,
    scopes: Scopes,
    context: Context,
    generics: Generics,
    /// Errors declared so far.
    declared_errors: BTreeSet<Arc<str>>,
    /// Parsers, controls and packages instantiated at the top level, where they cannot be applied.
    top_level_instances: BTreeSet<VarId>,
}

/// Generic functions and structs.
#[derive(Default)]
struct Generics {
    /// Functions already specialised, by template and type arguments.
    functions: BTreeMap<(usize, Vec<Ty>), FuncId>,
    /// Function templates being checked, to find recursion.
    checking: Vec<usize>,
    templates: usize,
    /// Generic functions whose bodies are wrong whatever the type arguments.
    broken: BTreeSet<usize>,
    /// Generic structs already specialised, by address of the declaration (kept alive by the scope) and arguments.
    structs: BTreeMap<(usize, Vec<Ty>), Ty>,
    /// The generic struct that a specialised one was made from.
    struct_of: BTreeMap<StructId, Rc<scope::GenericStruct>>,
}

impl Deref for Checker {
    type Target = Checked;

    fn deref(&self) -> &Checked {
        &self.checked
    }
}

impl DerefMut for Checker {
    fn deref_mut(&mut self) -> &mut Checked {
        &mut self.checked
    }
}

impl Checker {
    fn new(origins: Origins) -> Checker {
        let mut module = Module::default();
        module.types.errors = ir::verify::CORE_ERRORS.map(Arc::from).to_vec();
        Checker {
            checked: Checked {
                module,
                origins,
                diagnostics: Sink::default(),
                doubtful: Sink::default(),
                known_errors: BTreeSet::new(),
                missing: damage::Missing::default(),
                names: None,
            },
            scopes: Scopes::new(),
            context: Context {
                place: Place::Declaration,
                ret: Ty::Void,
                loops: 0,
                block: None,
            },
            generics: Generics::default(),
            declared_errors: BTreeSet::new(),
            top_level_instances: BTreeSet::new(),
        }
    }

    /// Checks a declaration at the top level together with its annotations.
    fn declaration(&mut self, decl: &ast::Decl) {
        self.top_level(decl);
        self.check_annotations(decl);
    }

    fn declare(&mut self, name: &ast::Name, symbol: Symbol) {
        self.record_name(name, &symbol);
        if let Some(first) = self.scopes.declare(name.text.clone(), symbol, name.span) {
            self.report(errors::duplicate(name.span, name.as_str(), first));
        }
    }

    fn declare_type(&mut self, name: &ast::Name, ty: TypeSymbol) {
        self.declare(name, Symbol::Type(ty));
    }

    /// Returns the name in scope most similar to `name`, to be suggested; `None` if no name is similar
    /// enough, or once the limit of shown errors is reached.
    fn similar(&self, name: &str) -> Option<Arc<str>> {
        match self.is_full() {
            true => None,
            false => self.scopes.similar(name),
        }
    }

    /// Returns the symbol that a path names. Reports an unknown name, unless its declaration may have been
    /// lost in a syntax error, and returns [`Symbol::Missing`].
    fn lookup(&mut self, path: &ast::Path) -> Symbol {
        if let Some(symbol) = self.find(path) {
            return symbol;
        }
        if self.may_be_lost(path.name.as_str()) || self.may_be_cut(path) {
            return Symbol::Missing;
        }
        let name = path.name.as_str();
        let (similar, file) = (self.similar(name), self.library_file(name));
        self.report(errors::unknown_name(
            path.span,
            name,
            file,
            similar.as_deref(),
        ));
        Symbol::Missing
    }

    /// Returns the name of a library file, such as `v1model.p4`, that declares `name` and that the program
    /// could include: the core library if it is not included yet, or an architecture if none is. `None` if
    /// there is no such file.
    fn library_file(&self, name: &str) -> Option<&'static str> {
        if self.is_full() {
            return None;
        }
        let has = |global: &str| self.scopes.has_global(global);
        let architecture = ir::architecture::ALL.iter().any(|d| has(d.package));
        let barred = |file: &str| match file {
            "core.p4" => has("packet_in"),
            _ => architecture,
        };
        crate::libraries()
            .filter(|(file, _)| !barred(file))
            .find(|(file, text)| crate::declares(file, text, name))
            .map(|(file, _)| file)
    }

    /// Runs `f` with `context` as the checker's context, and restores the previous context afterwards.
    fn within<R>(&mut self, context: Context, f: impl FnOnce(&mut Checker) -> R) -> R {
        let outer = std::mem::replace(&mut self.context, context);
        let result = f(self);
        self.context = outer;
        result
    }

    /// Runs `f` in a new scope, which is closed afterwards.
    fn scoped<R>(&mut self, f: impl FnOnce(&mut Checker) -> R) -> R {
        self.scopes.push();
        let result = f(self);
        self.scopes.pop();
        result
    }
}

impl Checked {
    fn report(&mut self, diagnostic: Diagnostic) {
        let sink = match self.missing.doubts(&diagnostic) {
            true => &mut self.doubtful,
            false => &mut self.diagnostics,
        };
        // The same place can be checked twice (a generic function); one message is enough.
        sink.push_new(diagnostic);
    }

    /// Reports an error in an expression, and returns a missing expression that replaces it.
    fn wrong(&mut self, diagnostic: Diagnostic, span: Span) -> Expr {
        self.report(diagnostic);
        Expr::missing(span)
    }

    fn error_count(&self) -> usize {
        self.diagnostics.errors() + self.doubtful.errors()
    }

    /// Returns whether the limit of shown errors is reached, so that hints for further errors are not worth
    /// their time.
    fn is_full(&self) -> bool {
        self.diagnostics.is_full() || self.doubtful.is_full()
    }

    fn show(&self, ty: &Ty) -> String {
        self.module.types.show(ty)
    }

    /// Adds a variable to the module and returns its id, without entering its name into the scope.
    fn new_var(
        &mut self,
        name: Arc<str>,
        ty: Ty,
        kind: VarKind,
        annotations: Rc<[ast::Annotation]>,
        span: Span,
    ) -> VarId {
        let id = VarId(self.module.vars.len() as u32);
        self.module.vars.push(Var {
            name,
            ty,
            kind,
            annotations,
            span,
        });
        id
    }

    fn new_type_param(&mut self, name: &ast::Name) -> TypeParamId {
        let id = TypeParamId(self.module.types.type_params.len() as u32);
        self.module.types.type_params.push(name.text.clone());
        id
    }

    /// Returns the candidate most similar to `name`, to be suggested. Returns `None` if no candidate is
    /// similar enough, or once the limit of shown errors is reached: to compare all candidates for each of
    /// 100,000 errors takes minutes.
    fn closest<'a>(&self, name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<String> {
        match self.is_full() {
            true => None,
            false => errors::closest(name, candidates).map(str::to_string),
        }
    }

    /// Returns the expression if its value is known when the program is instantiated. Otherwise reports that
    /// `what` is not constant, and returns a missing expression.
    fn require_static(&mut self, expr: hir::Expr, what: &str) -> hir::Expr {
        if self.is_static(&expr) {
            return expr;
        }
        self.report(errors::not_constant(expr.span, what));
        hir::Expr::missing(expr.span)
    }

    /// Returns the expression if it consists only of literals. Otherwise reports that `what` is not
    /// constant, and returns a missing expression.
    fn require_literal(&mut self, expr: hir::Expr, what: &str) -> hir::Expr {
        if expr.is_literal() {
            return expr;
        }
        self.report(errors::not_constant(expr.span, what));
        hir::Expr::missing(expr.span)
    }
}

/// Copies annotations into a shared slice.
fn shared(annotations: &[ast::Annotation]) -> Rc<[ast::Annotation]> {
    annotations.to_vec().into()
}
