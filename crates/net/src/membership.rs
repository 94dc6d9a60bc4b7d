//! A modelled host's part of IGMP and MLD (RFC 3376, section 5; RFC 3810, section 6; RFC 2236, section 3; RFC 2710, section 4): its
//! groups, its messages about them and their times, and its counts for each group. It does not know links or flows' contents.
//!
//! Reports of changes are repeated as the default robustness of 2 says; answers to queries wait for a random time, from a stream of the
//! host's own. In older versions another member's report suppresses the own one. A source list has at most [`MAX_SOURCES`] addresses.

use crate::FlowId;
use crate::random::Stream;
use crate::totals::ReceivedTotals;
use engine::Time;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use wire::membership::{GroupAddress, Message, Query, Record, RecordKind};
use wire::{MacAddress, ethernet, igmp, ipv4, ipv6, mld};

/// A message of IGMP or MLD that a host sends or receives.
type AnyMessage = Message<IpAddr>;

/// The most sources in the filter of a group.
pub const MAX_SOURCES: usize = 64;

/// The number of times that a change is reported (RFC 3376, section 8.1).
const ROBUSTNESS: u8 = 2;
/// The query interval of a querier whose queries do not contain it (RFC 3376, section 8.2).
const QUERY_INTERVAL_PS: u64 = 125 * PS_PER_S;
/// The most bytes of records in one report.
const REPORT_BYTES: usize = 1_400;

const PS_PER_MS: u64 = 1_000_000_000;
const PS_PER_S: u64 = 1_000 * PS_PER_MS;
const NEVER: Time = Time::NEVER;

/// A version of IGMP or MLD that a host uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MembershipVersion {
    /// Version 1 of IGMP (RFC 1112).
    Igmpv1,
    /// Version 2 of IGMP (RFC 2236).
    Igmpv2,
    /// Version 3 of IGMP (RFC 3376).
    Igmpv3,
    /// Version 1 of MLD (RFC 2710).
    Mldv1,
    /// Version 2 of MLD (RFC 3810).
    Mldv2,
}

impl MembershipVersion {
    /// Returns true for a version of MLD, false for one of IGMP.
    pub(crate) fn is_mld(self) -> bool {
        self.parts().0
    }

    fn parts(self) -> (bool, u8) {
        match self {
            MembershipVersion::Igmpv1 => (false, 1),
            MembershipVersion::Igmpv2 => (false, 2),
            MembershipVersion::Igmpv3 => (false, 3),
            MembershipVersion::Mldv1 => (true, 1),
            MembershipVersion::Mldv2 => (true, 2),
        }
    }
}

/// The sources of a group from which a host wants packets: only these (INCLUDE), or all but these (EXCLUDE). INCLUDE
/// without sources means that it is no member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupFilter {
    /// True if the filter mode is EXCLUDE, rather than INCLUDE.
    pub excludes: bool,
    /// Sources.
    pub sources: BTreeSet<IpAddr>,
}

impl GroupFilter {
    fn is_member(&self) -> bool {
        self.excludes || !self.sources.is_empty()
    }

    fn wants(&self, source: IpAddr) -> bool {
        self.sources.contains(&source) != self.excludes
    }
}

/// Counters of the packets that a host received for a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GroupStatistics {
    /// Datagrams that arrived intact while the host was a member.
    pub received: u64,
    /// Those among them that were copies of earlier ones.
    pub duplicates: u64,
    /// Those among them that arrived after a later one of the same stream.
    pub out_of_order: u64,
    /// The time at which the first of them arrived.
    #[serde(serialize_with = "crate::units::serialize_some")]
    pub first_ps: Option<Time>,
    /// The time at which the last of them arrived.
    #[serde(serialize_with = "crate::units::serialize_some")]
    pub last_ps: Option<Time>,
    /// The longest time between two packets that followed each other while the host remained a member.
    pub longest_gap_ps: u64,
    /// Packets that arrived while the host was no member, or from sources that it did not want.
    pub unwanted: u64,
    /// The time at which the last unwanted packet arrived.
    #[serde(serialize_with = "crate::units::serialize_some")]
    pub last_unwanted_ps: Option<Time>,
}

