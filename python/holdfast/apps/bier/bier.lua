-- BIER (RFC 8296) for Wireshark, whose releases before 4.4 do not know it: behind Ethernet, in GRE, and behind an MPLS label.
-- Use: tshark -X lua_script:bier.lua. The fields are rfc8296.*, so that it does not meet Wireshark's own dissector.

local bier = Proto("rfc8296", "Bit Index Explicit Replication")
local behind_label = Proto("rfc8296mpls", "Bit Index Explicit Replication, behind its label")

local f = bier.fields
f.bift_id = ProtoField.uint32("rfc8296.bift_id", "BIFT-id", base.HEX, nil, 0xfffff000)
f.tc = ProtoField.uint32("rfc8296.tc", "TC", base.DEC, nil, 0x00000e00)
f.s = ProtoField.uint32("rfc8296.s", "S", base.DEC, nil, 0x00000100)
f.ttl = ProtoField.uint32("rfc8296.ttl", "TTL", base.DEC, nil, 0x000000ff)
f.nibble = ProtoField.uint32("rfc8296.nibble", "Nibble", base.DEC, nil, 0xf0000000)
f.ver = ProtoField.uint32("rfc8296.ver", "Ver", base.DEC, nil, 0x0f000000)
f.bsl = ProtoField.uint32("rfc8296.bsl", "BSL", base.DEC, nil, 0x00f00000)
f.entropy = ProtoField.uint32("rfc8296.entropy", "Entropy", base.HEX, nil, 0x000fffff)
f.oam = ProtoField.uint32("rfc8296.oam", "OAM", base.DEC, nil, 0xc0000000)
f.rsv = ProtoField.uint32("rfc8296.rsv", "Rsv", base.DEC, nil, 0x30000000)
f.dscp = ProtoField.uint32("rfc8296.dscp", "DSCP", base.DEC, nil, 0x0fc00000)
f.proto = ProtoField.uint32("rfc8296.proto", "Proto", base.DEC, nil, 0x003f0000)
f.bfir_id = ProtoField.uint32("rfc8296.bfir_id", "BFIR-id", base.DEC, nil, 0x0000ffff)
f.bit_string = ProtoField.bytes("rfc8296.bit_string", "BitString")
f.labelled = ProtoField.bool("rfc8296.labelled", "Behind a label")
local wrong = ProtoExpert.new("rfc8296.wrong", "Not a BIER header", expert.group.MALFORMED, expert.severity.ERROR)
bier.experts = { wrong }

local payloads = { [4] = "ip", [6] = "ipv6" }

local function dissect(buffer, info, tree, labelled)
    local first = labelled and 0 or 4
    local code = buffer(first + 1, 1):bitfield(0, 4)
    local length = first + 8 + 2 ^ (code + 2)
    local node = tree:add(bier, buffer(0, math.min(length, buffer:len())))
    node:add(f.labelled, labelled)
    if not labelled then
        for _, field in ipairs({ f.bift_id, f.tc, f.s, f.ttl }) do
            node:add(field, buffer(0, 4))
        end
    end
    for _, field in ipairs({ f.nibble, f.ver, f.bsl, f.entropy }) do
        node:add(field, buffer(first, 4))
    end
    for _, field in ipairs({ f.oam, f.rsv, f.dscp, f.proto, f.bfir_id }) do
        node:add(field, buffer(first + 4, 4))
    end
    if code < 1 or code > 7 or buffer(first, 1):bitfield(4, 4) ~= 0 or length > buffer:len() then
        node:add_proto_expert_info(wrong)
        return
    end
    node:add(f.bit_string, buffer(first + 8, length - first - 8))
    local payload = payloads[buffer(first + 5, 1):bitfield(2, 6)] or "data"
    Dissector.get(payload):call(buffer(length):tvb(), info, tree)
end

function bier.dissector(buffer, info, tree)
    dissect(buffer, info, tree, false)
end

function behind_label.dissector(buffer, info, tree)
    dissect(buffer, info, tree, true)
end

DissectorTable.get("ethertype"):add(0xab37, bier)
DissectorTable.get("gre.proto"):add(0xab37, bier)
-- The labels that are BIFT-ids of sub-domain 0: BSL, sub-domain and set identifier.
for code = 1, 5 do
    for set = 0, 255 do
        DissectorTable.get("mpls.label"):add(code * 65536 + set, behind_label)
    end
end
