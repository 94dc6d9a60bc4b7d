"""Registers, groups, digests and meters of a running server, by PTF and the published stubs. It imports none of our code.

The pipeline is loop.p4: a packet-out names the port at which its packet arrives, packet-ins name the port at which it left.
Parameters (see test_ptf.py): ``address``, and the files ``p4info`` and ``artifact``.
"""

import queue
import threading
from pathlib import Path

import grpc
from google.protobuf import text_format
from google.rpc import code_pb2, status_pb2
from p4.config.v1 import p4info_pb2
from p4.v1 import p4runtime_pb2, p4runtime_pb2_grpc
from ptf import testutils
from ptf.base_tests import BaseTest

DEVICE_ID = 1
WAIT_S = 10


class LoopTest(BaseTest):
    """A primary client whose pipeline has just been pushed."""

    def setUp(self):
        super().setUp()
        parameters = testutils.test_params_get()
        self.info = p4info_pb2.P4Info()
        text_format.Merge(Path(parameters["p4info"]).read_text(), self.info)
        self.channel = grpc.insecure_channel(parameters["address"])
        self.stub = p4runtime_pb2_grpc.P4RuntimeStub(self.channel)
        self.requests, self.responses = queue.Queue(), queue.Queue()
        self.stream = self.stub.StreamChannel(iter(self.requests.get, None))
        threading.Thread(target=self.receive, daemon=True).start()
        self.election_id = p4runtime_pb2.Uint128(low=1)
        message = p4runtime_pb2.StreamMessageRequest()
        message.arbitration.device_id = DEVICE_ID
        message.arbitration.election_id.CopyFrom(self.election_id)
        self.requests.put(message)
        self.assertEqual(self.next_message("arbitration").status.code, 0)
        self.push(Path(parameters["artifact"]).read_bytes())

    def tearDown(self):
        self.requests.put(None)
        self.stream.cancel()
        self.channel.close()
        super().tearDown()

    def receive(self):
        try:
            for message in self.stream:
                self.responses.put(message)
        except grpc.RpcError:
            pass  # the end of the test

    def next_message(self, kind):
        message = self.responses.get(timeout=WAIT_S)
        self.assertEqual(message.WhichOneof("update"), kind, message)
        return getattr(message, kind)

    def push(self, artifact):
        request = p4runtime_pb2.SetForwardingPipelineConfigRequest(device_id=DEVICE_ID, election_id=self.election_id)
        request.action = request.VERIFY_AND_COMMIT
        request.config.p4info.CopyFrom(self.info)
        request.config.p4_device_config = artifact
        self.stub.SetForwardingPipelineConfig(request)

    def id_of(self, objects, alias):
        return next(o.preamble.id for o in getattr(self.info, objects) if o.preamble.alias == alias)

    def write(self, kind, **entities):
        """Write one update of type ``kind``; the entity is given by the name of its field."""
        request = p4runtime_pb2.WriteRequest(device_id=DEVICE_ID, election_id=self.election_id)
        update = request.updates.add(entity=p4runtime_pb2.Entity(**entities))
        update.type = p4runtime_pb2.Update.Type.Value(kind)
        self.stub.Write(request)

    def refused(self, kind, **entities):
        """Write one update that must be refused, and return its status code."""
        with self.assertRaises(grpc.RpcError) as raised:
            self.write(kind, **entities)
        details = dict(raised.exception.trailing_metadata())["grpc-status-details-bin"]
        error = p4runtime_pb2.Error()
        self.assertTrue(status_pb2.Status.FromString(details).details[0].Unpack(error))
        return code_pb2.Code.Name(error.canonical_code)

    def read(self, **entities):
        request = p4runtime_pb2.ReadRequest(device_id=DEVICE_ID, entities=[p4runtime_pb2.Entity(**entities)])
        return [entity for response in self.stub.Read(request) for entity in response.entities]

    def send(self, port, source, destination):
        """Send a packet-out that the switch treats as a packet arriving on ``port``."""
        message = p4runtime_pb2.StreamMessageRequest()
        message.packet.payload = source.to_bytes(4, "big") + destination.to_bytes(4, "big")
        message.packet.metadata.add(metadata_id=1, value=bytes([port]))
        message.packet.metadata.add(metadata_id=2, value=b"\0")
        self.requests.put(message)

    def left(self):
        """Return (egress port, colour, instance) of the next packet that left the switch."""
        metadata = {m.metadata_id: int.from_bytes(m.value, "big") for m in self.next_message("packet").metadata}
        return metadata[1], metadata[2], metadata[3]

    # ---- Parts of entities ----

    def action(self, alias, *values):
        action = p4runtime_pb2.Action(action_id=self.id_of("actions", alias))
        for position, value in enumerate(values, 1):
            action.params.add(param_id=position, value=bytes([value]))
        return action

    def member(self, member_id, action):
        profile = self.id_of("action_profiles", "next_hops")
        return p4runtime_pb2.ActionProfileMember(action_profile_id=profile, member_id=member_id, action=action)

    def group(self, group_id, member_ids):
        group = p4runtime_pb2.ActionProfileGroup(group_id=group_id)
        group.action_profile_id = self.id_of("action_profiles", "next_hops")
        for member_id in member_ids:
            group.members.add(member_id=member_id, weight=1)
        return group

    def route(self, **action):
        """Return a table entry for 10.0.0.0/8 with this action."""
        entry = p4runtime_pb2.TableEntry(table_id=self.id_of("tables", "routes"))
        match = entry.match.add(field_id=1)
        match.lpm.value, match.lpm.prefix_len = b"\x0a\0\0\0", 8
        entry.action.CopyFrom(p4runtime_pb2.TableAction(**action))
        return entry


