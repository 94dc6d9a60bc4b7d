//! The whole program: types, functions, controls that are applied by others, and the six blocks of the switch.

use super::call::CALLS;
use super::types::{HEADERS, METADATA, STANDARD, Type};
use super::{
    BLOCK_STATEMENTS, Callable, DEPTH, Direction, Generator, Parameter, SMALL_STATEMENTS, Scope,
    Section,
};

impl Generator<'_> {
    pub(super) fn program(&mut self) {
        self.line("#include <core.p4>");
        self.line("#include <v1model.p4>");
        self.declare_types();
        self.declare_constants();
        for _ in 0..self.choices.below(4) {
            self.declare_function();
        }
        if self.choices.one_in(3) {
            self.declare_sub_parser();
        }
        for _ in 0..self.choices.below(2) {
            self.declare_sub_control();
        }
        self.declare_parser();
        self.declare_checksum("MyVerify", "verify");
        self.declare_control("MyIngress", Section::Ingress);
        self.declare_control("MyEgress", Section::Egress);
        self.declare_checksum("MyCompute", "update");
        self.declare_deparser();
        self.line("V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main;");
    }

    pub(super) fn parameters(&mut self, types: &[Type]) -> Vec<Parameter> {
        let directions = [Direction::In, Direction::InOut, Direction::Out];
        let parameter = |ty: &Type| Parameter {
            name: self.name("p"),
            direction: self.choices.pick(&directions),
            ty: ty.clone(),
        };
        types.iter().map(parameter).collect()
    }

    fn declare_function(&mut self) {
        let result = match self.choices.below(6) {
            1 => Type::Bool,
            2 => Type::Int(self.width().max(2)),
            3 => self.argument_type(),
            _ => Type::Bit(self.choices.pick(&[8, 16, 32, 9])),
        };
        // Values of stacks cannot be written out.
        let result = match result {
            Type::Stack(..) => Type::Bit(8),
            result => result,
        };
        let count = 1 + self.choices.below(3);
        let types: Vec<Type> = (0..count).map(|_| self.argument_type()).collect();
        let parameters = self.parameters(&types);
        let name = self.name("function_");
        self.scope = Scope {
            result: Some(result.clone()),
            ..Scope::default()
        };
        for parameter in &parameters {
            self.declare(parameter);
        }
        let list = self.parameter_list(&parameters);
        let declared = self.types.name(&result);
        self.open(format!("{declared} {name}({list})"));
        self.body_of(SMALL_STATEMENTS);
        self.touched.clear();
        let value = self.expression(&result, DEPTH - 1);
        self.line(format!("return {value};"));
        self.close();
        self.functions.push(Callable {
            name,
            parameters,
            result,
        });
    }

    /// Declares a control that both the ingress and the egress control may apply, also several times.
    fn declare_sub_control(&mut self) {
        let types = [Type::Header(0), Type::Bit(8), self.argument_type()];
        let parameters = self.parameters(&types);
        let name = self.name("Control");
        self.scope = Scope {
            section: Section::Both,
            may_exit: true,
            ..Scope::default()
        };
        for parameter in &parameters {
            self.declare(parameter);
        }
        let list = self.parameter_list(&parameters);
        self.open(format!("control {name}({list})"));
        self.declare_objects();
        self.declare_actions();
        self.declare_tables();
        self.open("apply");
        self.scope.may_leave = true;
        self.statements_left = SMALL_STATEMENTS;
        self.allow_calls(CALLS);
        self.apply_table();
        self.body_of(SMALL_STATEMENTS);
        self.close();
        self.close();
        self.controls.push(Callable {
            name,
            parameters,
            result: Type::Bool,
        });
    }

    fn expand_blocks(&mut self, writable: bool, standard: bool) {
        let (types, variables) = (&self.types, &mut self.scope.variables);
        types.expand("hdr", &Type::Struct(HEADERS), writable, variables);
        types.expand("meta", &Type::Struct(METADATA), writable, variables);
        self.scope.has_zero = true;
        if standard {
            // Statements of its own write the fields that steer the packet.
            types.expand("sm", &Type::Struct(STANDARD), false, variables);
        }
    }

    fn declare_control(&mut self, name: &str, section: Section) {
        self.scope = Scope {
            section,
            may_exit: true,
            ..Scope::default()
        };
        self.expand_blocks(true, true);
        self.open(format!(
            "control {name}(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm)"
        ));
        self.declare_objects();
        for i in 0..self.controls.len() {
            let (class, instance) = (self.controls[i].name.clone(), self.name("sub"));
            self.line(format!("{class}() {instance};"));
            self.scope.instances.push((instance, i));
        }
        self.declare_actions();
        self.declare_tables();
        self.open("apply");
        self.scope.may_leave = true;
        if section == Section::Ingress {
            let port = self.choices.below(4);
            self.line(format!("sm.egress_spec = {port};"));
        }
        for _ in 0..2 {
            self.statements_left = BLOCK_STATEMENTS / 2;
            self.allow_calls(2 * CALLS);
            self.apply_table();
            self.body();
        }
        if section == Section::Egress {
            self.show_metadata();
        }
        self.close();
        self.close();
    }

    /// Writes statements that store the sum of all metadata fields in a header, so that a difference in metadata
    /// becomes visible in the packet.
    fn show_metadata(&mut self) {
        self.line("hdr.sum.setValid();");
        let variables = self.scope.variables.clone();
        for variable in variables.iter().filter(|v| v.path.starts_with("meta.")) {
            let path = &variable.path;
            let value = match variable.ty {
                Type::Bit(_) => path.clone(),
                Type::Int(width) => format!("(bit<{width}>) {path}"),
                Type::Bool => format!("(bit<1>) {path}"),
                Type::Error => format!("({path} == error.NoError ? 8w1 : 8w2)"),
                _ => continue,
            };
            self.line(format!(
                "hdr.sum.sum = (hdr.sum.sum << 1) ^ (bit<64>) ({value});"
            ));
        }
    }

    fn declare_checksum(&mut self, name: &str, verb: &str) {
        self.scope = Scope::default();
        self.expand_blocks(true, false);
        self.open(format!(
            "control {name}(inout headers_t hdr, inout metadata_t meta)"
        ));
        self.open("apply");
        for _ in 0..self.choices.below(3) {
            self.checksum(verb);
        }
        self.close();
        self.close();
    }

    fn declare_deparser(&mut self) {
        self.scope = Scope::default();
        let (types, variables) = (&self.types, &mut self.scope.variables);
        types.expand("hdr", &Type::Struct(HEADERS), false, variables);
        self.open("control MyDeparser(packet_out packet, in headers_t hdr)");
        self.open("apply");
        self.line("packet.emit(hdr.sum);");
        match self.choices.below(3) {
            0 => self.line("packet.emit(hdr);"),
            _ => {
                let fields = self.types.structs[HEADERS].fields.clone();
                for (field, _) in fields {
                    if self.choices.one_in(8) {
                        let condition = self.condition(DEPTH - 1);
                        self.line(format!("if ({condition}) {{ packet.emit(hdr.{field}); }}"));
                    } else {
                        self.line(format!("packet.emit(hdr.{field});"));
                    }
                }
            }
        }
        self.close();
        self.close();
    }
}
