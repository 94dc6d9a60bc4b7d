//! A program with its P4Info for Python: serialized P4Runtime messages in and out. Crate `p4runtime` gives them their meaning.
#![expect(
    clippy::disallowed_methods,
    reason = "a step of control ends after a time"
)]

use crate::errors::control_error;
use crate::handle::detached;
use crate::program::Program;
use crate::reconciliation::Reconciliation;
use crate::switch::Switch;
use bytes::Bytes;
use engine::control::ControlError;
use ir::TableId;
use p4runtime::Mappings;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The duration of a step of updates; between steps, packets are processed.
const STEP: Duration = Duration::from_micros(300);
/// The number of updates after which the clock is read. An update that resizes a table takes a tenth of a step.
const UPDATES_PER_LOOK: usize = 4;

/// The number of entries whose records are copied in one step, which takes a tenth of a millisecond.
const RECORDS: u32 = 4096;
/// The number of entries copied in one step.
const ENTRIES: usize = 256;

/// Does work that table updates have postponed, such as releasing memory, until a step's time since `begin` is over;
/// returns whether all is done.
fn tidy(switch: &mut engine::Switch, begin: Instant) -> bool {
    while switch.runtime_mut().tidy() {
        if begin.elapsed() > STEP {
            return false;
        }
    }
    true
}

/// A message, and the P4Runtime id of the object that it is about.
type Message = (u32, Vec<u8>);

fn refused(error: &ControlError) -> PyErr {
    control_error(error.code.name(), &error.message)
}

