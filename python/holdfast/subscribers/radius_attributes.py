"""The use of each attribute of an Access-Accept: it is done, or the login is refused, or a standard lets us pass over it.

A NAS must treat an Access-Accept that authorizes a service which it does not give as an Access-Reject (RFC 2865, sections 1.1 and
5.6). So an attribute is never passed over for want of a program: :data:`ATTRIBUTES` says of each one what is done, and why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

USER_NAME, USER_PASSWORD, CHAP_PASSWORD, NAS_IP_ADDRESS, NAS_PORT = 1, 2, 3, 4, 5
SERVICE_TYPE, FRAMED_PROTOCOL, FRAMED_IP_ADDRESS, REPLY_MESSAGE, STATE, CLASS = 6, 7, 8, 18, 24, 25
VENDOR_SPECIFIC, SESSION_TIMEOUT, IDLE_TIMEOUT, CALLED_STATION_ID, CALLING_STATION_ID = 26, 27, 28, 30, 31
NAS_IDENTIFIER, PROXY_STATE = 32, 33
ACCT_STATUS_TYPE, ACCT_DELAY_TIME, ACCT_INPUT_OCTETS, ACCT_OUTPUT_OCTETS, ACCT_SESSION_ID = 40, 41, 42, 43, 44
ACCT_AUTHENTIC, ACCT_SESSION_TIME, ACCT_INPUT_PACKETS, ACCT_OUTPUT_PACKETS, ACCT_TERMINATE_CAUSE = 45, 46, 47, 48, 49
ACCT_INPUT_GIGAWORDS, ACCT_OUTPUT_GIGAWORDS, EVENT_TIMESTAMP, CHAP_CHALLENGE, NAS_PORT_TYPE = 52, 53, 55, 60, 61
MESSAGE_AUTHENTICATOR, ACCT_INTERIM_INTERVAL, NAS_PORT_ID, FRAMED_POOL, CHARGEABLE_USER_IDENTITY = 80, 85, 87, 88, 89
NAS_IPV6_ADDRESS, FRAMED_INTERFACE_ID, FRAMED_IPV6_PREFIX, ERROR_CAUSE, DELEGATED_IPV6_PREFIX = 95, 96, 97, 101, 123
DNS_SERVER_IPV6_ADDRESS = 169

MS_PRIMARY_DNS, MS_SECONDARY_DNS = (311, 28), (311, 29)
"""RFC 2548."""
WISPR_MAX_UP, WISPR_MAX_DOWN = (14122, 7), (14122, 8)
"""Bits per second of a subscriber, WISPr 1.0: no standard attribute has them."""
AGENT_CIRCUIT_ID, AGENT_REMOTE_ID = (3561, 1), (3561, 2)
"""RFC 4679."""

Key = int | tuple[int, int]
"""The type of an attribute, or its vendor and the type within the vendor's attributes."""


class Use(Enum):
    """What becomes of an attribute."""

    DONE = "done"
    REFUSED = "the login is refused"
    PASSED_OVER = "passed over, as a standard allows"


@dataclass(frozen=True)
class Rule:
    """What becomes of an attribute, and why. ``serves``: the values for which ``use`` holds; with others the login is refused."""

    name: str
    use: Use
    reason: str
    many: bool = False
    serves: Callable[[bytes], bool] = bool


def _done(name: str, reason: str, serves: Callable[[bytes], bool] = bool, *, many: bool = False) -> Rule:
    return Rule(name, Use.DONE, reason, many, serves)


def _passed_over(name: str, reason: str, serves: Callable[[bytes], bool] = bool, *, many: bool = False) -> Rule:
    return Rule(name, Use.PASSED_OVER, reason, many, serves)


def _refused(reason: str, **names: int) -> dict[Key, Rule]:
    return {kind: Rule(name.replace("_", "-"), Use.REFUSED, reason) for name, kind in names.items()}


def _vendors(vendor: int, reason: str, **names: int) -> dict[Key, Rule]:
    return {(vendor, kind): Rule(name.replace("_", "-"), Use.REFUSED, reason) for name, kind in names.items()}


def _is(*wanted: int) -> Callable[[bytes], bool]:
    return lambda value: len(value) == 4 and int.from_bytes(value, "big") in wanted


def _number(value: bytes) -> bool:
    return len(value) == 4


def _some(value: bytes) -> bool:
    return len(value) == 4 and any(value)


def _rate(value: bytes) -> bool:
    return len(value) == 4 and int.from_bytes(value, "big") not in range(1, 8)


def _prefix(value: bytes) -> bool:
    return 2 <= len(value) <= 18 and value[1] <= 128 and len(value) - 2 >= (value[1] + 7) // 8


def _address6(value: bytes) -> bool:
    return len(value) == 16


