//! Arguments of calls, which mostly have effects that meet: a call in an argument writes what other arguments read or write.

use super::types::{FLAT, HEADERS, Type};
use super::{Direction, Generator, Parameter, Section};

/// The most calls within the expressions of one body; the compiler inlines each of them.
pub(super) const CALLS: u32 = 4;

impl Generator<'_> {
    /// Sets the number of calls that the expressions of the next body may contain.
    pub(super) fn allow_calls(&mut self, calls: u32) {
        self.calls_left = calls;
    }

    /// Chooses the type of a parameter with direction: mostly `bit` of one of four widths, else a whole
    /// header, struct or header stack, or any scalar.
    pub(super) fn argument_type(&mut self) -> Type {
        match self.choices.below(8) {
            4 => Type::Header(self.choices.pick(&self.fixed_headers())),
            5 => Type::Struct(FLAT),
            6 => {
                let fields = self.types.structs[HEADERS].fields.iter();
                let stack = fields.map(|(_, ty)| ty).find(|ty| is_stack(ty));
                stack.cloned().unwrap_or(Type::Bit(8))
            }
            7 => self.scalar(),
            _ => Type::Bit(self.choices.pick(&[8, 16, 32, 9])),
        }
    }

    /// Writes the arguments for `parameters`, by position or by name in any order, with expressions of at most
    /// `depth` levels. `first` is the name and the text of an argument that comes before them. Returns `None` if a
    /// parameter needs a variable that can be written and none fits.
    pub(super) fn arguments(
        &mut self,
        first: Option<(&str, &str)>,
        parameters: &[Parameter],
        depth: u32,
    ) -> Option<String> {
        let outer = std::mem::replace(&mut self.in_arguments, true);
        let named = self.choices.one_in(3);
        let values = parameters.iter().map(|p| self.argument(p, named, depth));
        let values: Option<Vec<String>> = values.collect();
        self.in_arguments = outer;
        let names = parameters.iter().map(|p| p.name.clone());
        let mut list: Vec<(String, String)> = names.zip(values?).collect();
        if let Some((name, value)) = first {
            list.insert(0, (name.into(), value.into()));
        }
        if named {
            self.shuffle(&mut list);
        }
        let texts = list.into_iter().map(|(name, value)| match named {
            true => format!("{name} = {value}"),
            false => value,
        });
        Some(texts.collect::<Vec<_>>().join(", "))
    }

    fn argument(&mut self, parameter: &Parameter, named: bool, depth: u32) -> Option<String> {
        let ty = &parameter.ty;
        match parameter.direction {
            // `_` cannot be named.
            Direction::Out if !named && self.choices.one_in(12) => Some("_".into()),
            Direction::Out | Direction::InOut => self.place(ty, depth),
            Direction::In | Direction::Entry if !self.types.is_plain(ty) => self.readable(ty),
            Direction::In | Direction::Entry => match self.choices.below(3) {
                1 => Some(
                    self.call(ty, depth)
                        .unwrap_or_else(|| self.expression(ty, depth)),
                ),
                2 => Some(
                    self.readable(ty)
                        .unwrap_or_else(|| self.expression(ty, depth)),
                ),
                _ => Some(self.expression(ty, depth)),
            },
        }
    }

    /// Chooses an expression of type `ty` that can be assigned to: a variable, an element of a stack (or a field of
    /// one) with an index known only at run time, or a slice. `None` if nothing in scope fits. `depth` limits the
    /// nesting of expressions in an index.
    fn place(&mut self, ty: &Type, depth: u32) -> Option<String> {
        let chosen = self.choices.below(6);
        let element = match chosen {
            4 => self.element(ty, depth),
            _ => None,
        };
        if element.is_some() {
            return element;
        }
        match *ty {
            Type::Bit(width) if chosen == 5 => self.slice(width),
            _ => self.writable(ty).or_else(|| match *ty {
                Type::Bit(width) => self.slice(width),
                _ => None,
            }),
        }
    }

    fn slice(&mut self, width: u32) -> Option<String> {
        let wider = |ty: &Type| matches!(ty, Type::Bit(w) if *w > width);
        let (path, ty) = self.any_variable(true, wider)?;
        let low = match ty {
            Type::Bit(wide) => self.choices.below((wide - width + 1).min(256)),
            _ => 0,
        };
        Some(format!("{path}[{}:{low}]", low + width - 1))
    }

    fn element(&mut self, ty: &Type, depth: u32) -> Option<String> {
        let (path, stack) = self.any_variable(true, is_stack)?;
        let Type::Stack(header, _) = stack else {
            return None;
        };
        let fields = self.types.headers[header].fields.clone();
        let field = fields.iter().find(|(_, of)| of == ty);
        let field = match field {
            _ if *ty == Type::Header(header) => String::new(),
            Some((name, _)) => format!(".{name}"),
            None => return None,
        };
        let index = self.index(depth)?;
        Some(format!("{path}[(bit<2>) {index}]{field}"))
    }

    /// Chooses a number that is known only at run time, as an index: a variable, or the result of a function. `None`
    /// if there is neither. `depth` limits the nesting of expressions in the call's arguments.
    pub(super) fn index(&mut self, depth: u32) -> Option<String> {
        let call = match self.choices.below(3) {
            2 => self.call(&Type::Bit(8), depth),
            _ => None,
        };
        let number = |ty: &Type| matches!(ty, Type::Bit(_));
        call.or_else(|| Some(self.any_variable(false, number)?.0))
    }

    /// Chooses a call of a function that returns `ty`, or another `bit` type with a cast to `ty`. `None` if no
    /// function can be called. Its arguments are expressions nested less than `depth` levels deep; `None` also if
    /// `depth` is 0.
    pub(super) fn call(&mut self, ty: &Type, depth: u32) -> Option<String> {
        // An argument may be a call again, but one level less deep.
        let depth = depth.checked_sub(1)?;
        let fits = |exact: bool| {
            let functions = self.functions.iter().enumerate();
            let number = |of: &Type| matches!((of, ty), (Type::Bit(_), Type::Bit(_)));
            let fits = functions.filter(|(_, f)| f.result == *ty || !exact && number(&f.result));
            fits.map(|(i, _)| i).collect::<Vec<usize>>()
        };
        let fits = match fits(true) {
            exact if exact.is_empty() => fits(false),
            exact => exact,
        };
        if fits.is_empty() || self.calls_left == 0 {
            return None;
        }
        self.calls_left -= 1;
        let function = self.functions[self.choices.pick(&fits)].clone();
        let arguments = self.arguments(None, &function.parameters, depth)?;
        let call = format!("{}({arguments})", function.name);
        match function.result == *ty {
            true => Some(call),
            false => Some(format!("(({}) {call})", self.types.name(ty))),
        }
    }

    /// Writes a call of a function for its side effects, or of a control. Does not call parsers, which are
    /// applied by parser states.
    pub(super) fn call_statement(&mut self) {
        let applies = !self.scope.in_action && self.scope.section != Section::Parser;
        if applies && !self.scope.instances.is_empty() && self.choices.one_in(2) {
            let instances = self.scope.instances.len() as u32;
            let (name, control) =
                self.scope.instances[self.choices.below(instances) as usize].clone();
            let parameters = self.controls[control].parameters.clone();
            if let Some(arguments) = self.arguments(None, &parameters, 2) {
                self.line(format!("{name}.apply({arguments});"));
            }
            return;
        }
        if self.functions.is_empty() {
            return self.assignment();
        }
        let function = self.choices.below(self.functions.len() as u32) as usize;
        let function = self.functions[function].clone();
        if let Some(arguments) = self.arguments(None, &function.parameters, 2) {
            self.line(format!("{}({arguments});", function.name));
        }
    }

    /// Puts the items of a list into a random order.
    pub(super) fn shuffle<T>(&mut self, list: &mut [T]) {
        for i in (1..list.len()).rev() {
            // Without choices the order stays.
            list.swap(i, i - self.choices.below(i as u32 + 1) as usize);
        }
    }
}

fn is_stack(ty: &Type) -> bool {
    matches!(ty, Type::Stack(..))
}
