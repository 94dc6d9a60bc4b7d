//! P4Info beside the program that it is of: objects by P4Runtime id, with names for messages and the program's numbers.
//!
//! Building it is also the verification of a P4Info that a client pushes: ids are unique and of known objects, widths are given. It
//! knows nothing of entries or values.

use crate::errors::{denied, invalid};
use crate::translation::{Mappings, Translation};
use crate::values::{MAX_WIDTH, Type};
use engine::control::{ControlError, ids};
use engine::refuse;
use ir::{ActionScope, MatchKind, Program};
use proto::p4info::action_profile::SelectorSizeSemantics;
use proto::p4info::match_field::{Match, MatchType};
use proto::p4info::p4_new_type_spec::Representation;
use proto::p4info::p4_new_type_translation::SdnType;
use proto::p4info::structured_annotation::Body;
use proto::p4info::{self as p4, expression};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Something with an id and a name.
pub(crate) trait Named {
    fn id(&self) -> u32;
    fn name(&self) -> &str;
}

macro_rules! named {
    ($($name:ident { $($field:ident: $ty:ty,)* })*) => {$(
        #[derive(Debug)]
        pub(crate) struct $name { pub id: u32, pub name: String, $(pub $field: $ty,)* }

        impl Named for $name {
            fn id(&self) -> u32 { self.id }
            fn name(&self) -> &str { &self.name }
        }
    )*};
}

