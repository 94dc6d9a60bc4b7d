//! Action profiles and selectors: members, groups, and which member a packet gets.
//!
//! Members and groups lie in numbered places, so that what a packet does is indexing; the ids of the control plane lead to the
//! places. The set of actions of a one-shot entry is a group without an id whose members have none either. Which
//! members are selectable changes only when a group or a port does, so a group keeps the sums of their weights.
//!
//! [`crate::control`] checks requests of the control plane; here everything named exists.

use crate::hash;
use crate::port_state::PortStates;
use ir::{ActionCall, ActionId, Bits, Selector};
use std::collections::BTreeMap;

/// One action of a one-shot action set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightedAction {
    /// The action.
    pub call: ActionCall,
    /// Its share among the weights of the set; above zero.
    pub weight: u32,
    /// The port that must be up for it to be selected.
    pub watch_port: Option<u32>,
}

/// A member of a group, with its weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupMember {
    /// The member's id.
    pub member_id: u32,
    /// Its share among the weights of the group; above zero.
    pub weight: u32,
    /// The port that must be up for it to be selected.
    pub watch_port: Option<u32>,
}

/// What an entry refers to in a table with an action profile or selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A member.
    Member(u32),
    /// A group, one of whose members is selected for each packet.
    Group(u32),
    /// A one-shot set of actions, one of which is selected for each packet.
    OneShot(Vec<WeightedAction>),
}

/// A target as it is stored with an entry: the place of the member or group in its profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binding {
    Member(u32),
    Group(u32),
}

/// How the action of a hit was selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The id of the group; `None` if the entry names no group or has a one-shot set.
    pub group_id: Option<u32>,
    /// The member's id; `None` in a one-shot set, or if no member was selectable.
    pub member_id: Option<u32>,
    /// The position of the member in the group or set, and the hash value that selected it.
    pub choice: Option<(u32, u64)>,
}

#[derive(Clone, Debug)]
struct Member {
    /// The id; `None` for an action of a one-shot set.
    id: Option<u32>,
    call: ActionCall,
    /// The limbs of all arguments, one argument after the other.
    args: Box<[u64]>,
    /// The number of groups and entries that refer to it.
    uses: u32,
}

#[derive(Clone, Copy, Debug)]
struct Share {
    /// The place of the member.
    member: u32,
    weight: u32,
    watch_port: Option<u32>,
}

#[derive(Clone, Debug)]
struct Group {
    /// The id; `None` for a one-shot set.
    id: Option<u32>,
    max_size: u64,
    shares: Vec<Share>,
    /// The number of entries that refer to it.
    uses: u32,
    /// For each selectable share, the sum of the weights up to and including it, and its position.
    sums: Vec<(u64, u32)>,
}

impl Group {
    /// Calculates again which members of the group can be selected: those that watch no port, or a port that is up.
    fn refresh(&mut self, ports: &PortStates) {
        let mut sum = 0;
        self.sums.clear();
        for (i, share) in self.shares.iter().enumerate() {
            if share.watch_port.is_none_or(|port| ports.is_up(port)) {
                sum += u64::from(share.weight);
                self.sums.push((sum, i as u32));
            }
        }
    }

    /// Returns the position in the group of the member that a hash chooses, in proportion to the weights; `None` if
    /// no member is selectable.
    fn choose(&self, hash: u64) -> Option<u32> {
        let total = self.sums.last()?.0;
        let point = hash % total;
        let at = self.sums.partition_point(|(sum, _)| *sum <= point);
        Some(self.sums[at].1)
    }

    fn size(&self, sum_of_members: bool) -> u64 {
        size(self.shares.iter().map(|s| s.weight), sum_of_members)
    }
}

/// Returns the size of a group whose members have these weights, as its maximum counts it: the number of members if
/// `sum_of_members`, else the sum of the weights.
pub(crate) fn size(weights: impl Iterator<Item = u32>, sum_of_members: bool) -> u64 {
    weights
        .map(|weight| if sum_of_members { 1 } else { u64::from(weight) })
        .sum()
}