fn undecodable(what: &str) -> PyErr {
    control_error("INVALID_ARGUMENT", &format!("this is no {what}"))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns how often a length-delimited field occurs in a serialized message, and its largest length in bytes.
#[pyfunction]
pub(crate) fn extent(data: &Bound<'_, PyBytes>, field: u32) -> (usize, usize) {
    let data = PyBackedBytes::from(data.clone());
    detached(|| p4runtime::extent(&data, field))
}

/// The refused elements of a batch. They are kept in Rust, because a batch may have hundreds of thousands of them,
/// and Python reads few.
#[pyclass(module = "holdfast._core", frozen)]
pub(crate) struct Failures {
    inner: Mutex<Vec<p4runtime::FailedElement>>,
}

impl Failures {
    fn of(failures: Vec<p4runtime::Failure>) -> Failures {
        let failures = failures.into_iter().map(p4runtime::FailedElement::from);
        Failures {
            inner: Mutex::new(failures.collect()),
        }
    }
}

#[pymethods]
impl Failures {
    #[new]
    fn new() -> Failures {
        Failures::of(Vec::new())
    }

    fn __len__(&self) -> usize {
        locked(&self.inner).len()
    }

    /// Records the elements from ``first`` to before ``end`` of a batch as refused, all with this status and message.
    /// They must lie behind all elements recorded before.
    fn add(&self, first: usize, end: usize, code: &str, number: i32, message: &str) {
        let failed = |at| p4runtime::FailedElement {
            at,
            code: code.to_owned().into(),
            number,
            message: message.to_owned(),
        };
        locked(&self.inner).extend((first..end).map(failed));
    }

    /// Returns the positions, status names and messages of the first ``most`` failures.
    fn first(&self, most: usize) -> Vec<(usize, String, String)> {
        let failures = locked(&self.inner);
        let shown = failures.iter().take(most);
        shown
            .map(|it| (it.at, it.code.to_string(), it.message.clone()))
            .collect()
    }

    /// Returns the error details of the batch's ``count`` elements, encoded as the repeated field ``details`` of ``google.rpc.Status``,
    /// in at most ``most`` bytes; the number of elements that they cover, from the first on; and whether they have messages. What does
    /// not fit is left out: first the messages, then elements at the end.
    fn details(&self, count: usize, most: usize) -> (Vec<u8>, usize, bool) {
        let found = detached(|| p4runtime::error_details(&locked(&self.inner), count, most));
        (found.encoded, found.elements, found.with_messages)
    }
}

/// A serialized ``p4.v1.WriteRequest`` whose updates are not decoded yet. Raises INVALID_ARGUMENT if the bytes are
/// not such a message.
#[pyclass(module = "holdfast._core", frozen)]
pub(crate) struct WriteRequest {
    inner: p4runtime::WriteRequest,
}

#[pymethods]
impl WriteRequest {
    #[new]
    fn new(data: PyBackedBytes) -> PyResult<WriteRequest> {
        let inner = p4runtime::WriteRequest::decode(Bytes::from_owner(data));
        let inner = inner.map_err(|_| undecodable("WriteRequest"))?;
        Ok(WriteRequest { inner })
    }

    #[getter]
    fn device_id(&self) -> u64 {
        self.inner.device_id
    }

    #[getter]
    fn role_id(&self) -> u64 {
        self.inner.role_id
    }

    #[getter]
    fn role(&self) -> &str {
        &self.inner.role
    }

    #[getter]
    fn election_id(&self) -> Option<u128> {
        self.inner.election_id
    }

    #[getter]
    fn atomicity(&self) -> i32 {
        self.inner.atomicity
    }

    fn __len__(&self) -> usize {
        self.inner.updates.len()
    }
}

/// A controller's value of a translated type.
#[derive(FromPyObject, PartialEq, Eq, Hash)]
pub(crate) enum Translated {
    Number(u128),
    Text(String),
}

impl Translated {
    fn bytes(self) -> Vec<u8> {
        match self {
            Translated::Text(text) => text.into_bytes(),
            Translated::Number(number) => {
                let bytes = number.to_be_bytes();
                let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
                bytes[zeros.min(bytes.len() - 1)..].to_vec()
            }
        }
    }
}

/// A program with its serialized ``p4.config.v1.P4Info``. Raises :class:`ControlError` INVALID_ARGUMENT or
/// UNIMPLEMENTED if they do not belong together or contradict themselves.
///
/// ``translations``: for the URI of each translated type, the switch's value by the controller's. The switches that
/// methods take must run the program.
#[pyclass(module = "holdfast._core", frozen)]
pub(crate) struct Pipeline {
    inner: Arc<p4runtime::Pipeline>,
}

#[pymethods]
impl Pipeline {
    #[new]
    #[pyo3(
        signature = (program, p4info, translations=BTreeMap::new()),
        text_signature = "(program, p4info, translations=...)"
    )]
    fn new(
        program: &Program,
        p4info: PyBackedBytes,
        translations: BTreeMap<String, HashMap<Translated, u64>>,
    ) -> PyResult<Pipeline> {
        let mappings: Mappings = translations
            .into_iter()
            .map(|(uri, of)| {
                (
                    uri,
                    of.into_iter().map(|(own, n)| (own.bytes(), n)).collect(),
                )
            })
            .collect();
        let (ir, own) = (program.ir().clone(), program.own_p4info());
        let pipeline = detached(|| p4runtime::Pipeline::new(ir, own, &p4info, &mappings));
        let inner = Arc::new(pipeline.map_err(|error| refused(&error))?);
        Ok(Pipeline { inner })
    }

    /// Returns whether a role may access the object with this id.
    fn role_may(&self, role: &str, id: u32) -> bool {
        self.inner.role_may(role, id)
    }

    /// Plans the updates of a write request. Raises INVALID_ARGUMENT if one cannot be decoded.
    fn plan(&self, request: &WriteRequest) -> PyResult<Batch> {
        let pipeline = self.inner.clone();
        let batch = detached(|| p4runtime::Batch::new(pipeline, &request.inner));
        let batch = batch.map_err(|_| undecodable("WriteRequest"))?;
        Ok(Batch::of(batch))
    }

    /// Prepares a switch whose program has just been loaded to take the place of ``old_switch``, which has the
    /// pipeline ``old``, and to keep that switch's state (:meth:`Switch.replace_with`). Packets may pass through the
    /// old switch meanwhile, but it must not be updated. Raises INVALID_ARGUMENT if the state cannot be kept.
    fn reconcile(
        &self,
        prepared: &Switch,
        old: &Pipeline,
        old_switch: &Switch,
    ) -> PyResult<Reconciliation> {
        let (new, old) = (self.inner.clone(), old.inner.clone());
        let facts = old_switch.with(|switch| switch.facts())?;
        let mut prepared_for = prepared
            .with(move |prepared| p4runtime::Reconciliation::new(new, old, facts, prepared))?;
        while let Some((table, from)) = prepared_for.next_slice() {
            let slice = old_switch
                .with(move |switch| switch.runtime().table(table).records_from(from, RECORDS))?;
            let converted = detached(|| prepared_for.convert(slice));
            converted.map_err(|error| refused(&error))?;
        }
        for table in prepared_for.tables_to_copy() {
            for numbers in entry_order(old_switch, table)?.chunks(ENTRIES) {
                let numbers = numbers.to_vec();
                let entries = old_switch.with(move |switch| switch.entries_of(table, &numbers))?;
                prepared_for.take_entries(table, entries);
            }
        }
        type Step = fn(&mut p4runtime::Reconciliation, &mut engine::Switch) -> Stepped;
        type Stepped = Result<bool, ControlError>;
        let on = |switch: &Switch, mut of: p4runtime::Reconciliation, step: Step| {
            let (of, result) = switch.with(move |switch| {
                let result = step(&mut of, switch);
                (of, result)
            })?;
            let more = result.map_err(|error| refused(&error))?;
            Ok::<_, PyErr>((of, more))
        };
        let mut more = true;
        (prepared_for, _) = on(prepared, prepared_for, |of, it| of.clear(it).map(|()| true))?;
        while more {
            (prepared_for, more) = on(old_switch, prepared_for, |of, it| of.read_some(it))?;
            (prepared_for, _) = on(prepared, prepared_for, |of, it| of.write(it).map(|()| true))?;
        }
        (prepared_for, _) = on(prepared, prepared_for, |of, it| {
            of.write_entries(it).map(|()| true)
        })?;
        Ok(Reconciliation::new(prepared_for))
    }

    /// Begins to answer a serialized ``ReadRequest`` with the entities as they are now; only counts may be those of a
    /// later time. Raises INVALID_ARGUMENT for bytes that are not such a message.
    fn read(&self, switch: &Switch, request: PyBackedBytes) -> PyResult<Reading> {
        let pipeline = self.inner.clone();
        let request = detached(|| p4runtime::ReadRequest::decode(&request));
        let request = request.map_err(|_| undecodable("ReadRequest"))?;
        let reading =
            switch.with(move |switch| p4runtime::Reading::new(pipeline, &request, switch))?;
        Ok(Reading {
            inner: Arc::new(Mutex::new(reading)),
        })
    }

    /// Returns the packet that a serialized ``PacketOut`` sends into the CPU port. Raises INVALID_ARGUMENT for
    /// metadata that do not belong to the program.
    fn packet_out(&self, message: &[u8]) -> PyResult<Vec<u8>> {
        let packet = self.inner.packet_out(message);
        packet.map_err(|error| refused(&error))
    }

    /// Returns the serialized ``PacketIn`` for a packet that came out of the CPU port; None if the packet is shorter
    /// than the controller header.
    fn packet_in(&self, packet: &[u8]) -> Option<Vec<u8>> {
        self.inner.packet_in(packet)
    }

    /// Removes the digest lists that are to be sent now (full, or older than their timeout), until they contain at
    /// least ``most`` messages together. Returns the digest id and the serialized ``DigestList`` of each. Messages of
    /// digests that are not enabled are discarded.
    fn take_digests(&self, switch: &Switch, now_ns: i64, most: usize) -> PyResult<Vec<Message>> {
        let pipeline = self.inner.clone();
        let lists = switch.with(move |switch| pipeline.take_digests(switch, most))?;
        Ok(detached(|| self.inner.digest_messages(lists, now_ns)))
    }

    /// Records that the controller has received a digest list, so that equal messages are sent again. Raises
    /// INVALID_ARGUMENT if there is no such digest.
    fn acknowledge(&self, switch: &Switch, digest_id: u32, list_id: u64) -> PyResult<()> {
        let pipeline = self.inner.clone();
        let result = switch.with(move |switch| pipeline.acknowledge(switch, digest_id, list_id))?;
        result.map_err(|error| refused(&error))
    }

    /// Takes at most ``most`` entries that have been idle for their timeout. Returns the table id and the serialized
    /// ``IdleTimeoutNotification`` of each table that has any. The entries stay in their tables, and their timeouts
    /// begin again.
    fn take_idle(&self, switch: &Switch, now_ns: i64, most: usize) -> PyResult<Vec<Message>> {
        let pipeline = self.inner.clone();
        let alone = switch.stands_alone();
        switch.with(move |switch| {
            // In a network the agent follows the timers.
            if alone {
                switch.runtime_mut().run_idle_timers(usize::MAX);
            }
            pipeline.take_idle(switch, now_ns, most)
        })
    }
}

