//! Digest messages on their way to the control plane, in the switch's time.
//!
//! Messages wait in lists, one list per digest type. A type without a [`DigestConfig`] hands all its messages over at once and
//! without more ado. One with a configuration hands over lists that are *due*: as soon as a list is full, or its first message
//! is as old as the configuration says. A message that waits already is not sent again; nor is one of a list that was handed
//! over, until that is acknowledged or its acknowledgement time is over.
//!
//! Waiting and remembered messages are bounded, in number and in bytes: messages that come when too many wait are lost, and counted; of
//! lists that wait for an acknowledgement the oldest is forgotten.

use crate::Time;
use ir::{Bits, DigestId, Program};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem;

/// The most messages of one type that wait; further ones are lost, and counted.
pub const MAX_WAITING: usize = 1 << 16;

/// The most bytes of messages of one type that wait. Lists that are not acknowledged may hold as many again.
pub const MAX_WAITING_BYTES: usize = 8 << 20;

/// The most messages of one list, whatever its configuration allows.
pub const MAX_LIST: usize = 1024;

/// The bytes of memory that are reckoned for a message besides its values.
const OVERHEAD_BYTES: usize = 64;

/// Returns the largest number of messages of one type that may wait for the controller, or be remembered until it
/// acknowledges them, if their members have these widths in bits.
fn most_waiting(widths: &[u32]) -> usize {
    let limbs: usize = widths.iter().map(|width| width.div_ceil(64) as usize).sum();
    MAX_WAITING.min(MAX_WAITING_BYTES / (OVERHEAD_BYTES + 8 * limbs))
}

/// How the messages of a digest type are delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DigestConfig {
    /// Most messages in a list, which is due when it has them; 0 is no limit but [`MAX_LIST`].
    pub max_list_size: u32,
    /// The age of a list's first message at which the list is due at the latest; 0 is at once.
    pub max_timeout_ns: u64,
    /// The time for which a list suppresses messages equal to its own unless acknowledged; 0 suppresses nothing.
    pub ack_timeout_ns: u64,
}

impl DigestConfig {
    fn most_in_list(self) -> usize {
        match self.max_list_size as usize {
            0 => MAX_LIST,
            size => size.min(MAX_LIST),
        }
    }
}

/// A list of messages of one digest type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DigestList {
    /// Type.
    pub digest: DigestId,
    /// The number that an acknowledgement names; it counts up from 1 for each type.
    pub list_id: u64,
    /// The time at which the program sent the first message of the list.
    pub first_ps: Time,
    /// The messages: one value per member.
    pub messages: Vec<Vec<Bits>>,
}

/// The messages of one digest type that wait, and those of lists that are not acknowledged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    widths: Vec<u32>,
    config: Option<DigestConfig>,
    waiting: VecDeque<(Time, Vec<u64>)>,
    /// The values of the waiting messages, if there is a configuration: an equal message is not added again.
    waiting_values: BTreeSet<Vec<u64>>,
    /// The lists that are not acknowledged, by id: when each was taken, and its messages.
    outstanding: BTreeMap<u64, (Time, Vec<Vec<u64>>)>,
    /// For each message in lists that are not acknowledged, how often it is in them; equal messages are suppressed.
    suppressed: BTreeMap<Vec<u64>, usize>,
    /// The most messages that may wait, and the most that unacknowledged lists may have together.
    most: usize,
    /// The number of messages in lists that are not acknowledged.
    outstanding_messages: usize,
    last_list_id: u64,
    lost: u64,
}

/// The state that [`DigestQueue::set_config`] changed, to be restored.
#[derive(Debug)]
pub enum Former {
    /// The former configuration; the messages stayed.
    Config(Option<DigestConfig>),
    /// The former configuration and all messages of the type.
    Queue(Box<Queue>),
}

/// The digest messages of one switch.
#[derive(Clone, Debug)]
pub struct DigestQueue {
    queues: Vec<Queue>,
    /// True if the controller was told that lists are due, and has taken none since.
    announced: bool,
}

impl DigestQueue {
    /// Makes empty queues for the digests of a program.
    pub fn new(program: &Program) -> DigestQueue {
        let queue = |digest: &ir::Digest| Queue {
            widths: digest.widths.clone(),
            most: most_waiting(&digest.widths),
            ..Queue::default()
        };
        DigestQueue {
            queues: program.digests.iter().map(queue).collect(),
            announced: false,
        }
    }

    /// Exchanges the messages and configurations of digest types with those of another switch. Each pair is a type's
    /// number in `former` and in `self`.
    pub(crate) fn exchange(&mut self, former: &mut DigestQueue, pairs: &[(usize, usize)]) {
        for &(old, new) in pairs {
            mem::swap(&mut self.queues[new], &mut former.queues[old]);
        }
        self.announced = former.announced;
    }