_NOT_IN_ACCEPTS = "the tables of RFC 2865, 2866, 2869, 3162 and 5176 have it in no Access-Accept"
_NO_SHELL = "there is no terminal server (RFC 2865, sections 5.14 to 5.16, 5.34 to 5.36, 5.43; RFC 3162, section 2.4)"
_NO_CALLS = "nobody is called back (RFC 2865, sections 5.19, 5.20)"
_NO_ROUTES = "no routes are learnt from RADIUS (RFC 2865, section 5.22; RFC 3162, section 2.5; RFC 6911, section 3.3)"
_NO_FILTER = "there are no filters of a session (RFC 2865, section 5.11; RFC 4849)"
_NO_OTHER_NETWORK = "there is no IPX and no AppleTalk (RFC 2865, sections 5.23, 5.37 to 5.39; RFC 2869, section 2.2)"
_NO_TUNNEL = "sessions end here and go through no tunnel (RFC 2867, RFC 2868, RFC 6519, RFC 5969)"
_NO_EAP = "EAP is not spoken (RFC 2869, section 2.3; RFC 5247)"
_NO_MULTILINK = "there is no multilink, and the sessions of a user are not counted (RFC 2865, section 5.42)"
_NO_BRIDGE = "subscribers have no VLANs and no priorities of their own (RFC 4675)"
_NO_POOL = "there are no named pools of IPv6 (RFC 3162, section 2.6; RFC 6911, sections 3.4, 3.5)"
_NO_DHCP = "DHCPv6 gives no addresses (RFC 6911, section 3.1)"
_NO_DIGEST = "there is no authentication by HTTP Digest (RFC 5090)"
_NO_LOCATION = "locations are not told (RFC 5580)"
_NO_MOBILITY = "there is no Mobile IPv6 (RFC 5447, RFC 6572)"
_NO_MANAGEMENT = "there is no management by subscribers (RFC 5607)"
_NO_RADIO = "there is no radio network (RFC 5904, RFC 7268)"
_NOT_EXTENDED = (
    "no packet in fragments, no port of a NAT and no assertion of SAML is known (RFC 6929, 7499, 7833, 8045)"
)
_NO_GSS = "there is no GSS (RFC 7055)"