/// Returns the numbers of a table's entries and their places in the order of insertion, in that order.
fn entry_order(switch: &Switch, table: TableId) -> PyResult<Vec<(u64, u32)>> {
    let (mut order, mut from) = (Vec::new(), Some(0));
    while let Some(next) = from {
        let (slice, after) = switch.with(move |switch| switch.order_from(table, next, RECORDS))?;
        order.extend(slice);
        from = after;
    }
    detached(|| order.sort_unstable());
    Ok(order)
}

/// The updates of a request, and how far they have been applied.
#[pyclass(module = "holdfast._core", frozen)]
pub(crate) struct Batch {
    inner: Arc<Mutex<p4runtime::Batch>>,
}

impl Batch {
    fn of(batch: p4runtime::Batch) -> Batch {
        Batch {
            inner: Arc::new(Mutex::new(batch)),
        }
    }
}

#[pymethods]
impl Batch {
    fn __len__(&self) -> usize {
        locked(&self.inner).len()
    }

    /// Returns the number of updates that have been applied or refused.
    #[getter]
    fn applied(&self) -> usize {
        locked(&self.inner).applied()
    }

    /// Applies the next ``most`` updates, each on its own. Packets may pass after every fraction of a millisecond.
    fn apply(&self, switch: &Switch, most: usize) -> PyResult<()> {
        let batch = self.inner.clone();
        let mut left = most;
        switch.in_steps(move |switch| {
            let (mut batch, begin) = (locked(&batch), Instant::now());
            loop {
                if left == 0 || !batch.apply_next(switch) {
                    left = 0;
                    return tidy(switch, begin).then_some(());
                }
                left -= 1;
                if left.is_multiple_of(UPDATES_PER_LOOK) && begin.elapsed() > STEP {
                    return None;
                }
            }
        })
    }

