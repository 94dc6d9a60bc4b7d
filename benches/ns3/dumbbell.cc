// A dumbbell in ns-3, the same as in `holdfast-bench --simulation dumbbell` and benches/ns3_agreement.py: bulk flows of 1448-byte
// segments over one bottleneck with a drop-tail queue; timestamps, delayed acknowledgments.
//
// It sets every configurable default of ns-3 that differs. No queue discipline stands in front of the
// device queue, unless --minimum asks for RED or marks; then one packet waits in the device. Prints `key value` lines; with --sample also
// `sample` lines: time, bytes that the receivers got, segments sent, drops, fast recoveries, timeouts, sum of the congestion windows in bytes,
// congestion window of the first flow, marks. The time is that of the processor during Simulator::Run.

#include <ns3/applications-module.h>
#include <ns3/core-module.h>
#include <ns3/internet-module.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-module.h>
#include <ns3/traffic-control-module.h>

#include <ctime>
#include <iostream>
#include <sstream>
#include <vector>

using namespace ns3;

static const uint32_t SEGMENT_BYTES = 1448;
static const uint32_t INITIAL_SEGMENTS = 10;

static uint64_t segments = 0;
static uint64_t drops = 0;
static uint64_t recoveries = 0;
static uint64_t timeouts = 0;
static std::vector<uint32_t> windows;
static ApplicationContainer sinks;
static Ptr<QueueDisc> discipline;

// NewReno with the threshold of RFC 5681: half of what was sent and not acknowledged (FlightSize), less the two segments of limited
// transmit. ns-3 itself leaves out what was selectively acknowledged and what is lost, so that each recovery ends lower.
class FlightSizeNewReno : public TcpNewReno {
  public:
    static TypeId GetTypeId() {
        static TypeId id = TypeId("FlightSizeNewReno").SetParent<TcpNewReno>().AddConstructor<FlightSizeNewReno>();
        return id;
    }
    uint32_t GetSsThresh(Ptr<const TcpSocketState> state, uint32_t) override {
        uint32_t flight = state->m_highTxMark.Get() - state->m_lastAckedSeq;
        uint32_t before = flight - std::min(flight, 2 * state->m_segmentSize);
        return std::max(2 * state->m_segmentSize, before / 2);
    }
    Ptr<TcpCongestionOps> Fork() override { return CopyObject<FlightSizeNewReno>(this); }
};

NS_OBJECT_ENSURE_REGISTERED(FlightSizeNewReno);

static void CountSegment(Ptr<const Packet> packet, const TcpHeader&, Ptr<const TcpSocketBase>) {
    segments += packet->GetSize() > 0;
}

static void CountDrop(Ptr<const Packet>) { drops++; }

static void CountItem(Ptr<const QueueDiscItem>) { drops++; }

static void KeepWindow(uint32_t flow, uint32_t, uint32_t now) { windows[flow] = now; }

static void CountState(TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t now) {
    recoveries += now == TcpSocketState::CA_RECOVERY;
}

// Nothing but a timeout doubles the timer exactly; the state does not change with one that follows another.
static void CountTimeout(Time before, Time now) { timeouts += now == before + before; }

// Without selective acknowledgments the window is what fast recovery inflates, as it is here.
static void TraceSocket(Ptr<BulkSendApplication> sender, uint32_t flow, bool inflated) {
    Ptr<Socket> socket = sender->GetSocket();
    const char* window = inflated ? "CongestionWindowInflated" : "CongestionWindow";
    windows[flow] = INITIAL_SEGMENTS * SEGMENT_BYTES;
    socket->TraceConnectWithoutContext("Tx", MakeCallback(&CountSegment));
    socket->TraceConnectWithoutContext("CongState", MakeCallback(&CountState));
    socket->TraceConnectWithoutContext("RTO", MakeCallback(&CountTimeout));
    socket->TraceConnectWithoutContext(window, MakeBoundCallback(&KeepWindow, flow));
}

static uint64_t Received() {
    uint64_t received = 0;
    for (uint32_t i = 0; i < sinks.GetN(); i++) {
        received += sinks.Get(i)->GetObject<PacketSink>()->GetTotalRx();
    }
    return received;
}

static void Sample(double every) {
    uint64_t sum = 0;
    for (uint32_t window : windows) {
        sum += window;
    }
    std::cout << "sample " << Simulator::Now().GetSeconds() << " " << Received() << " " << segments << " " << drops << " "
              << recoveries << " " << timeouts << " " << sum << " " << windows[0] << " "
              << (discipline ? discipline->GetStats().nTotalMarkedPackets : 0) << "\n";
    Simulator::Schedule(Seconds(every), &Sample, every);
}