// A `number` is the object's in the program, and `usize::MAX` if the program has none.
named! {
    // A key field, a parameter or a part of a controller header; widths in bits.
    Field {
        // 0 for a string (then it is translated) and for what clients cannot give.
        width: u32,
        own_width: u32,
        // A value that is not a key field is exact.
        kind: MatchKind,
        translation: Option<Arc<Translation>>,
        is_translated: bool,
        // A mask, prefix or range of the controller's has no counterpart (specification, "Translation of Match Fields").
        is_whole: bool,
    }
    Action { number: usize, params: Names<Field>, }
    Table {
        number: usize,
        label: String,
        fields: Names<Field>,
        // By key of the program: the field.
        keys: Vec<Option<usize>>,
        // Positions of key and field, by ascending id of the field.
        by_id: Vec<(usize, usize)>,
        // Ids and scopes.
        actions: Vec<(u32, ActionScope)>,
        needs_priority: bool,
        has_const_default: bool,
        is_const: bool,
        implementation: u32,
        direct_counter: u32,
        direct_meter: Option<(u32, MeterType)>,
        has_timeout: bool,
    }
    Array { number: usize, size: u64, meter: MeterType, }
    Profile {
        number: usize,
        table_ids: Vec<u32>,
        with_selector: bool,
        max_group_size: u64,
        by_members: bool,
        max_member_weight: i32,
        weights_disallowed: bool,
    }
    ValueSet { number: usize, label: String, fields: Names<Field>, size: u64, }
    // A register or digest.
    Data { number: usize, size: u64, ty: Result<Type, ControlError>, }
    Header {
        fields: Names<Field>,
        // What it is on the wire: position of the field, unless the control plane does not know it, and width in bits.
        layout: Vec<(Option<usize>, u32)>,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MeterType {
    TwoRates,
    SingleRateThreeColours,
    SingleRateTwoColours,
}

/// The objects of one kind, in the order of P4Info, with an index by id.
#[derive(Debug)]
pub(crate) struct Names<T> {
    kind: &'static str,
    place: String,
    pub list: Vec<T>,
    by_id: BTreeMap<u32, usize>,
}

impl<T: Named> Names<T> {
    /// Collects the program's objects of one kind, each built from a message by `object`. Fails if an object is
    /// invalid, or an id is zero or occurs twice.
    fn of<M>(
        kind: &'static str,
        messages: &[M],
        object: impl FnMut(&M) -> Result<T, ControlError>,
    ) -> Result<Names<T>, ControlError> {
        Names::new(kind, String::new(), messages.iter().map(object))
    }

    fn new(
        kind: &'static str,
        place: String,
        objects: impl IntoIterator<Item = Result<T, ControlError>>,
    ) -> Result<Names<T>, ControlError> {
        let (mut list, mut by_id) = (Vec::<T>::new(), BTreeMap::new());
        for object in objects {
            let object = object?;
            let before = by_id.insert(object.id(), list.len());
            let before = before.map(|at: usize| list[at].name());
            check_id(kind, object.name(), &place, object.id(), before)?;
            list.push(object);
        }
        Ok(Names {
            kind,
            place,
            list,
            by_id,
        })
    }

    pub fn get(&self, id: u32) -> Option<&T> {
        self.by_id.get(&id).map(|at| &self.list[*at])
    }

    /// Finds an object by its id like [`Self::get`], but faster if it is at position `place`. Returns `None` if there
    /// is none.
    pub fn at(&self, place: usize, id: u32) -> Option<&T> {
        let there = self.list.get(place).filter(|object| object.id() == id);
        there.or_else(|| self.get(id))
    }

    pub fn position(&self, id: u32) -> Option<usize> {
        self.by_id.get(&id).copied()
    }

    /// Finds an object by its id. Fails with INVALID_ARGUMENT if there is no such object.
    pub fn by_id(&self, id: u32) -> Result<&T, ControlError> {
        let names = || self.list.iter().map(Named::name).collect();
        let unknown = || unknown(self.kind, id, &self.place, names());
        self.get(id).ok_or_else(unknown)
    }
}

pub(crate) fn unknown(kind: &str, id: u32, place: &str, mut names: Vec<&str>) -> ControlError {
    names.sort_unstable();
    let shown: Vec<String> = names.iter().take(8).map(|n| format!("'{n}'")).collect();
    let choices = match (names.len(), shown.join(", ")) {
        (0, _) => "there are none".to_owned(),
        (count @ 9.., shown) => format!("there are {shown} and {} more", count - 8),
        (_, shown) => format!("there are {shown}"),
    };
    invalid(format!("no {kind} has id {id}{place}; {choices}"))
}

/// The objects of P4Info by kind and id, with what the program states about them.
#[derive(Debug)]
pub(crate) struct Info {
    pub actions: Names<Action>,
    pub tables: Names<Table>,
    pub counters: Names<Array>,
    pub meters: Names<Array>,
    pub profiles: Names<Profile>,
    pub value_sets: Names<ValueSet>,
    pub registers: Names<Data>,
    pub digests: Names<Data>,
    headers: Names<Header>,
    /// The role that an object's `@p4runtime_role` names, by id.
    pub roles: BTreeMap<u32, String>,
    pub translations: BTreeMap<String, Arc<Translation>>,
}

impl Info {
    pub fn new(
        info: &p4::P4Info,
        program: &Program,
        mappings: &Mappings,
    ) -> Result<Info, ControlError> {
        let no_types = p4::P4TypeInfo::default();
        let mut builder = Builder {
            info,
            program,
            types: info.type_info.as_ref().unwrap_or(&no_types),
            mappings,
            translations: BTreeMap::new(),
        };
        let builder = &mut builder;
        let actions = Names::of("action", &info.actions, |m| builder.action(m))?;
        let counters = direct_counters(&info.direct_counters)?;
        let meters = direct_meters(&info.direct_meters)?;
        let table = |m: &p4::Table| builder.table(m, &actions, &counters, &meters);
        let tables = Names::of("table", &info.tables, table)?;
        let counters = Names::of("counter", &info.counters, |m| builder.counter(m))?;
        let profile = |m: &p4::ActionProfile| builder.profile(m, &tables);
        let profiles = Names::of("action profile", &info.action_profiles, profile)?;
        let meters = Names::of("meter", &info.meters, |m| builder.meter(m))?;
        let value_sets = Names::of("value set", &info.value_sets, |m| builder.value_set(m))?;
        let registers = Names::of("register", &info.registers, |m| builder.register(m))?;
        let digests = Names::of("digest", &info.digests, |m| builder.digest(m))?;
        let header = |m: &p4::ControllerPacketMetadata| builder.header(m);
        let headers = Names::of(
            "controller header",
            &info.controller_packet_metadata,
            header,
        )?;
        builder.check_ids_are_unique()?;
        Ok(Info {
            roles: builder.roles()?,
            translations: std::mem::take(&mut builder.translations),
            actions,
            tables,
            counters,
            meters,
            profiles,
            value_sets,
            registers,
            digests,
            headers,
        })
    }

    /// Finds the controller header with this name; `None` if there is none.
    pub fn header(&self, name: &str) -> Option<&Header> {
        self.headers.list.iter().find(|header| header.name == name)
    }

    /// Returns whether a role may access an object. The default role may access everything, and everybody may access
    /// an object without a role.
    pub fn role_may(&self, role: &str, id: u32) -> bool {
        role.is_empty() || self.roles.get(&id).is_none_or(|owner| owner == role)
    }

    /// Checks that a role may access an object. Fails with PERMISSION_DENIED unless [`Self::role_may`] holds.
    pub fn check_role(&self, role: &str, id: u32) -> Result<(), ControlError> {
        if self.role_may(role, id) {
            return Ok(());
        }
        let owner = &self.roles[&id];
        Err(denied(format!(
            "object {id} is of role '{owner}', not of '{role}'"
        )))
    }
}

struct Builder<'a> {
    info: &'a p4::P4Info,
    program: &'a Program,
    types: &'a p4::P4TypeInfo,
    mappings: &'a Mappings,
    translations: BTreeMap<String, Arc<Translation>>,
}

fn preamble(preamble: &Option<p4::Preamble>) -> (u32, String) {
    let preamble = preamble.as_ref();
    preamble.map_or((0, String::new()), |it| (it.id, it.name.clone()))
}

impl Builder<'_> {
    fn action(&mut self, message: &p4::Action) -> Result<Action, ControlError> {
        let (id, name) = preamble(&message.preamble);
        let place = format!(" of action '{name}'");
        let number = ids::action(self.program, id).map_or(usize::MAX, |id| id.index());
        let declared = self.program.actions.get(number);
        let param = |param: &p4::action::Param| {
            let own = declared.and_then(|action| action.params.iter().find(|p| p.id == param.id));
            let own = own.map(|own| self.program.slots[own.slot.index()].width);
            let (width, translation) = (param.bitwidth, &param.type_name);
            let what = format!("parameter '{}'{place}", param.name);
            self.value_field((param.id, &param.name), width, translation, own, &what)
        };
        let params: Vec<_> = message.params.iter().map(param).collect();
        let params = Names::new("parameter", place, params)?;
        Ok(Action {
            id,
            name,
            number,
            params,
        })
    }

    /// Describes a value of a client's messages, an action parameter or a field of a controller header: `bitwidth`
    /// and `type_name` are its type in the P4Info, `own` is its width in bits in the program. Fails for a width or
    /// translation that is not supported; `what` names the value in the message.
    fn value_field(
        &mut self,
        (id, name): (u32, &str),
        bitwidth: i32,
        type_name: &Option<p4::P4NamedType>,
        own: Option<u32>,
        what: &str,
    ) -> Result<Field, ControlError> {
        let translation = self.translation(type_name)?;
        let is_text = translation.as_ref().is_some_and(|t| t.width == 0);
        // An enum or error without a representation has no width, and no value that a client could give.
        let width = match bitwidth {
            _ if is_text => 0,
            0 if own.is_some() => 0,
            bitwidth => width(bitwidth, what)?,
        };
        Ok(Field {
            id,
            name: name.to_owned(),
            width,
            own_width: own.unwrap_or(width),
            kind: MatchKind::Exact,
            translation,
            is_translated: self.translated(type_name).is_some(),
            is_whole: false,
        })
    }

    fn key_field(
        &mut self,
        message: &p4::MatchField,
        own: Option<u32>,
        place: &str,
    ) -> Result<Field, ControlError> {
        let what = format!("match field '{}'{place}", message.name);
        let kind = match &message.r#match {
            Some(Match::MatchType(kind)) => MatchType::try_from(*kind).ok(),
            _ => None,
        };
        let kind = kind.and_then(|kind| MatchKind::of_name(&kind.as_str_name().to_lowercase()));
        let kind =
            kind.ok_or_else(|| invalid(format!("P4Info: {what} has an unsupported match type")))?;
        let translation = self.translation(&message.type_name)?;
        // An enum or error without a representation has no width, and no value that a client could give.
        let is_text = translation.as_ref().is_some_and(|t| t.width == 0);
        let width = match message.bitwidth {
            0 => 0,
            _ if is_text => 0,
            bitwidth => width(bitwidth, &what)?,
        };
        let own_width = own.unwrap_or(width);
        let is_translated = self.translated(&message.type_name).is_some();
        Ok(Field {
            id: message.id,
            name: message.name.clone(),
            width,
            own_width,
            kind,
            is_whole: translation.is_some() || (is_translated && width != own_width),
            translation,
            is_translated,
        })
    }

    fn translated(&self, type_name: &Option<p4::P4NamedType>) -> Option<&p4::P4NewTypeTranslation> {
        let new_type = self.types.new_types.get(&type_name.as_ref()?.name)?;
        match &new_type.representation {
            Some(Representation::TranslatedType(translated)) => Some(translated),
            _ => None,
        }
    }

    /// Returns the translation of a type that is annotated with `@p4runtime_translation`, if its values are strings
    /// for clients or a mapping of its numbers is given; `None` for any other type. Fails for a width that is not
    /// supported, and for a mapping or URI that does not suit the type.
    fn translation(
        &mut self,
        type_name: &Option<p4::P4NamedType>,
    ) -> Result<Option<Arc<Translation>>, ControlError> {
        let Some(translated) = self.translated(type_name) else {
            return Ok(None);
        };
        let name = type_name.as_ref().map_or("", |name| &name.name);
        // Types without a URI have nothing in common.
        let uri = match translated.uri.as_str() {
            "" => name.to_owned(),
            uri => uri.to_owned(),
        };
        let given = self.mappings.get(&uri);
        let width = match translated.sdn_type {
            Some(SdnType::SdnBitwidth(_)) if given.is_none() => return Ok(None),
            Some(SdnType::SdnBitwidth(bitwidth)) => width(bitwidth, &format!("type '{name}'"))?,
            Some(SdnType::SdnString(_)) => 0,
            None => {
                return Err(invalid(format!(
                    "P4Info: type '{name}' is translated to nothing"
                )));
            }
        };
        let known = match self.translations.get(&uri) {
            Some(known) => known.clone(),
            None => {
                let new = Arc::new(Translation::new(&uri, width, given)?);
                self.translations.insert(uri.clone(), new.clone());
                new
            }
        };
        refuse!(
            known.width != width => InvalidArgument,
            "P4Info: '{uri}' is translated to strings and to numbers"
        );
        Ok(Some(known))
    }

    fn table(
        &mut self,
        message: &p4::Table,
        all: &Names<Action>,
        direct_counters: &BTreeSet<u32>,
        direct_meters: &BTreeMap<u32, MeterType>,
    ) -> Result<Table, ControlError> {
        let (id, name) = preamble(&message.preamble);
        let label = format!("table '{name}'");
        let place = format!(" of {label}");
        let number = ids::table(self.program, id).map_or(usize::MAX, |id| id.index());
        let declared = self.program.tables.get(number);
        let mut actions = Vec::new();
        for reference in &message.action_refs {
            let id = reference.id;
            let Some(action) = all.get(id) else {
                return Err(invalid(format!(
                    "P4Info: {label} refers to the unknown action id {id}"
                )));
            };
            let scope = match p4::action_ref::Scope::try_from(reference.scope) {
                Ok(p4::action_ref::Scope::TableAndDefault) => ActionScope::Both,
                Ok(p4::action_ref::Scope::TableOnly) => ActionScope::TableOnly,
                Ok(p4::action_ref::Scope::DefaultOnly) => ActionScope::DefaultOnly,
                _ => {
                    return Err(invalid(format!(
                        "P4Info: {label} uses action '{}' in an unsupported scope",
                        action.name
                    )));
                }
            };
            refuse!(
                actions.iter().any(|(known, _)| *known == id) => InvalidArgument,
                "P4Info: action '{}'{place} is listed twice", action.name
            );
            actions.push((id, scope));
        }
        let resources = &message.direct_resource_ids;
        let known = |id: &&u32| direct_counters.contains(id) || direct_meters.contains_key(id);
        if let Some(id) = resources.iter().find(|id| !known(id)) {
            return Err(invalid(format!(
                "P4Info: {label} refers to the unknown direct resource id {id}"
            )));
        }
        let fields = message.match_fields.iter().map(|field| {
            let mut keys = declared.iter().flat_map(|table| &table.keys);
            let own = keys.find(|key| key.id == field.id).map(|key| key.width);
            self.key_field(field, own, &place)
        });
        let fields: Vec<_> = fields.collect();
        let fields = Names::new("match field", place, fields)?;
        let keys = declared.iter().flat_map(|table| &table.keys);
        let keys = keys.map(|key| {
            let is_field = key.kind.is_looked_up();
            is_field.then(|| fields.position(key.id)).flatten()
        });
        let keys: Vec<Option<usize>> = keys.collect();
        let known = keys.iter().enumerate();
        let known = known.filter_map(|(key, field)| Some((key, (*field)?)));
        let mut by_id: Vec<(usize, usize)> = known.collect();
        by_id.sort_by_key(|(_, field)| fields.list[*field].id);
        let meter = |id: &u32| Some((*id, *direct_meters.get(id)?));
        let mut counters = resources.iter().filter(|id| direct_counters.contains(id));
        Ok(Table {
            keys,
            by_id,
            needs_priority: fields.list.iter().any(|f| f.kind.has_priority()),
            // That of an indirect table is constant (specification, "Default Entry").
            has_const_default: message.const_default_action_id != 0
                || message.implementation_id != 0,
            is_const: message.is_const_table,
            implementation: message.implementation_id,
            direct_counter: counters.next().copied().unwrap_or(0),
            direct_meter: resources.iter().find_map(meter),
            has_timeout: message.idle_timeout_behavior != 0,
            id,
            name,
            number,
            label,
            fields,
            actions,
        })
    }

    fn counter(&self, message: &p4::Counter) -> Result<Array, ControlError> {
        let (id, name) = preamble(&message.preamble);
        let number = ids::counter(self.program, id);
        Ok(Array {
            number: number.map_or(usize::MAX, |id| id.index()),
            size: size(message.size, &format!("counter '{name}'"))?,
            meter: MeterType::TwoRates,
            id,
            name,
        })
    }

    fn meter(&self, message: &p4::Meter) -> Result<Array, ControlError> {
        let (id, name) = preamble(&message.preamble);
        let number = ids::meter(self.program, id);
        Ok(Array {
            number: number.map_or(usize::MAX, |id| id.index()),
            size: size(message.size, &format!("meter '{name}'"))?,
            meter: meter_type(&message.spec)?,
            id,
            name,
        })
    }

    fn profile(
        &self,
        message: &p4::ActionProfile,
        tables: &Names<Table>,
    ) -> Result<Profile, ControlError> {
        let (id, name) = preamble(&message.preamble);
        let what = format!("action profile '{name}'");
        let unknown = message
            .table_ids
            .iter()
            .find(|id| tables.get(**id).is_none());
        if let Some(id) = unknown {
            return Err(invalid(format!(
                "P4Info: {what} refers to the unknown table id {id}"
            )));
        }
        size(message.size, &what)?;
        let group = format!("a group of {what}");
        let (by_members, max_member_weight) = match &message.selector_size_semantics {
            Some(SelectorSizeSemantics::SumOfMembers(members)) => (true, members.max_member_weight),
            _ => (false, 0),
        };
        let number = ids::action_profile(self.program, id);
        Ok(Profile {
            number: number.map_or(usize::MAX, |id| id.index()),
            table_ids: message.table_ids.clone(),
            with_selector: message.with_selector,
            max_group_size: size(message.max_group_size.into(), &group)?,
            by_members,
            max_member_weight,
            weights_disallowed: message.weights_disallowed,
            id,
            name,
        })
    }

    fn value_set(&mut self, message: &p4::ValueSet) -> Result<ValueSet, ControlError> {
        let (id, name) = preamble(&message.preamble);
        let label = format!("value set '{name}'");
        let place = format!(" of {label}");
        let number = ids::value_set(self.program, id).map_or(usize::MAX, |id| id.index());
        let declared = self.program.value_sets.get(number);
        let fields = message.r#match.iter().map(|field| {
            let at = (field.id as usize).wrapping_sub(1);
            let own = declared.and_then(|set| set.widths.get(at).copied());
            self.key_field(field, own, &place)
        });
        let fields: Vec<_> = fields.collect();
        Ok(ValueSet {
            fields: Names::new("match field", place, fields)?,
            size: size(message.size.into(), &label)?,
            id,
            name,
            number,
            label,
        })
    }

    fn register(&self, message: &p4::Register) -> Result<Data, ControlError> {
        let (id, name) = preamble(&message.preamble);
        let number = ids::register(self.program, id);
        let own = number.map(|id| self.program.registers[id.index()].width);
        Ok(Data {
            number: number.map_or(usize::MAX, |id| id.index()),
            size: size(message.size.into(), &format!("register '{name}'"))?,
            ty: self.data(&message.type_spec, own),
            id,
            name,
        })
    }

    /// Returns the type of a register's or digest's data, which have `own` bits in the program. Fails with
    /// UNIMPLEMENTED if members are translated to another width, since the P4Info then does not tell where each member
    /// begins in the program's value.
    fn data(
        &self,
        spec: &Option<p4::P4DataTypeSpec>,
        own: Option<u32>,
    ) -> Result<Type, ControlError> {
        let ty = Type::new(spec.as_ref(), self.types)?;
        let has_members = matches!(ty, Type::Struct(_) | Type::Tuple(_));
        let is_translated = ty.width_in_program() == 0;
        refuse!(
            has_members && is_translated && own.is_some_and(|own| own != ty.width()) => Unimplemented,
            "values with members that are translated to another width are not supported"
        );
        Ok(ty)
    }

    fn digest(&self, message: &p4::Digest) -> Result<Data, ControlError> {
        let (id, name) = preamble(&message.preamble);
        let number = ids::digest(self.program, id);
        let own = number.map(|id| self.program.digests[id.index()].widths.iter().sum());
        Ok(Data {
            number: number.map_or(usize::MAX, |id| id.index()),
            size: 0,
            ty: self.data(&message.type_spec, own),
            id,
            name,
        })
    }

    fn header(&mut self, message: &p4::ControllerPacketMetadata) -> Result<Header, ControlError> {
        let (id, name) = preamble(&message.preamble);
        let place = format!(" of controller header '{name}'");
        let mut headers = self.program.controller_headers.iter();
        let declared = headers.find(|header| header.id == id);
        let fields = message.metadata.iter().map(|field| {
            let what = format!("field '{}'{place}", field.name);
            let names = (field.id, &*field.name);
            let mut known = declared.iter().flat_map(|header| &header.fields);
            let own = known.find(|known| known.id == field.id);
            refuse!(
                declared.is_some() && own.is_none() => InvalidArgument,
                "P4Info: the program has no {what}"
            );
            // Of a program that does not tell it, the width that P4Info gives.
            let width = own
                .map(|own| own.width)
                .unwrap_or(field.bitwidth.max(0) as u32);
            let own = Some(width).filter(|width| *width > 0);
            self.value_field(names, field.bitwidth, &field.type_name, own, &what)
        });
        let fields: Vec<_> = fields.collect();
        let fields = Names::new("metadata field", place, fields)?;
        let layout = match declared {
            Some(header) => {
                let own = header.fields.iter();
                own.map(|own| (fields.position(own.id), own.width))
                    .collect()
            }
            None => {
                let own = fields.list.iter().enumerate();
                own.map(|(at, field)| (Some(at), field.own_width.max(1)))
                    .collect()
            }
        };
        Ok(Header {
            id,
            name,
            fields,
            layout,
        })
    }

    /// Iterates over the preambles (id, name, annotations) of all objects of the P4Info that messages name by id.
    fn preambles(&self) -> impl Iterator<Item = &p4::Preamble> {
        let info = self.info;
        let preambles = (info.actions.iter().map(|it| &it.preamble))
            .chain(info.tables.iter().map(|it| &it.preamble))
            .chain(info.counters.iter().map(|it| &it.preamble))
            .chain(info.direct_counters.iter().map(|it| &it.preamble))
            .chain(info.registers.iter().map(|it| &it.preamble))
            .chain(info.action_profiles.iter().map(|it| &it.preamble))
            .chain(info.meters.iter().map(|it| &it.preamble))
            .chain(info.direct_meters.iter().map(|it| &it.preamble))
            .chain(info.value_sets.iter().map(|it| &it.preamble))
            .chain(info.digests.iter().map(|it| &it.preamble));
        preambles.flatten()
    }

    /// Fails with INVALID_ARGUMENT if an id occurs twice. Ids of all kinds share one number space (comment of
    /// `Preamble.id`).
    fn check_ids_are_unique(&self) -> Result<(), ControlError> {
        let mut seen: BTreeMap<u32, &str> = BTreeMap::new();
        for preamble in self.preambles() {
            if let Some(other) = seen.insert(preamble.id, &preamble.name) {
                let (id, name) = (preamble.id, &preamble.name);
                return Err(invalid(format!(
                    "P4Info: '{name}' and '{other}' both have id {id}"
                )));
            }
        }
        Ok(())
    }

    fn roles(&self) -> Result<BTreeMap<u32, String>, ControlError> {
        let mut roles = BTreeMap::new();
        for preamble in self.preambles() {
            let mut named: Vec<String> = Vec::new();
            for text in preamble.annotations.iter().map(|text| text.trim()) {
                if let Some(rest) = text.strip_prefix("@p4runtime_role")
                    && !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_')
                {
                    named.push(role(text, rest, &preamble.name)?);
                }
            }
            let structured = preamble.structured_annotations.iter();
            for annotation in structured.filter(|it| it.name == "p4runtime_role") {
                let list = match &annotation.body {
                    Some(Body::ExpressionList(list)) => &*list.expressions,
                    _ => &[],
                };
                match list {
                    [
                        p4::Expression {
                            value: Some(expression::Value::StringValue(role)),
                        },
                    ] => named.push(role.clone()),
                    _ => {
                        return Err(invalid(format!(
                            "P4Info: the role of '{}' is not one string",
                            preamble.name
                        )));
                    }
                }
            }
            let count = named.len();
            if count > 1 {
                let name = &preamble.name;
                return Err(invalid(format!("P4Info: '{name}' has {count} roles")));
            }
            roles.extend(named.pop().map(|role| (preamble.id, role)));
        }
        Ok(roles)
    }
}