    /// Applies all updates or none, with no packet in between. If one fails, the others fail with ABORTED.
    fn apply_atomic(&self, switch: &Switch) -> PyResult<()> {
        let batch = self.inner.clone();
        switch.with(move |switch| locked(&batch).apply_atomic(switch))?;
        switch.in_steps(|switch| tidy(switch, Instant::now()).then_some(()))
    }

    /// Returns the updates that have been refused so far, and forgets them.
    fn take_failures(&self) -> Failures {
        detached(|| Failures::of(locked(&self.inner).take_failures()))
    }

    /// Counts the updates: entity, type and status of a kind of update (``"table_entry", "insert", "OK"``), and how many
    /// there were. ``failures`` are those that :meth:`take_failures` returned, or more.
    fn tally(&self, failures: &Failures) -> Vec<(&'static str, &'static str, String, usize)> {
        let tally = detached(|| locked(&self.inner).tally(&locked(&failures.inner)));
        let counted = tally.into_iter();
        counted
            .map(|(((entity, kind), status), count)| (entity, kind, status.into_owned(), count))
            .collect()
    }
}

/// The part of the answer to a ``ReadRequest`` that has not been returned yet.
#[pyclass(module = "holdfast._core", frozen)]
pub(crate) struct Reading {
    inner: Arc<Mutex<p4runtime::Reading>>,
}

#[pymethods]
impl Reading {
    /// Returns the next serialized ``ReadResponse``, None at the end. Packets may pass between the slices that it
    /// copies.
    fn next(&self, switch: &Switch) -> PyResult<Option<Vec<u8>>> {
        loop {
            let reading = self.inner.clone();
            let slice = switch.with(move |switch| locked(&reading).fetch(switch))?;
            let Some(slice) = slice else {
                return Ok(None);
            };
            if let Some(data) = detached(|| locked(&self.inner).encode(slice)) {
                return Ok(Some(data));
            }
        }
    }

    /// Returns the number of requested entities, and those refused so far.
    fn failures(&self) -> (usize, Failures) {
        let reading = locked(&self.inner);
        let (count, refused) = reading.failures();
        (count, Failures::of(refused.to_vec()))
    }
}