class GroupTest(LoopTest):
    """An action profile group spreads flows, follows its members, and cannot be taken away while it is used."""

    def runTest(self):
        for port in (1, 2, 3):
            self.write("INSERT", action_profile_member=self.member(port, self.action("forward", port)))
        self.write("INSERT", action_profile_group=self.group(1, [1, 2, 3]))
        self.write("INSERT", table_entry=self.route(action_profile_group_id=1))
        self.assertEqual(self.ports(), {1, 2, 3})
        self.write("MODIFY", action_profile_group=self.group(1, [2]))
        self.assertEqual(self.ports(), {2})
        self.write("MODIFY", action_profile_member=self.member(2, self.action("forward", 9)))
        self.assertEqual(self.ports(), {9})
        (found,) = self.read(action_profile_group=self.group(1, []))
        self.assertEqual(found.action_profile_group, self.group(1, [2]))
        self.assertEqual(self.refused("DELETE", action_profile_group=self.group(1, [])), "FAILED_PRECONDITION")
        self.assertEqual(self.refused("INSERT", action_profile_group=self.group(2, [7])), "NOT_FOUND")
        self.write("DELETE", table_entry=self.route(action_profile_group_id=1))
        self.write("DELETE", action_profile_group=self.group(1, []))
        self.assertEqual(self.read(action_profile_group=self.group(0, [])), [])

    def ports(self):
        for source in range(32):
            self.send(4, source, 0x0A000001)
        return {self.left()[0] for _ in range(32)}


class OneShotTest(LoopTest):
    """A one-shot set is a group without ids, and is read back as it was written."""

    def runTest(self):
        actions = p4runtime_pb2.ActionProfileActionSet()
        for port in (5, 6):
            actions.action_profile_actions.add(action=self.action("forward", port), weight=2)
        entry = self.route(action_profile_action_set=actions)
        self.write("INSERT", table_entry=entry)
        self.assertEqual([e.table_entry for e in self.read(table_entry=p4runtime_pb2.TableEntry())], [entry])
        for source in range(16):
            self.send(4, source, 0x0A000001)
        self.assertEqual({self.left()[0] for _ in range(16)}, {5, 6})


class MulticastTest(LoopTest):
    """A multicast group makes a copy for each replica."""

    def runTest(self):
        group = p4runtime_pb2.PacketReplicationEngineEntry()
        group.multicast_group_entry.multicast_group_id = 7
        for port in (1, 2, 300):
            group.multicast_group_entry.replicas.add(port=port.to_bytes(2, "big").lstrip(b"\0"), instance=port + 1)
        self.write("INSERT", packet_replication_engine_entry=group)
        self.write("INSERT", action_profile_member=self.member(1, self.action("multicast", 7)))
        self.write("INSERT", table_entry=self.route(action_profile_member_id=1))
        self.send(4, 1, 0x0A000001)
        self.assertEqual([self.left() for _ in range(3)], [(1, 0, 2), (2, 0, 3), (300, 0, 301)])
        (found,) = self.read(packet_replication_engine_entry=group)
        self.assertEqual(found.packet_replication_engine_entry, group)


