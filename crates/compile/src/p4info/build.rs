//! From a lowered program to its P4Info; gives the program's objects their P4Runtime ids on the way.

use num_bigint::BigInt;
use syntax::ast::{self, Annotation};
use syntax::diagnostics::{Diagnostic, Sink};
use syntax::source::Span;

use super::annotate::{
    annotations, find, given_id, local_name, number, pairs, size_semantics, translation,
};
use super::ids::{IdError, Kind, Symbols, member_ids};
use super::*;
use crate::check::closest;
use crate::errors;
use crate::fold;
use crate::hir::{self, Module};
use crate::lower::{ExternInfo, ExternKind, Lowered};
use crate::types::{FieldDef, StructDef, StructId, Ty};

/// Makes the P4Info and sets the ids in the program.
pub(crate) fn build(module: &Module, lowered: &mut Lowered) -> (P4Info, Vec<Diagnostic>) {
    let mut builder = Builder {
        module,
        symbols: Symbols::default(),
        info: P4Info::default(),
        diagnostics: Sink::default(),
    };
    builder.collect(lowered);
    builder.symbols.assign();
    builder.package(lowered);
    builder.actions(lowered);
    builder.tables(lowered);
    builder.externs(lowered);
    builder.rest(lowered);
    (builder.info, builder.diagnostics.into_vec())
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

struct Builder<'a> {
    module: &'a Module,
    symbols: Symbols,
    info: P4Info,
    diagnostics: Sink,
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

/// Whether the control plane knows nothing of what has these annotations.
fn is_hidden(annotations: &[Annotation]) -> bool {
    find(annotations, "hidden").is_some()
}

/// A value in as many bytes as its type needs.
fn value_bytes(value: &BigInt, width: u32) -> Vec<u8> {
    fold::to_bits(value, width).to_be_bytes()
}

impl Builder<'_> {
    fn add(&mut self, kind: Kind, name: &str, annotations: &[Annotation], span: Span, what: &str) {
        if self.symbols.contains(kind, name) {
            self.diagnostics
                .push(errors::control_name_twice(span, name, what));
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
        for (id, _) in &lowered.info.digests {
            let name = &lowered.program.digests[id.index()].name;
            self.add(Kind::Digest, name, &[], Span::default(), "digest");
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

    fn annotations(&mut self, given: &[Annotation], without: &[&str]) -> Annotations {
        annotations(given, without, &mut self.diagnostics)
    }

    fn preamble(
        &mut self,
        kind: Kind,
        name: &str,
        annotations: &[Annotation],
        without: &[&str],
    ) -> Preamble {
        Preamble {
            id: self.symbols.id(kind, name),
            name: name.to_string(),
            alias: self.symbols.alias(name),
            annotations: self.annotations(annotations, without),
        }
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

    fn package(&mut self, lowered: &Lowered) {
        let var = self.module.var(lowered.main);
        let architecture = lowered.program.architecture.description().name;
        let mut fields = BTreeMap::new();
        for (key, value, span) in self.known_pairs(&var.annotations, "pkginfo", &PACKAGE_FIELDS) {
            match value {
                Some(AnnotationValue::Text(text)) => {
                    fields.insert(key, text);
                }
                _ => self
                    .diagnostics
                    .push(errors::annotation_pair(span, &key, "a string")),
            }
        }
        let arch = fields.remove("arch").unwrap_or_else(|| architecture.into());
        let mut platform_properties = BTreeMap::new();
        for (key, value, span) in
            self.known_pairs(&var.annotations, "platform_property", &PLATFORM_PROPERTIES)
        {
            match value.and_then(|v| match v {
                AnnotationValue::Number(n) => u32::try_from(n).ok().filter(|n| *n <= INT32_MAX),
                _ => None,
            }) {
                Some(number) => {
                    platform_properties.insert(key, number);
                }
                None => {
                    let wanted = format!("a number from 0 to {INT32_MAX}");
                    self.diagnostics
                        .push(errors::annotation_pair(span, &key, &wanted));
                }
            }
        }
        let annotations = self.annotations(&var.annotations, &["pkginfo", "platform_property"]);
        self.info.pkg_info = PkgInfo {
            arch,
            fields,
            platform_properties,
            annotations,
        };
    }

    /// The pairs in an annotation of the package whose keys P4Info has; others are reported.
    fn known_pairs(
        &mut self,
        annotations: &[Annotation],
        name: &str,
        known: &[&str],
    ) -> Vec<(String, Option<AnnotationValue>, Span)> {
        let mut out: Vec<(String, Option<AnnotationValue>, Span)> = Vec::new();
        for annotation in annotations.iter().filter(|a| a.name.as_str() == name) {
            let Some(pairs) = pairs(annotation) else {
                self.diagnostics
                    .push(errors::annotation_pairs(annotation.span, name));
                continue;
            };
            for pair in pairs {
                if !known.contains(&pair.key.as_str()) {
                    let like = closest(&pair.key, known.iter().copied());
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

    /// Reports a number that is too large for its field in P4Info.
    fn bounded(&mut self, what: &str, value: u64, limit: u64, span: Span) {
        if value > limit {
            self.diagnostics
                .push(errors::beyond_p4info(span, what, value, limit));
        }
    }

    fn is_hidden_action(&self, action: hir::ActionId) -> bool {
        is_hidden(&self.module.actions[action.index()].annotations)
    }

    /// The width that the control plane sees, and the name of the type if it is a new type.
    fn exposed(&mut self, ty: &Ty) -> (u32, Option<String>) {
        let width = self.module.types.scalar_width(ty).unwrap_or(0);
        let _ = self.type_spec(ty);
        match ty {
            Ty::New(id) => {
                let def = self.module.types.new_type(*id);
                let name = local_name(&def.name, &def.annotations);
                let width = match self
                    .info
                    .type_info
                    .new_types
                    .get(&name)
                    .map(|n| &n.representation)
                {
                    Some(NewTypeSpec::TranslatedString(_)) => 0,
                    Some(NewTypeSpec::TranslatedBits(_, width)) => *width,
                    _ => width,
                };
                (width, Some(name))
            }
            Ty::Enum(id) => {
                let def = self.module.types.enumeration(*id);
                match def.underlying {
                    Some(_) => (width, None),
                    None => (0, Some(local_name(&def.name, &def.annotations))),
                }
            }
            Ty::Error => (0, None),
            _ => (width, None),
        }
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
            let mut params = Vec::new();
            for ((var, id), param) in vars.iter().zip(ids).zip(&mut action.params) {
                param.id = id;
                let (bitwidth, type_name) = self.exposed(&var.ty);
                let annotations = self.annotations(&var.annotations, &[]);
                params.push(Param {
                    id,
                    name: param.name.clone(),
                    annotations,
                    bitwidth,
                    type_name,
                });
            }
            if !is_hidden(&def.annotations) {
                let preamble =
                    self.preamble(Kind::Action, &action.name.clone(), &def.annotations, &[]);
                self.info.actions.push(Action { preamble, params });
            }
        }
        for (name, declaration) in &lowered.info.called {
            let def = &module.actions[declaration.index()];
            let listed = self.info.actions.iter().any(|a| a.preamble.name == *name);
            if !listed && !is_hidden(&def.annotations) {
                let preamble = self.preamble(Kind::Action, name, &def.annotations, &[]);
                self.info.actions.push(Action {
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
            let mut match_fields = Vec::new();
            for ((key, id), out) in def
                .keys
                .iter()
                .zip(ids)
                .zip(&mut lowered.program.tables[info.table.index()].keys)
            {
                out.id = id;
                if key.match_kind == ir::MatchKind::Selector {
                    continue;
                }
                let (bitwidth, type_name) = self.exposed(&key.expr.ty);
                let annotations = self.annotations(&key.annotations, &[]);
                let (name, kind) = (key.name.clone(), key.match_kind);
                match_fields.push(MatchField {
                    id,
                    name,
                    annotations,
                    bitwidth,
                    kind,
                    type_name,
                });
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
                table.size,
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
        preamble: Preamble,
        match_fields: Vec<MatchField>,
    ) -> Table {
        let program = &lowered.program;
        let table = &program.tables[info.table.index()];
        let listed = table.actions.iter().zip(&def.actions);
        let visible: Vec<_> = listed
            .filter(|(_, d)| !self.is_hidden_action(d.action))
            .collect();
        let action_refs = visible
            .into_iter()
            .map(|(a, d)| ActionRef {
                id: program.actions[a.action.index()].id,
                scope: a.scope,
                annotations: self.annotations(&d.annotations, &[]),
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
            .map(|(p, v)| (p.id, v.to_be_bytes()));
        let id_of = |b: &Self, position: Option<usize>| {
            position.map(|i| {
                let e: &ExternInfo = &lowered.info.externs[i];
                b.symbols.id(extern_symbol(&e.kind), &e.name)
            })
        };
        Table {
            preamble,
            match_fields,
            action_refs,
            const_default_action_id: if table.const_default_action && !hidden_default {
                default.id
            } else {
                0
            },
            initial_default_action: (!hidden_default).then(|| TableActionCall {
                action_id: default.id,
                arguments: args.collect(),
            }),
            implementation_id: id_of(self, info.profile).unwrap_or(0),
            direct_resource_ids: [info.counter, info.meter]
                .into_iter()
                .filter_map(|r| id_of(self, r))
                .collect(),
            size: table.size,
            idle_timeout: table.support_timeout,
            is_const_table: table.const_entries,
            has_initial_entries: !def.entries.is_empty(),
        }
    }

    fn index_type(&mut self, ty: &Option<Ty>) -> Option<String> {
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
                    let (type_spec, index_type_name) = (self.type_spec(ty), self.index_type(index));
                    let limit = u64::from(INT32_MAX);
                    self.bounded("the size of a register", size, limit, info.span);
                    self.info.registers.push(Register {
                        preamble,
                        type_spec,
                        size,
                        index_type_name,
                    });
                }
                ExternKind::Counter(counter, index) => {
                    let counter = &mut lowered.program.counters[counter.index()];
                    counter.id = id;
                    let (unit, size) = (counter.unit, counter.size.unwrap_or(0));
                    let index_type_name = self.index_type(index);
                    self.info.counters.push(Indexed {
                        preamble,
                        unit,
                        size,
                        index_type_name,
                    });
                }
                ExternKind::DirectCounter(counter) => {
                    let owner = table(&|t| t.counter == Some(i));
                    let counter = &mut lowered.program.counters[counter.index()];
                    counter.id = id;
                    let unit = counter.unit;
                    // One that no table names has no entries to count.
                    if let Some(direct_table_id) = owner {
                        self.info.direct_counters.push(Direct {
                            preamble,
                            unit,
                            direct_table_id,
                        });
                    }
                }
                ExternKind::Meter(meter, index) => {
                    let meter = &mut lowered.program.meters[meter.index()];
                    meter.id = id;
                    let (unit, size) = (metered(meter), meter.size.unwrap_or(0));
                    let index_type_name = self.index_type(index);
                    self.info.meters.push(Indexed {
                        preamble,
                        unit,
                        size,
                        index_type_name,
                    });
                }
                ExternKind::DirectMeter(meter) => {
                    let owner = table(&|t| t.meter == Some(i));
                    let meter = &mut lowered.program.meters[meter.index()];
                    meter.id = id;
                    let unit = metered(meter);
                    if let Some(direct_table_id) = owner {
                        self.info.direct_meters.push(Direct {
                            preamble,
                            unit,
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
                            .and_then(size_semantics)
                            .map(|semantics| match semantics {
                                SizeSemantics::SumOfMembers(_) => SizeSemantics::SumOfMembers(
                                    number(&info.annotations, "max_member_weight"),
                                ),
                                SizeSemantics::SumOfWeights => SizeSemantics::SumOfWeights,
                            });
                        selector.max_group_size = max_group_size.into();
                        selector.sum_of_members =
                            matches!(semantics, Some(SizeSemantics::SumOfMembers(_)));
                    }
                    let profile = ActionProfile {
                        preamble,
                        table_ids,
                        with_selector: declared.selector.is_some(),
                        size: declared.size,
                        max_group_size,
                        size_semantics: semantics,
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
            self.info.value_sets.push(ValueSet {
                preamble,
                fields,
                size,
            });
        }
        for (id, ty) in lowered.info.digests.clone() {
            let digest = &mut lowered.program.digests[id.index()];
            digest.id = self.symbols.id(Kind::Digest, &digest.name);
            let name = digest.name.clone();
            let preamble = self.preamble(Kind::Digest, &name, &[], &[]);
            let type_spec = self.type_spec(&ty);
            self.info.digests.push(Digest {
                preamble,
                type_spec,
            });
        }
        for ty in &module.controller_headers {
            if let Ty::Header(id) = ty {
                self.controller_header(module.types.structure(*id));
            }
        }
    }

    fn value_set_fields(&mut self, ty: &Ty, span: Span) -> Vec<MatchField> {
        let module = self.module;
        let Ty::Struct(id) = ty else {
            let bitwidth = module.types.scalar_width(ty).unwrap_or(0);
            let (name, annotations, type_name) = (String::new(), Annotations::default(), None);
            return vec![MatchField {
                id: 1,
                name,
                annotations,
                bitwidth,
                kind: ir::MatchKind::Exact,
                type_name,
            }];
        };
        let fields = &module.types.structure(*id).fields;
        let annotations: Vec<&[Annotation]> = fields.iter().map(|f| &*f.annotations).collect();
        let ids = self.member_ids(&annotations, span);
        let kind = |f: &FieldDef| match find(&f.annotations, "match").map(|a| &a.body) {
            Some(ast::AnnotationBody::Tokens(tokens)) => match tokens.first().map(|t| &*t.text) {
                Some("ternary") => ir::MatchKind::Ternary,
                Some("lpm") => ir::MatchKind::Lpm,
                Some("range") => ir::MatchKind::Range,
                Some("optional") => ir::MatchKind::Optional,
                _ => ir::MatchKind::Exact,
            },
            _ => ir::MatchKind::Exact,
        };
        fields
            .iter()
            .zip(ids)
            .map(|(f, id)| MatchField {
                id,
                name: local_name(&f.name, &f.annotations),
                annotations: self.annotations(&f.annotations, &["match"]),
                bitwidth: module.types.scalar_width(&f.ty).unwrap_or(0),
                kind: kind(f),
                type_name: None,
            })
            .collect()
    }

    fn controller_header(&mut self, def: &StructDef) {
        let symbol = local_name(&def.name, &def.annotations);
        let name = find(&def.annotations, "controller_header")
            .and_then(Annotation::string)
            .unwrap_or_default();
        let preamble = Preamble {
            id: self.symbols.id(Kind::ControllerHeader, &symbol),
            alias: name.clone(),
            name,
            annotations: self.annotations(&def.annotations, &[]),
        };
        let mut fields = Vec::new();
        self.flatten(&def.fields, "", &mut fields);
        let annotations: Vec<&[Annotation]> = fields.iter().map(|(_, f)| &*f.annotations).collect();
        let ids = self.member_ids(&annotations, Span::default());
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
            metadata.push(Param {
                id,
                name: name.clone(),
                annotations,
                bitwidth,
                type_name,
            });
        }
        self.info
            .controller_packet_metadata
            .push(ControllerPacketMetadata { preamble, metadata });
    }

    /// The fields of a header with structs inside of it taken apart.
    fn flatten(&self, fields: &[FieldDef], prefix: &str, out: &mut Vec<(String, FieldDef)>) {
        for field in fields {
            let name = format!("{prefix}{}", local_name(&field.name, &field.annotations));
            match &field.ty {
                Ty::Struct(id) => {
                    let inner = self.module.types.structure(*id).fields.clone();
                    self.flatten(&inner, &format!("{name}."), out);
                }
                _ => out.push((name, field.clone())),
            }
        }
    }

    fn struct_name(&self, id: StructId) -> String {
        let def = self.module.types.structure(id);
        let args: String = def
            .args
            .iter()
            .map(|t| format!("_{}", self.module.types.show(t)))
            .collect();
        local_name(&def.name, &def.annotations) + &args.replace(['<', '>'], "")
    }

    /// A type; named types join the type info.
    fn type_spec(&mut self, ty: &Ty) -> TypeSpec {
        let module = self.module;
        match ty {
            Ty::Bit(w) => TypeSpec::Bit(*w),
            Ty::Signed(w) => TypeSpec::Int(*w),
            Ty::Varbit(w) => TypeSpec::Varbit(*w),
            Ty::Bool => TypeSpec::Bool,
            Ty::Error => {
                self.info.type_info.errors =
                    module.types.errors.iter().map(|e| e.to_string()).collect();
                TypeSpec::Error
            }
            Ty::Tuple(items) => TypeSpec::Tuple(items.iter().map(|t| self.type_spec(t)).collect()),
            Ty::Struct(id) => {
                let name = self.struct_name(*id);
                if !self.info.type_info.structs.contains_key(&name) {
                    let fields = &module.types.structure(*id).fields;
                    let member = |b: &mut Self, f: &FieldDef| {
                        (local_name(&f.name, &f.annotations), b.type_spec(&f.ty))
                    };
                    let members = fields.iter().map(|f| member(self, f)).collect();
                    self.info.type_info.structs.insert(name.clone(), members);
                }
                TypeSpec::Struct(name)
            }
            Ty::Header(id) => {
                let name = self.struct_name(*id);
                let mut fields = Vec::new();
                self.flatten(&module.types.structure(*id).fields, "", &mut fields);
                let members = fields.into_iter().map(|(n, f)| {
                    let representation = module.types.representation(&f.ty);
                    (n, self.type_spec(&representation))
                });
                let members: Vec<_> = members.collect();
                self.info.type_info.headers.insert(name.clone(), members);
                TypeSpec::Header(name)
            }
            Ty::Union(id) => {
                let name = self.struct_name(*id);
                let mut members = Vec::new();
                for field in &module.types.structure(*id).fields {
                    if let TypeSpec::Header(header) = self.type_spec(&field.ty) {
                        members.push((field.name.to_string(), header));
                    }
                }
                self.info
                    .type_info
                    .header_unions
                    .insert(name.clone(), members);
                TypeSpec::HeaderUnion(name)
            }
            Ty::Stack(element, size) => match self.type_spec(element) {
                TypeSpec::HeaderUnion(name) => TypeSpec::HeaderUnionStack(name, *size),
                TypeSpec::Header(name) => TypeSpec::HeaderStack(name, *size),
                other => TypeSpec::Tuple(vec![other; *size as usize]),
            },
            Ty::Enum(id) => self.enum_spec(*id),
            Ty::New(id) => self.new_type_spec(*id),
            // Nothing else can be stored.
            _ => TypeSpec::Tuple(Vec::new()),
        }
    }

    fn enum_spec(&mut self, id: crate::types::EnumId) -> TypeSpec {
        let def = self.module.types.enumeration(id);
        let name = local_name(&def.name, &def.annotations);
        let Some(underlying) = &def.underlying else {
            let members = def.members.iter().map(|(n, _)| n.to_string()).collect();
            self.info.type_info.enums.insert(name.clone(), members);
            return TypeSpec::Enum(name);
        };
        let width = self.module.types.scalar_width(underlying).unwrap_or(1);
        let value = |v: &Option<BigInt>| value_bytes(&v.clone().unwrap_or_default(), width);
        let members = def
            .members
            .iter()
            .map(|(n, v)| (n.to_string(), value(v)))
            .collect();
        self.info.type_info.serializable_enums.insert(
            name.clone(),
            SerializableEnum {
                bitwidth: width,
                members,
            },
        );
        TypeSpec::SerializableEnum(name)
    }

    fn new_type_spec(&mut self, id: crate::types::NewTypeId) -> TypeSpec {
        let def = self.module.types.new_type(id);
        let name = local_name(&def.name, &def.annotations);
        let translated = match find(&def.annotations, "p4runtime_translation").map(|a| &a.body) {
            Some(ast::AnnotationBody::Tokens(tokens)) => translation(tokens),
            _ => None,
        };
        let representation = match translated {
            Some(translated) => translated,
            None => {
                let representation = self.module.types.representation(&Ty::New(id));
                NewTypeSpec::Original(self.type_spec(&representation))
            }
        };
        let annotations = self.annotations(&def.annotations, &["p4runtime_translation"]);
        let new_type = NewType {
            representation,
            annotations,
        };
        self.info.type_info.new_types.insert(name.clone(), new_type);
        TypeSpec::NewType(name)
    }
}

fn metered(meter: &ir::Meter) -> ir::CounterUnit {
    match meter.bytes {
        true => ir::CounterUnit::Bytes,
        false => ir::CounterUnit::Packets,
    }
}
