//! From a lowered program to its P4Info; gives the program's objects their P4Runtime ids on the way.

use syntax::ast::{self, Annotation};
use syntax::source::Span;
use syntax::{Diagnostic, Sink};

use super::P4Info;
use super::annotate::{
    Annotations, annotations, find, given_id, local_name, number, pairs, size_semantics,
};
use super::ids::{IdError, Kind, Symbols, member_ids};
use crate::errors;
use crate::hir::{self, Module};
use crate::lower::{ExternInfo, ExternKind, Lowered};
use crate::types::{StructDef, Ty};
use proto::p4info::action_profile::SelectorSizeSemantics;
use proto::p4info::{self as p4, expression::Value};
use std::collections::{BTreeMap, BTreeSet};

/// Makes the P4Info of a program, and stores the ids of its objects in the program. Returns the P4Info and
/// all diagnostics.
pub(crate) fn build(module: &Module, lowered: &mut Lowered) -> (P4Info, Vec<Diagnostic>) {
    let mut builder = Builder {
        module,
        symbols: Symbols::default(),
        info: p4::P4Info::default(),
        named_types: BTreeMap::new(),
        diagnostics: Sink::default(),
    };
    builder.collect(lowered);
    builder.symbols.assign();
    builder.package(lowered);
    builder.actions(lowered);
    builder.tables(lowered);
    builder.externs(lowered);
    builder.rest(lowered);
    (P4Info(builder.info), builder.diagnostics.into_vec())
}

/// Annotations of action profiles that have fields of their own.
const PROFILE_ANNOTATIONS: [&str; 3] = [
    "max_group_size",
    "selector_size_semantics",
    "max_member_weight",
];

/// The keys of `@pkginfo`.
const PACKAGE_FIELDS: [&str; 6] = ["name", "version", "organization", "contact", "url", "arch"];

/// The keys of `@platform_property`: the fields of P4Info's `PlatformProperties`.
const PLATFORM_PROPERTIES: [&str; 3] = [
    "multicast_group_table_size",
    "multicast_group_table_total_replicas",
    "multicast_group_table_max_replicas_per_entry",
];

/// The largest number in a field of type int32.
pub(crate) const INT32_MAX: u32 = i32::MAX as u32;

pub(super) struct Builder<'a> {
    pub module: &'a Module,
    symbols: Symbols,
    pub info: p4::P4Info,
    /// The types of the type info by kind and control-plane name.
    pub named_types: BTreeMap<(&'static str, String), Ty>,
    pub diagnostics: Sink,
}

fn extern_symbol(kind: &ExternKind) -> Kind {
    match kind {
        ExternKind::Register(..) => Kind::Register,
        ExternKind::Counter(..) => Kind::Counter,
        ExternKind::DirectCounter(_) => Kind::DirectCounter,
        ExternKind::Meter(..) => Kind::Meter,
        ExternKind::DirectMeter(_) => Kind::DirectMeter,
        ExternKind::Profile(_) => Kind::ActionProfile,
    }
}

/// Returns whether an object has the annotation `@hidden`, which keeps it from the control plane.
fn is_hidden(annotations: &[Annotation]) -> bool {
    find(annotations, "hidden").is_some()
}

