//! The types of a program, and the variables that come with one: a struct's variable brings one for each field.

use super::Generator;

/// The widths of fields: around bytes and machine words, and beyond.
const WIDTHS: [u32; 28] = [
    8, 16, 32, 1, 4, 3, 9, 48, 64, 7, 2, 5, 12, 13, 17, 20, 24, 31, 33, 63, 65, 72, 96, 127, 128,
    129, 200, 256,
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Bit(u32),
    Int(u32),
    Bool,
    Error,
    /// An enum, by its position in [`Types::enums`].
    Enum(usize),
    /// A serializable enum, by its position in [`Types::serials`].
    Serial(usize),
    Varbit(u32),
    /// A struct, by its position in [`Types::structs`].
    Struct(usize),
    /// A header, by its position in [`Types::headers`].
    Header(usize),
    /// A stack of headers, by the header's position in [`Types::headers`] and the number of elements.
    Stack(usize, u32),
    /// A header union, by its position in [`Types::unions`].
    Union(usize),
    Tuple(Vec<Type>),
}

/// A struct, header or header union.
#[derive(Clone, Debug)]
pub(super) struct Composite {
    pub name: String,
    pub fields: Vec<(String, Type)>,
}

impl Composite {
    /// Returns the width in bits of the varbit field, always the last field; `None` if there is none.
    pub fn varbit(&self) -> Option<u32> {
        match self.fields.last() {
            Some((_, Type::Varbit(width))) => Some(*width),
            _ => None,
        }
    }
}

/// An enum; a serializable one has a width.
#[derive(Clone, Debug)]
pub(super) struct Enumeration {
    pub name: String,
    pub width: u32,
    pub members: u32,
}

/// A variable that can be read, and perhaps assigned to.
#[derive(Clone, Debug)]
pub(super) struct Variable {
    pub path: String,
    pub ty: Type,
    pub writable: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Types {
    pub enums: Vec<Enumeration>,
    pub serials: Vec<Enumeration>,
    pub structs: Vec<Composite>,
    pub headers: Vec<Composite>,
    pub unions: Vec<Composite>,
    /// The errors that the program declares.
    pub errors: Vec<String>,
}

/// The position in [`Types::structs`] of the struct of all headers; `METADATA` and `STANDARD` are those of the two
/// other structs that every program has.
pub(super) const HEADERS: usize = 0;
pub(super) const METADATA: usize = 1;
pub(super) const STANDARD: usize = 2;
/// The position of a struct that headers may contain; structs from here on are declared in the program.
pub(super) const FLAT: usize = 3;

impl Types {
    pub fn name(&self, ty: &Type) -> String {
        match ty {
            Type::Bit(width) => format!("bit<{width}>"),
            Type::Int(width) => format!("int<{width}>"),
            Type::Bool => "bool".into(),
            Type::Error => "error".into(),
            Type::Enum(i) => self.enums[*i].name.clone(),
            Type::Serial(i) => self.serials[*i].name.clone(),
            Type::Varbit(width) => format!("varbit<{width}>"),
            Type::Struct(i) => self.structs[*i].name.clone(),
            Type::Header(i) => self.headers[*i].name.clone(),
            Type::Stack(i, size) => format!("{}[{size}]", self.headers[*i].name),
            Type::Union(i) => self.unions[*i].name.clone(),
            Type::Tuple(members) => {
                let members: Vec<String> = members.iter().map(|ty| self.name(ty)).collect();
                format!("tuple<{}>", members.join(", "))
            }
        }
    }

    /// Appends a variable and all its parts (fields, stack elements), at any depth, to `variables`. `writable` says
    /// whether they can be assigned to; members of a tuple never can.
    pub fn expand(&self, path: &str, ty: &Type, writable: bool, variables: &mut Vec<Variable>) {
        variables.push(Variable {
            path: path.into(),
            ty: ty.clone(),
            writable,
        });
        let fields = match ty {
            Type::Struct(i) => &self.structs[*i].fields,
            Type::Header(i) => &self.headers[*i].fields,
            Type::Union(i) => &self.unions[*i].fields,
            Type::Tuple(members) => {
                for (index, ty) in members.iter().enumerate() {
                    self.expand(&format!("{path}[{index}]"), ty, false, variables);
                }
                return;
            }
            Type::Stack(i, size) => {
                for index in 0..*size {
                    let element = format!("{path}[{index}]");
                    self.expand(&element, &Type::Header(*i), writable, variables);
                }
                return;
            }
            _ => return,
        };
        for (name, ty) in fields {
            self.expand(&format!("{path}.{name}"), ty, writable, variables);
        }
    }

    /// Returns the width in bits that a value of a type has in a packet; 0 for a type that headers cannot contain,
    /// and for a varbit, whose width varies.
    pub fn bits(&self, ty: &Type) -> u32 {
        match ty {
            Type::Bit(width) | Type::Int(width) => *width,
            Type::Bool => 1,
            Type::Serial(i) => self.serials[*i].width,
            Type::Struct(i) => {
                let fields = self.structs[*i].fields.iter();
                fields.map(|(_, ty)| self.bits(ty)).sum()
            }
            _ => 0,
        }
    }

