//! P4Info in protobuf text format.

use std::fmt::Write as _;

use super::*;

/// Writes nested messages with indentation.
#[derive(Default)]
struct Writer {
    out: String,
    depth: usize,
}

impl Writer {
    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.out, "{:1$}{text}", "", self.depth * 2);
    }

    fn message(&mut self, name: &str, f: impl FnOnce(&mut Writer)) {
        self.line(format_args!("{name} {{"));
        self.depth += 1;
        f(self);
        self.depth -= 1;
        self.line(format_args!("}}"));
    }

    fn number(&mut self, name: &str, value: u64) {
        if value != 0 {
            self.line(format_args!("{name}: {value}"));
        }
    }

    fn string(&mut self, name: &str, value: &str) {
        self.bytes(name, value.as_bytes());
    }

    fn bytes(&mut self, name: &str, value: &[u8]) {
        let mut text = String::new();
        for byte in value {
            match byte {
                b'"' => text.push_str("\\\""),
                b'\\' => text.push_str("\\\\"),
                b'\n' => text.push_str("\\n"),
                b'\r' => text.push_str("\\r"),
                b'\t' => text.push_str("\\t"),
                b' '..=b'~' => text.push(*byte as char),
                _ => {
                    let _ = write!(text, "\\{byte:03o}");
                }
            }
        }
        self.line(format_args!("{name}: \"{text}\""));
    }

    fn word(&mut self, name: &str, value: &str) {
        self.line(format_args!("{name}: {value}"));
    }

    fn annotations(&mut self, annotations: &Annotations) {
        for text in &annotations.unstructured {
            self.string("annotations", text);
        }
        for annotation in &annotations.structured {
            self.message("structured_annotations", |w| annotation.write(w));
        }
    }

    /// The documentation among annotations.
    fn doc(&mut self, annotations: &Annotations) {
        if annotations.brief.is_none() && annotations.description.is_none() {
            return;
        }
        self.message("doc", |w| {
            for (name, text) in [
                ("brief", &annotations.brief),
                ("description", &annotations.description),
            ] {
                if let Some(text) = text {
                    w.string(name, text);
                }
            }
        });
    }

    fn preamble(&mut self, preamble: &Preamble) {
        self.message("preamble", |w| {
            w.number("id", u64::from(preamble.id));
            w.string("name", &preamble.name);
            w.string("alias", &preamble.alias);
            w.annotations(&preamble.annotations);
            w.doc(&preamble.annotations);
        });
    }

    fn type_name(&mut self, field: &str, name: &Option<String>) {
        if let Some(name) = name {
            self.message(field, |w| w.string("name", name));
        }
    }
}

impl P4Info {
    /// Protobuf text format.
    pub fn to_text(&self) -> String {
        let mut w = Writer::default();
        w.message("pkg_info", |w| {
            for key in ["name", "version"] {
                if let Some(value) = self.pkg_info.fields.get(key) {
                    w.string(key, value);
                }
            }
            w.annotations(&self.pkg_info.annotations);
            w.doc(&self.pkg_info.annotations);
            w.string("arch", &self.pkg_info.arch);
            for key in ["organization", "contact", "url"] {
                if let Some(value) = self.pkg_info.fields.get(key) {
                    w.string(key, value);
                }
            }
            if !self.pkg_info.platform_properties.is_empty() {
                w.message("platform_properties", |w| {
                    for (name, value) in &self.pkg_info.platform_properties {
                        w.number(name, u64::from(*value));
                    }
                });
            }
        });
        self.tables
            .iter()
            .for_each(|t| w.message("tables", |w| t.write(w)));
        for action in &self.actions {
            w.message("actions", |w| {
                w.preamble(&action.preamble);
                action.params.iter().for_each(|p| {
                    w.message("params", |w| {
                        p.write(w);
                        w.doc(&p.annotations);
                    })
                });
            });
        }
        self.action_profiles
            .iter()
            .for_each(|p| w.message("action_profiles", |w| p.write(w)));
        self.write_counters(&mut w);
        self.write_meters(&mut w);
        for header in &self.controller_packet_metadata {
            w.message("controller_packet_metadata", |w| {
                w.preamble(&header.preamble);
                header
                    .metadata
                    .iter()
                    .for_each(|p| w.message("metadata", |w| p.write(w)));
            });
        }
        for set in &self.value_sets {
            w.message("value_sets", |w| {
                w.preamble(&set.preamble);
                set.fields
                    .iter()
                    .for_each(|f| w.message("match", |w| f.write(w)));
                w.number("size", set.size);
            });
        }
        for register in &self.registers {
            w.message("registers", |w| {
                w.preamble(&register.preamble);
                w.message("type_spec", |w| register.type_spec.write(w));
                w.number("size", register.size);
                w.type_name("index_type_name", &register.index_type_name);
            });
        }
        for digest in &self.digests {
            w.message("digests", |w| {
                w.preamble(&digest.preamble);
                w.message("type_spec", |w| digest.type_spec.write(w));
            });
        }
        if self.type_info != TypeInfo::default() {
            w.message("type_info", |w| self.type_info.write(w));
        }
        w.out
    }