/// Reads the role in an annotation, a single string. Fails for an annotation that cannot be parsed, which must not
/// make an object accessible to everybody.
fn role(annotation: &str, rest: &str, owner: &str) -> Result<String, ControlError> {
    let inside = rest.strip_prefix('(').and_then(|it| it.strip_suffix(')'));
    let inside = inside.map(str::trim);
    let quoted = inside.and_then(|it| it.strip_prefix('"')?.strip_suffix('"'));
    let mut role = String::new();
    let mut characters = quoted.unwrap_or("\"").chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => match characters.next() {
                Some(escaped) => role.push(escaped),
                None => return Err(not_one_string(annotation, owner)),
            },
            '"' => return Err(not_one_string(annotation, owner)),
            c => role.push(c),
        }
    }
    Ok(role)
}

fn not_one_string(annotation: &str, owner: &str) -> ControlError {
    invalid(format!(
        "P4Info: the role of '{owner}' is not one string: {annotation}"
    ))
}

fn size(size: i64, what: &str) -> Result<u64, ControlError> {
    u64::try_from(size).map_err(|_| invalid(format!("P4Info: {what} has a negative size")))
}

fn width(bitwidth: i32, what: &str) -> Result<u32, ControlError> {
    match u32::try_from(bitwidth) {
        Ok(width @ 1..=MAX_WIDTH) => Ok(width),
        Ok(width @ 1..) => Err(invalid(format!(
            "P4Info: {what} has {width} bits; more than {MAX_WIDTH} are not supported"
        ))),
        _ => Err(invalid(format!(
            "P4Info: {what} has no width in bits (a string?), which is not supported"
        ))),
    }
}