/// Values in numbered places; the place of a removed value is reused.
#[derive(Clone, Debug)]
struct Places<T> {
    places: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Places<T> {
    fn new() -> Places<T> {
        Places {
            places: Vec::new(),
            free: Vec::new(),
        }
    }

    fn add(&mut self, value: T) -> u32 {
        match self.free.pop() {
            Some(place) => {
                self.places[place as usize] = Some(value);
                place
            }
            None => {
                self.places.push(Some(value));
                self.places.len() as u32 - 1
            }
        }
    }

    fn remove(&mut self, place: u32) -> Option<T> {
        let value = self.places.get_mut(place as usize)?.take()?;
        self.free.push(place);
        Some(value)
    }

    fn get(&self, place: u32) -> Option<&T> {
        self.places.get(place as usize)?.as_ref()
    }

    fn get_mut(&mut self, place: u32) -> Option<&mut T> {
        self.places.get_mut(place as usize)?.as_mut()
    }
}

/// The contents of one action profile.
#[derive(Clone, Debug)]
pub struct Profile {
    selector: Option<Selector>,
    members: Places<Member>,
    member_places: BTreeMap<u32, u32>,
    groups: Places<Group>,
    group_places: BTreeMap<u32, u32>,
    /// The number of entries with a one-shot set.
    one_shots: u32,
    /// The number of entries that refer to a member or group.
    references: u32,
}

/// A group as the control plane set it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupContents {
    /// Members, in the order in which they were given.
    pub members: Vec<GroupMember>,
    /// The maximum size that the control plane gave to the group; 0 is that of the profile.
    pub max_size: u64,
}

impl Profile {
    pub(crate) fn new(declared: &ir::ActionProfile) -> Profile {
        Profile {
            selector: declared.selector,
            members: Places::new(),
            member_places: BTreeMap::new(),
            groups: Places::new(),
            group_places: BTreeMap::new(),
            one_shots: 0,
            references: 0,
        }
    }

    /// Returns the ids of the profile's members, in ascending order.
    pub fn member_ids(&self) -> impl Iterator<Item = u32> {
        self.member_places.keys().copied()
    }

    /// Returns the ids of the profile's groups, in ascending order.
    pub fn group_ids(&self) -> impl Iterator<Item = u32> {
        self.group_places.keys().copied()
    }

    /// Returns the ids of the members that are at least `from`, in ascending order.
    pub fn member_ids_from(&self, from: u32) -> impl Iterator<Item = u32> {
        self.member_places.range(from..).map(|(id, _)| *id)
    }

    /// Returns the ids of the groups that are at least `from`, in ascending order.
    pub fn group_ids_from(&self, from: u32) -> impl Iterator<Item = u32> {
        self.group_places.range(from..).map(|(id, _)| *id)
    }

    /// Returns the number of members that have an id; the actions of one-shot sets have none.
    pub fn member_count(&self) -> u64 {
        self.member_places.len() as u64
    }

    /// Returns the action that a member runs, or `None` if there is no such member.
    pub fn member(&self, id: u32) -> Option<&ActionCall> {
        Some(&self.members.get(*self.member_places.get(&id)?)?.call)
    }

    /// Returns true if a group or an entry refers to the member.
    pub fn member_is_used(&self, id: u32) -> bool {
        let place = self.member_places.get(&id);
        place.is_some_and(|&place| self.members.get(place).is_some_and(|m| m.uses > 0))
    }

    /// Returns the members and the maximum size of a group, or `None` if there is no such group.
    pub fn group(&self, id: u32) -> Option<GroupContents> {
        let group = self.groups.get(*self.group_places.get(&id)?)?;
        let members = group.shares.iter().filter_map(|share| {
            Some(GroupMember {
                member_id: self.members.get(share.member)?.id?,
                weight: share.weight,
                watch_port: share.watch_port,
            })
        });
        Some(GroupContents {
            members: members.collect(),
            max_size: group.max_size,
        })
    }

    /// Returns true if an entry refers to the group.
    pub fn group_is_used(&self, id: u32) -> bool {
        let place = self.group_places.get(&id);
        place.is_some_and(|&place| self.groups.get(place).is_some_and(|g| g.uses > 0))
    }

    /// Returns the sum of the sizes of all groups, including one-shot sets of entries, except for the group with the
    /// id `except`.
    pub fn size_of_groups(&self, except: Option<u32>) -> u64 {
        let by_members = self.selector.is_some_and(|s| s.sum_of_members);
        let groups = self.groups.places.iter().flatten();
        groups
            .filter(|group| except.is_none() || group.id != except)
            .map(|group| group.size(by_members))
            .sum()
    }

    /// Returns the number of entries that have a set of actions of their own (one-shot).
    pub fn one_shots(&self) -> u32 {
        self.one_shots
    }

    /// Returns the number of entries that refer to a member or a group.
    pub fn references(&self) -> u32 {
        self.references
    }