    fn write_counters(&self, w: &mut Writer) {
        let unit = |unit: ir::CounterUnit| match unit {
            ir::CounterUnit::Packets => "PACKETS",
            ir::CounterUnit::Bytes => "BYTES",
            ir::CounterUnit::Both => "BOTH",
        };
        for counter in &self.counters {
            w.message("counters", |w| {
                w.preamble(&counter.preamble);
                w.message("spec", |w| w.word("unit", unit(counter.unit)));
                w.number("size", counter.size);
                w.type_name("index_type_name", &counter.index_type_name);
            });
        }
        for counter in &self.direct_counters {
            w.message("direct_counters", |w| {
                w.preamble(&counter.preamble);
                w.message("spec", |w| w.word("unit", unit(counter.unit)));
                w.number("direct_table_id", u64::from(counter.direct_table_id));
            });
        }
    }

    fn write_meters(&self, w: &mut Writer) {
        let unit = |bytes: bool| if bytes { "BYTES" } else { "PACKETS" };
        for meter in &self.meters {
            w.message("meters", |w| {
                w.preamble(&meter.preamble);
                w.message("spec", |w| w.word("unit", unit(meter.bytes)));
                w.number("size", meter.size);
                w.type_name("index_type_name", &meter.index_type_name);
            });
        }
        for meter in &self.direct_meters {
            w.message("direct_meters", |w| {
                w.preamble(&meter.preamble);
                w.message("spec", |w| w.word("unit", unit(meter.bytes)));
                w.number("direct_table_id", u64::from(meter.direct_table_id));
            });
        }
    }
}

impl StructuredAnnotation {
    fn write(&self, w: &mut Writer) {
        let value = |w: &mut Writer, value: &AnnotationValue| match value {
            AnnotationValue::Text(text) => w.string("string_value", text),
            AnnotationValue::Number(number) => w.word("int64_value", &number.to_string()),
            AnnotationValue::Truth(truth) => w.word("bool_value", &truth.to_string()),
        };
        w.string("name", &self.name);
        match &self.body {
            AnnotationBody::List(items) => w.message("expression_list", |w| {
                items
                    .iter()
                    .for_each(|v| w.message("expressions", |w| value(w, v)));
            }),
            AnnotationBody::Pairs(pairs) => w.message("kv_pair_list", |w| {
                for (key, v) in pairs {
                    w.message("kv_pairs", |w| {
                        w.string("key", key);
                        w.message("value", |w| value(w, v));
                    });
                }
            }),
        }
    }
}