#[derive(Debug, Default)]
struct Counts {
    seen: GroupStatistics,
    /// The time of the last arrival, unless the host has left the group since.
    previous_ps: Option<Time>,
    streams: BTreeMap<FlowId, ReceivedTotals>,
}

/// The state of a host's membership of one group.
#[derive(Debug, Default)]
struct Group {
    filter: GroupFilter,
    /// The number of reports still to be sent about the last change of the filter mode; in older versions, of the
    /// membership.
    mode_left: u8,
    /// For each changed source, the number of reports still to be sent about its change.
    sources_left: BTreeMap<IpAddr, u8>,
    change_due_ps: Option<Time>,
    answer_due_ps: Option<Time>,
    /// The sources to which the next answer is limited; `None` for an answer about the whole group.
    asked: Option<BTreeSet<IpAddr>>,
    /// True if, in older versions, no other host has reported the group since this host did.
    is_last_reporter: bool,
}

/// IGMP or MLD at a host.
#[derive(Debug)]
struct Protocol {
    latest: u8,
    /// The version that the host was configured to use.
    version: Option<u8>,
    /// The times until which the host adapts to a querier of version 1, and of version 2 (RFC 3376, section 7.2.1).
    older_until_ps: [Time; 2],
    general_due_ps: Option<Time>,
}

impl Protocol {
    fn of<A: GroupAddress>() -> Protocol {
        Protocol {
            latest: A::LATEST,
            version: None,
            older_until_ps: [Time::ZERO; 2],
            general_due_ps: None,
        }
    }

    fn version_at(&self, now_ps: Time) -> u8 {
        let own = self.version.unwrap_or(self.latest);
        let older = (1..own).zip(self.older_until_ps);
        let mut heard = older.filter(|(_, until_ps)| *until_ps > now_ps);
        heard.next().map_or(own, |(version, _)| version)
    }

    fn is_old(&self, now_ps: Time) -> bool {
        self.version_at(now_ps) < self.latest
    }

    /// Returns the longest time, in picoseconds, between two reports of the same change (RFC 3376, section 8.11; RFC
    /// 2236, section 8.10; RFC 2710, section 7.10).
    fn unsolicited_ps(&self, now_ps: Time) -> u64 {
        match self.is_old(now_ps) {
            false => PS_PER_S,
            true => 10 * PS_PER_S,
        }
    }
}

/// What a frame means for a host's groups.
pub(crate) enum Verdict {
    /// The frame is not to a multicast group, or to one that hosts need not join.
    Other,
    /// The frame is to a group of the host.
    Member(IpAddr),
    /// The frame is to a group that the host is no member of.
    Unwanted,
    /// The frame was an IGMP or MLD message, which has been handled.
    Consumed,
}

/// The memberships of a host.
#[derive(Debug)]
pub(crate) struct Memberships {
    draws: Stream,
    groups: BTreeMap<IpAddr, Group>,
    counts: BTreeMap<IpAddr, Counts>,
    /// Planned changes of filters, by time and in the order in which they were requested.
    pending: BTreeMap<(Time, u64), (IpAddr, GroupFilter)>,
    added: u64,
    /// The times at which groups may have to send a message.
    timers: BTreeSet<(Time, IpAddr)>,
    protocols: [Protocol; 2],
    /// The time of the host's next scheduled event.
    pub(crate) wake_ps: Time,
}

impl Memberships {
    pub(crate) fn new(draws: Stream) -> Memberships {
        Memberships {
            draws,
            groups: BTreeMap::new(),
            counts: BTreeMap::new(),
            pending: BTreeMap::new(),
            added: 0,
            timers: BTreeSet::new(),
            protocols: [Protocol::of::<Ipv4Addr>(), Protocol::of::<Ipv6Addr>()],
            wake_ps: NEVER,
        }
    }

