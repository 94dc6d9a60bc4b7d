"""One accepted forwarding pipeline on one switch: writes and reads of all entities.

Applies updates in batches, in the three atomicities, and keeps what the core does not: notes of what clients said, the
initial default actions, digest settings. It knows nothing of clients, streams or how a pipeline came to be accepted.
Callers hold the device's lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from holdfast._core import (
    ActionProfileGroup,
    ActionProfileMember,
    ControlError,
    DirectCounterCell,
    DirectMeterCell,
    MeterCell,
    Program,
    RegisterCell,
    Switch,
    TableEntry,
    WriteRequest,
)
from holdfast.p4runtime import p4data, plain, table_entries
from holdfast.p4runtime.digests import DigestBuffers
from holdfast.p4runtime.errors import P4RuntimeError, invalid_argument
from holdfast.p4runtime.p4info import MatchField, P4InfoIndex, Param, Table
from holdfast.p4runtime.planning import Notes, Plan, Planner
from holdfast.p4runtime.reading import Reader, idle_entry
from holdfast.p4runtime.snapshots import Snapshots
from holdfast.p4runtime.stubs import Proto
from holdfast.p4runtime.table_entries import EntryKey, entry_key

if TYPE_CHECKING:
    from holdfast._core import PlainTable, Update

Result: TypeAlias = tuple[str, str] | None
"""Of one update: None, or (status name, message)."""


class Pipeline:
    """A program with its P4Info on a switch. ``config`` is the ``ForwardingPipelineConfig`` as the client gave it."""

    def __init__(
        self, config: Proto, index: P4InfoIndex, program: Program, switch: Switch, send_digest: Callable[[Proto], None]
    ) -> None:
        self.config = config
        self.index = index
        self.program = program
        self.switch = switch
        self.notes = Notes()
        self.digests = DigestBuffers(index.message.type_info, send_digest)
        self.accepted: list[Update] = []
        """Core updates applied since this pipeline was made, in order, if :attr:`record` is on."""
        self.record = False
        defaults = switch.table_entries(0, include_default=True)
        self.initial_defaults = {e.table_id: e for e in defaults if e.is_default}
        self._plain = plain.plain_tables(index, program, switch)
        self._attach()

    def _attach(self) -> None:
        self._planner = Planner(self.index, self.notes, self.digests, self.initial_defaults)

    def adopt(self, notes: Notes, digests: DigestBuffers | None = None) -> None:
        """Takes over what another pipeline kept."""
        self.notes, self.digests = notes, digests or self.digests
        self._attach()

    # ---- Write ----

    def write_plain(self, request: WriteRequest, *, atomic: bool) -> list[plain.Failure] | None:
        """Applies a request of plain table entries (see :mod:`.plain`) at once; gives the failures.

        None, and nothing happened, if it is not so plain: then :meth:`write` must do it.
        """
        restricted = request.role and self.index.roles
        if self._plain is None or self.record or self.notes.entries or restricted:
            return None
        return self._plain.write(self.switch, request, atomic)

    def write(self, updates: Sequence[Proto], *, atomic: bool, role: str = "") -> list[Result]:
        """Applies ``Update`` messages in order. With ``atomic``: all or nothing, with no packet in between."""
        return self._write_all(updates, role) if atomic else self._write_each(updates, role)

    def _write_each(self, updates: Sequence[Proto], role: str) -> list[Result]:
        results: list[Result] = [None] * len(updates)
        run: list[tuple[int, Plan]] = []

        def flush() -> None:
            outcome = self._core_write([u for _, plan in run for u in plan.core], "continue_on_error")
            for (position, plan), result in zip(run, outcome, strict=True):
                results[position] = result
                if result is None:
                    plan.then()
            run.clear()

        def find(entry: TableEntry) -> TableEntry | None:
            flush()
            return self._find(entry)

        for position, update in enumerate(updates):
            try:
                plan = self._planner.plan(update, find, role)
            except P4RuntimeError as e:
                results[position] = (e.code, e.message)
                continue
            if len(plan.core) == 1:
                run.append((position, plan))
                continue
            flush()
            results[position] = self._apply_alone(plan)
        flush()
        return results

    def _apply_alone(self, plan: Plan) -> Result:
        """A plan of no core update, or of several that must succeed together."""
        failures = [r for r in self._core_write(plan.core, "rollback_on_error") if r is not None]
        if failures:
            return next((r for r in failures if r[0] != "ABORTED"), failures[0])
        try:
            if plan.setting:
                plan.setting()
        except P4RuntimeError as e:
            return e.code, e.message
        plan.then()
        return None

    def _write_all(self, updates: Sequence[Proto], role: str) -> list[Result]:
        present: dict[EntryKey, TableEntry | None] = {}  # as the batch so far leaves it
        digests = self.digests.snapshot()
        plans: list[Plan] = []
        results: list[Result] = [None] * len(updates)

        def find(entry: TableEntry) -> TableEntry | None:
            key = entry_key(entry)
            return present[key] if key in present else self._find(entry)

        for position, update in enumerate(updates):
            try:
                plan = self._planner.plan(update, find, role)
                if plan.setting:
                    plan.setting()  # undone below if need be
            except P4RuntimeError as e:
                results[position] = (e.code, e.message)
                plan = Plan()
            plans.append(plan)
            for verb, entity in plan.core:
                if isinstance(entity, TableEntry):
                    present[entry_key(entity)] = None if verb == "delete" else entity
        # Each update that fails has its own error, also if another one has failed before it comes to the switch.
        updates_of_all = [u for plan in plans for u in plan.core]
        outcome = iter(self._core_write(updates_of_all, "undo" if any(results) else "rollback_on_error"))
        for position, plan in enumerate(plans):
            failures = [r for r in [next(outcome) for _ in plan.core] if r is not None and r[0] != "ABORTED"]
            if failures:
                results[position] = failures[0]
        if any(results):
            self.digests.restore(digests)
            first = next(position for position, result in enumerate(results) if result)
            return [r or ("ABORTED", f"update {first} of the batch failed; nothing was changed") for r in results]
        for plan in plans:
            plan.then()
        return results

    def _find(self, key: TableEntry) -> TableEntry | None:
        try:
            return self.switch.table_entry(key)
        except ControlError as e:
            raise P4RuntimeError(e.code, str(e)) from None

    def _core_write(
        self, updates: list[Update], atomicity: Literal["continue_on_error", "rollback_on_error", "undo"]
    ) -> list[Result]:
        if not updates:
            return []
        outcome = self.switch.write(updates, atomicity)
        if self.record and atomicity != "undo":
            self.accepted += [u for u, result in zip(updates, outcome, strict=True) if result is None]
        return list(outcome)

    # ---- Read ----

    def read_plain(self, entity: Proto, role: str, snapshots: Snapshots) -> Iterator[bytes] | None:
        """Serialized ``ReadResponse`` messages with all entries of a table, if that is wanted and they are plain.

        To be called while the device is locked; the messages may be taken later.
        """
        if self._plain is None or self.notes.entries or role or entity.WhichOneof("entity") != "table_entry":
            return None
        wanted = entity.table_entry
        if wanted.table_id not in self._plain or not plain.is_plain_read(wanted):
            return None
        return plain.read(self._plain, snapshots.table(wanted.table_id), wanted)

    def read(self, entity: Proto, role: str, snapshots: Snapshots) -> Iterator[Proto]:
        """The ``Entity`` messages that a request ``Entity`` selects.

        To be called while the device is locked; the messages may be taken later.
        """
        return Reader(self.index, self.switch, self.notes, self.digests, snapshots).read(entity, role)

    def idle_entry(self, entry: TableEntry) -> Proto:
        """The ``TableEntry`` of an idle notification."""
        return idle_entry(self.index, self.notes, entry)

    # ---- Moving to another program ----

    def state(self) -> Iterator[Update]:
        """Updates that bring a switch from the state after loading (without initial entries) to this one's."""
        for group in self.switch.multicast_groups():
            yield "insert", group
        for session in self.switch.clone_sessions():
            yield "insert", session
        for profile in self.index.action_profiles:
            for member in self.switch.action_profile_members(profile.id):
                args = dict(member.args)
                yield "insert", ActionProfileMember(profile.id, member.member_id, member.action_id, args)
            for of_members in self.switch.action_profile_groups(profile.id) if profile.with_selector else ():
                members = list(of_members.members)
                yield "insert", ActionProfileGroup(profile.id, of_members.group_id, members, of_members.max_size)
        for table in self.index.tables:
            for entry in self.switch.table_entries(table.id, include_default=True):
                yield from self._entry_state(table, entry)
        yield from self._cells_state()

    def _cells_state(self) -> Iterator[Update]:
        for register in self.index.registers:
            for cell in self.switch.registers(register.id, nonzero=True):
                yield "modify", RegisterCell(register.id, cell.index, cell.value)
        for counter in self.index.counters:
            for counted in self.switch.counters(counter.id, nonzero=True):
                yield "modify", counted
        for meter in self.index.meters:
            for metered in self.switch.meters(meter.id, configured=True):
                yield "modify", MeterCell(meter.id, metered.index, metered.config)
        for value_set in self.index.value_sets:
            for members in self.switch.value_set_members(value_set.id):
                if members.members:
                    yield "modify", members

    def _entry_state(self, table: Table, entry: TableEntry) -> Iterator[Update]:
        matches = table_entries.canonical_matches(table, entry.matches)
        key = TableEntry(table.id, matches, priority=entry.priority, is_default=entry.is_default)
        if entry.is_default:
            original = self.initial_defaults[table.id]
            was = original.action_id, dict(original.args), original.meter_config
            if was != (entry.action_id, dict(entry.args), entry.meter_config):
                yield "modify", table_entries.copy_of(entry, matches)
        elif not entry.is_const:
            yield "insert", table_entries.copy_of(entry, matches)
        elif entry.meter_config is not None:
            yield "modify", DirectMeterCell(key, entry.meter_config)
        if entry.counter is not None and any(entry.counter):
            yield "modify", DirectCounterCell(key, *entry.counter)