impl Table {
    fn write(&self, w: &mut Writer) {
        w.preamble(&self.preamble);
        self.match_fields
            .iter()
            .for_each(|f| w.message("match_fields", |w| f.write(w)));
        for action in &self.action_refs {
            w.message("action_refs", |w| {
                w.number("id", u64::from(action.id));
                w.annotations(&action.annotations);
                match action.scope {
                    ir::ActionScope::Both => {}
                    ir::ActionScope::TableOnly => w.word("scope", "TABLE_ONLY"),
                    ir::ActionScope::DefaultOnly => w.word("scope", "DEFAULT_ONLY"),
                }
            });
        }
        w.number(
            "const_default_action_id",
            u64::from(self.const_default_action_id),
        );
        if let Some(call) = &self.initial_default_action {
            w.message("initial_default_action", |w| {
                w.number("action_id", u64::from(call.action_id));
                for (param, value) in &call.arguments {
                    w.message("arguments", |w| {
                        w.number("param_id", u64::from(*param));
                        w.bytes("value", value);
                    });
                }
            });
        }
        w.number("implementation_id", u64::from(self.implementation_id));
        self.direct_resource_ids
            .iter()
            .for_each(|id| w.number("direct_resource_ids", u64::from(*id)));
        w.number("size", self.size);
        if self.idle_timeout {
            w.word("idle_timeout_behavior", "NOTIFY_CONTROL");
        }
        if self.is_const_table {
            w.word("is_const_table", "true");
        }
        if self.has_initial_entries {
            w.word("has_initial_entries", "true");
        }
    }
}

impl MatchField {
    fn write(&self, w: &mut Writer) {
        w.number("id", u64::from(self.id));
        if !self.name.is_empty() {
            w.string("name", &self.name);
        }
        w.annotations(&self.annotations);
        w.doc(&self.annotations);
        w.number("bitwidth", u64::from(self.bitwidth));
        let kind = match self.kind {
            ir::MatchKind::Exact => "EXACT",
            ir::MatchKind::Lpm => "LPM",
            ir::MatchKind::Ternary => "TERNARY",
            ir::MatchKind::Range => "RANGE",
            ir::MatchKind::Optional => "OPTIONAL",
            ir::MatchKind::Selector => "UNSPECIFIED",
        };
        w.word("match_type", kind);
        w.type_name("type_name", &self.type_name);
    }
}

impl Param {
    fn write(&self, w: &mut Writer) {
        w.number("id", u64::from(self.id));
        w.string("name", &self.name);
        w.annotations(&self.annotations);
        w.number("bitwidth", u64::from(self.bitwidth));
        w.type_name("type_name", &self.type_name);
    }
}

impl ActionProfile {
    fn write(&self, w: &mut Writer) {
        w.preamble(&self.preamble);
        self.table_ids
            .iter()
            .for_each(|id| w.number("table_ids", u64::from(*id)));
        if self.with_selector {
            w.word("with_selector", "true");
        }
        w.number("size", self.size);
        w.number("max_group_size", u64::from(self.max_group_size));
        match self.size_semantics {
            Some(SizeSemantics::SumOfWeights) => w.message("sum_of_weights", |_| {}),
            Some(SizeSemantics::SumOfMembers(weight)) => w.message("sum_of_members", |w| {
                w.number("max_member_weight", u64::from(weight));
            }),
            None => {}
        }
    }
}