    /// Returns true if the host has joined a group or plans to, and so may have to send messages without a query.
    pub(crate) fn is_active(&self) -> bool {
        !(self.groups.is_empty() && self.pending.is_empty())
    }

    /// Sets the version of IGMP or MLD that the host uses. Fails if it already uses another version of the same
    /// protocol.
    pub(crate) fn speak(&mut self, version: MembershipVersion) -> Result<(), &'static str> {
        let (is_mld, number) = version.parts();
        match &mut self.protocols[usize::from(is_mld)].version {
            Some(other) if *other != number => Err("the one that the host speaks already"),
            own => {
                *own = Some(number);
                Ok(())
            }
        }
    }

    /// Plans to replace the host's filter for a group at `at_ps`, by which it joins, changes its sources or leaves.
    pub(crate) fn plan(&mut self, at_ps: Time, group: IpAddr, filter: GroupFilter) {
        self.added += 1;
        self.pending.insert((at_ps, self.added), (group, filter));
    }

    /// Returns the statistics of the received packets of a group; all are zero if none was received.
    pub(crate) fn statistics(&self, group: IpAddr) -> GroupStatistics {
        let Some(counts) = self.counts.get(&group) else {
            return GroupStatistics::default();
        };
        let streams = counts.streams.values().map(ReceivedTotals::copies);
        let add = |sum: (u64, u64), one: (u64, u64)| (sum.0 + one.0, sum.1 + one.1);
        let (duplicates, out_of_order) = streams.fold((0, 0), add);
        GroupStatistics {
            duplicates,
            out_of_order,
            ..counts.seen
        }
    }

    /// Counts a datagram to a group that has arrived at the member. `stream` is the UDP stream that sent it and its
    /// sequence number there; `None` if unknown.
    pub(crate) fn arrived(&mut self, now_ps: Time, group: IpAddr, stream: Option<(FlowId, u64)>) {
        let counts = self.counts.entry(group).or_default();
        let seen = &mut counts.seen;
        seen.received += 1;
        seen.first_ps.get_or_insert(now_ps);
        seen.last_ps = Some(now_ps);
        let gap_ps = counts.previous_ps.map_or(0, |before| now_ps - before);
        seen.longest_gap_ps = seen.longest_gap_ps.max(gap_ps);
        counts.previous_ps = Some(now_ps);
        if let Some((flow, sequence)) = stream {
            let totals = counts.streams.entry(flow).or_default();
            totals.arrived(sequence, now_ps.saturating_ps(), now_ps.saturating_ps());
        }
    }

    // ---- Hearing ----

    /// Decides whether a frame that arrived at the host is for one of its groups, and returns the decision. Handles
    /// the frame if it is an IGMP or MLD message, and counts it if it is to a group that the host does not want.
    pub(crate) fn judge(&mut self, now_ps: Time, frame: &[u8]) -> Verdict {
        let Some((group, source, message)) = multicast(frame) else {
            return Verdict::Other;
        };
        if let Some(message) = message {
            self.hear(now_ps, group.is_ipv6(), message);
            return Verdict::Consumed;
        }
        if !is_routed_group(group) {
            return Verdict::Other;
        }
        let own = self.groups.get(&group);
        if own.is_some_and(|own| own.filter.wants(source)) {
            return Verdict::Member(group);
        }
        let seen = &mut self.counts.entry(group).or_default().seen;
        seen.unwanted += 1;
        seen.last_unwanted_ps = Some(now_ps);
        Verdict::Unwanted
    }

    fn hear(&mut self, now_ps: Time, is_mld: bool, message: AnyMessage) {
        let protocol = &mut self.protocols[usize::from(is_mld)];
        match message {
            Message::Report(_) | Message::Leave { .. } => {}
            Message::OldReport { group, .. } => {
                if let Some(own) = self.groups.get_mut(&group)
                    && protocol.is_old(now_ps)
                {
                    // RFC 2236, section 6: a delaying member becomes an idle one.
                    (own.answer_due_ps, own.change_due_ps) = (None, None);
                    own.is_last_reporter = false;
                }
            }
            Message::Query(query) => self.asked(now_ps, is_mld, query),
        }
    }

    fn asked(&mut self, now_ps: Time, is_mld: bool, query: Query<IpAddr>) {
        let within_ps = u64::from(query.max_response_ms) * PS_PER_MS;
        let protocol = &mut self.protocols[usize::from(is_mld)];
        if query.version < protocol.latest {
            let until_ps = now_ps + u64::from(ROBUSTNESS) * QUERY_INTERVAL_PS + within_ps;
            protocol.older_until_ps[usize::from(query.version) - 1] = until_ps;
        }
        let is_old = protocol.is_old(now_ps);
        let own = self.groups.keys().filter(|it| it.is_ipv6() == is_mld);
        let own: Vec<IpAddr> = own.copied().collect();
        match query.group {
            Some(group) => self.asked_of(now_ps, group, query.sources, within_ps, is_old),
            None if is_old => {
                for group in own {
                    self.asked_of(now_ps, group, Vec::new(), within_ps, true);
                }
            }
            None if own.is_empty() => {}
            None => {
                let due_ps = now_ps + delay_ps(&mut self.draws, 0, within_ps);
                let general = &mut self.protocols[usize::from(is_mld)].general_due_ps;
                *general = Some(general.map_or(due_ps, |before| before.min(due_ps)));
            }
        }
    }

    /// Schedules the answer to a query about a group, or about some of its sources, at a random time within
    /// `within_ps` picoseconds, together with an answer that is already scheduled (RFC 3376, section 5.2; RFC 2236,
    /// section 3, if `is_old` is true, as a querier of an older version is present). Does nothing if the host is no
    /// member, or a general answer comes earlier.
    fn asked_of(
        &mut self,
        now_ps: Time,
        group: IpAddr,
        sources: Vec<IpAddr>,
        within_ps: u64,
        is_old: bool,
    ) {
        let general_due_ps = self.protocols[usize::from(group.is_ipv6())].general_due_ps;
        let due_ps = now_ps + delay_ps(&mut self.draws, 0, within_ps);
        let Some(own) = self.groups.get_mut(&group) else {
            return;
        };
        if !is_old && general_due_ps.is_some_and(|general_ps| general_ps <= due_ps) {
            return;
        }
        let asked: BTreeSet<IpAddr> = sources.into_iter().collect();
        own.asked = match (own.asked.take(), own.answer_due_ps) {
            _ if asked.is_empty() => None,
            (None, Some(_)) => None,
            (None, None) => Some(asked),
            (Some(before), _) => Some(&before | &asked),
        };
        let answer_ps = match own.answer_due_ps {
            // In older versions one that is due in time anyway stays as it is.
            Some(before_ps) if is_old && before_ps <= now_ps + within_ps => before_ps,
            Some(before_ps) if !is_old => before_ps.min(due_ps),
            _ => due_ps,
        };
        own.answer_due_ps = Some(answer_ps);
        self.timers.insert((answer_ps, group));
    }

    // ---- Saying ----

    /// Returns the time of the next planned change or message; [`Time::NEVER`] if there is none.
    pub(crate) fn due_ps(&self) -> Time {
        let pending = self.pending.first_key_value().map(|((at_ps, _), _)| *at_ps);
        let timer = self.timers.first().map(|(due_ps, _)| *due_ps);
        let [igmp, mld] = &self.protocols;
        let times = [pending, timer, igmp.general_due_ps, mld.general_due_ps];
        times.into_iter().flatten().min().unwrap_or(NEVER)
    }

    /// Applies planned changes and sends messages that are due at `now_ps`. Returns the frames to send, from the card
    /// with this MAC and IPv4 address.
    pub(crate) fn due(
        &mut self,
        now_ps: Time,
        (mac, address): (MacAddress, Ipv4Addr),
    ) -> Vec<Vec<u8>> {
        let mut said = Vec::new();
        while let Some(entry) = self.pending.first_entry()
            && entry.key().0 <= now_ps
        {
            let (group, filter) = entry.remove();
            self.change(now_ps, group, filter, &mut said);
        }
        for is_mld in [false, true] {
            let protocol = &mut self.protocols[usize::from(is_mld)];
            if is_due(&mut protocol.general_due_ps, now_ps) {
                self.report_all(is_mld, &mut said);
            }
        }
        while let Some(&(due_ps, group)) = self.timers.first()
            && due_ps <= now_ps
        {
            self.timers.pop_first();
            self.say(now_ps, group, &mut said);
        }
        said.iter()
            .filter_map(|it| frame(it, mac, address))
            .collect()
    }

    fn change(
        &mut self,
        now_ps: Time,
        group: IpAddr,
        filter: GroupFilter,
        said: &mut Vec<AnyMessage>,
    ) {
        let protocol = &self.protocols[usize::from(group.is_ipv6())];
        let (version, is_old) = (protocol.version_at(now_ps), protocol.is_old(now_ps));
        let own = self.groups.entry(group).or_default();
        let before = std::mem::replace(&mut own.filter, filter);
        let (was, is) = (before.is_member(), own.filter.is_member());
        if !is_old {
            if before.excludes != own.filter.excludes {
                own.mode_left = ROBUSTNESS;
                own.sources_left.clear();
            } else {
                let differing = &before.sources ^ &own.filter.sources;
                let left = differing.into_iter().map(|source| (source, ROBUSTNESS));
                own.sources_left.extend(left);
            }
        } else if was && !is {
            own.mode_left = 0;
            // Version 1 of IGMP has no such message (RFC 1112).
            if own.is_last_reporter && (version > 1 || group.is_ipv6()) {
                said.push(Message::Leave { group });
            }
        } else if !was && is {
            own.mode_left = ROBUSTNESS;
        }
        if !is {
            own.answer_due_ps = None;
            if let Some(counts) = self.counts.get_mut(&group) {
                counts.previous_ps = None;
            }
        }
        if own.mode_left > 0 || !own.sources_left.is_empty() {
            own.change_due_ps = Some(now_ps);
            self.say(now_ps, group, said);
        } else if !is {
            self.groups.remove(&group);
        }
    }

    /// Appends the messages about a group that are due at `now_ps` to `said`, and sets the group's next timer. Removes
    /// a group that the host has left once that has been reported.
    fn say(&mut self, now_ps: Time, group: IpAddr, said: &mut Vec<AnyMessage>) {
        let protocol = &self.protocols[usize::from(group.is_ipv6())];
        let version = protocol.version_at(now_ps);
        let (is_old, between_ps) = (protocol.is_old(now_ps), protocol.unsolicited_ps(now_ps));
        let Some(own) = self.groups.get_mut(&group) else {
            return;
        };
        if is_due(&mut own.answer_due_ps, now_ps) {
            said.extend(own.answer(group, version, is_old));
        }
        if is_due(&mut own.change_due_ps, now_ps) {
            said.extend(own.report_change(group, version, is_old));
            if own.mode_left > 0 || !own.sources_left.is_empty() {
                let due_ps = now_ps + delay_ps(&mut self.draws, 1, between_ps);
                own.change_due_ps = Some(due_ps);
                self.timers.insert((due_ps, group));
            } else if !own.filter.is_member() {
                self.groups.remove(&group);
            }
        }
    }

    /// Appends reports of the current state of all the host's groups to `said`: of IPv6 groups if `is_mld` is true,
    /// else of IPv4 groups. Splits them so that each fits into a packet.
    fn report_all(&self, is_mld: bool, said: &mut Vec<AnyMessage>) {
        let (mut records, mut bytes) = (Vec::new(), 0);
        let of_protocol = self.groups.iter().filter(|it| it.0.is_ipv6() == is_mld);
        for (group, own) in of_protocol.filter(|it| it.1.filter.is_member()) {
            let record = own.state(*group);
            let sources = record.sources.len();
            let len = match is_mld {
                false => Record::<Ipv4Addr>::len_with(sources),
                true => Record::<Ipv6Addr>::len_with(sources),
            };
            if bytes + len > REPORT_BYTES {
                said.push(Message::Report(std::mem::take(&mut records)));
                bytes = 0;
            }
            bytes += len;
            records.push(record);
        }
        if !records.is_empty() {
            said.push(Message::Report(records));
        }
    }
}