/// Checks the id of an object; `before` is the name of an earlier object of its kind with this id. Fails with
/// INVALID_ARGUMENT if there is one, and if the id is zero.
fn check_id(
    kind: &str,
    name: &str,
    place: &str,
    id: u32,
    before: Option<&str>,
) -> Result<(), ControlError> {
    refuse!(id == 0 => InvalidArgument, "P4Info: {kind} '{name}'{place} has id 0");
    match before {
        None => Ok(()),
        Some(other) => Err(invalid(format!(
            "P4Info: {kind} '{name}'{place} has id {id}, as '{other}' has"
        ))),
    }
}

/// Returns the ids of the direct counters. Fails if an id is zero or occurs twice.
fn direct_counters(list: &[p4::DirectCounter]) -> Result<BTreeSet<u32>, ControlError> {
    let mut found = BTreeMap::new();
    for direct in list {
        let (id, name) = preamble(&direct.preamble);
        let before = found.insert(id, name.clone());
        check_id("direct counter", &name, "", id, before.as_deref())?;
    }
    Ok(found.into_keys().collect())
}

/// Returns the ids and types of the direct meters. Fails if an id is zero or occurs twice.
fn direct_meters(list: &[p4::DirectMeter]) -> Result<BTreeMap<u32, MeterType>, ControlError> {
    let mut found = BTreeMap::new();
    for direct in list {
        let (id, name) = preamble(&direct.preamble);
        let before = found.insert(id, (name.clone(), meter_type(&direct.spec)?));
        let before = before.as_ref().map(|(other, _)| other.as_str());
        check_id("direct meter", &name, "", id, before)?;
    }
    Ok(found.into_iter().map(|(id, (_, ty))| (id, ty)).collect())
}