def check_belongs(index: P4InfoIndex, program: Program) -> None:
    """INVALID_ARGUMENT unless the P4Info is one of the program."""
    types = index.message.type_info
    for spec in [o.type_spec for o in (*index.registers, *index.digests)]:
        p4data.width_of(spec, types)  # bounded, which makes the rest so
    try:
        program.check_claims(
            tables=[_claim(table) for table in index.tables],
            registers=[(r.id, r.size, p4data.width_in_program(r.type_spec, types)) for r in index.registers],
            counters=[(counter.id, counter.size) for counter in index.counters],
            meters=[(meter.id, meter.size) for meter in index.meters],
            value_sets=[(v.id, [_width_in_program(f) for f in v.fields]) for v in index.value_sets],
            digests=[(d.id, p4data.width_in_program(d.type_spec, types)) for d in index.digests],
            action_profiles=[(profile.id, profile.with_selector) for profile in index.action_profiles],
        )
    except ControlError as e:
        raise invalid_argument(f"the P4Info and the device config are not of one program: {e}") from None


def _claim(table: Table) -> tuple[PlainTable, tuple[int, int, int]]:
    """For :meth:`holdfast._core.Program.check_claims`."""
    fields = [(f.id, f.kind, _width_in_program(f)) for f in table.fields]
    actions = [(a.id, [(p.id, _width_in_program(p)) for p in a.params]) for a in table.actions]
    resources = (table.implementation_id, table.direct_counter_id, table.direct_meter_id)
    return (table.id, fields, actions), resources


def _width_in_program(part: MatchField | Param) -> int:
    """In bits; 0 if P4Info does not tell it."""
    return 0 if part.is_translated else part.width