class RegisterTest(LoopTest):
    """A register is read and written, cell by cell and as a whole."""

    def runTest(self):
        self.send(4, 1, 0x0B000001)
        self.send(4, 1, 0x0B000001)
        cell = p4runtime_pb2.RegisterEntry(register_id=self.id_of("registers", "packets_of_port"))
        cell.index.index = 4
        # A read after the packets of the stream: when what they did to the controller has been seen.
        self.write("INSERT", action_profile_member=self.member(1, self.action("forward", 1)))
        self.write("INSERT", table_entry=self.route(action_profile_member_id=1))
        self.send(3, 1, 0x0A000001)
        self.assertEqual(self.left()[0], 1)
        self.assertEqual(self.value_of(cell), 2)
        cell.data.bitstring = b"\x01\x00"
        self.write("MODIFY", register_entry=cell)
        self.send(4, 1, 0x0A000001)
        self.assertEqual(self.left()[0], 1)
        self.assertEqual(self.value_of(cell), 257)
        every = p4runtime_pb2.RegisterEntry(register_id=cell.register_id)
        every.data.bitstring = b"\x05"
        self.write("MODIFY", register_entry=every)
        cells = self.read(register_entry=p4runtime_pb2.RegisterEntry(register_id=cell.register_id))
        self.assertEqual([c.register_entry.data.bitstring for c in cells], [b"\x05"] * 512)
        cell.index.index = 512
        self.assertEqual(self.refused("MODIFY", register_entry=cell), "OUT_OF_RANGE")

    def value_of(self, cell):
        (found,) = self.read(register_entry=cell)
        return int.from_bytes(found.register_entry.data.bitstring, "big")


class MeterTest(LoopTest):
    """A meter marks by its configuration, and without one everything is green."""

    def runTest(self):
        self.write("INSERT", action_profile_member=self.member(1, self.action("forward", 1)))
        self.write("INSERT", table_entry=self.route(action_profile_member_id=1))
        meter = p4runtime_pb2.MeterEntry(meter_id=self.id_of("meters", "port_rates"))
        meter.index.index = 4
        self.assertEqual(self.colours(6), [0] * 6)
        meter.config.cir, meter.config.cburst = 1, 2
        meter.config.pir, meter.config.pburst = 1, 4
        self.write("MODIFY", meter_entry=meter)
        self.assertEqual(self.colours(6), [0, 0, 1, 1, 2, 2])
        (found,) = self.read(meter_entry=meter)
        self.assertEqual(found.meter_entry, meter)
        meter.ClearField("config")
        self.write("MODIFY", meter_entry=meter)
        self.assertEqual(self.colours(6), [0] * 6)
        self.assertEqual(self.refused("INSERT", meter_entry=meter), "INVALID_ARGUMENT")

    def colours(self, packets):
        for _ in range(packets):
            self.send(4, 1, 0x0A000001)
        return [self.left()[1] for _ in range(packets)]


class DigestTest(LoopTest):
    """A digest comes once, and again when it was acknowledged."""

    def runTest(self):
        entry = p4runtime_pb2.DigestEntry(digest_id=self.info.digests[0].preamble.id)
        entry.config.max_list_size = 2
        entry.config.max_timeout_ns = 60 * 10**9
        entry.config.ack_timeout_ns = 600 * 10**9
        self.write("INSERT", digest_entry=entry)
        (found,) = self.read(digest_entry=p4runtime_pb2.DigestEntry())
        self.assertEqual(found.digest_entry, entry)
        for source in (1, 1, 2):
            self.send(4, source, 0x0B000001)
        first = self.next_message("digest")
        self.assertEqual(self.sources(first), [(1, 4), (2, 4)])
        for source in (1, 2, 3, 4):
            self.send(5, source, 0x0B000001)
            self.send(4, source, 0x0B000001)
        self.assertEqual(self.sources(self.next_message("digest")), [(1, 5), (2, 5)])
        self.assertEqual(self.sources(self.next_message("digest")), [(3, 5), (3, 4)])
        self.assertEqual(self.sources(self.next_message("digest")), [(4, 5), (4, 4)])
        message = p4runtime_pb2.StreamMessageRequest()
        message.digest_ack.digest_id, message.digest_ack.list_id = first.digest_id, first.list_id
        self.requests.put(message)
        for source in (1, 2):
            self.send(4, source, 0x0B000001)
        self.assertEqual(self.sources(self.next_message("digest")), [(1, 4), (2, 4)])

    @staticmethod
    def sources(digest_list):
        members = ([int.from_bytes(m.bitstring, "big") for m in d.struct.members] for d in digest_list.data)
        return [tuple(m) for m in members]
