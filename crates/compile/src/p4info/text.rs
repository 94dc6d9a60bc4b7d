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

    /// A message for each item.
    fn each<'i, T: 'i>(
        &mut self,
        name: &str,
        items: impl IntoIterator<Item = &'i T>,
        f: impl Fn(&mut Writer, &T),
    ) {
        for item in items {
            self.message(name, |w| f(w, item));
        }
    }

    /// A message with a name in it for each name.
    fn named(&mut self, message: &str, name: &str) {
        self.message(message, |w| w.string("name", name));
    }

    fn number(&mut self, name: &str, value: impl Into<u64>) {
        let value = value.into();
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
        self.each("structured_annotations", &annotations.structured, |w, a| {
            a.write(w)
        });
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
            w.number("id", preamble.id);
            w.string("name", &preamble.name);
            w.string("alias", &preamble.alias);
            w.annotations(&preamble.annotations);
            w.doc(&preamble.annotations);
        });
    }

    fn type_name(&mut self, field: &str, name: &Option<String>) {
        if let Some(name) = name {
            self.named(field, name);
        }
    }
}

impl P4Info {
    /// Protobuf text format.
    pub fn to_text(&self) -> String {
        let mut w = Writer::default();
        w.message("pkg_info", |w| {
            let fields = |w: &mut Writer, keys: &[&str]| {
                for key in keys {
                    if let Some(value) = self.pkg_info.fields.get(*key) {
                        w.string(key, value);
                    }
                }
            };
            fields(w, &["name", "version"]);
            w.annotations(&self.pkg_info.annotations);
            w.doc(&self.pkg_info.annotations);
            w.string("arch", &self.pkg_info.arch);
            fields(w, &["organization", "contact", "url"]);
            if !self.pkg_info.platform_properties.is_empty() {
                w.message("platform_properties", |w| {
                    for (name, value) in &self.pkg_info.platform_properties {
                        w.number(name, *value);
                    }
                });
            }
        });
        w.each("tables", &self.tables, |w, table| table.write(w));
        w.each("actions", &self.actions, |w, action| {
            w.preamble(&action.preamble);
            w.each("params", &action.params, |w, param| {
                param.write(w);
                w.doc(&param.annotations);
            });
        });
        w.each("action_profiles", &self.action_profiles, |w, p| p.write(w));
        self.write_counters(&mut w);
        self.write_meters(&mut w);
        let packets = &self.controller_packet_metadata;
        w.each("controller_packet_metadata", packets, |w, header| {
            w.preamble(&header.preamble);
            w.each("metadata", &header.metadata, |w, p| p.write(w));
        });
        w.each("value_sets", &self.value_sets, |w, set| {
            w.preamble(&set.preamble);
            w.each("match", &set.fields, |w, field| field.write(w));
            w.number("size", set.size);
        });
        w.each("registers", &self.registers, |w, register| {
            w.preamble(&register.preamble);
            w.message("type_spec", |w| register.type_spec.write(w));
            w.number("size", register.size);
            w.type_name("index_type_name", &register.index_type_name);
        });
        w.each("digests", &self.digests, |w, digest| {
            w.preamble(&digest.preamble);
            w.message("type_spec", |w| digest.type_spec.write(w));
        });
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
        w.each("counters", &self.counters, |w, counter| {
            w.preamble(&counter.preamble);
            w.message("spec", |w| w.word("unit", unit(counter.unit)));
            w.number("size", counter.size);
            w.type_name("index_type_name", &counter.index_type_name);
        });
        w.each("direct_counters", &self.direct_counters, |w, counter| {
            w.preamble(&counter.preamble);
            w.message("spec", |w| w.word("unit", unit(counter.unit)));
            w.number("direct_table_id", counter.direct_table_id);
        });
    }

    fn write_meters(&self, w: &mut Writer) {
        let unit = |bytes: bool| if bytes { "BYTES" } else { "PACKETS" };
        w.each("meters", &self.meters, |w, meter| {
            w.preamble(&meter.preamble);
            w.message("spec", |w| w.word("unit", unit(meter.bytes)));
            w.number("size", meter.size);
            w.type_name("index_type_name", &meter.index_type_name);
        });
        w.each("direct_meters", &self.direct_meters, |w, meter| {
            w.preamble(&meter.preamble);
            w.message("spec", |w| w.word("unit", unit(meter.bytes)));
            w.number("direct_table_id", meter.direct_table_id);
        });
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
                w.each("expressions", items, value);
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
        w.each("match_fields", &self.match_fields, |w, field| {
            field.write(w)
        });
        w.each("action_refs", &self.action_refs, |w, action| {
            w.number("id", action.id);
            w.annotations(&action.annotations);
            match action.scope {
                ir::ActionScope::Both => {}
                ir::ActionScope::TableOnly => w.word("scope", "TABLE_ONLY"),
                ir::ActionScope::DefaultOnly => w.word("scope", "DEFAULT_ONLY"),
            }
        });
        w.number("const_default_action_id", self.const_default_action_id);
        if let Some(call) = &self.initial_default_action {
            w.message("initial_default_action", |w| {
                w.number("action_id", call.action_id);
                for (param, value) in &call.arguments {
                    w.message("arguments", |w| {
                        w.number("param_id", *param);
                        w.bytes("value", value);
                    });
                }
            });
        }
        w.number("implementation_id", self.implementation_id);
        self.direct_resource_ids
            .iter()
            .for_each(|id| w.number("direct_resource_ids", *id));
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
        w.number("id", self.id);
        if !self.name.is_empty() {
            w.string("name", &self.name);
        }
        w.annotations(&self.annotations);
        w.doc(&self.annotations);
        w.number("bitwidth", self.bitwidth);
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
        w.number("id", self.id);
        w.string("name", &self.name);
        w.annotations(&self.annotations);
        w.number("bitwidth", self.bitwidth);
        w.type_name("type_name", &self.type_name);
    }
}

