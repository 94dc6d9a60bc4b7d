"""A session of p4runtime-shell with a switch, run by the shell's own interpreter (see test_shell.py).

Prints one JSON object per step.

Arguments: address, P4Info text file, artifact file.
"""

import sys

import p4runtime_sh.shell as sh
from p4runtime_sh.p4runtime import P4RuntimeWriteException
from shell_process import run, say

address, p4info, artifact = sys.argv[1:]


def routes():
    found = []
    sh.TableEntry("ipv4_lpm").read(lambda entry: found.append(entry))
    return [
        {
            "value": entry.match["hdr.ipv4.dst_addr"].lpm.value.hex(),
            "prefix_len": entry.match["hdr.ipv4.dst_addr"].lpm.prefix_len,
            "port": entry.action["port"].value.hex(),
        }
        for entry in found
    ]


def session():
    sh.setup(
        device_id=1, grpc_addr=address, election_id=(0, 1), config=sh.FwdPipeConfig(p4info, artifact), verbose=False
    )
    say("connected", version=sh.client.api_version())

    entry = sh.TableEntry("ipv4_lpm")(action="forward")
    entry.match["hdr.ipv4.dst_addr"] = "10.1.0.0/16"
    entry.action["port"] = "3"
    entry.action["dst_addr"] = "02:00:00:00:00:03"
    entry.insert()
    say("inserted", routes=routes())

    try:
        entry.insert()
    except P4RuntimeWriteException as e:
        say("again", errors=[[index, error.canonical_code, error.message] for index, error in e.errors])

    entry.action["port"] = "4"
    entry.modify()
    say("modified", routes=routes())

    group = sh.MulticastGroupEntry(7)
    group.add(1, 1).add(2, 1)
    group.insert()
    say("group", replicas=[[r.egress_port, r.instance] for g in sh.MulticastGroupEntry(7).read() for r in g.replicas])

    cell = sh.CounterEntry("port_packets")
    cell.index = 2
    cell.packet_count = 5
    cell.modify()
    read = sh.CounterEntry("port_packets")
    read.index = 2
    say("counter", packets=[c.packet_count for c in read.read()])

    packets_in = sh.PacketIn()
    say("listening")
    received = list(packets_in.sniff(timeout=2))
    say(
        "packets",
        packets=[
            {
                "payload": message.packet.payload.hex(),
                "metadata": {str(m.metadata_id): m.value.hex() for m in message.packet.metadata},
            }
            for message in received
        ],
    )

    packet = sh.PacketOut()
    packet.payload = b"hello"
    packet.metadata["egress_port"] = "3"
    packet.metadata["unused"] = "0"
    packet.send()

    entry.delete()
    say("deleted", routes=routes())


run(session)