impl Builder<'_> {
    fn add(&mut self, kind: Kind, name: &str, annotations: &[Annotation], span: Span, what: &str) {
        if self.symbols.contains(kind, name) {
            self.diagnostics
                .push(errors::control_name_twice(span, name, &format!("{what}s")));
        }
        let given = given_id(annotations);
        match (self.symbols.add(kind, name, given), given) {
            (Err(IdError::Prefix), Some(id)) => {
                self.diagnostics
                    .push(errors::id_prefix(span, id, kind as u32))
            }
            (Err(IdError::Twice), Some(id)) => self.diagnostics.push(errors::id_twice(span, id)),
            _ => {}
        }
    }

    fn collect(&mut self, lowered: &Lowered) {
        let module = self.module;
        for table in &lowered.info.tables {
            let def = &module.tables[table.declaration.index()];
            let name = &lowered.program.tables[table.table.index()].name;
            self.add(Kind::Table, name, &def.annotations, def.span, "table");
        }
        for (id, declaration) in &lowered.info.actions {
            let def = &module.actions[declaration.index()];
            let name = &lowered.program.actions[id.index()].name;
            self.add(Kind::Action, name, &def.annotations, def.span, "action");
        }
        // Actions that are only called are known too, though no table has them.
        for (name, declaration) in &lowered.info.called {
            let def = &module.actions[declaration.index()];
            if !self.symbols.contains(Kind::Action, name) {
                self.add(Kind::Action, name, &def.annotations, def.span, "action");
            }
        }
        for info in &lowered.info.externs {
            self.add(
                extern_symbol(&info.kind),
                &info.name,
                &info.annotations,
                info.span,
                "extern instance",
            );
        }
        for (id, var, _) in &lowered.info.value_sets {
            let def = module.var(*var);
            let name = &lowered.program.value_sets[id.index()].name;
            self.add(
                Kind::ValueSet,
                name,
                &def.annotations,
                def.span,
                "value set",
            );
        }
        for (id, _, span) in &lowered.info.digests {
            let name = &lowered.program.digests[id.index()].name;
            self.add(Kind::Digest, name, &[], *span, "digest");
        }
        for ty in &module.controller_headers {
            if let Ty::Header(id) = ty {
                let def = module.types.structure(*id);
                let name = local_name(&def.name, &def.annotations);
                self.add(
                    Kind::ControllerHeader,
                    &name,
                    &def.annotations,
                    Span::default(),
                    "controller header",
                );
            }
        }
    }

    pub fn annotations(&mut self, given: &[Annotation], without: &[&str]) -> Annotations {
        annotations(given, without, &mut self.diagnostics)
    }

    fn preamble(
        &mut self,
        kind: Kind,
        name: &str,
        annotations: &[Annotation],
        without: &[&str],
    ) -> Option<p4::Preamble> {
        let id = self.symbols.id(kind, name);
        let alias = self.symbols.alias(name);
        let annotations = self.annotations(annotations, without);
        Some(annotations.preamble(id, name.to_string(), alias))
    }

    fn member_ids(&mut self, annotations: &[&[Annotation]], span: Span) -> Vec<u32> {
        let given: Vec<Option<u32>> = annotations.iter().map(|a| given_id(a)).collect();
        match member_ids(&given) {
            Ok(ids) => ids,
            Err((position, id)) => {
                let span = find(annotations[position], "id").map_or(span, |a| a.span);
                let message = match id {
                    0 => errors::id_zero(span),
                    id => errors::id_twice(span, id),
                };
                self.diagnostics.push(message);
                (1..=annotations.len() as u32).collect()
            }
        }
    }

    /// Reports each member of an action, type or header that has the same control-plane name as an earlier
    /// one of `members`. `kind` names the members in the message.
    pub fn check_member_names<'n>(
        &mut self,
        members: impl Iterator<Item = (&'n str, Span)>,
        kind: &str,
    ) {
        let mut seen = BTreeSet::new();
        for (name, span) in members {
            if !seen.insert(name) {
                self.diagnostics
                    .push(errors::control_name_twice(span, name, kind));
            }
        }
    }

    fn package(&mut self, lowered: &Lowered) {
        let var = self.module.var(lowered.main);
        let architecture = lowered.program.architecture.description().name;
        let mut fields = BTreeMap::new();
        for (key, value, span) in self.known_pairs(&var.annotations, "pkginfo", &PACKAGE_FIELDS) {
            match value {
                Some(Value::StringValue(text)) => {
                    fields.insert(key, text);
                }
                _ => self
                    .diagnostics
                    .push(errors::annotation_pair(span, &key, "a string")),
            }
        }
        let mut platform = BTreeMap::new();
        for (key, value, span) in
            self.known_pairs(&var.annotations, "platform_property", &PLATFORM_PROPERTIES)
        {
            match value {
                Some(Value::Int64Value(n @ 0..)) if i32::try_from(n).is_ok() => {
                    platform.insert(key, n as i32);
                }
                _ => {
                    let wanted = format!("a number from 0 to {INT32_MAX}");
                    self.diagnostics
                        .push(errors::annotation_pair(span, &key, &wanted));
                }
            }
        }
        let others = self.annotations(&var.annotations, &["pkginfo", "platform_property"]);
        let mut field = |key: &str| fields.remove(key).unwrap_or_default();
        let property = |key: &str| platform.get(key).copied().unwrap_or(0);
        let [group_table_size, total_replicas, replicas_per_entry] = PLATFORM_PROPERTIES;
        self.info.pkg_info = Some(p4::PkgInfo {
            name: field("name"),
            version: field("version"),
            organization: field("organization"),
            contact: field("contact"),
            url: field("url"),
            arch: fields.remove("arch").unwrap_or_else(|| architecture.into()),
            doc: others.doc,
            annotations: others.unstructured,
            structured_annotations: others.structured,
            annotation_locations: Vec::new(),
            platform_properties: (!platform.is_empty()).then(|| p4::PlatformProperties {
                multicast_group_table_size: property(group_table_size),
                multicast_group_table_total_replicas: property(total_replicas),
                multicast_group_table_max_replicas_per_entry: property(replicas_per_entry),
            }),
        });
    }

    /// Returns the key, value and place of each pair, in annotations with the name `name`, whose key is in
    /// `known`. Reports other keys, duplicates, and annotations without pairs.
    fn known_pairs(
        &mut self,
        annotations: &[Annotation],
        name: &str,
        known: &[&str],
    ) -> Vec<(String, Option<Value>, Span)> {
        let mut out: Vec<(String, Option<Value>, Span)> = Vec::new();
        for annotation in annotations.iter().filter(|a| a.name.as_str() == name) {
            let Some(pairs) = pairs(annotation) else {
                self.diagnostics
                    .push(errors::annotation_pairs(annotation.span, name));
                continue;
            };
            for pair in pairs {
                if !known.contains(&pair.key.as_str()) {
                    let like = errors::closest(&pair.key, known.iter().copied());
                    self.diagnostics.push(errors::unknown_annotation_key(
                        pair.span, &pair.key, name, like,
                    ));
                } else if let Some((_, _, first)) = out.iter().find(|(k, _, _)| *k == pair.key) {
                    self.diagnostics
                        .push(errors::duplicate(pair.span, &pair.key, *first));
                } else {
                    out.push((pair.key, pair.value, pair.span));
                }
            }
        }
        out
    }

    /// Reports a number that exceeds `limit`, the largest number that its field in P4Info can hold. `what`
    /// names the number in the message.
    fn bounded(&mut self, what: &str, value: u64, limit: u64, span: Span) {
        if value > limit {
            self.diagnostics
                .push(errors::beyond_p4info(span, what, value, limit));
        }
    }

    fn is_hidden_action(&self, action: hir::ActionId) -> bool {
        is_hidden(&self.module.actions[action.index()].annotations)
    }

    fn actions(&mut self, lowered: &mut Lowered) {
        let module = self.module;
        for (id, declaration) in &lowered.info.actions {
            let def = &module.actions[declaration.index()];
            let action = &mut lowered.program.actions[id.index()];
            action.id = self.symbols.id(Kind::Action, &action.name);
            let vars: Vec<&hir::Var> = def.params[def.directed..]
                .iter()
                .map(|p| module.var(*p))
                .collect();
            let annotations: Vec<&[Annotation]> = vars.iter().map(|v| &*v.annotations).collect();
            let ids = self.member_ids(&annotations, def.span);
            let names = lowered.program.actions[id.index()]
                .params
                .iter()
                .map(|p| &*p.name);
            self.check_member_names(names.zip(vars.iter().map(|v| v.span)), "parameters");
            let action = &mut lowered.program.actions[id.index()];
            let mut params = Vec::new();
            for ((var, id), param) in vars.iter().zip(ids).zip(&mut action.params) {
                param.id = id;
                let (bitwidth, type_name) = self.exposed(&var.ty);
                if !is_hidden(&def.annotations) {
                    let what = format!("parameter `{}` of action `{}`", param.name, action.name);
                    self.check_bits(&var.ty, &what, var.span);
                }
                let annotations = self.annotations(&var.annotations, &[]);
                params.push(p4::action::Param {
                    id,
                    name: param.name.clone(),
                    annotations: annotations.unstructured,
                    structured_annotations: annotations.structured,
                    doc: annotations.doc,
                    bitwidth,
                    type_name,
                    annotation_locations: Vec::new(),
                });
            }
            if !is_hidden(&def.annotations) {
                let preamble =
                    self.preamble(Kind::Action, &action.name.clone(), &def.annotations, &[]);
                self.info.actions.push(p4::Action { preamble, params });
            }
        }
        for (name, declaration) in &lowered.info.called {
            let def = &module.actions[declaration.index()];
            let listed = self.info.actions.iter().flat_map(|a| &a.preamble);
            let listed = listed.into_iter().any(|preamble| preamble.name == *name);
            if !listed && !is_hidden(&def.annotations) {
                let preamble = self.preamble(Kind::Action, name, &def.annotations, &[]);
                self.info.actions.push(p4::Action {
                    preamble,
                    params: Vec::new(),
                });
            }
        }
    }

    fn tables(&mut self, lowered: &mut Lowered) {
        let module = self.module;
        for info in lowered.info.tables.clone() {
            let def = &module.tables[info.declaration.index()];
            let name = lowered.program.tables[info.table.index()].name.clone();
            let annotations: Vec<&[Annotation]> =
                def.keys.iter().map(|k| &*k.annotations).collect();
            let ids = self.member_ids(&annotations, def.span);
            let constant = lowered.program.tables[info.table.index()].const_entries;
            let closed = constant || is_hidden(&def.annotations);
            let mut match_fields = Vec::new();
            for ((key, id), out) in def
                .keys
                .iter()
                .zip(ids)
                .zip(&mut lowered.program.tables[info.table.index()].keys)
            {
                out.id = id;
                if !key.match_kind.is_looked_up() {
                    continue;
                }
                let (bitwidth, type_name) = self.exposed(&key.expr.ty);
                if !closed {
                    let what = format!("match field `{}` of table `{name}`", key.name);
                    self.check_bits(&key.expr.ty, &what, key.expr.span);
                }
                let annotations = self.annotations(&key.annotations, &[]);
                let (name, kind) = (key.name.clone(), key.match_kind);
                let field = annotations.match_field(id, name, (bitwidth, type_name));
                match_fields.push(with_kind(field, kind));
            }
            lowered.program.tables[info.table.index()].id = self.symbols.id(Kind::Table, &name);
            if is_hidden(&def.annotations) {
                lowered.program.tables[info.table.index()].hidden = true;
                continue;
            }
            let preamble = self.preamble(Kind::Table, &name, &def.annotations, &[]);
            let table = self.table(lowered, &info, def, preamble, match_fields);
            self.bounded(
                "the size of a table",
                table.size as u64,
                ir::verify::MAX_TABLE_SIZE,
                def.span,
            );
            self.info.tables.push(table);
        }
    }

    fn table(
        &mut self,
        lowered: &Lowered,
        info: &crate::lower::TableInfo,
        def: &hir::Table,
        preamble: Option<p4::Preamble>,
        match_fields: Vec<p4::MatchField>,
    ) -> p4::Table {
        let program = &lowered.program;
        let table = &program.tables[info.table.index()];
        let listed = table.actions.iter().zip(&def.actions);
        let visible: Vec<_> = listed
            .filter(|(_, d)| !self.is_hidden_action(d.action))
            .collect();
        let action_refs = visible
            .into_iter()
            .map(|(a, d)| {
                let annotations = self.annotations(&d.annotations, &[]);
                p4::ActionRef {
                    id: program.actions[a.action.index()].id,
                    scope: scope(a.scope) as i32,
                    annotations: annotations.unstructured,
                    structured_annotations: annotations.structured,
                    annotation_locations: Vec::new(),
                }
            })
            .collect();
        let default = &program.actions[table.default_action.action.index()];
        let position = table
            .actions
            .iter()
            .position(|a| a.action == table.default_action.action);
        let hidden_default = position.is_some_and(|i| self.is_hidden_action(def.actions[i].action));
        let args = default
            .params
            .iter()
            .zip(&table.default_action.args)
            .map(|(p, v)| p4::table_action_call::Argument {
                param_id: p.id,
                value: v.to_be_bytes().into(),
            });
        let id_of = |b: &Self, position: Option<usize>| {
            position.map(|i| {
                let e: &ExternInfo = &lowered.info.externs[i];
                b.symbols.id(extern_symbol(&e.kind), &e.name)
            })
        };
        p4::Table {
            preamble,
            match_fields,
            action_refs,
            const_default_action_id: if table.const_default_action && !hidden_default {
                default.id
            } else {
                0
            },
            initial_default_action: (!hidden_default).then(|| p4::TableActionCall {
                action_id: default.id,
                arguments: args.collect(),
            }),
            implementation_id: id_of(self, info.profile).unwrap_or(0),
            direct_resource_ids: [info.counter, info.meter]
                .into_iter()
                .filter_map(|r| id_of(self, r))
                .collect(),
            size: table.size as i64,
            idle_timeout_behavior: match table.support_timeout {
                true => p4::table::IdleTimeoutBehavior::NotifyControl as i32,
                false => p4::table::IdleTimeoutBehavior::NoTimeout as i32,
            },
            is_const_table: table.const_entries,
            has_initial_entries: !def.entries.is_empty(),
            other_properties: None,
        }
    }

    fn index_type(&mut self, ty: &Option<Ty>) -> Option<p4::P4NamedType> {
        ty.as_ref().and_then(|t| self.exposed(t).1)
    }

    fn externs(&mut self, lowered: &mut Lowered) {
        let module = self.module;
        for (i, info) in lowered.info.externs.clone().into_iter().enumerate() {
            let kind = extern_symbol(&info.kind);
            let id = self.symbols.id(kind, &info.name);
            let preamble = self.preamble(kind, &info.name, &info.annotations, &PROFILE_ANNOTATIONS);
            let table = |direct: &dyn Fn(&crate::lower::TableInfo) -> bool| {
                let table = lowered.info.tables.iter().find(|t| direct(t))?;
                let told = !is_hidden(&module.tables[table.declaration.index()].annotations);
                told.then(|| lowered.program.tables[table.table.index()].id)
            };
            match &info.kind {
                ExternKind::Register(register, ty, index) => {
                    let size = lowered.program.registers[register.index()].size;
                    lowered.program.registers[register.index()].id = id;
                    let type_spec = Some(self.type_spec(ty));
                    self.check_data(ty, &format!("register `{}`", info.name), info.span);
                    let index_type_name = self.index_type(index);
                    let limit = u64::from(INT32_MAX);
                    self.bounded("the size of a register", size, limit, info.span);
                    self.info.registers.push(p4::Register {
                        preamble,
                        type_spec,
                        size: size as i32,
                        index_type_name,
                    });
                }
                ExternKind::Counter(counter, index) => {
                    let counter = &mut lowered.program.counters[counter.index()];
                    counter.id = id;
                    let spec = Some(counted(counter.unit));
                    let size = counter.size.unwrap_or(0) as i64;
                    let index_type_name = self.index_type(index);
                    self.info.counters.push(p4::Counter {
                        preamble,
                        spec,
                        size,
                        index_type_name,
                    });
                }
                ExternKind::DirectCounter(counter) => {
                    let owner = table(&|t| t.counter == Some(i));
                    let counter = &mut lowered.program.counters[counter.index()];
                    counter.id = id;
                    let spec = Some(counted(counter.unit));
                    // One that no table names has no entries to count.
                    if let Some(direct_table_id) = owner {
                        self.info.direct_counters.push(p4::DirectCounter {
                            preamble,
                            spec,
                            direct_table_id,
                        });
                    }
                }
                ExternKind::Meter(meter, index) => {
                    let meter = &mut lowered.program.meters[meter.index()];
                    meter.id = id;
                    let spec = Some(metered(meter));
                    let size = meter.size.unwrap_or(0) as i64;
                    let index_type_name = self.index_type(index);
                    self.info.meters.push(p4::Meter {
                        preamble,
                        spec,
                        size,
                        index_type_name,
                    });
                }
                ExternKind::DirectMeter(meter) => {
                    let owner = table(&|t| t.meter == Some(i));
                    let meter = &mut lowered.program.meters[meter.index()];
                    meter.id = id;
                    let spec = Some(metered(meter));
                    if let Some(direct_table_id) = owner {
                        self.info.direct_meters.push(p4::DirectMeter {
                            preamble,
                            spec,
                            direct_table_id,
                        });
                    }
                }
                ExternKind::Profile(profile) => {
                    let users = lowered.info.tables.iter().filter(|t| {
                        t.profile == Some(i)
                            && !is_hidden(&module.tables[t.declaration.index()].annotations)
                    });
                    let table_ids = users
                        .map(|t| lowered.program.tables[t.table.index()].id)
                        .collect();
                    let declared = &mut lowered.program.action_profiles[profile.index()];
                    declared.id = id;
                    let mut max_group_size = 0;
                    let mut semantics = None;
                    if let Some(selector) = &mut declared.selector {
                        max_group_size = number(&info.annotations, "max_group_size");
                        semantics = find(&info.annotations, "selector_size_semantics")
                            .and_then(size_semantics);
                        if let Some(SelectorSizeSemantics::SumOfMembers(members)) = &mut semantics {
                            let most = number(&info.annotations, "max_member_weight");
                            members.max_member_weight = most as i32;
                            selector.sum_of_members = true;
                        }
                        selector.max_group_size = max_group_size.into();
                    }
                    let profile = p4::ActionProfile {
                        preamble,
                        table_ids,
                        with_selector: declared.selector.is_some(),
                        size: declared.size as i64,
                        max_group_size: max_group_size as i32,
                        weights_disallowed: false,
                        selector_size_semantics: semantics,
                    };
                    self.info.action_profiles.push(profile);
                }
            }
        }
    }

    fn rest(&mut self, lowered: &mut Lowered) {
        let module = self.module;
        for (id, var, ty) in lowered.info.value_sets.clone() {
            let set = &mut lowered.program.value_sets[id.index()];
            set.id = self.symbols.id(Kind::ValueSet, &set.name);
            let (name, size) = (set.name.clone(), set.size);
            let preamble = self.preamble(Kind::ValueSet, &name, &module.var(var).annotations, &[]);
            let span = module.var(var).span;
            self.bounded("the size of a value set", size, u64::from(INT32_MAX), span);
            let fields = self.value_set_fields(&ty, span);
            self.info.value_sets.push(p4::ValueSet {
                preamble,
                r#match: fields,
                size: size as i32,
            });
        }
        for (id, ty, span) in lowered.info.digests.clone() {
            let digest = &mut lowered.program.digests[id.index()];
            digest.id = self.symbols.id(Kind::Digest, &digest.name);
            let name = digest.name.clone();
            let preamble = self.preamble(Kind::Digest, &name, &[], &[]);
            let type_spec = Some(self.type_spec(&ty));
            self.check_data(&ty, &format!("digest `{name}`"), span);
            self.info.digests.push(p4::Digest {
                preamble,
                type_spec,
            });
        }
        for ty in &module.controller_headers {
            if let Ty::Header(id) = ty {
                self.controller_header(module.types.structure(*id), lowered);
            }
        }
    }

    /// Returns the P4Info match fields of a value set: one for each scalar of its struct or tuple, in the
    /// order in which the program compares them.
    fn value_set_fields(&mut self, ty: &Ty, span: Span) -> Vec<p4::MatchField> {
        let mut parts = Vec::new();
        self.parts(ty, String::new(), &[], &mut parts);
        let annotations: Vec<&[Annotation]> = parts.iter().map(|(_, a, _)| &**a).collect();
        let ids = self.member_ids(&annotations, span);
        let fields = parts.iter().zip(ids).map(|((name, annotations, ty), id)| {
            let exposed = self.exposed(ty);
            let kind = match_kind(annotations);
            let annotations = self.annotations(annotations, &["match"]);
            with_kind(annotations.match_field(id, name.clone(), exposed), kind)
        });
        fields.collect()
    }

    /// Appends to `out` the name, annotations and type of each scalar that the type `ty` consists of;
    /// `name` is the prefix of the names. A scalar that is no field of a struct has an empty name.
    fn parts(
        &self,
        ty: &Ty,
        name: String,
        annotations: &[Annotation],
        out: &mut Vec<(String, Vec<Annotation>, Ty)>,
    ) {
        let inner = |member: &str| match name.is_empty() {
            true => member.to_string(),
            false => format!("{name}.{member}"),
        };
        match ty {
            Ty::Struct(id) => {
                for f in &self.module.types.structure(*id).fields {
                    let name = inner(&local_name(&f.name, &f.annotations));
                    self.parts(&f.ty, name, &f.annotations, out);
                }
            }
            Ty::Tuple(items) => {
                for item in items.iter() {
                    self.parts(item, name.clone(), annotations, out);
                }
            }
            _ => out.push((name, annotations.to_vec(), ty.clone())),
        }
    }

    fn controller_header(&mut self, def: &StructDef, lowered: &mut Lowered) {
        let symbol = local_name(&def.name, &def.annotations);
        let name = find(&def.annotations, "controller_header")
            .and_then(Annotation::string)
            .unwrap_or_default();
        let id = self.symbols.id(Kind::ControllerHeader, &symbol);
        let annotations = self.annotations(&def.annotations, &[]);
        let preamble = Some(annotations.preamble(id, name.clone(), name));
        let mut fields = Vec::new();
        self.flatten(&def.fields, "", &mut fields);
        let annotations: Vec<&[Annotation]> = fields.iter().map(|(_, f)| &*f.annotations).collect();
        let ids = self.member_ids(&annotations, Span::default());
        self.check_member_names(
            fields.iter().map(|(name, f)| (&**name, f.span)),
            "fields of this header",
        );
        let wire = fields.iter().zip(&ids).map(|((_, field), id)| {
            let width = self.module.types.scalar_width(&field.ty).unwrap_or(1);
            ir::ControllerField { id: *id, width }
        });
        if !fields.is_empty() {
            let headers = &mut lowered.program.controller_headers;
            headers.push(ir::ControllerHeader {
                fields: wire.collect(),
                name: symbol,
                id,
            });
        }
        let mut metadata = Vec::new();
        for ((name, field), id) in fields.iter().zip(ids) {
            if is_hidden(&field.annotations) {
                continue;
            }
            let (bitwidth, type_name) = self.exposed(&field.ty);
            if bitwidth == 0 && type_name.is_none() {
                self.diagnostics
                    .push(errors::controller_field(field.span, name));
            }
            let annotations = self.annotations(&field.annotations, &[]);
            metadata.push(p4::controller_packet_metadata::Metadata {
                id,
                name: name.clone(),
                annotations: annotations.unstructured,
                structured_annotations: annotations.structured,
                bitwidth,
                type_name,
                annotation_locations: Vec::new(),
            });
        }
        self.info
            .controller_packet_metadata
            .push(p4::ControllerPacketMetadata { preamble, metadata });
    }
}