    /// Queues a message of a program, given as the limbs of each member in turn, unless it is suppressed. Drops and
    /// counts the message if too many wait already.
    pub fn push(&mut self, digest: DigestId, values: &[u64], now_ps: Time) {
        let queue = &mut self.queues[digest.index()];
        if queue.config.is_some() && queue.is_suppressed(values, now_ps) {
            return;
        }
        if queue.waiting.len() >= queue.most {
            queue.lost += 1;
            return;
        }
        queue.waiting.push_back((now_ps, values.to_vec()));
        if queue.config.is_some() {
            queue.waiting_values.insert(values.to_vec());
        }
    }

    /// Returns the configuration of a digest type, or `None` if it has none.
    pub fn config(&self, digest: DigestId) -> Option<DigestConfig> {
        self.queues[digest.index()].config
    }

    /// Configures a digest type, or removes its configuration. When a type gains or loses its configuration, its
    /// messages are forgotten. Returns the former state for [`DigestQueue::restore`], moved rather than copied, since
    /// copying many messages would take long.
    pub fn set_config(&mut self, digest: DigestId, config: Option<DigestConfig>) -> Former {
        let queue = &mut self.queues[digest.index()];
        let former = queue.config;
        self.announced = false;
        if former.is_some() && config.is_some() {
            queue.config = config;
            return Former::Config(former);
        }
        let emptied = Queue {
            widths: queue.widths.clone(),
            most: queue.most,
            last_list_id: queue.last_list_id,
            lost: queue.lost,
            config,
            ..Queue::default()
        };
        Former::Queue(Box::new(mem::replace(queue, emptied)))
    }

    /// Undoes a call of [`DigestQueue::set_config`], whose result is `former`.
    pub fn restore(&mut self, digest: DigestId, former: Former) {
        let queue = &mut self.queues[digest.index()];
        match former {
            Former::Config(config) => queue.config = config,
            Former::Queue(whole) => *queue = *whole,
        }
        self.announced = false;
    }

    /// Returns the number of messages of all types that were lost because too many waited.
    pub fn lost(&self) -> u64 {
        self.queues.iter().map(|q| q.lost).sum()
    }

    /// Returns the time at which the next list is to be sent ([`DigestQueue::due_ps`]); `None` if no message waits,
    /// or if the controller has been told of it ([`DigestQueue::announce`]) and has taken no list since.
    pub fn unannounced_due_ps(&self) -> Option<Time> {
        self.due_ps().filter(|_| !self.announced)
    }

    /// Records that the controller is being told that messages are due.
    pub fn announce(&mut self) {
        self.announced = true;
    }

    /// Returns true if no message of any type waits for the controller.
    pub fn is_empty(&self) -> bool {
        self.queues.iter().all(|q| q.waiting.is_empty())
    }

    /// Returns the earliest time, possibly past, at which a list of waiting messages is to be sent because it is full or
    /// its timeout has passed. For a digest type without a configuration, that is the time of its first waiting message.
    /// Returns `None` if no message waits.
    pub fn due_ps(&self) -> Option<Time> {
        self.queues.iter().filter_map(Queue::due_ps).min()
    }

    /// Removes and returns the lists of types with a configuration that are to be sent by `now_ps`, until they
    /// contain at least `most` messages together. The lists are ordered by type, then by the time at which their
    /// messages were sent.
    pub fn take_due(&mut self, now_ps: Time, most: usize) -> Vec<DigestList> {
        let mut lists = Vec::new();
        let mut taken = 0;
        for (i, queue) in self.queues.iter_mut().enumerate() {
            while taken < most
                && queue.config.is_some()
                && queue.due_ps().is_some_and(|due_ps| due_ps <= now_ps)
            {
                let list = queue.take_list(DigestId(i as u32), now_ps);
                taken += list.messages.len();
                lists.push(list);
            }
        }
        self.was_taken(lists)
    }

    /// Removes at most `most` waiting messages of types without a configuration, and returns them as lists.
    pub fn take_unconfigured(&mut self, now_ps: Time, most: usize) -> Vec<DigestList> {
        let mut lists = Vec::new();
        let mut left = most;
        for (i, queue) in self.queues.iter_mut().enumerate() {
            if queue.config.is_none() && !queue.waiting.is_empty() && left > 0 {
                let list = queue.take_messages(DigestId(i as u32), now_ps, left);
                left -= list.messages.len();
                lists.push(list);
            }
        }
        self.was_taken(lists)
    }

    /// Removes all waiting messages, even before their list is to be sent, and returns them as lists, ordered by
    /// type, then by the time at which they were sent.
    pub fn take(&mut self, now_ps: Time) -> Vec<DigestList> {
        let mut lists = Vec::new();
        for (i, queue) in self.queues.iter_mut().enumerate() {
            while !queue.waiting.is_empty() {
                lists.push(queue.take_list(DigestId(i as u32), now_ps));
            }
        }
        self.was_taken(lists)
    }