    /// Returns whether values of type `ty` can be written as lists of members and compared. They can if the type
    /// contains no varbit, stack or header union.
    pub fn is_plain(&self, ty: &Type) -> bool {
        match ty {
            Type::Varbit(_) | Type::Stack(..) | Type::Union(_) => false,
            Type::Struct(i) => self.structs[*i]
                .fields
                .iter()
                .all(|(_, t)| self.is_plain(t)),
            Type::Header(i) => self.headers[*i]
                .fields
                .iter()
                .all(|(_, t)| self.is_plain(t)),
            _ => true,
        }
    }
}

impl Generator<'_> {
    pub(super) fn width(&mut self) -> u32 {
        self.choices.pick(&WIDTHS)
    }

    /// Chooses a type that has no members.
    pub(super) fn scalar(&mut self) -> Type {
        match self.choices.below(10) {
            5 => Type::Int(self.width().max(2)),
            6 => Type::Bool,
            7 if !self.types.enums.is_empty() => {
                Type::Enum(self.choices.below(self.types.enums.len() as u32) as usize)
            }
            8 if !self.types.serials.is_empty() => self.serial(),
            9 if self.choices.one_in(4) => Type::Error,
            _ => Type::Bit(self.width()),
        }
    }

    fn serial(&mut self) -> Type {
        Type::Serial(self.choices.below(self.types.serials.len() as u32) as usize)
    }

    /// Declares the types of the program: errors, enums, structs, headers and header unions.
    pub(super) fn declare_types(&mut self) {
        for _ in 0..self.choices.below(3) {
            let name = self.name("error_");
            self.line(format!("error {{ {name} }}"));
            self.types.errors.push(name);
        }
        for _ in 0..self.choices.below(2) {
            self.enumeration(false);
        }
        for _ in 0..self.choices.below(3) {
            self.enumeration(true);
        }
        // The fields of `headers_t`, `metadata_t` and `standard_metadata_t` are known later, but they come first.
        let named = |name: &str| Composite {
            name: name.into(),
            fields: Vec::new(),
        };
        self.types.structs = ["headers_t", "metadata_t", "standard_metadata_t"]
            .map(named)
            .into();
        self.types.structs[STANDARD].fields = standard_metadata();
        self.flat_structure();
        for i in 0..2 + self.choices.below(4) {
            self.header(i);
        }
        for _ in 0..1 + self.choices.below(3) {
            self.structure();
        }
        for _ in 0..self.choices.below(2) {
            self.union();
        }
        self.declare_headers();
        self.declare_metadata();
    }

    /// Declares named constants, which are in scope in the whole program.
    pub(super) fn declare_constants(&mut self) {
        for _ in 0..self.choices.below(5) {
            let (name, width) = (self.name("CONSTANT_"), self.width());
            let value = self.literal(width);
            self.line(format!("const bit<{width}> {name} = {value};"));
            self.constants_by_name.push((name, width));
        }
    }

    fn enumeration(&mut self, serial: bool) {
        let name = self.name("E");
        let members = 1 + self.choices.below(4);
        let width = 2 + self.choices.below(15);
        // The largest value is 9, if there is room for it.
        let stride = if width > 3 {
            1 + self.choices.below(3)
        } else {
            1
        };
        let names: Vec<String> = (0..members)
            .map(|i| match serial {
                true => format!("m{i} = {}", i * stride),
                false => format!("m{i}"),
            })
            .collect();
        let underlying = if serial {
            format!("bit<{width}> ")
        } else {
            String::new()
        };
        self.line(format!(
            "enum {underlying}{name} {{ {} }}",
            names.join(", ")
        ));
        let declared = Enumeration {
            name,
            width,
            members,
        };
        match serial {
            true => self.types.serials.push(declared),
            false => self.types.enums.push(declared),
        }
    }

    /// Declares a header of whole bytes. With `position` 1, the header ends with a varbit in half of the programs.
    fn header(&mut self, position: u32) {
        let name = self.name("header_");
        let mut fields = Vec::new();
        let mut bits = 0;
        for i in 0..1 + self.choices.below(5) {
            let ty = match self.choices.below(10) {
                6 => Type::Int(self.width().max(2)),
                7 if !self.types.serials.is_empty() => self.serial(),
                8 => Type::Bool,
                9 => Type::Struct(FLAT),
                _ => Type::Bit(self.width()),
            };
            bits += self.types.bits(&ty);
            fields.push((format!("f{i}"), ty));
        }
        if bits % 8 != 0 {
            fields.push(("pad".into(), Type::Bit(8 - bits % 8)));
        }
        if position == 1 && self.choices.one_in(2) {
            fields.push((
                "options".into(),
                Type::Varbit(8 * (1 + self.choices.below(40))),
            ));
        }
        self.composite("header", &name, &fields);
        self.types.headers.push(Composite { name, fields });
    }