/// Returns the match kind that the annotation `@match` gives to a part of a value set's key; exact without
/// the annotation.
fn match_kind(annotations: &[Annotation]) -> ir::MatchKind {
    let named = match find(annotations, "match").map(|a| &a.body) {
        Some(ast::AnnotationBody::Tokens(tokens)) => {
            tokens.first().and_then(|t| ir::MatchKind::of_name(&t.text))
        }
        _ => None,
    };
    let looked_up = named.filter(|kind| kind.is_looked_up());
    looked_up.unwrap_or(ir::MatchKind::Exact)
}

fn with_kind(field: p4::MatchField, kind: ir::MatchKind) -> p4::MatchField {
    use p4::match_field::{Match, MatchType};
    let kind = MatchType::from_str_name(&kind.name().to_uppercase());
    let kind = kind.unwrap_or(MatchType::Unspecified);
    let r#match = Some(Match::MatchType(kind as i32));
    p4::MatchField { r#match, ..field }
}

fn scope(scope: ir::ActionScope) -> p4::action_ref::Scope {
    match scope {
        ir::ActionScope::Both => p4::action_ref::Scope::TableAndDefault,
        ir::ActionScope::TableOnly => p4::action_ref::Scope::TableOnly,
        ir::ActionScope::DefaultOnly => p4::action_ref::Scope::DefaultOnly,
    }
}

fn counted(unit: ir::CounterUnit) -> p4::CounterSpec {
    let unit = match unit {
        ir::CounterUnit::Bytes => p4::counter_spec::Unit::Bytes,
        ir::CounterUnit::Packets => p4::counter_spec::Unit::Packets,
        ir::CounterUnit::Both => p4::counter_spec::Unit::Both,
    };
    p4::CounterSpec { unit: unit as i32 }
}

fn metered(meter: &ir::Meter) -> p4::MeterSpec {
    let unit = match meter.bytes {
        true => p4::meter_spec::Unit::Bytes,
        false => p4::meter_spec::Unit::Packets,
    };
    p4::MeterSpec {
        unit: unit as i32,
        ..p4::MeterSpec::default()
    }
}