    /// Sets the action that a member runs, or removes the member if `call` is `None`. Returns the member's former
    /// action, `None` if the member is new.
    pub(crate) fn put_member(&mut self, id: u32, call: Option<ActionCall>) -> Option<ActionCall> {
        let place = self.member_places.get(&id).copied();
        match (place, call) {
            (Some(place), Some(call)) => {
                let member = self.members.get_mut(place)?;
                member.args = limbs(&call.args);
                Some(std::mem::replace(&mut member.call, call))
            }
            (Some(place), None) => {
                self.member_places.remove(&id);
                Some(self.members.remove(place)?.call)
            }
            (None, Some(call)) => {
                let place = self.add_member(Some(id), call);
                self.member_places.insert(id, place);
                None
            }
            (None, None) => None,
        }
    }

    fn add_member(&mut self, id: Option<u32>, call: ActionCall) -> u32 {
        self.members.add(Member {
            id,
            args: limbs(&call.args),
            call,
            uses: 0,
        })
    }

    /// Sets the members and the maximum size of a group, or removes the group if `contents` is `None`. Returns the
    /// group's former contents, `None` if the group is new.
    pub(crate) fn put_group(
        &mut self,
        id: u32,
        contents: Option<GroupContents>,
        ports: &PortStates,
    ) -> Option<GroupContents> {
        let former = self.group(id);
        let place = self.group_places.get(&id).copied();
        if let Some(group) = place.and_then(|place| self.groups.get_mut(place)) {
            let shares = std::mem::take(&mut group.shares);
            self.use_members(&shares, false);
        }
        match contents {
            None => {
                self.group_places.remove(&id);
                place.map(|place| self.groups.remove(place));
            }
            Some(contents) => {
                let shares = self.shares(&contents.members);
                self.use_members(&shares, true);
                let place = place.unwrap_or_else(|| self.add_group(Some(id)));
                self.group_places.insert(id, place);
                self.fill_group(place, shares, contents.max_size, ports);
            }
        }
        former
    }

    fn shares(&self, members: &[GroupMember]) -> Vec<Share> {
        let shares = members.iter().filter_map(|member| {
            Some(Share {
                member: *self.member_places.get(&member.member_id)?,
                weight: member.weight,
                watch_port: member.watch_port,
            })
        });
        shares.collect()
    }

    fn use_members(&mut self, shares: &[Share], more: bool) {
        for share in shares {
            if let Some(member) = self.members.get_mut(share.member) {
                member.uses = if more {
                    member.uses + 1
                } else {
                    member.uses.saturating_sub(1)
                };
            }
        }
    }

    fn add_group(&mut self, id: Option<u32>) -> u32 {
        self.groups.add(Group {
            id,
            max_size: 0,
            shares: Vec::new(),
            uses: 0,
            sums: Vec::new(),
        })
    }

    fn fill_group(&mut self, place: u32, shares: Vec<Share>, max_size: u64, ports: &PortStates) {
        if let Some(group) = self.groups.get_mut(place) {
            group.shares = shares;
            group.max_size = max_size;
            group.refresh(ports);
        }
    }

    /// Binds an entry to a member, a group or a one-shot set, which counts as used from now on. Returns `None` if
    /// there is no such member or group.
    pub(crate) fn bind(&mut self, target: &Target, ports: &PortStates) -> Option<Binding> {
        match target {
            Target::Member(id) => {
                let place = *self.member_places.get(id)?;
                self.members.get_mut(place)?.uses += 1;
                self.references += 1;
                Some(Binding::Member(place))
            }
            Target::Group(id) => {
                let place = *self.group_places.get(id)?;
                self.groups.get_mut(place)?.uses += 1;
                self.references += 1;
                Some(Binding::Group(place))
            }
            Target::OneShot(actions) => {
                let shares = actions
                    .iter()
                    .map(|action| Share {
                        member: self.add_member(None, action.call.clone()),
                        weight: action.weight,
                        watch_port: action.watch_port,
                    })
                    .collect();
                let place = self.add_group(None);
                self.fill_group(place, shares, 0, ports);
                self.one_shots += 1;
                Some(Binding::Group(place))
            }
        }
    }

    /// Releases what an entry was bound to ([`Self::bind`]) when the entry no longer refers to it. A one-shot set of
    /// actions is removed.
    pub(crate) fn release(&mut self, binding: Binding) {
        match binding {
            Binding::Member(place) => {
                self.references = self.references.saturating_sub(1);
                if let Some(member) = self.members.get_mut(place) {
                    member.uses = member.uses.saturating_sub(1);
                }
            }
            Binding::Group(place) if self.is_one_shot(place) => {
                self.one_shots = self.one_shots.saturating_sub(1);
                for share in self.groups.remove(place).into_iter().flat_map(|g| g.shares) {
                    self.members.remove(share.member);
                }
            }
            Binding::Group(place) => {
                self.references = self.references.saturating_sub(1);
                if let Some(group) = self.groups.get_mut(place) {
                    group.uses = group.uses.saturating_sub(1);
                }
            }
        }
    }

