//! Externs of v1model: instances, and calls where they are allowed.

use super::types::{STANDARD, Type};
use super::{DEPTH, Generator, Section};

/// The instances of externs in a control.
#[derive(Clone, Debug, Default)]
pub(super) struct Objects {
    /// The name and the width of each register.
    pub registers: Vec<(String, u32)>,
    pub counters: Vec<String>,
    pub meters: Vec<String>,
}

/// Numbers of ports and clone sessions; there are few, so that the control plane often configures the same ones.
const SMALL: [&str; 5] = ["1", "2", "3", "7", "0"];

const ALGORITHMS: [&str; 8] = [
    "crc16",
    "crc32",
    "csum16",
    "xor16",
    "identity",
    "crc16_custom",
    "crc32_custom",
    "random",
];

impl Generator<'_> {
    pub(super) fn declare_objects(&mut self) {
        for _ in 0..self.choices.below(3) {
            let (name, width) = (self.name("register"), self.width());
            let size = 1 + self.choices.below(12);
            self.line(format!("register<bit<{width}>>({size}) {name};"));
            self.scope.objects.registers.push((name, width));
        }
        if self.choices.one_in(2) {
            let name = self.name("counter");
            let unit = self
                .choices
                .pick(&["packets", "bytes", "packets_and_bytes"]);
            self.line(format!("counter(8, CounterType.{unit}) {name};"));
            self.scope.objects.counters.push(name);
        }
        if self.choices.one_in(2) {
            let name = self.name("meter");
            let unit = self.choices.pick(&["packets", "bytes"]);
            self.line(format!("meter(8, MeterType.{unit}) {name};"));
            self.scope.objects.meters.push(name);
        }
    }

    pub(super) fn extern_call(&mut self) {
        match self.scope.section {
            Section::Parser => self.parser_call(),
            Section::Ingress | Section::Egress => self.control_call(),
            Section::Both => self.shared_call(),
            Section::Elsewhere => {}
        }
    }

    fn parser_call(&mut self) {
        let condition = self.condition(DEPTH);
        let error = self.error();
        match self.choices.below(4) {
            0 => {
                let bits = 8 * self.choices.below(4);
                self.line(format!("packet.advance({bits});"));
            }
            1 => {
                let bits = self.expression(&Type::Bit(3), 1);
                self.line(format!("packet.advance((bit<32>) {bits} << 3);"));
            }
            _ => self.line(format!("verify({condition}, {error});")),
        }
    }

    fn control_call(&mut self) {
        match self.choices.below(15) {
            0 | 1 => self.forward(),
            2 | 3 => self.register_call(),
            4 => self.counter_call(),
            5 => self.meter_call(),
            6 => self.hash(),
            7 => self.random(),
            8 => self.digest(),
            9 => self.copy(),
            10 => self.again(),
            11 => {
                let length = self.expression(&Type::Bit(6), 1);
                self.line(format!("truncate((bit<32>) {length});"));
            }
            12 => {
                let (a, b) = (self.expression(&Type::Bit(16), 1), self.condition(1));
                self.line(format!("log_msg(\"a {{}} b {{}}\", {{ {a}, {b} }});"));
            }
            13 => self.checked(),
            _ => self.line("sm.priority = 3;"),
        }
    }

    /// Writes a call of an extern that any control may use.
    fn shared_call(&mut self) {
        match self.choices.below(8) {
            0..=2 => self.register_call(),
            3 | 4 => self.counter_call(),
            5 => self.meter_call(),
            6 => self.hash(),
            _ => self.random(),
        }
    }

    /// Writes a statement that forwards the packet to a port or a multicast group, or drops it.
    fn forward(&mut self) {
        let ingress = self.scope.section == Section::Ingress;
        match self.choices.below(8) {
            4 if ingress => {
                let group = self.choices.below(4);
                self.line(format!("sm.mcast_grp = {group};"));
            }
            5 if self.scope.standard() => self.line("mark_to_drop(sm);"),
            6 if ingress => {
                let port = self.expression(&Type::Bit(9), 1);
                self.line(format!("sm.egress_spec = {port};"));
            }
            _ => {
                let port = self.choices.pick(&SMALL);
                self.line(format!("sm.egress_spec = {port};"));
            }
        }
    }

    fn cell(&mut self) -> String {
        let bits = 1 + self.choices.below(4);
        format!("(bit<32>) {}", self.expression(&Type::Bit(bits), 1))
    }

    fn register_call(&mut self) {
        let registers = self.scope.objects.registers.len() as u32;
        if registers == 0 {
            return;
        }
        let register = self.choices.below(registers) as usize;
        let (name, width) = self.scope.objects.registers[register].clone();
        let (ty, cell) = (Type::Bit(width), self.cell());
        if self.choices.one_in(2) {
            let value = self.expression(&ty, DEPTH);
            return self.line(format!("{name}.write({cell}, {value});"));
        }
        let path = match self.writable(&ty) {
            Some(path) => path,
            None => {
                let local = self.name("local");
                self.line(format!("bit<{width}> {local};"));
                let variables = &mut self.scope.variables;
                self.types.expand(&local, &ty, true, variables);
                local
            }
        };
        self.line(format!("{name}.read({path}, {cell});"));
    }

    fn counter_call(&mut self) {
        if let Some(name) = self.scope.objects.counters.first().cloned() {
            let cell = self.cell();
            self.line(format!("{name}.count({cell});"));
        }
    }

    fn meter_call(&mut self) {
        let colour = self.any_variable(true, |ty| matches!(ty, Type::Bit(2..)));
        let meter = self.scope.objects.meters.first().cloned();
        if let (Some((path, _)), Some(name)) = (colour, meter) {
            let cell = self.cell();
            self.line(format!("{name}.execute_meter({cell}, {path});"));
        }
    }

    /// Chooses one to three values as the input of a hash or checksum, and returns them as the text of a list.
    pub(super) fn hashed(&mut self) -> String {
        let count = 1 + self.choices.below(3);
        let values = (0..count).map(|_| {
            let number = |ty: &Type| matches!(ty, Type::Bit(_) | Type::Int(_));
            match self.any_variable(false, number) {
                Some((path, _)) => path,
                None => self.literal(16),
            }
        });
        format!("{{ {} }}", values.collect::<Vec<_>>().join(", "))
    }

    fn hash(&mut self) {
        let Some((path, _)) = self.any_variable(true, |ty| matches!(ty, Type::Bit(_))) else {
            return;
        };
        let algorithm = self.choices.pick(&ALGORITHMS);
        let (base, data) = (self.literal(16), self.hashed());
        let max = self
            .choices
            .pick(&["32w0x10000", "16w10", "8w255", "64w0x100000000"]);
        self.line(format!(
            "hash({path}, HashAlgorithm.{algorithm}, {base}, {data}, {max});"
        ));
    }

    fn random(&mut self) {
        let number = |ty: &Type| matches!(ty, Type::Bit(2..=64));
        if let Some((path, Type::Bit(width))) = self.any_variable(true, number) {
            self.line(format!("random({path}, {width}w1, {width}w3);"));
        }
    }

    fn digest(&mut self) {
        let structs = self.types.structs.len();
        let position = STANDARD + 1 + self.choices.below((structs - STANDARD - 1) as u32) as usize;
        let ty = Type::Struct(position);
        if !self.is_digest(&ty) {
            return;
        }
        let (name, value) = (self.types.name(&ty), self.expression(&ty, 1));
        self.line(format!("digest<{name}>(1, {value});"));
    }

    /// Returns whether a digest may have type `ty`: a struct whose fields are all of `bit` types.
    fn is_digest(&self, ty: &Type) -> bool {
        match ty {
            Type::Struct(i) => {
                let mut fields = self.types.structs[*i].fields.iter();
                fields.all(|(_, ty)| matches!(ty, Type::Bit(_)))
            }
            _ => false,
        }
    }

    /// Writes a statement that clones the packet, mostly at most once for each packet that arrives.
    fn copy(&mut self) {
        let kind = match self.scope.section {
            Section::Ingress => "I2E",
            _ => "E2E",
        };
        let session = self.choices.pick(&SMALL);
        let index = 1 + self.choices.below(2);
        let call = match self.choices.one_in(4) {
            true => format!("clone(CloneType.{kind}, {session});"),
            false => {
                format!("clone_preserving_field_list(CloneType.{kind}, {session}, {index});")
            }
        };
        self.once(&call);
    }

    /// Writes a statement that sends the packet to the parser again: a resubmission in ingress, else a recirculation.
    fn again(&mut self) {
        let index = 1 + self.choices.below(2);
        let call = match self.scope.section {
            Section::Ingress => format!("resubmit_preserving_field_list({index});"),
            _ => format!("recirculate_preserving_field_list({index});"),
        };
        self.once(&call);
    }

    /// Writes a statement, mostly under the condition that the packet is not a copy (clone, resubmitted or
    /// recirculated packet). Otherwise packets multiply until a limit stops them, which takes a long time.
    fn once(&mut self, call: &str) {
        if self.choices.one_in(16) {
            return self.line(call);
        }
        self.open("if (sm.instance_type == 0)");
        self.line(call);
        self.close();
    }

    fn checked(&mut self) {
        let condition = self.condition(DEPTH);
        let call = self.choices.pick(&["assume", "assert"]);
        // Mostly true, so that packets live on.
        let port = self.choices.below(8);
        self.line(format!("{call}({condition} || sm.ingress_port != {port});"));
    }

    /// Writes a call of the extern `verb` (`verify_checksum` or `update_checksum`), if a header has a field of 16
    /// bits for the checksum.
    pub(super) fn checksum(&mut self, verb: &str) {
        let Some(path) = self.writable(&Type::Bit(16)) else {
            return;
        };
        if !path.starts_with("hdr.") {
            return;
        }
        let condition = self.condition(DEPTH - 1);
        let data = self.hashed();
        let payload = if self.choices.one_in(3) {
            "_with_payload"
        } else {
            ""
        };
        let algorithm = self.choices.pick(&["csum16", "csum16", "crc16", "xor16"]);
        self.line(format!(
            "{verb}_checksum{payload}({condition}, {data}, {path}, HashAlgorithm.{algorithm});"
        ));
    }
}

impl super::Scope {
    /// Returns whether the current section is ingress or egress, where standard metadata is a parameter named `sm`.
    pub(super) fn standard(&self) -> bool {
        matches!(self.section, Section::Ingress | Section::Egress)
    }
}
