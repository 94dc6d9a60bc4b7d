"""BMv2's Thrift interface as data: its structures, its exceptions, and what each method takes and gives.

The numbers are those of BMv2's interface files (``standard.thrift``, ``simple_pre_lag.thrift``, ``simple_switch.thrift``). It knows
no switch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from thrift.protocol.TBase import TBase
from thrift.Thrift import TException, TType

Kind: TypeAlias = tuple[int, Any]
"""A type: its number, and what the library wants to know of its parts."""

BOOL: Kind = (TType.BOOL, None)
I16: Kind = (TType.I16, None)
I32: Kind = (TType.I32, None)
I64: Kind = (TType.I64, None)
DOUBLE: Kind = (TType.DOUBLE, None)
TEXT: Kind = (TType.STRING, "UTF8")
BYTES: Kind = (TType.STRING, "BINARY")


class Struct(TBase):  # type: ignore[misc]  # the library has no types
    """A structure. Its fields are attributes; one that was not given, or not sent, is None."""

    thrift_spec: tuple[Any, ...] = (None,)

    def __init__(self, **values: Any) -> None:
        for _, _, name, *_ in filter(None, self.thrift_spec):
            setattr(self, name, values.get(name))


class Failure(Struct, TException):  # type: ignore[misc]
    """An exception of the interface. ``code`` says what is wrong, in a list of its own for each kind of object."""

    code: int


def _spec(*fields: tuple[str, Kind]) -> tuple[Any, ...]:
    return (None, *((at, kind, name, parts, None) for at, (name, (kind, parts)) in enumerate(fields, 1)))


def _struct(name: str, *fields: tuple[str, Kind]) -> type[Struct]:
    return type(name, (Struct,), {"thrift_spec": _spec(*fields)})


def _failure(name: str) -> type[Failure]:
    return type(name, (Failure,), {"thrift_spec": _spec(("code", I32))})


def of(struct: type[Struct]) -> Kind:
    """Return the type of a structure."""
    return TType.STRUCT, [struct, struct.thrift_spec]


def list_of(kind: Kind) -> Kind:
    """Return the type of a list."""
    return TType.LIST, (*kind, False)


_TEXTS: Kind = (TType.MAP, (*TEXT, *TEXT, False))

Exact = _struct("BmMatchParamExact", ("key", BYTES))
Lpm = _struct("BmMatchParamLPM", ("key", BYTES), ("prefix_length", I32))
Ternary = _struct("BmMatchParamTernary", ("key", BYTES), ("mask", BYTES))
Valid = _struct("BmMatchParamValid", ("key", BOOL))
Range = _struct("BmMatchParamRange", ("start", BYTES), ("end_", BYTES))
MatchParam = _struct(
    "BmMatchParam",
    ("type", I32),
    ("exact", of(Exact)),
    ("lpm", of(Lpm)),
    ("ternary", of(Ternary)),
    ("valid", of(Valid)),
    ("range", of(Range)),
)
EXACT, LPM, TERNARY, VALID, RANGE = range(5)
"""The numbers of the kinds of :data:`MatchParam`."""

EntryOptions = _struct("BmAddEntryOptions", ("priority", I32))
CounterValue = _struct("BmCounterValue", ("bytes", I64), ("packets", I64))
MeterRate = _struct("BmMeterRateConfig", ("units_per_micros", DOUBLE), ("burst_size", I32))
ActionEntry = _struct(
    "BmActionEntry",
    ("action_type", I32),
    ("action_name", TEXT),
    ("action_data", list_of(BYTES)),
    ("mbr_handle", I32),
    ("grp_handle", I32),
)
NO_ACTION, ACTION_DATA, MEMBER, GROUP = range(4)
"""The numbers of the kinds of :data:`ActionEntry`."""

EntryLife = _struct("BmMtEntryLife", ("timeout_ms", I32), ("time_since_hit_ms", I32))
TableEntry = _struct(
    "BmMtEntry",
    ("match_key", list_of(of(MatchParam))),
    ("options", of(EntryOptions)),
    ("entry_handle", I32),
    ("action_entry", of(ActionEntry)),
    ("life", of(EntryLife)),
)
ProfileMember = _struct(
    "BmMtActProfMember", ("mbr_handle", I32), ("action_name", TEXT), ("action_data", list_of(BYTES))
)
ProfileGroup = _struct("BmMtActProfGroup", ("grp_handle", I32), ("mbr_handles", list_of(I32)))
PortInfo = _struct("DevMgrPortInfo", ("port_num", I32), ("iface_name", TEXT), ("is_up", BOOL), ("extra", _TEXTS))
SwitchInfo = _struct(
    "BmConfig",
    ("device_id", I64),
    ("thrift_port", I32),
    ("notifications_socket", TEXT),
    ("elogger_socket", TEXT),
    ("debugger_socket", TEXT),
)
Session = _struct("MirroringSessionConfig", ("port", I32), ("mgid", I32))

InvalidTableOperation = _failure("InvalidTableOperation")
InvalidCounterOperation = _failure("InvalidCounterOperation")
InvalidMeterOperation = _failure("InvalidMeterOperation")
InvalidRegisterOperation = _failure("InvalidRegisterOperation")
InvalidParseVSetOperation = _failure("InvalidParseVSetOperation")
InvalidMcOperation = _failure("InvalidMcOperation")
InvalidMirroringOperation = _failure("InvalidMirroringOperation")
InvalidDevMgrOperation = _failure("InvalidDevMgrOperation")


@dataclass(frozen=True)
class Method:
    """A method. ``parameters``: a structure of them; ``result``: a structure with the result (``success``) and the exception."""

    name: str
    parameters: type[Struct]
    result: type[Struct]
    failure: type[Failure] | None


def _method(
    name: str, parameters: tuple[tuple[str, Kind], ...], result: Kind | None, failure: type[Failure] | None
) -> Method:
    success = None if result is None else (0, result[0], "success", result[1], None)
    ouch = None if failure is None else (1, TType.STRUCT, "ouch", [failure, failure.thrift_spec], None)
    made = type(f"{name}_result", (Struct,), {"thrift_spec": (success, ouch)})
    return Method(name, _struct(f"{name}_args", *parameters), made, failure)


_CONTEXT = ("context", I32)
_TABLE = (_CONTEXT, ("table", TEXT))
_HANDLE = ("handle", I32)
_ACTION = (("action", TEXT), ("data", list_of(BYTES)))
_KEY = ("key", list_of(of(MatchParam)))
_OPTIONS = ("options", of(EntryOptions))
_PROFILE = (_CONTEXT, ("profile", TEXT))
_MEMBER = ("member", I32)
_GROUP = ("group", I32)
_NAME = (_CONTEXT, ("name", TEXT))
_INDEX = ("index", I32)
_RATES = ("rates", list_of(of(MeterRate)))
_PORTS = ("ports", TEXT)
_NODE = ("node", I32)
_SESSION = ("session", I32)

_STANDARD = [
    *(
        _method(f"bm_mt_{name}", parameters, result, InvalidTableOperation)
        for name, parameters, result in (
            ("get_num_entries", _TABLE, I64),
            ("clear_entries", (*_TABLE, ("reset_default_entry", BOOL)), None),
            ("add_entry", (*_TABLE, _KEY, *_ACTION, _OPTIONS), I32),
            ("set_default_action", (*_TABLE, *_ACTION), None),
            ("reset_default_entry", _TABLE, None),
            ("delete_entry", (*_TABLE, _HANDLE), None),
            ("modify_entry", (*_TABLE, _HANDLE, *_ACTION), None),
            ("set_entry_ttl", (*_TABLE, _HANDLE, ("timeout_ms", I32)), None),
            ("act_prof_add_member", (*_PROFILE, *_ACTION), I32),
            ("act_prof_delete_member", (*_PROFILE, _MEMBER), None),
            ("act_prof_modify_member", (*_PROFILE, _MEMBER, *_ACTION), None),
            ("act_prof_create_group", _PROFILE, I32),
            ("act_prof_delete_group", (*_PROFILE, _GROUP), None),
            ("act_prof_add_member_to_group", (*_PROFILE, _MEMBER, _GROUP), None),
            ("act_prof_remove_member_from_group", (*_PROFILE, _MEMBER, _GROUP), None),
            ("act_prof_get_members", _PROFILE, list_of(of(ProfileMember))),
            ("act_prof_get_member", (*_PROFILE, _MEMBER), of(ProfileMember)),
            ("act_prof_get_groups", _PROFILE, list_of(of(ProfileGroup))),
            ("act_prof_get_group", (*_PROFILE, _GROUP), of(ProfileGroup)),
            ("indirect_add_entry", (*_TABLE, _KEY, _MEMBER, _OPTIONS), I32),
            ("indirect_modify_entry", (*_TABLE, _HANDLE, _MEMBER), None),
            ("indirect_delete_entry", (*_TABLE, _HANDLE), None),
            ("indirect_ws_add_entry", (*_TABLE, _KEY, _GROUP, _OPTIONS), I32),
            ("indirect_ws_modify_entry", (*_TABLE, _HANDLE, _GROUP), None),
            ("read_counter", (*_TABLE, _HANDLE), of(CounterValue)),
            ("reset_counters", _TABLE, None),
            ("write_counter", (*_TABLE, _HANDLE, ("value", of(CounterValue))), None),
            ("set_meter_rates", (*_TABLE, _HANDLE, _RATES), None),
            ("get_meter_rates", (*_TABLE, _HANDLE), list_of(of(MeterRate))),
            ("get_entries", _TABLE, list_of(of(TableEntry))),
            ("get_entry", (*_TABLE, _HANDLE), of(TableEntry)),
            ("get_default_entry", _TABLE, of(ActionEntry)),
            ("get_entry_from_key", (*_TABLE, _KEY, _OPTIONS), of(TableEntry)),
        )
    ),
    _method("bm_counter_read", (*_NAME, _INDEX), of(CounterValue), InvalidCounterOperation),
    _method("bm_counter_reset_all", _NAME, None, InvalidCounterOperation),
    _method("bm_counter_write", (*_NAME, _INDEX, ("value", of(CounterValue))), None, InvalidCounterOperation),
    _method("bm_meter_array_set_rates", (*_NAME, _RATES), None, InvalidMeterOperation),
    _method("bm_meter_set_rates", (*_NAME, _INDEX, _RATES), None, InvalidMeterOperation),
    _method("bm_meter_get_rates", (*_NAME, _INDEX), list_of(of(MeterRate)), InvalidMeterOperation),
    _method("bm_register_read", (*_NAME, _INDEX), I64, InvalidRegisterOperation),
    _method("bm_register_read_all", _NAME, list_of(I64), InvalidRegisterOperation),
    _method("bm_register_write", (*_NAME, _INDEX, ("value", I64)), None, InvalidRegisterOperation),
    _method("bm_register_write_range", (*_NAME, _INDEX, ("end", I32), ("value", I64)), None, InvalidRegisterOperation),
    _method("bm_register_reset", _NAME, None, InvalidRegisterOperation),
    _method("bm_parse_vset_add", (*_NAME, ("value", BYTES)), None, InvalidParseVSetOperation),
    _method("bm_parse_vset_remove", (*_NAME, ("value", BYTES)), None, InvalidParseVSetOperation),
    _method("bm_parse_vset_get", _NAME, list_of(BYTES), InvalidParseVSetOperation),
    _method("bm_parse_vset_clear", _NAME, None, InvalidParseVSetOperation),
    _method(
        "bm_dev_mgr_add_port",
        (("interface", TEXT), ("port", I32), ("capture", TEXT)),
        None,
        InvalidDevMgrOperation,
    ),
    _method("bm_dev_mgr_remove_port", (("port", I32),), None, InvalidDevMgrOperation),
    _method("bm_dev_mgr_show_ports", (), list_of(of(PortInfo)), InvalidDevMgrOperation),
    _method("bm_mgmt_get_info", (), of(SwitchInfo), None),
    _method("bm_reset_state", (), None, None),
    _method("bm_get_config", (), TEXT, None),
    _method("bm_get_config_md5", (), BYTES, None),
]

_PRE = [
    _method("bm_mc_mgrp_create", (_CONTEXT, _GROUP), I32, InvalidMcOperation),
    _method("bm_mc_mgrp_destroy", (_CONTEXT, _GROUP), None, InvalidMcOperation),
    _method("bm_mc_node_create", (_CONTEXT, ("instance", I32), _PORTS, ("lags", TEXT)), I32, InvalidMcOperation),
    _method("bm_mc_node_associate", (_CONTEXT, _GROUP, _NODE), None, InvalidMcOperation),
    _method("bm_mc_node_dissociate", (_CONTEXT, _GROUP, _NODE), None, InvalidMcOperation),
    _method("bm_mc_node_destroy", (_CONTEXT, _NODE), None, InvalidMcOperation),
    _method("bm_mc_node_update", (_CONTEXT, _NODE, _PORTS, ("lags", TEXT)), None, InvalidMcOperation),
    _method("bm_mc_get_entries", (_CONTEXT,), TEXT, InvalidMcOperation),
]

_SIMPLE_SWITCH = [
    _method("mirroring_session_add", (_SESSION, ("config", of(Session))), None, InvalidMirroringOperation),
    _method("mirroring_session_delete", (_SESSION,), None, InvalidMirroringOperation),
    _method("mirroring_session_get", (_SESSION,), of(Session), InvalidMirroringOperation),
    _method("get_time_elapsed_us", (), I64, None),
    _method("get_time_since_epoch_us", (), I64, None),
]

SERVICES: dict[str, dict[str, Method]] = {
    "standard": {method.name: method for method in _STANDARD},
    "simple_pre": {method.name: method for method in _PRE},
    "simple_pre_lag": {method.name: method for method in _PRE},
    "simple_switch": {method.name: method for method in _SIMPLE_SWITCH},
}
"""The methods that are there, by service. ``simple_pre`` has the same as ``simple_pre_lag``, without the parameter ``lags``."""