fn meter_type(spec: &Option<p4::MeterSpec>) -> Result<MeterType, ControlError> {
    use p4::meter_spec::Type;
    let kind = spec.as_ref().map_or(0, |spec| spec.r#type);
    match Type::try_from(kind) {
        Ok(Type::TwoRateThreeColor) => Ok(MeterType::TwoRates),
        Ok(Type::SingleRateThreeColor) => Ok(MeterType::SingleRateThreeColours),
        Ok(Type::SingleRateTwoColor) => Ok(MeterType::SingleRateTwoColours),
        Err(_) => Err(invalid(format!("P4Info: there is no meter type {kind}"))),
    }
}

impl Header {
    /// Returns the parts of the header in their order on the wire, each as its field, `None` if the control plane does
    /// not know it, and its width in bits.
    pub fn parts(&self) -> impl Iterator<Item = (Option<&Field>, u32)> {
        let field = |at: usize| &self.fields.list[at];
        let parts = self.layout.iter();
        parts.map(move |(at, width)| (at.map(field), *width))
    }
}

impl Field {
    /// Returns how many bits a mask has, or a prefix is long, that selects only `value`, given as clients write it:
    /// the width of the type, or the length of the string.
    pub fn mask_width(&self, value: &[u8]) -> u32 {
        match self.width {
            0 => 8 * value.len() as u32,
            width => width,
        }
    }

    /// Returns the width of the field in the program, in bits; 0 if the P4Info does not give it.
    pub fn width_in_program(&self) -> u32 {
        if self.is_translated { 0 } else { self.width }
    }
}