impl Group {
    fn state(&self, group: IpAddr) -> Record<IpAddr> {
        Record {
            kind: match self.filter.excludes {
                true => RecordKind::ModeIsExclude,
                false => RecordKind::ModeIsInclude,
            },
            group,
            sources: self.filter.sources.iter().copied().collect(),
        }
    }

    /// Builds the answer to a query about this group (RFC 3376, section 5.2; RFC 2236 and RFC 2710 if `is_old` is
    /// true). Returns `None` if the host is no member, or wants none of the sources that were asked for.
    fn answer(&mut self, group: IpAddr, version: u8, is_old: bool) -> Option<AnyMessage> {
        let asked = self.asked.take();
        if !self.filter.is_member() {
            return None;
        }
        if is_old {
            self.is_last_reporter = true;
            return Some(Message::OldReport { version, group });
        }
        let Some(asked) = asked else {
            return Some(Message::Report(vec![self.state(group)]));
        };
        let wanted = asked.into_iter().filter(|it| self.filter.wants(*it));
        let record = Record {
            kind: RecordKind::ModeIsInclude,
            group,
            sources: wanted.collect(),
        };
        (!record.sources.is_empty()).then(|| Message::Report(vec![record]))
    }

    /// Builds the next report of a change of this group's filter (RFC 3376, section 5.1), or the report of an older
    /// version if `is_old` is true, and counts it as sent; `None` if no report is needed.
    fn report_change(&mut self, group: IpAddr, version: u8, is_old: bool) -> Option<AnyMessage> {
        if is_old {
            self.sources_left.clear();
            self.mode_left = self.mode_left.saturating_sub(1);
            self.is_last_reporter |= self.filter.is_member();
            let report = Message::OldReport { version, group };
            return self.filter.is_member().then_some(report);
        }
        if self.mode_left > 0 {
            self.mode_left -= 1;
            let kind = match self.filter.excludes {
                true => RecordKind::ChangeToExclude,
                false => RecordKind::ChangeToInclude,
            };
            let record = Record {
                kind,
                ..self.state(group)
            };
            return Some(Message::Report(vec![record]));
        }
        let mut records = Vec::new();
        let (allowed, blocked): (Vec<IpAddr>, Vec<IpAddr>) =
            (self.sources_left.keys()).partition(|source| self.filter.wants(**source));
        for (kind, sources) in [
            (RecordKind::AllowNewSources, allowed),
            (RecordKind::BlockOldSources, blocked),
        ] {
            if !sources.is_empty() {
                records.push(Record {
                    kind,
                    group,
                    sources,
                });
            }
        }
        self.sources_left.retain(|_, left| {
            *left -= 1;
            *left > 0
        });
        Some(Message::Report(records))
    }
}