impl TypeSpec {
    fn write(&self, w: &mut Writer) {
        let named =
            |w: &mut Writer, kind: &str, name: &str| w.message(kind, |w| w.string("name", name));
        let stack = |w: &mut Writer, kind: &str, of: &str, name: &str, size: u32| {
            w.message(kind, |w| {
                w.message(of, |w| w.string("name", name));
                w.number("size", u64::from(size));
            });
        };
        match self {
            TypeSpec::Bit(_) | TypeSpec::Int(_) | TypeSpec::Varbit(_) => {
                w.message("bitstring", |w| self.write_bits(w));
            }
            TypeSpec::Bool => w.message("bool", |_| {}),
            TypeSpec::Tuple(items) => w.message("tuple", |w| {
                items
                    .iter()
                    .for_each(|t| w.message("members", |w| t.write(w)));
            }),
            TypeSpec::Struct(name) => named(w, "struct", name),
            TypeSpec::Header(name) => named(w, "header", name),
            TypeSpec::HeaderUnion(name) => named(w, "header_union", name),
            TypeSpec::HeaderStack(name, size) => stack(w, "header_stack", "header", name, *size),
            TypeSpec::HeaderUnionStack(name, size) => {
                stack(w, "header_union_stack", "header_union", name, *size)
            }
            TypeSpec::Enum(name) => named(w, "enum", name),
            TypeSpec::SerializableEnum(name) => named(w, "serializable_enum", name),
            TypeSpec::Error => w.message("error", |_| {}),
            TypeSpec::NewType(name) => named(w, "new_type", name),
        }
    }

    /// What is inside of P4BitstringLikeTypeSpec.
    fn write_bits(&self, w: &mut Writer) {
        match self {
            TypeSpec::Int(width) => w.message("int", |w| w.number("bitwidth", u64::from(*width))),
            TypeSpec::Varbit(width) => {
                w.message("varbit", |w| w.number("max_bitwidth", u64::from(*width)))
            }
            TypeSpec::Bit(width) => w.message("bit", |w| w.number("bitwidth", u64::from(*width))),
            _ => {}
        }
    }
}

impl TypeInfo {
    fn write(&self, w: &mut Writer) {
        let entry = |w: &mut Writer, map: &str, name: &str, f: &mut dyn FnMut(&mut Writer)| {
            w.message(map, |w| {
                w.string("key", name);
                w.message("value", f);
            });
        };
        for (name, members) in &self.structs {
            entry(w, "structs", name, &mut |w| {
                for (name, ty) in members {
                    w.message("members", |w| {
                        w.string("name", name);
                        w.message("type_spec", |w| ty.write(w));
                    });
                }
            });
        }
        for (name, members) in &self.headers {
            entry(w, "headers", name, &mut |w| {
                for (name, ty) in members {
                    w.message("members", |w| {
                        w.string("name", name);
                        w.message("type_spec", |w| ty.write_bits(w));
                    });
                }
            });
        }
        for (name, members) in &self.header_unions {
            entry(w, "header_unions", name, &mut |w| {
                for (name, header) in members {
                    w.message("members", |w| {
                        w.string("name", name);
                        w.message("header", |w| w.string("name", header));
                    });
                }
            });
        }
        for (name, members) in &self.enums {
            entry(w, "enums", name, &mut |w| {
                members
                    .iter()
                    .for_each(|m| w.message("members", |w| w.string("name", m)));
            });
        }
        if !self.errors.is_empty() {
            w.message("error", |w| {
                self.errors.iter().for_each(|e| w.string("members", e))
            });
        }
        for (name, SerializableEnum { bitwidth, members }) in &self.serializable_enums {
            entry(w, "serializable_enums", name, &mut |w| {
                w.message("underlying_type", |w| {
                    w.number("bitwidth", u64::from(*bitwidth))
                });
                for (name, value) in members {
                    w.message("members", |w| {
                        w.string("name", name);
                        w.bytes("value", value);
                    });
                }
            });
        }
        for (name, new_type) in &self.new_types {
            entry(w, "new_types", name, &mut |w| {
                match &new_type.representation {
                    NewTypeSpec::Original(ty) => w.message("original_type", |w| ty.write(w)),
                    NewTypeSpec::TranslatedBits(uri, width) => w.message("translated_type", |w| {
                        w.string("uri", uri);
                        w.number("sdn_bitwidth", u64::from(*width));
                    }),
                    NewTypeSpec::TranslatedString(uri) => w.message("translated_type", |w| {
                        w.string("uri", uri);
                        w.message("sdn_string", |_| {});
                    }),
                }
                w.annotations(&new_type.annotations);
            });
        }
    }
}