    fn composite(&mut self, keyword: &str, name: &str, fields: &[(String, Type)]) {
        self.open(format!("{keyword} {name}"));
        for (field, ty) in fields {
            let ty = self.types.name(ty);
            self.line(format!("{ty} {field};"));
        }
        self.close();
    }

    /// Declares a struct whose fields are all of `bit` and `int` types.
    fn flat_structure(&mut self) {
        let name = self.name("flat_");
        let fields: Vec<_> = (0..1 + self.choices.below(3))
            .map(|i| {
                let ty = match self.choices.one_in(4) {
                    true => Type::Int(self.width().max(2)),
                    false => Type::Bit(self.width()),
                };
                (format!("x{i}"), ty)
            })
            .collect();
        self.composite("struct", &name, &fields);
        self.types.structs.push(Composite { name, fields });
    }

    fn structure(&mut self) {
        let name = self.name("struct_");
        let mut fields = Vec::new();
        for i in 0..1 + self.choices.below(4) {
            // Those declared before may be inside; the first three are not declared yet.
            let inner = (self.types.structs.len() - FLAT) as u32;
            let ty = match self.choices.below(8) {
                7 => Type::Struct(FLAT + self.choices.below(inner) as usize),
                _ => self.scalar(),
            };
            fields.push((format!("s{i}"), ty));
        }
        self.composite("struct", &name, &fields);
        self.types.structs.push(Composite { name, fields });
    }

    fn union(&mut self) {
        let name = self.name("union_");
        let fixed: Vec<usize> = self.fixed_headers();
        let count = (2 + self.choices.below(2) as usize).min(fixed.len());
        let members = fixed[..count].iter().enumerate();
        let fields: Vec<_> = members
            .map(|(i, h)| (format!("u{i}"), Type::Header(*h)))
            .collect();
        self.composite("header_union", &name, &fields);
        self.types.unions.push(Composite { name, fields });
    }

    /// Returns the positions of the headers without a varbit; the first header is always among them.
    pub(super) fn fixed_headers(&self) -> Vec<usize> {
        let headers = self.types.headers.iter().enumerate();
        let fixed = headers.filter(|(_, h)| h.varbit().is_none());
        fixed.map(|(i, _)| i).collect()
    }

    /// Declares the struct of headers: one instance of each header, sometimes a stack and a header union,
    /// and a header into which metadata is copied to make it visible.
    fn declare_headers(&mut self) {
        let sum = Composite {
            name: "sum_t".into(),
            fields: vec![("sum".into(), Type::Bit(64))],
        };
        self.composite("header", "sum_t", &sum.fields.clone());
        let mut fields: Vec<(String, Type)> = (0..self.types.headers.len())
            .map(|i| (format!("h{i}"), Type::Header(i)))
            .collect();
        let fixed = self.fixed_headers();
        if self.choices.one_in(2) {
            let element = self.choices.pick(&fixed);
            let size = 1 + self.choices.below(4);
            fields.push(("stack".into(), Type::Stack(element, size)));
        }
        if !self.types.unions.is_empty() {
            fields.push(("either".into(), Type::Union(0)));
        }
        self.types.headers.push(sum);
        fields.push(("sum".into(), Type::Header(self.types.headers.len() - 1)));
        self.composite("struct", "headers_t", &fields);
        self.types.structs[HEADERS].fields = fields;
    }

    fn declare_metadata(&mut self) {
        let mut fields = Vec::new();
        self.open("struct metadata_t");
        // Nothing knows it by name, so nothing writes it.
        self.line("bit<1> zero;");
        for i in 0..3 + self.choices.below(6) {
            let ty = match self.choices.below(8) {
                6 => Type::Struct(
                    FLAT + self.choices.below((self.types.structs.len() - FLAT) as u32) as usize,
                ),
                7 => Type::Header(self.choices.pick(&self.fixed_headers())),
                _ => self.scalar(),
            };
            let preserved = match self.choices.below(6) {
                3 => "@field_list(1) ",
                4 => "@field_list(2) ",
                5 => "@field_list(1, 2) ",
                _ => "",
            };
            let is_header = matches!(ty, Type::Header(_));
            let (name, preserved) = (format!("m{i}"), if is_header { "" } else { preserved });
            let declared = self.types.name(&ty);
            self.line(format!("{preserved}{declared} {name};"));
            fields.push((name, ty));
        }
        self.close();
        self.types.structs[METADATA].fields = fields;
    }
}

/// Returns the names and types of the fields of standard metadata that generated programs use.
fn standard_metadata() -> Vec<(String, Type)> {
    let fields = [
        ("ingress_port", 9),
        ("egress_spec", 9),
        ("egress_port", 9),
        ("instance_type", 32),
        ("packet_length", 32),
        ("ingress_global_timestamp", 48),
        ("mcast_grp", 16),
        ("egress_rid", 16),
        ("checksum_error", 1),
        ("priority", 3),
    ];
    let mut fields: Vec<_> = fields
        .map(|(name, width)| (name.to_string(), Type::Bit(width)))
        .into();
    fields.push(("parser_error".into(), Type::Error));
    fields
}
