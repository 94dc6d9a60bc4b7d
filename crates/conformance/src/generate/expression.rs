//! Expressions of any given type. Everything is in parentheses: precedence is the parser's tests' matter.

use super::types::Type;
use super::{Constants, Generator, Section};
use ir::Bits;

impl Generator<'_> {
    /// Chooses a variable of type `ty` in scope, and returns its path, such as `hdr.h0.f`; `None` if there is none.
    pub(super) fn readable(&mut self, ty: &Type) -> Option<String> {
        self.variable(ty, false)
    }

    /// Chooses a variable of type `ty` in scope that may be written, and returns its path; `None` if there is none.
    pub(super) fn writable(&mut self, ty: &Type) -> Option<String> {
        self.variable(ty, true)
    }

    fn variable(&mut self, ty: &Type, writable: bool) -> Option<String> {
        let found = self.any_variable(writable, |of| of == ty);
        found.map(|(path, _)| path)
    }

    /// Chooses a variable in scope for whose type `fits` returns true, and returns its path and type; `None` if there
    /// is none. Within arguments, often chooses a variable that the statement already uses. If `writable` is true,
    /// only variables that can be assigned to are chosen.
    pub(super) fn any_variable(
        &mut self,
        writable: bool,
        fits: impl Fn(&Type) -> bool,
    ) -> Option<(String, Type)> {
        let again = self.in_arguments && !self.touched.is_empty() && self.choices.one_in(2);
        let variables = self.scope.variables.iter();
        let fits: Vec<_> = variables
            .filter(|v| fits(&v.ty) && (v.writable || !writable))
            .collect();
        let touched: Vec<_> = match again {
            true => fits
                .iter()
                .filter(|v| self.touched.contains(&v.path))
                .copied()
                .collect(),
            false => Vec::new(),
        };
        let fits = if touched.is_empty() { fits } else { touched };
        if fits.is_empty() {
            return None;
        }
        let chosen = fits[self.choices.u16() as usize % fits.len()];
        self.touched.push(chosen.path.clone());
        Some((chosen.path.clone(), chosen.ty.clone()))
    }

    /// Chooses an expression of type `ty`, with operators nested about `depth` levels deep at most (0: a variable or a
    /// constant). A tuple is always a list of its members; a struct or header may be one, with `...` in place of a field,
    /// and a header may be `{#}`. P4 allows these forms only where the context gives the type.
    pub(super) fn expression(&mut self, ty: &Type, depth: u32) -> String {
        match ty {
            Type::Bit(width) => self.bits(*width, depth),
            Type::Int(width) => self.signed(*width, depth),
            Type::Bool => self.condition(depth),
            Type::Struct(_) | Type::Header(_) => self.composite_value(ty, depth),
            Type::Tuple(members) => {
                let depth = depth.saturating_sub(1);
                let values = members.iter().map(|ty| self.expression(ty, depth));
                format!("{{ {} }}", values.collect::<Vec<_>>().join(", "))
            }
            _ => match self.readable(ty) {
                Some(path) if self.choices.one_in(2) => path,
                _ => self.constant(ty),
            },
        }
    }

    /// Chooses a value of type `ty` that contains no variables.
    pub(super) fn constant(&mut self, ty: &Type) -> String {
        match ty {
            Type::Bit(width) => self.literal(*width),
            Type::Int(width) => self.signed_literal(*width),
            Type::Bool => self.choices.pick(&["true", "false"]).into(),
            Type::Error => self.error(),
            Type::Enum(i) => {
                let member = self.choices.below(self.types.enums[*i].members);
                format!("{}.m{member}", self.types.enums[*i].name)
            }
            Type::Serial(i) => {
                let member = self.choices.below(self.types.serials[*i].members);
                format!("{}.m{member}", self.types.serials[*i].name)
            }
            Type::Struct(i) => {
                let fields = self.types.structs[*i].fields.clone();
                let values = fields.iter().map(|(_, ty)| self.constant(ty));
                format!("{{ {} }}", values.collect::<Vec<_>>().join(", "))
            }
            // No constants of these are asked for.
            Type::Varbit(_)
            | Type::Header(_)
            | Type::Stack(..)
            | Type::Union(_)
            | Type::Tuple(_) => "{#}".into(),
        }
    }

    pub(super) fn error(&mut self) -> String {
        let own = self.types.errors.len() as u32;
        if own > 0 && self.choices.one_in(2) {
            let error = self.choices.below(own) as usize;
            return format!("error.{}", self.types.errors[error]);
        }
        format!("error.{}", self.choices.pick(&ir::verify::CORE_ERRORS))
    }

    /// Chooses a literal of `width` bits, and returns it with its width prefix, such as `8w0x1f`.
    pub(super) fn literal(&mut self, width: u32) -> String {
        let value = self.choices.bits(width);
        format!("{width}w{}", hexadecimal(&value))
    }

    fn signed_literal(&mut self, width: u32) -> String {
        let value = self.choices.bits(width);
        if self.choices.one_in(4) {
            return format!("(int<{width}>)({width}w{})", hexadecimal(&value));
        }
        let positive = value.resize(width - 1);
        let sign = if self.choices.one_in(3) { "-" } else { "" };
        format!("({sign}{width}s{})", hexadecimal(&positive))
    }

    /// Returns whether constants must be hidden from the compiler in the current scope: each is then
    /// combined, by exclusive or, with a variable that is zero.
    fn hides(&self) -> bool {
        self.constants == Constants::Hidden && self.scope.has_zero
    }

    /// Chooses a literal of type `bit<width>`, or a named constant of that type.
    fn operand(&mut self, width: u32) -> String {
        let fits = self.constants_by_name.iter().filter(|(_, w)| *w == width);
        let named: Vec<String> = fits.map(|(name, _)| name.clone()).collect();
        if !named.is_empty() && self.choices.one_in(2) {
            let name = self.choices.below(named.len() as u32) as usize;
            return named[name].clone();
        }
        let literal = self.literal(width);
        match self.hides() {
            true => format!("({literal} ^ (bit<{width}>) meta.zero)"),
            false => literal,
        }
    }

    fn signed_operand(&mut self, width: u32) -> String {
        let literal = self.signed_literal(width);
        match self.hides() {
            true => format!("({literal} ^ (int<{width}>) (bit<{width}>) meta.zero)"),
            false => literal,
        }
    }

    /// Chooses an operand of type `bit<width>`: a variable, a variable of another width with a cast, or a literal.
    fn leaf(&mut self, width: u32) -> String {
        match self.choices.below(5) {
            1..=3 => match self.readable(&Type::Bit(width)) {
                Some(path) => path,
                None => self.resized(width),
            },
            4 => self.resized(width),
            _ => self.operand(width),
        }
    }

    /// Chooses a variable of any width with a cast to `bit<width>`; a literal if there is no such variable.
    fn resized(&mut self, width: u32) -> String {
        match self.any_variable(false, |ty| matches!(ty, Type::Bit(_))) {
            Some((path, Type::Bit(w))) if w == width => path,
            Some((path, _)) => format!("((bit<{width}>) {path})"),
            None => self.operand(width),
        }
    }

    fn bits(&mut self, width: u32, depth: u32) -> String {
        let Some(depth) = depth.checked_sub(1) else {
            return self.leaf(width);
        };
        match self.choices.below(20) {
            4 => format!("(~{})", self.bits(width, depth)),
            5 => format!("(-{})", self.bits(width, depth)),
            6..=9 => {
                const OPERATORS: [&str; 8] = ["+", "-", "^", "&", "|", "*", "|+|", "|-|"];
                let operator = self.choices.pick(&OPERATORS);
                let a = self.bits(width, depth);
                let b = match self.choices.one_in(6) {
                    // A literal without a width takes that of the other side.
                    true => (u64::from(self.choices.byte()) & mask(width)).to_string(),
                    false => self.bits(width, depth),
                };
                format!("({a} {operator} {b})")
            }
            10 => self.shift(&Type::Bit(width), depth),
            11 => {
                let low = self.choices.below(12);
                let above = self.choices.below(9);
                let wide = self.bits(width + low + above, depth);
                format!("({wide})[{}:{low}]", width + low - 1)
            }
            12 if width > 1 => {
                let low = 1 + self.choices.below(width - 1);
                let (a, b) = (self.bits(width - low, depth), self.bits(low, depth));
                format!("({a} ++ {b})")
            }
            13 => self.mux(&Type::Bit(width), depth),
            14 => {
                let from = self.width();
                format!("((bit<{width}>) {})", self.bits(from, depth))
            }
            15 if width > 1 => format!("((bit<{width}>) {})", self.signed(width, depth)),
            15 => format!("((bit<1>) {})", self.condition(depth)),
            16 => self
                .call(&Type::Bit(width), depth)
                .unwrap_or_else(|| self.leaf(width)),
            17 => {
                let operator = self.choices.pick(&["/", "%"]);
                let divisor = 1 + u64::from(self.choices.below(200)) % mask(width);
                format!("({} {operator} {width}w{divisor})", self.bits(width, depth))
            }
            18 => self.special(width, depth),
            _ => self.leaf(width),
        }
    }

    /// Chooses a rare kind of `bit<width>` expression: a cast from a serializable enum; else, in a parser, a
    /// lookahead or the last index of a stack; else a field of a stack's element, or an operand as
    /// [`Generator::leaf`] chooses it. `depth` limits the nesting of expressions in it.
    fn special(&mut self, width: u32, depth: u32) -> String {
        let mut serials = self.types.serials.iter();
        if let Some(i) = serials.position(|s| s.width == width) {
            let value = self.expression(&Type::Serial(i), depth);
            return format!("((bit<{width}>) {value})");
        }
        if self.scope.section == Section::Parser {
            if width == 32 && self.has_stack() {
                return "hdr.stack.lastIndex".into();
            }
            return format!("packet.lookahead<bit<{width}>>()");
        }
        match self.stack_element(width, depth) {
            Some(element) => element,
            None => self.leaf(width),
        }
    }

    fn has_stack(&self) -> bool {
        self.scope.variables.iter().any(|v| v.path == "hdr.stack")
    }

    /// Chooses a `bit<width>` field of a stack's element whose index is known only at run time; `None` if there is no
    /// such field. `depth` limits the nesting of expressions in the index.
    fn stack_element(&mut self, width: u32, depth: u32) -> Option<String> {
        let mut stacks = self.scope.variables.iter();
        let stack = stacks.find_map(|v| match v.ty {
            Type::Stack(header, _) => Some((v.path.clone(), header)),
            _ => None,
        });
        let (path, header) = stack?;
        let mut fields = self.types.headers[header].fields.iter();
        let (field, _) = fields.find(|(_, ty)| *ty == Type::Bit(width))?.clone();
        // An index that is known to the compiler must be one of an element; one that is not may be any.
        let index = self.index(depth)?;
        Some(format!("{path}[(bit<3>) {index}].{field}"))
    }

    fn shift(&mut self, ty: &Type, depth: u32) -> String {
        let operator = self.choices.pick(&["<<", ">>"]);
        let value = self.expression(ty, depth);
        let amount = match self.choices.below(3) {
            0 => self.choices.below(140).to_string(),
            1 => self.leaf(4),
            _ => self.leaf(8),
        };
        format!("({value} {operator} {amount})")
    }

    fn mux(&mut self, ty: &Type, depth: u32) -> String {
        let condition = self.condition(depth);
        let (then, otherwise) = (self.expression(ty, depth), self.expression(ty, depth));
        format!("({condition} ? {then} : {otherwise})")
    }

    fn signed(&mut self, width: u32, depth: u32) -> String {
        let ty = Type::Int(width);
        let Some(depth) = depth.checked_sub(1) else {
            return match self.readable(&ty) {
                Some(path) if self.choices.one_in(2) => path,
                _ => self.signed_operand(width),
            };
        };
        match self.choices.below(12) {
            3 => format!("(~{})", self.signed(width, depth)),
            4 => format!("(-{})", self.signed(width, depth)),
            5 | 6 => {
                const OPERATORS: [&str; 8] = ["+", "-", "^", "&", "|", "*", "|+|", "|-|"];
                let operator = self.choices.pick(&OPERATORS);
                let (a, b) = (self.signed(width, depth), self.signed(width, depth));
                format!("({a} {operator} {b})")
            }
            7 => self.shift(&ty, depth),
            8 => self.mux(&ty, depth),
            9 => {
                let from = self.width().max(2);
                format!("((int<{width}>) {})", self.signed(from, depth))
            }
            10 => format!("((int<{width}>) {})", self.bits(width, depth)),
            11 => self
                .call(&ty, depth)
                .unwrap_or_else(|| self.signed(width, 0)),
            _ => self.signed(width, 0),
        }
    }

    pub(super) fn condition(&mut self, depth: u32) -> String {
        let Some(depth) = depth.checked_sub(1) else {
            return match self.readable(&Type::Bool) {
                Some(path) if self.choices.one_in(2) => path,
                _ if self.hides() => format!("({} && meta.zero == 0)", self.constant(&Type::Bool)),
                _ => self.constant(&Type::Bool),
            };
        };
        match self.choices.below(12) {
            1 => format!("(!{})", self.condition(depth)),
            2 | 3 => {
                let operator = self.choices.pick(&["&&", "||"]);
                let (a, b) = (self.condition(depth), self.condition(depth));
                format!("({a} {operator} {b})")
            }
            4 => {
                let is_header = |ty: &Type| matches!(ty, Type::Header(_) | Type::Union(_));
                match self.any_variable(false, is_header) {
                    Some((path, _)) => format!("{path}.isValid()"),
                    None => self.condition(0),
                }
            }
            5..=8 => self.comparison(depth),
            9 => self.equality(depth),
            10 => format!("((bool) {})", self.bits(1, depth)),
            11 => self
                .call(&Type::Bool, depth)
                .unwrap_or_else(|| self.condition(0)),
            _ => self.condition(0),
        }
    }

    fn comparison(&mut self, depth: u32) -> String {
        let operator = self.choices.pick(&["==", "!=", "<", "<=", ">", ">="]);
        // Mostly a variable against something, so that it is not decided before the program runs.
        let number = |ty: &Type| matches!(ty, Type::Bit(_) | Type::Int(_));
        let (a, ty) = match self.any_variable(false, number) {
            Some(found) if !self.choices.one_in(3) => found,
            _ => {
                let ty = Type::Bit(self.width());
                (self.expression(&ty, depth), ty)
            }
        };
        let b = match ty {
            // A literal alone: executors have special cases for it.
            Type::Bit(width) if self.choices.one_in(2) => self.operand(width),
            Type::Int(width) if self.choices.one_in(2) => self.signed_operand(width),
            _ => self.expression(&ty, depth),
        };
        format!("({a} {operator} {b})")
    }

    /// Chooses a comparison by `==` or `!=` of two values of a type other than `bit` and `int`; a comparison of
    /// numbers (by any operator) if no variable has such a type. `depth` limits the nesting of expressions in it.
    fn equality(&mut self, depth: u32) -> String {
        let operator = self.choices.pick(&["==", "!="]);
        let types = self.types.clone();
        let comparable =
            |ty: &Type| types.is_plain(ty) && !matches!(ty, Type::Bit(_) | Type::Int(_));
        let Some((a, ty)) = self.any_variable(false, comparable) else {
            return self.comparison(depth);
        };
        let b = match ty {
            Type::Struct(_) | Type::Header(_) | Type::Tuple(_) => {
                self.readable(&ty).unwrap_or_else(|| a.clone())
            }
            _ => self.expression(&ty, depth),
        };
        format!("({a} {operator} {b})")
    }

    fn composite_value(&mut self, ty: &Type, depth: u32) -> String {
        let fields = match ty {
            Type::Struct(i) => self.types.structs[*i].fields.clone(),
            Type::Header(i) => self.types.headers[*i].fields.clone(),
            _ => Vec::new(),
        };
        let plain = self.types.is_plain(ty);
        let named = match self.choices.below(4) {
            0 | 1 => match self.readable(ty) {
                Some(path) => return path,
                None => false,
            },
            2 => true,
            _ => match self.call(ty, depth) {
                Some(call) => return call,
                None => false,
            },
        };
        if !plain {
            return self.readable(ty).unwrap_or_else(|| "{#}".into());
        }
        if matches!(ty, Type::Header(_)) && self.choices.one_in(4) {
            return "{#}".into();
        }
        let depth = depth.saturating_sub(1);
        // Fields that are left out take their defaults, which are zeros.
        let left_out = if named && self.choices.one_in(3) {
            1
        } else {
            0
        };
        let given = &fields[..fields.len() - left_out.min(fields.len() - 1)];
        let values = given.iter().map(|(name, ty)| {
            let value = self.expression(ty, depth);
            match named {
                true => format!("{name} = {value}"),
                false => value,
            }
        });
        let mut values: Vec<String> = values.collect();
        if named {
            self.shuffle(&mut values);
        }
        if given.len() < fields.len() {
            values.push("...".into());
        }
        format!("{{ {} }}", values.join(", "))
    }
}

/// Returns the largest number of `width` bits, or of 64 bits if `width` is larger.
fn mask(width: u32) -> u64 {
    u64::MAX >> (64 - width.min(64))
}

fn hexadecimal(value: &Bits) -> String {
    let bytes = value.to_be_bytes();
    let digits: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
    let digits = digits.trim_start_matches('0');
    match digits {
        "" => "0".into(),
        _ => format!("0x{digits}"),
    }
}