/// Draws a delay in picoseconds, uniformly distributed from `least_ps` to `most_ps`.
fn delay_ps(draws: &mut Stream, least_ps: u64, most_ps: u64) -> u64 {
    let signed = |ps| i64::try_from(ps).unwrap_or(i64::MAX);
    draws
        .uniform(signed(least_ps), signed(most_ps))
        .unsigned_abs()
}

/// Returns true if the time in `at_ps` has come, and sets it to `None` then.
fn is_due(at_ps: &mut Option<Time>, now_ps: Time) -> bool {
    at_ps.take_if(|at_ps| *at_ps <= now_ps).is_some()
}

/// Returns true if routers forward packets to an address: if it is a multicast address but not a link-local one.
pub(crate) fn is_routed_group(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(group) => group.is_multicast() && group.octets()[..3] != [224, 0, 0],
        IpAddr::V6(group) => group.is_multicast() && group.segments()[0] & 0xf > 2,
    }
}

/// Parses an untagged IPv4 or IPv6 frame to a group MAC address, which includes broadcast. Returns the destination and
/// source address of its IP packet, and the IGMP or MLD message in that packet, which is `None` if there is no such
/// message or an invalid one. Returns `None` for any other frame and for an invalid IP header.
fn multicast(frame: &[u8]) -> Option<(IpAddr, IpAddr, Option<AnyMessage>)> {
    let ethernet = ethernet::View::new(frame).ok()?;
    if !ethernet.destination().is_multicast() {
        return None;
    }
    match ethernet.ethertype() {
        ethernet::ETHERTYPE_IPV4 => {
            let packet = ipv4::View::new(ethernet.payload()).ok()?;
            let message = igmp::Message::in_packet(&packet).ok();
            let message = message.and_then(|it| it.map(|address| Some(address.into())));
            Some((packet.destination().into(), packet.source().into(), message))
        }
        ethernet::ETHERTYPE_IPV6 => {
            let packet = ipv6::View::new(ethernet.payload()).ok()?;
            let message = mld::Message::in_packet(&packet).ok();
            let message = message.and_then(|it| it.map(|address| Some(address.into())));
            Some((packet.destination().into(), packet.source().into(), message))
        }
        _ => None,
    }
}

