// The dumbbell of `holdfast-bench --simulation dumbbell` in ns-3: 100 bulk flows over 1 Gb/s, 40 ms round trip, 1448-byte segments, a
// drop-tail queue of 1000 packets; NewReno with selective acknowledgments, timestamps, delayed acknowledgments.
//
// Everything that ns-3 decides by default differently is set here. No queue discipline stands in front of the device queue.
// Prints `key value` lines; the time is that of the processor during Simulator::Run.

#include <ns3/applications-module.h>
#include <ns3/core-module.h>
#include <ns3/internet-module.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-module.h>
#include <ns3/traffic-control-module.h>

#include <ctime>
#include <iostream>

using namespace ns3;

static uint64_t segments = 0;
static uint64_t drops = 0;

static void CountSegment(Ptr<const Packet> packet, const TcpHeader&, Ptr<const TcpSocketBase>) {
    segments += packet->GetSize() > 0;
}

static void CountDrop(Ptr<const Packet>) { drops++; }

// Without a queue discipline, what finds the device's queue full is dropped before it.
static void CountDropBefore(Ptr<const Packet>) { drops++; }

static void TraceSocket(Ptr<BulkSendApplication> sender) {
    sender->GetSocket()->TraceConnectWithoutContext("Tx", MakeCallback(&CountSegment));
}

int main(int argc, char* argv[]) {
    double seconds = 10;
    std::string congestion = "ns3::TcpNewReno";
    CommandLine arguments(__FILE__);
    arguments.AddValue("seconds", "simulated time", seconds);
    arguments.AddValue("congestion", "TypeId of the congestion control", congestion);
    arguments.Parse(argc, argv);

    const uint32_t flows = 100;
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue(congestion));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(4 << 20));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::LimitedTransmit", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(1)));
    Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MilliSeconds(1)));

    NodeContainer routers(2), clients(flows), servers(flows);
    InternetStackHelper internet;
    internet.InstallAll();

    PointToPointHelper access;
    access.SetDeviceAttribute("DataRate", StringValue("10Gbps"));
    access.SetChannelAttribute("Delay", StringValue("1ms"));
    access.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("10000p"));
    PointToPointHelper bottleneck;
    bottleneck.SetDeviceAttribute("DataRate", StringValue("1Gbps"));
    bottleneck.SetChannelAttribute("Delay", StringValue("18ms"));
    bottleneck.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("1000p"));

    TrafficControlHelper control;
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    auto assign = [&](NetDeviceContainer devices) {
        Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
        control.Uninstall(devices);
        addresses.NewNetwork();
        return interfaces;
    };
    NetDeviceContainer middle = bottleneck.Install(routers.Get(0), routers.Get(1));
    assign(middle);
    middle.Get(0)->GetObject<PointToPointNetDevice>()->GetQueue()->TraceConnectWithoutContext(
        "Drop", MakeCallback(&CountDrop));

    routers.Get(0)->GetObject<TrafficControlLayer>()->TraceConnectWithoutContext(
        "TcDrop", MakeCallback(&CountDropBefore));

    ApplicationContainer sinks;
    for (uint32_t i = 0; i < flows; i++) {
        assign(access.Install(clients.Get(i), routers.Get(0)));
        Ipv4InterfaceContainer server = assign(access.Install(servers.Get(i), routers.Get(1)));
        InetSocketAddress address(server.GetAddress(0), 5001);
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 5001));
        sinks.Add(sink.Install(servers.Get(i)));
        BulkSendHelper bulk("ns3::TcpSocketFactory", address);
        bulk.SetAttribute("SendSize", UintegerValue(1448));
        ApplicationContainer sender = bulk.Install(clients.Get(i));
        sender.Start(MilliSeconds(i));
        Simulator::Schedule(MilliSeconds(i) + NanoSeconds(1), &TraceSocket,
                            sender.Get(0)->GetObject<BulkSendApplication>());
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    Simulator::Stop(Seconds(seconds));
    std::clock_t begin = std::clock();
    Simulator::Run();
    double processor_s = double(std::clock() - begin) / CLOCKS_PER_SEC;
    uint64_t received = 0;
    for (uint32_t i = 0; i < flows; i++) {
        received += sinks.Get(i)->GetObject<PacketSink>()->GetTotalRx();
    }
    std::cout << "segments " << segments << "\n"
              << "goodput_bps " << received * 8.0 / seconds << "\n"
              << "drops " << drops << "\n"
              << "events " << Simulator::GetEventCount() << "\n"
              << "processor_s " << processor_s << "\n";
    Simulator::Destroy();
    return 0;
}
