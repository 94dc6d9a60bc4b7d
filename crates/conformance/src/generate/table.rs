//! Actions, tables with all match kinds, their entries, and how they are applied.

use super::call::CALLS;
use super::types::Type;
use super::{DEPTH, Direction, Generator, Parameter, SMALL_STATEMENTS, Section};
use ir::{Form, MatchKind};

#[derive(Clone, Debug)]
pub(super) struct Action {
    pub name: String,
    pub parameters: Vec<Parameter>,
}

#[derive(Clone, Debug)]
pub(super) struct Table {
    pub name: String,
    /// The names of its actions.
    pub actions: Vec<String>,
}

/// The properties of a table other than its key and its actions.
#[derive(Default)]
struct Attached {
    properties: Vec<String>,
    /// The action that reads the direct meter, if there is one.
    reader: Option<String>,
    /// True for a selector, false for an action profile; `None` for a table without either.
    implementation: Option<bool>,
}

/// The units of counters; meters have the first two.
const UNITS: [&str; 3] = ["packets", "bytes", "packets_and_bytes"];

impl Generator<'_> {
    pub(super) fn declare_actions(&mut self) {
        for _ in 0..1 + self.choices.below(4) {
            self.declare_action();
        }
    }

    fn declare_action(&mut self) {
        let name = self.name("action_");
        let mut parameters = Vec::new();
        // Those that the entry gives come last.
        for direction in [Direction::In, Direction::InOut, Direction::Out] {
            if self.choices.one_in(5) {
                let (name, ty) = (self.name("p"), self.argument_type());
                parameters.push(Parameter {
                    name,
                    direction,
                    ty,
                });
            }
        }
        for _ in 0..self.choices.below(3) {
            let (name, ty) = (self.name("p"), self.entry_type());
            parameters.push(Parameter {
                name,
                direction: Direction::Entry,
                ty,
            });
        }
        let list = self.parameter_list(&parameters);
        self.open(format!("action {name}({list})"));
        let outer = self.scope.clone();
        for parameter in &parameters {
            self.declare(parameter);
        }
        self.scope.in_action = true;
        self.scope.may_leave = true;
        self.scope.tables.clear();
        self.body_of(SMALL_STATEMENTS);
        self.scope = outer;
        self.close();
        self.scope.actions.push(Action { name, parameters });
    }

    /// Chooses a type for an action parameter without direction, whose argument the control plane gives.
    fn entry_type(&mut self) -> Type {
        match self.choices.below(6) {
            4 => Type::Bit(9),
            5 => Type::Int(self.width().max(2)),
            _ => Type::Bit(self.width()),
        }
    }

    pub(super) fn declare_tables(&mut self) {
        for _ in 0..1 + self.choices.below(3) {
            self.declare_table();
        }
    }

    fn declare_table(&mut self) {
        let name = self.name("table_");
        self.touched.clear();
        self.allow_calls(CALLS);
        let attached = self.declare_attached();
        self.open(format!("table {name}"));
        let selects = attached.implementation == Some(true);
        let keys = self.declare_keys(selects);
        let actions = self.declare_action_list(attached.reader.as_deref());
        let free: Vec<Action> = actions
            .iter()
            .filter(|(_, bound)| bound.is_empty())
            .map(|(action, _)| action.clone())
            .collect();
        for property in &attached.properties {
            self.line(property);
        }
        if self.choices.one_in(3) {
            self.line("size = 64;");
        }
        if self.choices.one_in(6) {
            self.line("support_timeout = true;");
        }
        let fixed = if self.choices.one_in(4) { "const " } else { "" };
        let default = match self.choices.one_in(2) && !free.is_empty() {
            true => self.entry_call(&free),
            false => "NoAction()".into(),
        };
        self.line(format!("{fixed}default_action = {default};"));
        let may_have_entries = attached.implementation.is_none() && !keys.is_empty();
        if may_have_entries && !free.is_empty() && self.choices.one_in(3) {
            self.declare_entries(&keys, &free);
        }
        self.close();
        let mut names: Vec<String> = actions.into_iter().map(|(a, _)| a.name).collect();
        names.extend(attached.reader);
        names.push("NoAction".into());
        let actions = names;
        self.scope.tables.push(Table { name, actions });
    }

    /// Declares random resources of a table: a direct counter, a direct meter, an action profile or selector. Returns
    /// the table properties that attach them.
    fn declare_attached(&mut self) -> Attached {
        let mut attached = Attached::default();
        if self.choices.one_in(3) {
            let (name, unit) = (self.name("direct"), self.choices.pick(&UNITS));
            self.line(format!("direct_counter(CounterType.{unit}) {name};"));
            attached.properties.push(format!("counters = {name};"));
        }
        if self.choices.one_in(4)
            && let Some((path, ty)) = self.any_variable(true, |ty| matches!(ty, Type::Bit(2..)))
        {
            // Only actions of the tables that have the meter may read it.
            let (name, reader) = (self.name("direct"), self.name("action_"));
            let (unit, ty) = (self.choices.pick(&UNITS[..2]), self.types.name(&ty));
            self.line(format!("direct_meter<{ty}>(MeterType.{unit}) {name};"));
            self.open(format!("action {reader}()"));
            self.line(format!("{name}.read({path});"));
            self.close();
            attached.properties.push(format!("meters = {name};"));
            attached.reader = Some(reader);
        }
        if self.choices.one_in(4) {
            let name = self.name("profile");
            let selects = self.choices.one_in(2);
            match selects {
                false => self.line(format!("action_profile(8) {name};")),
                true => {
                    let algorithm = self
                        .choices
                        .pick(&["crc16", "crc32", "identity", "csum16", "xor16"]);
                    let width = 1 + self.choices.below(16);
                    self.line(format!(
                        "action_selector(HashAlgorithm.{algorithm}, 16, {width}) {name};"
                    ));
                }
            }
            attached
                .properties
                .push(format!("implementation = {name};"));
            attached.implementation = Some(selects);
        }
        attached
    }

    /// Declares the key of a table. If `selects` is true, the table has an action selector, and its key ends with one or
    /// two more fields of match kind `selector`. Returns the type and match kind of each other key field.
    fn declare_keys(&mut self, selects: bool) -> Vec<(Type, MatchKind)> {
        let count = match self.choices.below(6) {
            0..=2 => 1,
            3 | 4 => 2,
            _ if selects => 1,
            _ => self.choices.below(4),
        };
        let mut keys: Vec<(Type, MatchKind)> = Vec::new();
        self.open("key =");
        for _ in 0..count {
            let has_prefix = keys.iter().any(|(_, kind)| kind.is_prefix());
            let (text, ty) = self.key();
            let bits = matches!(ty, Type::Bit(_));
            let is_possible = |kind: &MatchKind| {
                kind.is_looked_up()
                    && (bits || kind.is_exact())
                    && !(has_prefix && kind.is_prefix())
            };
            let kinds: Vec<MatchKind> = MatchKind::ALL.into_iter().filter(is_possible).collect();
            let kind = self.choices.pick(&kinds);
            let name = self.name("key");
            self.line(format!("{text} : {} @name(\"{name}\");", kind.name()));
            keys.push((ty, kind));
        }
        if selects {
            for _ in 0..1 + self.choices.below(2) {
                let width = self.width();
                let text = self.expression(&Type::Bit(width), 1);
                let name = self.name("key");
                self.line(format!("{text} : selector @name(\"{name}\");"));
            }
        }
        self.close();
        keys
    }

    fn key(&mut self) -> (String, Type) {
        let fits = |ty: &Type| {
            matches!(
                ty,
                Type::Bit(_) | Type::Int(_) | Type::Bool | Type::Serial(_)
            )
        };
        match self.any_variable(false, fits) {
            Some(found) if !self.choices.one_in(6) => found,
            _ => {
                // A key that is computed; few bits, so that entries are hit.
                let ty = Type::Bit(1 + self.choices.below(4));
                (self.expression(&ty, DEPTH), ty)
            }
        }
    }

    /// Declares a table's list of actions: some of the actions in scope. Returns each with the text of the arguments
    /// that the list binds to its parameters with direction.
    fn declare_action_list(&mut self, reader: Option<&str>) -> Vec<(Action, String)> {
        let mut list = Vec::new();
        self.open("actions =");
        if let Some(reader) = reader {
            self.line(format!("{reader};"));
        }
        for action in self.scope.actions.clone() {
            if self.choices.one_in(6) {
                continue;
            }
            let directed = action.parameters.iter();
            let bound: Vec<Parameter> = directed
                .filter(|p| p.direction != Direction::Entry)
                .cloned()
                .collect();
            let Some(arguments) = self.arguments(None, &bound, 2) else {
                continue;
            };
            let scope = match self.choices.below(8) {
                6 => "@tableonly ",
                _ => "",
            };
            match arguments.is_empty() {
                true => self.line(format!("{scope}{};", action.name)),
                false => self.line(format!("{scope}{}({arguments});", action.name)),
            }
            // An action that is only for entries must not be the default action.
            if scope.is_empty() || !arguments.is_empty() {
                list.push((action, arguments));
            }
        }
        self.line("NoAction;");
        self.close();
        list
    }

    /// Chooses an action without bound arguments, and returns the text of its call with constants as arguments.
    fn entry_call(&mut self, actions: &[Action]) -> String {
        let action = actions[self.choices.below(actions.len() as u32) as usize].clone();
        let arguments = action.parameters.iter().map(|p| self.constant(&p.ty));
        format!(
            "{}({})",
            action.name,
            arguments.collect::<Vec<_>>().join(", ")
        )
    }

    fn declare_entries(&mut self, keys: &[(Type, MatchKind)], actions: &[Action]) {
        let fixed = if self.choices.one_in(2) { "const " } else { "" };
        let mut largest = match keys[0].0 {
            Type::Bit(width) | Type::Int(width) if width < 3 => 2,
            Type::Bool => 2,
            _ => 4,
        };
        if matches!(keys[0].0, Type::Serial(_) | Type::Int(_)) {
            largest = 1;
        }
        self.open(format!("{fixed}entries ="));
        for i in 0..1 + self.choices.below(largest) {
            let sets: Vec<String> = keys
                .iter()
                .enumerate()
                .map(|(k, (ty, kind))| self.key_set(ty, *kind, (k == 0).then_some(i)))
                .collect();
            let call = self.entry_call(actions);
            let sets = match sets.as_slice() {
                [one] => one.clone(),
                several => format!("({})", several.join(", ")),
            };
            self.line(format!("{sets} : {call};"));
        }
        self.close();
    }

    /// Chooses the match of a key field in an entry. `own`: the number of the entry, for the first key
    /// field, which gets a different value in each entry, so that no two entries are equal.
    fn key_set(&mut self, ty: &Type, kind: MatchKind, own: Option<u32>) -> String {
        let Type::Bit(width) = *ty else {
            return match (ty, own) {
                (Type::Bool, Some(i)) => (i == 1).to_string(),
                _ => self.constant(ty),
            };
        };
        let value = match own {
            Some(i) => format!("{width}w{}", i & ((1 << width.min(2)) - 1)),
            None => self.literal(width),
        };
        match (kind.form(), own) {
            (Form::Masked, None) => match self.choices.below(3) {
                0 => "_".into(),
                1 => format!("{value} &&& {}", self.literal(width)),
                _ => value,
            },
            (Form::Range, _) if width <= 64 && self.choices.one_in(2) => {
                format!("{value}..{width}w{}", u64::MAX >> (64 - width))
            }
            (Form::Value, None) if kind.has_any() && self.choices.one_in(2) => "_".into(),
            _ => value,
        }
    }

    pub(super) fn apply_table(&mut self) {
        if self.scope.in_action {
            return;
        }
        let tables = self.scope.tables.len() as u32;
        let table = self.scope.tables[self.choices.below(tables) as usize].clone();
        match self.choices.below(4) {
            1 => {
                let outcome = self.choices.pick(&["hit", "miss"]);
                self.open(format!("if ({}.apply().{outcome})", table.name));
                self.body();
                self.close_with("} else {");
                self.indent += 1;
                self.body();
                self.close();
            }
            2 => {
                self.open(format!("switch ({}.apply().action_run)", table.name));
                for action in &table.actions {
                    match self.choices.below(3) {
                        0 => continue,
                        1 => {
                            self.open(format!("{action}:"));
                            self.body();
                            self.close();
                        }
                        _ => self.line(format!("{action}:")),
                    }
                }
                self.open("default:");
                self.body();
                self.close();
                self.close();
            }
            _ => self.line(format!("{}.apply();", table.name)),
        }
    }

    pub(super) fn direct_action(&mut self) {
        if self.scope.actions.is_empty() || self.scope.section == Section::Parser {
            return;
        }
        let actions = self.scope.actions.len() as u32;
        let action = self.scope.actions[self.choices.below(actions) as usize].clone();
        if let Some(arguments) = self.arguments(None, &action.parameters, 2) {
            self.line(format!("{}({arguments});", action.name));
        }
    }
}
