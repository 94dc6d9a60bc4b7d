"""A session of p4runtime-shell with groups, meters, registers and digests of loop.p4, run by the shell's own interpreter (see
test_shell.py).

Prints one JSON object per step.

Arguments: address, P4Info text file, artifact file.
"""

import sys

import p4runtime_sh.shell as sh
from p4.v1 import p4runtime_pb2
from shell_process import run, say

address, p4info, artifact = sys.argv[1:]


def send(source, destination, port=4):
    packet = sh.PacketOut()
    packet.payload = source.to_bytes(4, "big") + destination.to_bytes(4, "big")
    packet.metadata["ingress_port"] = str(port)
    packet.metadata["unused"] = "0"
    packet.send()


def left(packets_in, packets):
    """Return (egress port, colour) of each packet that left; check that there are ``packets`` of them."""
    found = []
    for message in packets_in.sniff(timeout=2):
        metadata = {m.metadata_id: int.from_bytes(m.value, "big") for m in message.packet.metadata}
        found.append([metadata[1], metadata[2]])
    assert len(found) == packets, found
    return found


def groups(packets_in):
    for port in (1, 2, 3):
        member = sh.ActionProfileMember("next_hops")(member_id=port, action="forward")
        member.action["port"] = str(port)
        member.insert()
    group = sh.ActionProfileGroup("next_hops")(group_id=1)
    group.add(1).add(2, weight=2).add(3, watch_port=b"\x03")
    group.insert()
    entry = sh.TableEntry("routes")(group_id=1)
    entry.match["hdr.flow.destination"] = "10.0.0.0/8"
    entry.insert()
    (read,) = sh.ActionProfileGroup("next_hops").read()
    members = [[m.member_id, m.weight, m.watch_port.hex()] for m in read.members]
    say("group", members=members, entries=[e.group_id for e in sh.TableEntry("routes").read()])
    for source in range(32):
        send(source, 0x0A000001)
    say("spread", ports=sorted({port for port, _ in left(packets_in, 32)}))
    # A profile has members and groups, or sets of its entries' own.
    entry.delete()
    group.delete()
    for port in (1, 2, 3):
        sh.ActionProfileMember("next_hops")(member_id=port).delete()
    shot = sh.Oneshot("routes")
    for port in ("7", "8"):
        action = sh.Action("forward")
        action["port"] = port
        shot.add(action)
    entry = sh.TableEntry("routes")
    entry.match["hdr.flow.destination"] = "10.0.0.0/8"
    entry.oneshot = shot
    entry.insert()
    for source in range(32):
        send(source, 0x0A000001)
    say("one-shot", ports=sorted({port for port, _ in left(packets_in, 32)}))


def meters(packets_in):
    meter = sh.MeterEntry("port_rates")
    meter.index = 4
    meter.cir, meter.cburst, meter.pir, meter.pburst = 1, 1, 1, 2
    meter.modify()
    for _ in range(3):
        send(1, 0x0A000001)
    read = sh.MeterEntry("port_rates")
    read.index = 4
    rates = [[m.cir, m.cburst, m.pir, m.pburst] for m in read.read()]
    say("meter", rates=rates, colours=[colour for _, colour in left(packets_in, 3)])


def registers():
    """Read and write a register through the client below the shell, as the shell itself has no registers."""
    (register,) = sh.context.p4info.registers
    cell = p4runtime_pb2.RegisterEntry(register_id=register.preamble.id)
    cell.index.index = 4
    counted = next(sh.client.read_one(p4runtime_pb2.Entity(register_entry=cell)))
    update = p4runtime_pb2.Update(type=p4runtime_pb2.Update.MODIFY)
    cell.data.bitstring = b"\x07"
    update.entity.register_entry.CopyFrom(cell)
    sh.client.write_update(update)
    written = next(sh.client.read_one(p4runtime_pb2.Entity(register_entry=cell)))
    values = [e.entities[0].register_entry.data.bitstring.hex() for e in (counted, written)]
    say("register", values=values)


def digests():
    digest = sh.DigestEntry("learn_t")
    digest.max_list_size = 2
    digest.max_timeout_ns = 10**10
    digest.ack_timeout_ns = 10**10
    digest.insert()
    lists = sh.DigestList()
    for source in (21, 21, 22):
        send(source, 0x0C000001)
    found = []
    for message in lists.sniff(timeout=2):
        for data in message.digest.data:
            found.append([int.from_bytes(member.bitstring, "big") for member in data.struct.members])
    say("digest", learned=found)


def session():
    sh.setup(
        device_id=1, grpc_addr=address, election_id=(0, 1), config=sh.FwdPipeConfig(p4info, artifact), verbose=False
    )
    packets_in = sh.PacketIn()
    groups(packets_in)
    meters(packets_in)
    registers()
    digests()


run(session)