    fn is_one_shot(&self, place: u32) -> bool {
        self.groups.get(place).is_some_and(|g| g.id.is_none())
    }

    /// Returns the target to which an entry is bound, or `None` if the target no longer exists.
    pub(crate) fn target(&self, binding: Binding) -> Option<Target> {
        match binding {
            Binding::Member(place) => Some(Target::Member(self.members.get(place)?.id?)),
            Binding::Group(place) => {
                let group = self.groups.get(place)?;
                if let Some(id) = group.id {
                    return Some(Target::Group(id));
                }
                let actions = group.shares.iter().filter_map(|share| {
                    Some(WeightedAction {
                        call: self.members.get(share.member)?.call.clone(),
                        weight: share.weight,
                        watch_port: share.watch_port,
                    })
                });
                Some(Target::OneShot(actions.collect()))
            }
        }
    }

    /// Calculates again which members can be selected in the groups that watch `port`, after its state changed; if `port`
    /// is `None`, in all groups that watch any port.
    pub(crate) fn refresh(&mut self, port: Option<u32>, ports: &PortStates) {
        for group in self.groups.places.iter_mut().flatten() {
            let watches =
                |s: &Share| s.watch_port.is_some() && (port.is_none() || s.watch_port == port);
            if group.shares.iter().any(watches) {
                group.refresh(ports);
            }
        }
    }

    /// Selects the action that runs for a packet: of the member, group or one-shot set of its entry. Returns the
    /// action with the limbs of its arguments, `None` if no member can be selected, and how it was selected. `data`
    /// returns the hash that chooses among members, and is not called for a single member.
    #[inline]
    pub(crate) fn select(
        &self,
        binding: Binding,
        data: impl FnOnce() -> u64,
    ) -> (Option<(ActionId, &[u64])>, Selection) {
        let mut selection = Selection {
            group_id: None,
            member_id: None,
            choice: None,
        };
        let place = match binding {
            Binding::Member(place) => Some(place),
            Binding::Group(place) => self.groups.get(place).and_then(|group| {
                selection.group_id = group.id;
                let hash = data();
                let position = group.choose(hash)?;
                selection.choice = Some((position, hash));
                Some(group.shares.get(position as usize)?.member)
            }),
        };
        let member = place.and_then(|place| self.members.get(place));
        selection.member_id = member.and_then(|m| m.id);
        (member.map(|m| (m.call.action, &*m.args)), selection)
    }

    /// Hashes a packet's selector fields, each given as limbs and a width in bits. The hash has the selector's width,
    /// at most 64 bits; it is 0 without a selector.
    pub(crate) fn hash<'a>(
        &self,
        fields: impl Iterator<Item = (&'a [u64], u32)>,
        buffer: &mut Vec<u8>,
    ) -> u64 {
        let Some(selector) = self.selector else {
            return 0;
        };
        buffer.clear();
        let mut bits = 0;
        for (limbs, width) in fields {
            bits = append_bits(buffer, bits, limbs, width);
        }
        let mut value = [0];
        hash::hash(selector.algorithm, buffer, &[], &mut value);
        value[0] & (u64::MAX >> (64 - selector.width.clamp(1, 64)))
    }
}

fn limbs(args: &[Bits]) -> Box<[u64]> {
    args.iter().flat_map(Bits::limbs).copied().collect()
}

/// Appends the low `width` bits of a value, most significant bit first, behind the first `used` bits of `bytes`, and
/// returns the number of bits in use then. The last byte is filled with zero bits.
fn append_bits(bytes: &mut Vec<u8>, used: u32, limbs: &[u64], width: u32) -> u32 {
    let mut end = used;
    let mut left = width;
    while left > 0 {
        let room = 8 - end % 8;
        if room == 8 {
            bytes.push(0);
        }
        let count = room.min(left);
        left -= count;
        let limb = limbs.get((left / 64) as usize).copied().unwrap_or(0);
        let next = limbs.get((left / 64 + 1) as usize).copied().unwrap_or(0);
        let wide = u128::from(next) << 64 | u128::from(limb);
        let chunk = (wide >> (left % 64)) as u8 & (0xff >> (8 - count));
        if let Some(last) = bytes.last_mut() {
            *last |= chunk << (room - count);
        }
        end += count;
    }
    end
}

#[cfg(test)]
mod tests;