int main(int argc, char* argv[]) {
    double seconds = 10, delay = 18, sample = 0;
    uint32_t flows = 100, packets = 1000, every = 2;
    double minimum = -1, maximum = 0, maxP = 1, weight = 1;
    bool sack = true, gentle = false, ecn = false, always = false;
    std::string congestion = "ns3::TcpNewReno", recovery = "ns3::TcpClassicRecovery", rate = "1Gbps", starts;
    CommandLine arguments(__FILE__);
    arguments.AddValue("seconds", "simulated time", seconds);
    arguments.AddValue("congestion", "TypeId of the congestion control", congestion);
    arguments.AddValue("recovery", "TypeId of the recovery", recovery);
    arguments.AddValue("sack", "selective acknowledgments", sack);
    arguments.AddValue("flows", "number of flows", flows);
    arguments.AddValue("rate", "rate of the bottleneck", rate);
    arguments.AddValue("delay", "delay of the bottleneck in ms; 2 ms come on top", delay);
    arguments.AddValue("packets", "packets that the bottleneck's queue holds", packets);
    arguments.AddValue("starts", "when flows start in ms, with commas in between; else one each millisecond", starts);
    arguments.AddValue("sample", "seconds between samples; 0 is none", sample);
    arguments.AddValue("minimum", "RED's lower threshold, in packets", minimum);
    arguments.AddValue("maximum", "RED's upper threshold", maximum);
    arguments.AddValue("max-p", "RED's probability at the upper threshold", maxP);
    arguments.AddValue("weight", "RED's weight of the average", weight);
    arguments.AddValue("gentle", "RED goes on to probability 1 at twice the upper threshold", gentle);
    arguments.AddValue("every", "segments that are acknowledged together", every);
    arguments.AddValue("ecn", "RED marks, and TCP reacts to marks", ecn);
    arguments.AddValue("always", "RED marks above the upper threshold, too, instead of dropping", always);
    arguments.Parse(argc, argv);
    windows.resize(flows);

    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue(congestion));
    // Without, it is proportional rate reduction, whose 32-bit product overflows where 64 KB are delivered to a threshold of 64 KB.
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", TypeIdValue(TypeId::LookupByName(recovery)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(SEGMENT_BYTES));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(INITIAL_SEGMENTS));
    Config::SetDefault("ns3::TcpSocket::ConnTimeout", TimeValue(Seconds(1)));
    Config::SetDefault("ns3::TcpSocket::DataRetries", UintegerValue(15));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(every));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(4 << 20));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(sack));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::LimitedTransmit", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(1)));
    Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MilliSeconds(1)));
    Config::SetDefault("ns3::TcpCubic::HyStart", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::UseEcn", EnumValue(ecn ? TcpSocketState::On : TcpSocketState::Off));
    // The part that Linux adds to BBR's window for acknowledgments that come in bunches is at most one of them then.
    Config::SetDefault("ns3::TcpBbr::AckEpochAckedResetThresh", UintegerValue(0));

    NodeContainer routers(2), clients(flows), servers(flows);
    InternetStackHelper internet;
    internet.InstallAll();

    PointToPointHelper access;
    access.SetDeviceAttribute("DataRate", StringValue("10Gbps"));
    access.SetChannelAttribute("Delay", StringValue("1ms"));
    access.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("10000p"));
    PointToPointHelper bottleneck;
    bottleneck.SetDeviceAttribute("DataRate", StringValue(rate));
    bottleneck.SetChannelAttribute("Delay", TimeValue(Seconds(delay / 1000)));
    bool managed = minimum >= 0;
    bottleneck.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue(std::to_string(managed ? 1 : packets) + "p"));

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
    middle.Get(0)->GetObject<PointToPointNetDevice>()->GetQueue()->TraceConnectWithoutContext("Drop", MakeCallback(&CountDrop));
    if (managed) {
        TrafficControlHelper red;
        red.SetRootQueueDisc("ns3::RedQueueDisc", "MinTh", DoubleValue(minimum), "MaxTh", DoubleValue(maximum), "MaxSize",
                             QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, packets)), "LInterm", DoubleValue(1 / maxP), "QW",
                             DoubleValue(weight), "Gentle", BooleanValue(gentle), "Wait", BooleanValue(false), "UseEcn",
                             BooleanValue(ecn), "UseHardDrop", BooleanValue(!always), "MeanPktSize",
                             UintegerValue(SEGMENT_BYTES + 52), "LinkBandwidth", DataRateValue(DataRate(rate)), "LinkDelay",
                             TimeValue(Seconds(delay / 1000)));
        discipline = red.Install(middle.Get(0)).Get(0);
        discipline->TraceConnectWithoutContext("Drop", MakeCallback(&CountItem));
    }
    // Without a queue discipline, packets that find the device's queue full are dropped before it.
    routers.Get(0)->GetObject<TrafficControlLayer>()->TraceConnectWithoutContext("TcDrop", MakeCallback(&CountDrop));

    std::istringstream times(starts);
    for (uint32_t i = 0; i < flows; i++) {
        assign(access.Install(clients.Get(i), routers.Get(0)));
        Ipv4InterfaceContainer server = assign(access.Install(servers.Get(i), routers.Get(1)));
        InetSocketAddress address(server.GetAddress(0), 5001);
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 5001));
        sinks.Add(sink.Install(servers.Get(i)));
        BulkSendHelper bulk("ns3::TcpSocketFactory", address);
        bulk.SetAttribute("SendSize", UintegerValue(SEGMENT_BYTES));
        ApplicationContainer sender = bulk.Install(clients.Get(i));
        std::string given;
        Time start = std::getline(times, given, ',') ? MicroSeconds(std::llround(std::stod(given) * 1000)) : MilliSeconds(i);
        sender.Start(start);
        Simulator::Schedule(start + NanoSeconds(1), &TraceSocket, sender.Get(0)->GetObject<BulkSendApplication>(), i, !sack);
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    if (sample > 0) {
        Simulator::Schedule(Seconds(sample), &Sample, sample);
    }
    Simulator::Stop(Seconds(seconds) + NanoSeconds(1));
    std::clock_t begin = std::clock();
    Simulator::Run();
    double processor_s = double(std::clock() - begin) / CLOCKS_PER_SEC;
    std::cout << "segments " << segments << "\n"
              << "goodput_bps " << Received() * 8.0 / seconds << "\n"
              << "drops " << drops << "\n"
              << "recoveries " << recoveries << "\n"
              << "timeouts " << timeouts << "\n"
              << "events " << Simulator::GetEventCount() << "\n"
              << "processor_s " << processor_s << "\n";
    Simulator::Destroy();
    return 0;
}