/// Returns the destination MAC address of frames to an IP multicast group (RFC 1112, section 6.4; RFC 2464, section 7).
pub(crate) fn group_mac(group: IpAddr) -> MacAddress {
    match group {
        IpAddr::V4(group) => {
            let [_, b, c, d] = group.octets();
            MacAddress([1, 0, 0x5e, b & 0x7f, c, d])
        }
        IpAddr::V6(group) => {
            let [.., a, b, c, d] = group.octets();
            MacAddress([0x33, 0x33, a, b, c, d])
        }
    }
}

/// Returns the IPv6 link-local address of an interface with this MAC address (RFC 4291, appendix A).
fn link_local(mac: MacAddress) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac.0;
    let word = |high, low| u16::from_be_bytes([high, low]);
    Ipv6Addr::new(
        0xfe80,
        0,
        0,
        0,
        word(a ^ 2, b),
        word(c, 0xff),
        word(0xfe, d),
        word(e, f),
    )
}

fn frame(said: &AnyMessage, mac: MacAddress, address: Ipv4Addr) -> Option<Vec<u8>> {
    let v4 = said.map(|address| match address {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    });
    let v6 = said.map(|address| match address {
        IpAddr::V6(address) => Some(address),
        IpAddr::V4(_) => None,
    });
    let mut packet = Vec::new();
    let (to, ethertype): (IpAddr, u16) = match (v4, v6) {
        (Some(message), _) => {
            message.emit_packet(address, &mut packet).ok()?;
            (message.destination().into(), ethernet::ETHERTYPE_IPV4)
        }
        (None, Some(message)) => {
            message.emit_packet(link_local(mac), &mut packet).ok()?;
            (message.destination().into(), ethernet::ETHERTYPE_IPV6)
        }
        (None, None) => return None,
    };
    let header = ethernet::Header {
        destination: group_mac(to),
        source: mac,
        ethertype,
    };
    let mut frame = Vec::with_capacity(ethernet::Header::LEN + packet.len());
    header.emit(&mut frame).ok()?;
    frame.append(&mut packet);
    Some(frame)
}

#[cfg(test)]
mod tests;