ATTRIBUTES: Mapping[Key, Rule] = {
    USER_NAME: _done("User-Name", "the name in accounting (RFC 2865, section 5.1)"),
    SERVICE_TYPE: _done("Service-Type", "Framed is what there is (RFC 2865, section 5.6)", _is(2)),
    FRAMED_PROTOCOL: _done("Framed-Protocol", "PPP is what there is (RFC 2865, section 5.7)", _is(1)),
    FRAMED_IP_ADDRESS: _done(
        "Framed-IP-Address",
        "the subscriber's; 255.255.255.255 would let it choose (RFC 2865, section 5.8)",
        lambda value: _some(value) and value != b"\xff" * 4,
    ),
    9: _done("Framed-IP-Netmask", "of one host (RFC 2865, section 5.9)", _is(0xFFFFFFFF)),
    10: _done("Framed-Routing", "none is what there is (RFC 2865, section 5.10)", _is(0)),
    12: _passed_over("Framed-MTU", "is for a link whose MTU nobody negotiates; PPP does (RFC 2865, section 5.12)", _number),
    13: _done("Framed-Compression", "none is what there is (RFC 2865, section 5.13)", _is(0), many=True),
    REPLY_MESSAGE: _done("Reply-Message", "shown to the subscriber (RFC 2865, section 5.18)", many=True),
    STATE: _passed_over("State", "is for an Access-Request at the session's end, which may be left out (RFC 2865, section 5.24)"),
    CLASS: _done("Class", "goes with accounting (RFC 2865, section 5.25)", many=True),
    SESSION_TIMEOUT: _done("Session-Timeout", "a session of no second is none (RFC 2865, section 5.27)", _some),
    IDLE_TIMEOUT: _done("Idle-Timeout", "a session of no second is none (RFC 2865, section 5.28)", _some),
    29: _passed_over(
        "Termination-Action", "a client may ask again at the end, and need not (RFC 2865, section 5.29)", _is(0, 1)
    ),
    PROXY_STATE: _passed_over("Proxy-State", "is between proxies (RFC 2865, section 5.33)", many=True),
    MESSAGE_AUTHENTICATOR: _done("Message-Authenticator", "is verified (RFC 2869, section 5.14)"),
    ACCT_INTERIM_INTERVAL: _done("Acct-Interim-Interval", "is kept (RFC 2869, section 5.16)", _some),
    FRAMED_POOL: _done("Framed-Pool", "names a pool of IPv4 addresses (RFC 2869, section 5.18)"),
    CHARGEABLE_USER_IDENTITY: _done("Chargeable-User-Identity", "goes with accounting (RFC 4372, section 2.2)"),
    FRAMED_IPV6_PREFIX: _done("Framed-IPv6-Prefix", "is advertised (RFC 3162, section 2.3)", _prefix),
    DELEGATED_IPV6_PREFIX: _done("Delegated-IPv6-Prefix", "is delegated (RFC 4818, section 3)", _prefix),
    DNS_SERVER_IPV6_ADDRESS: _done("DNS-Server-IPv6-Address", "is told (RFC 6911, section 3.2)", _address6, many=True),
    MS_PRIMARY_DNS: _done("MS-Primary-DNS-Server", "is told in IPCP (RFC 2548, section 2.7.1)", _some),
    MS_SECONDARY_DNS: _done("MS-Secondary-DNS-Server", "is told in IPCP (RFC 2548, section 2.7.2)", _some),
    WISPR_MAX_UP: _done("WISPr-Bandwidth-Max-Up", "bounds the session; 0 is no bound (WISPr 1.0)", _rate),
    WISPR_MAX_DOWN: _done("WISPr-Bandwidth-Max-Down", "bounds the session; 0 is no bound (WISPr 1.0)", _rate),
    **_refused(
        _NOT_IN_ACCEPTS, User_Password=2, CHAP_Password=3, NAS_IP_Address=4, NAS_Port=5, Called_Station_Id=30,
        Calling_Station_Id=31, NAS_Identifier=32, Acct_Status_Type=40, Acct_Delay_Time=41, Acct_Input_Octets=42,
        Acct_Output_Octets=43, Acct_Session_Id=44, Acct_Authentic=45, Acct_Session_Time=46, Acct_Input_Packets=47,
        Acct_Output_Packets=48, Acct_Terminate_Cause=49, Acct_Multi_Session_Id=50, Acct_Link_Count=51,
        Acct_Input_Gigawords=52, Acct_Output_Gigawords=53, Event_Timestamp=55, CHAP_Challenge=60, NAS_Port_Type=61,
        Password_Retry=75, Prompt=76, Connect_Info=77, NAS_Port_Id=87, Originating_Line_Info=94,
        NAS_IPv6_Address=95, Error_Cause=101,
    ),
    **_refused("is not to be sent to a NAS (RFC 2869, section 5.12)", Configuration_Token=78),
    **_refused(
        _NO_SHELL, Login_IP_Host=14, Login_Service=15, Login_TCP_Port=16, Login_LAT_Service=34, Login_LAT_Node=35,
        Login_LAT_Group=36, Login_LAT_Port=63, Login_IPv6_Host=98,
    ),
    **_refused(_NO_CALLS, Callback_Number=19, Callback_Id=20),
    **_refused(_NO_ROUTES, Framed_Route=22, Framed_IPv6_Route=99, Route_IPv6_Information=170),
    **_refused(_NO_FILTER, Filter_Id=11, NAS_Filter_Rule=92),
    **_refused(
        _NO_OTHER_NETWORK, Framed_IPX_Network=23, Framed_AppleTalk_Link=37, Framed_AppleTalk_Network=38,
        Framed_AppleTalk_Zone=39, ARAP_Password=70, ARAP_Features=71, ARAP_Zone_Access=72, ARAP_Security=73,
        ARAP_Security_Data=74, ARAP_Challenge_Response=84,
    ),
    **_refused(
        _NO_TUNNEL, Tunnel_Type=64, Tunnel_Medium_Type=65, Tunnel_Client_Endpoint=66, Tunnel_Server_Endpoint=67,
        Acct_Tunnel_Connection=68, Tunnel_Password=69, Tunnel_Private_Group_ID=81, Tunnel_Assignment_ID=82,
        Tunnel_Preference=83, Acct_Tunnel_Packets_Lost=86, Tunnel_Client_Auth_ID=90, Tunnel_Server_Auth_ID=91,
        DS_Lite_Tunnel_Name=144, IPv6_6rd_Configuration=173,
    ),
    **_refused(_NO_EAP, EAP_Message=79, EAP_Key_Name=102, EAP_Lower_Layer=163, EAP_Peer_Id=175, EAP_Server_Id=176),
    **_refused(_NO_MULTILINK, Port_Limit=62),
    **_refused(_NO_BRIDGE, Egress_VLANID=56, Ingress_Filters=57, Egress_VLAN_Name=58, User_Priority_Table=59),
    **_refused("IPv6CP lets the subscriber choose (RFC 3162, section 2.2)", Framed_Interface_Id=96),
    **_refused(_NO_POOL, Framed_IPv6_Pool=100, Delegated_IPv6_Prefix_Pool=171, Stateful_IPv6_Address_Pool=172),
    **_refused(_NO_DHCP, Framed_IPv6_Address=168),
    **{kind: Rule(f"Digest attribute {kind}", Use.REFUSED, _NO_DIGEST) for kind in range(103, 123)},
    **_refused(
        _NO_LOCATION, Operator_Name=126, Location_Information=127, Location_Data=128, Basic_Location_Policy_Rules=129,
        Extended_Location_Policy_Rules=130, Location_Capable=131, Requested_Location_Info=132,
    ),
    **{kind: Rule(f"Mobility attribute {kind}", Use.REFUSED, _NO_MOBILITY) for kind in (124, 125, *range(145, 163))},
    **_refused(
        _NO_MANAGEMENT, Framed_Management=133, Management_Transport_Protection=134, Management_Policy_Id=135,
        Management_Privilege_Level=136,
    ),
    **{kind: Rule(f"Radio attribute {kind}", Use.REFUSED, _NO_RADIO) for kind in (*range(137, 144), 174, *range(177, 192))},
    **{kind: Rule(f"Extended attribute {kind}", Use.REFUSED, _NOT_EXTENDED) for kind in range(241, 247)},
    **{kind: Rule(f"GSS attribute {kind}", Use.REFUSED, _NO_GSS) for kind in range(164, 168)},
    **_vendors(
        311, "packets are not encrypted and not compressed (RFC 2548, section 2.4)", MS_MPPE_Encryption_Policy=7,
        MS_MPPE_Encryption_Types=8, MS_CHAP_MPPE_Keys=12, MS_MPPE_Send_Key=16, MS_MPPE_Recv_Key=17,
    ),
    **_vendors(311, "there is no multilink (RFC 2548, section 2.5)", MS_BAP_Usage=13, MS_Link_Utilization_Threshold=14,
        MS_Link_Drop_Time_Limit=15,
    ),
    **_vendors(311, "there are no filters of a session (RFC 2548, section 2.8)", MS_Filter=22),
    **_vendors(311, "IPCP tells no name servers of NetBIOS (RFC 2548, section 2.7)", MS_Primary_NBNS_Server=30,
        MS_Secondary_NBNS_Server=31,
    ),
}  # fmt: skip