    /// Returns `lists`, which a consumer has taken. If there are any, allows the next lists to be announced; a
    /// consumer that took nothing, since it wants other messages, is not told again.
    fn was_taken(&mut self, lists: Vec<DigestList>) -> Vec<DigestList> {
        self.announced &= lists.is_empty();
        lists
    }

    /// Replaces all times later than `now_ps` by `now_ps`, after the clock was set back.
    pub(crate) fn clock_set_back(&mut self, now_ps: Time) {
        for queue in &mut self.queues {
            let waiting = queue.waiting.iter_mut().map(|(at_ps, _)| at_ps);
            let outstanding = queue.outstanding.values_mut().map(|(at_ps, _)| at_ps);
            waiting
                .chain(outstanding)
                .for_each(|at_ps| *at_ps = now_ps.min(*at_ps));
        }
    }

    /// Acknowledges a list; returns `false` if it is not outstanding.
    pub fn acknowledge(&mut self, digest: DigestId, list_id: u64) -> bool {
        self.queues[digest.index()].release(list_id)
    }
}

impl Queue {
    fn due_ps(&self) -> Option<Time> {
        let (first_ps, _) = self.waiting.front()?;
        let Some(config) = self.config else {
            return Some(*first_ps);
        };
        let by_age = first_ps.after(u128::from(config.max_timeout_ns) * 1000);
        let filled = self.waiting.get(config.most_in_list() - 1);
        Some(filled.map_or(by_age, |(at, _)| by_age.min(*at)))
    }

    /// Returns true if an equal message waits already or is in a list that the controller has not acknowledged. First
    /// forgets the lists whose acknowledgement timeout has passed.
    fn is_suppressed(&mut self, values: &[u64], now_ps: Time) -> bool {
        let config = self.config.unwrap_or_default();
        let timeout_ps = u128::from(config.ack_timeout_ns) * 1000;
        // Lists are taken, and so end, in the order of their ids.
        while let Some((&list_id, (taken_ps, _))) = self.outstanding.first_key_value() {
            if now_ps.since(*taken_ps) < timeout_ps {
                break;
            }
            self.release(list_id);
        }
        self.suppressed.contains_key(values) || self.waiting_values.contains(values)
    }

    /// Forgets a list that the controller has not yet acknowledged, so that it no longer suppresses equal messages.
    /// Returns `false` if there is no such list.
    fn release(&mut self, list_id: u64) -> bool {
        let Some((_, messages)) = self.outstanding.remove(&list_id) else {
            return false;
        };
        self.outstanding_messages -= messages.len();
        for message in messages {
            if let Some(count) = self.suppressed.get_mut(&message) {
                *count -= 1;
                if *count == 0 {
                    self.suppressed.remove(&message);
                }
            }
        }
        true
    }

    fn take_list(&mut self, digest: DigestId, now_ps: Time) -> DigestList {
        let most = self.config.unwrap_or_default().most_in_list();
        self.take_messages(digest, now_ps, most)
    }

    fn take_messages(&mut self, digest: DigestId, now_ps: Time, most: usize) -> DigestList {
        let limit = self.waiting.len().min(most);
        let first_ps = self.waiting.front().map_or(now_ps, |(at, _)| *at);
        let taken: Vec<Vec<u64>> = self.waiting.drain(..limit).map(|(_, m)| m).collect();
        for message in &taken {
            self.waiting_values.remove(message);
        }
        self.last_list_id += 1;
        let messages = taken.iter().map(|m| self.unpack(m)).collect();
        if self.config.unwrap_or_default().ack_timeout_ns != 0 {
            self.remember(now_ps, taken);
        }
        DigestList {
            digest,
            list_id: self.last_list_id,
            first_ps,
            messages,
        }
    }

    /// Keeps the messages of the list that was taken last until the controller acknowledges it. If the kept lists
    /// contain too many messages, forgets the oldest of them.
    fn remember(&mut self, now_ps: Time, taken: Vec<Vec<u64>>) {
        while self.outstanding_messages + taken.len() > self.most
            && let Some((&oldest, _)) = self.outstanding.first_key_value()
        {
            self.release(oldest);
        }
        self.outstanding_messages += taken.len();
        for message in &taken {
            *self.suppressed.entry(message.clone()).or_insert(0) += 1;
        }
        self.outstanding.insert(self.last_list_id, (now_ps, taken));
    }

    fn unpack(&self, message: &[u64]) -> Vec<Bits> {
        let mut at = 0;
        self.widths
            .iter()
            .map(|&width| {
                let limbs = width.div_ceil(64) as usize;
                at += limbs;
                Bits::from_limbs(width, &message[at - limbs..at])
            })
            .collect()
    }
}