impl ActionProfile {
    fn write(&self, w: &mut Writer) {
        w.preamble(&self.preamble);
        self.table_ids
            .iter()
            .for_each(|id| w.number("table_ids", *id));
        if self.with_selector {
            w.word("with_selector", "true");
        }
        w.number("size", self.size);
        w.number("max_group_size", self.max_group_size);
        match self.size_semantics {
            Some(SizeSemantics::SumOfWeights) => w.message("sum_of_weights", |_| {}),
            Some(SizeSemantics::SumOfMembers(weight)) => w.message("sum_of_members", |w| {
                w.number("max_member_weight", weight);
            }),
            None => {}
        }
    }
}

impl TypeSpec {
    fn write(&self, w: &mut Writer) {
        let stack = |w: &mut Writer, kind: &str, of: &str, name: &str, size: u32| {
            w.message(kind, |w| {
                w.named(of, name);
                w.number("size", size);
            });
        };
        match self {
            TypeSpec::Bit(_) | TypeSpec::Int(_) | TypeSpec::Varbit(_) => {
                w.message("bitstring", |w| self.write_bits(w));
            }
            TypeSpec::Bool => w.message("bool", |_| {}),
            TypeSpec::Tuple(items) => w.message("tuple", |w| {
                w.each("members", items, |w, item| item.write(w));
            }),
            TypeSpec::Struct(name) => w.named("struct", name),
            TypeSpec::Header(name) => w.named("header", name),
            TypeSpec::HeaderUnion(name) => w.named("header_union", name),
            TypeSpec::HeaderStack(name, size) => stack(w, "header_stack", "header", name, *size),
            TypeSpec::HeaderUnionStack(name, size) => {
                stack(w, "header_union_stack", "header_union", name, *size)
            }
            TypeSpec::Enum(name) => w.named("enum", name),
            TypeSpec::SerializableEnum(name) => w.named("serializable_enum", name),
            TypeSpec::Error => w.message("error", |_| {}),
            TypeSpec::NewType(name) => w.named("new_type", name),
        }
    }

    /// What is inside of P4BitstringLikeTypeSpec.
    fn write_bits(&self, w: &mut Writer) {
        match self {
            TypeSpec::Int(width) => w.message("int", |w| w.number("bitwidth", *width)),
            TypeSpec::Varbit(width) => w.message("varbit", |w| w.number("max_bitwidth", *width)),
            TypeSpec::Bit(width) => w.message("bit", |w| w.number("bitwidth", *width)),
            _ => {}
        }
    }
}

impl TypeInfo {
    fn write(&self, w: &mut Writer) {
        let entry = |w: &mut Writer, map: &str, name: &str, f: &dyn Fn(&mut Writer)| {
            w.message(map, |w| {
                w.string("key", name);
                w.message("value", f);
            });
        };
        for (name, members) in &self.structs {
            entry(w, "structs", name, &|w| {
                w.each("members", members, |w, (name, ty)| {
                    w.string("name", name);
                    w.message("type_spec", |w| ty.write(w));
                });
            });
        }
        for (name, members) in &self.headers {
            entry(w, "headers", name, &|w| {
                w.each("members", members, |w, (name, ty)| {
                    w.string("name", name);
                    w.message("type_spec", |w| ty.write_bits(w));
                });
            });
        }
        for (name, members) in &self.header_unions {
            entry(w, "header_unions", name, &|w| {
                w.each("members", members, |w, (name, header)| {
                    w.string("name", name);
                    w.named("header", header);
                });
            });
        }
        for (name, members) in &self.enums {
            entry(w, "enums", name, &|w| {
                w.each("members", members, |w, member| w.string("name", member));
            });
        }
        if !self.errors.is_empty() {
            w.message("error", |w| {
                self.errors.iter().for_each(|e| w.string("members", e))
            });
        }
        for (name, SerializableEnum { bitwidth, members }) in &self.serializable_enums {
            entry(w, "serializable_enums", name, &|w| {
                w.message("underlying_type", |w| w.number("bitwidth", *bitwidth));
                w.each("members", members, |w, (name, value)| {
                    w.string("name", name);
                    w.bytes("value", value);
                });
            });
        }
        for (name, new_type) in &self.new_types {
            entry(w, "new_types", name, &|w| {
                match &new_type.representation {
                    NewTypeSpec::Original(ty) => w.message("original_type", |w| ty.write(w)),
                    NewTypeSpec::TranslatedBits(uri, width) => w.message("translated_type", |w| {
                        w.string("uri", uri);
                        w.number("sdn_bitwidth", *width);
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