UNKNOWN = Rule(
    "unknown attribute",
    Use.PASSED_OVER,
    "a client may ignore an unknown type (RFC 2865, section 5)",
    True,
    lambda value: True,
)
"""What no list above has: experimental and unassigned types, and other vendors' attributes. It is counted, and logged once."""

_STRICT_VENDORS = {3561: "DSL-Forum", 14122: "WISPr"}
"""Vendors whose other attributes we know, too: in an Access-Accept they are wishes that are not met, or do not belong there."""

_LARGEST_UNSPLIT = 5


def rule(key: Key) -> Rule:
    """Return the rule for an attribute of an Access-Accept, which says if it is applied, refused or ignored."""
    found = ATTRIBUTES.get(key)
    if found is not None:
        return found
    if isinstance(key, tuple) and key[0] in _STRICT_VENDORS:
        return Rule(f"{_STRICT_VENDORS[key[0]]} attribute {key[1]}", Use.REFUSED, "is not given here")
    return UNKNOWN


def name(key: Key) -> str:
    """Return an attribute's name for logs: the name in its rule, or its number and vendor if it is unknown."""
    if rule(key) is not UNKNOWN:
        return rule(key).name
    return f"attribute {key}" if isinstance(key, int) else f"attribute {key[1]} of vendor {key[0]}"


def hindrance(attributes: Mapping[Key, list[bytes]]) -> str | None:
    """Return why an Access-Accept with these attributes must be treated as a refusal; None if the gateway can do all it demands."""
    for key, values in attributes.items():
        if key == VENDOR_SPECIFIC:  # not in the form of RFC 2865, section 5.26: nobody here can know what it is
            if any(_misshapen(each) for each in values):
                return "Vendor-Specific: it has no form"
            continue
        known = rule(key)
        if known.use is Use.REFUSED:
            return f"{known.name}: {known.reason}"
        if len(values) > 1 and not known.many:
            return f"{known.name}: there are {len(values)} of them"
        for each in values:
            if not known.serves(each):
                return f"{known.name}: {each.hex() or 'nothing'} is not served; {known.reason}"
    return None


def _misshapen(value: bytes) -> bool:
    """Return True if a Vendor-Specific value that contains no well-formed attributes must be treated as a refusal of the login.

    That is so if the value is short, or of a vendor whose attributes are known here.
    """
    return len(value) < _LARGEST_UNSPLIT or int.from_bytes(value[:4], "big") in (311, *_STRICT_VENDORS)


def passed_over(attributes: Mapping[Key, list[bytes]]) -> list[str]:
    """Return the names of the attributes that this gateway has no rule for and so ignores."""
    return [name(key) for key in attributes if rule(key) is UNKNOWN]
