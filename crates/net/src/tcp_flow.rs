//! TCP between modelled hosts: two `tcp` endpoints, an application that writes, and what is remembered of a transfer. It does not
//! know links or events; it builds frames, takes segments, and says when it wants to be woken.
//!
//! Payload bytes are zeros: an application's data is counted, not made up. Headers and checksums are real.
//!
//! An end whose congestion control needs the loads of links ([`tcp::Connection::telemetry`]) is source and sink of INT headers: it puts
//! them into its segments and takes them out of those that it receives (`wire::int`).
//!
//! # Applications
//!
//! The client connects and writes; the server only receives, and closes when the client has. A *bulk* application always has something to send. A *transfer*
//! writes a number of bytes and closes; it is complete when all of them, and the client's FIN, have arrived. An *on-off*
//! application writes a burst, waits until all of it is acknowledged, is silent for a while, and begins again; sizes of bursts and
//! lengths of silence are constant or exponentially distributed, drawn from a stream named after the flow.
//!
//! # Goodput
//!
//! New bytes that arrived in order at the server, in bins of equal time: bin k counts what arrived at k times its width or
//! later, and before the next one.

use crate::addresses::{Addresses, Family, Way};
use crate::error::{NetError, out_of_range};
use crate::random::Stream;
use crate::units::{self, Milliseconds};
use crate::{NodeId, TcpFlowId};
use engine::Time;
use serde::Deserialize;
use std::net::{Ipv4Addr, Ipv6Addr};
use tcp::{Connection, EcnCodepoint, Estimator, Segment};
use wire::int::Telemetry;
use wire::{MacAddress, ethernet, int, ipv4, ipv6};

/// The pattern of a client's writes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "Writes")]
pub enum Application {
    /// It always has data to send, without end.
    Bulk,
    /// It writes a number of bytes, and closes.
    Transfer {
        /// The number of bytes.
        bytes: u64,
    },
    /// It writes bursts, with silence in between.
    OnOff {
        /// Bytes of each burst, or their mean.
        burst_bytes: u64,
        /// The silence after a burst was acknowledged, or its mean.
        silence_ps: u64,
        /// True if both are drawn from exponential distributions with these means.
        exponential: bool,
    },
}

/// An application's pattern of writes as other languages write it.
#[derive(Deserialize)]
struct Writes {
    application: Kind,
    transfer_bytes: u64,
    silence_ms: Milliseconds,
    exponential: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Bulk,
    Transfer,
    OnOff,
}

impl From<Writes> for Application {
    fn from(writes: Writes) -> Application {
        match writes.application {
            Kind::Bulk => Application::Bulk,
            Kind::Transfer => Application::Transfer {
                bytes: writes.transfer_bytes,
            },
            Kind::OnOff => Application::OnOff {
                burst_bytes: writes.transfer_bytes,
                silence_ps: writes.silence_ms.0,
                exponential: writes.exponential,
            },
        }
    }
}

/// A TCP connection between modelled hosts; other languages write it as `holdfast.traffic.TcpTransfer` is, but for its options.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TcpTransfer {
    /// The host that connects and writes.
    #[serde(rename = "source")]
    pub client: String,
    /// The host that receives.
    #[serde(rename = "destination")]
    pub server: String,
    /// The client's port. The pair of ports must be unique between the two hosts.
    #[serde(rename = "source_port")]
    pub client_port: u16,
    /// The server's port.
    #[serde(rename = "destination_port")]
    pub server_port: u16,
    /// The IP version of the connection. The room for data in a packet of a given length differs between versions, but
    /// `config.mss` stays as it is.
    pub family: Family,
    /// The time at which the client sends its SYN.
    #[serde(rename = "start_s", deserialize_with = "units::seconds")]
    pub start_ps: Time,
    /// The pattern of its writes.
    #[serde(flatten)]
    pub application: Application,
    /// The time at which the application stops: data that has not been sent by then is never sent, and the connection
    /// closes. [`Time::NEVER`] if it does not stop.
    #[serde(rename = "stop_s", deserialize_with = "units::seconds_or_never")]
    pub stop_ps: Time,
    /// The TCP configuration of both ends.
    #[serde(skip)]
    pub config: tcp::Config,
    /// Differentiated services code point of its packets (6 bits).
    pub dscp: u8,
    /// Width of the goodput's bins; zero for no bins.
    #[serde(rename = "goodput_bin_ms", with = "units::milliseconds")]
    pub goodput_bin_ps: u64,
    /// True if the client's window is logged after each segment that it receives, and after each timeout.
    pub log_window: bool,
}

/// The log of the client's window. The columns have the same length; there is a row for each change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WindowLog {
    /// The time of each row, in picoseconds.
    pub time_ps: Vec<u64>,
    /// Congestion window in bytes.
    pub cwnd_bytes: Vec<u64>,
    /// Slow start threshold in bytes.
    pub ssthresh_bytes: Vec<u64>,
    /// Bytes in flight.
    pub flight_bytes: Vec<u64>,
    /// Smoothed round-trip time in picoseconds.
    pub srtt_ps: Vec<u64>,
}

/// An end of a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

/// The number of an end of a TCP connection, for events and hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndpointId(u32);

impl EndpointId {
    pub(crate) fn new(flow: TcpFlowId, side: Side) -> EndpointId {
        EndpointId(flow.0 * 2 + side as u32)
    }

    /// Returns the end of a TCP connection whose number [`EndpointId::number`] returned.
    pub(crate) fn of_number(number: u32) -> EndpointId {
        EndpointId(number)
    }

    /// Returns the number of the end of a TCP connection, unique in its network.
    pub(crate) fn number(self) -> u32 {
        self.0
    }

    pub(crate) fn id(self) -> TcpFlowId {
        TcpFlowId(self.0 / 2)
    }

    pub(crate) fn flow(self) -> usize {
        self.id().0 as usize
    }

    pub(crate) fn side(self) -> Side {
        match self.0 % 2 {
            0 => Side::Client,
            _ => Side::Server,
        }
    }
}

/// The place of an end of a TCP connection in the network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Address {
    pub(crate) node: NodeId,
    pub(crate) mac: MacAddress,
    /// The IP addresses of this end and of the other one.
    pub(crate) addresses: Addresses,
    pub(crate) way: Way,
    pub(crate) port: u16,
}

/// The key of a connection over IPv4 among those of a host: its own port, and the other end's port and address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key4(u64);

impl Key4 {
    pub(crate) fn new(port: u16, peer_port: u16, peer: Ipv4Addr) -> Key4 {
        let ports = u64::from(port) << 48 | u64::from(peer_port) << 32;
        Key4(ports | u64::from(u32::from(peer)))
    }
}

/// The key of a connection over IPv6 among those of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key6(u16, u16, Ipv6Addr);

impl Key6 {
    pub(crate) fn new(port: u16, peer_port: u16, peer: Ipv6Addr) -> Key6 {
        Key6(port, peer_port, peer)
    }
}

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) address: Address,
    peer_port: u16,
    traffic_class: u8,
    pub(crate) connection: Connection,
    /// The time of the next event for its timers; [`Time::NEVER`] if there is none.
    pub(crate) wake_ps: Time,
    /// The time from which the connection's clock counts.
    origin_ps: Time,
}

impl Endpoint {
    fn new(
        address: Address,
        peer: &Address,
        dscp: u8,
        connection: Connection,
        origin_ps: Time,
    ) -> Endpoint {
        Endpoint {
            address,
            peer_port: peer.port,
            traffic_class: dscp << 2,
            connection,
            wake_ps: Time::NEVER,
            origin_ps,
        }
    }

    /// Appends Ethernet, IP and TCP headers (and INT headers, if the connection uses them) of a segment to `out`,
    /// without the payload. Returns the length of the whole frame in bytes. Fails if a value does not fit its field.
    fn headers(&self, segment: &Segment, out: &mut Vec<u8>) -> Result<usize, wire::Error> {
        let header = segment.header(self.address.port, self.peer_port);
        let payload_bytes = segment.payload_bytes as usize;
        let addresses = self.address.addresses;
        ethernet::Header {
            destination: self.address.way.mac(),
            source: self.address.mac,
            ethertype: addresses.ethertype(),
        }
        .emit(out)?;
        let len = header.header_len() + payload_bytes;
        let ecn = segment.ecn.bits();
        if let Some((kind, load)) = self.connection.telemetry(segment) {
            let dscp = self.traffic_class >> 2;
            let telemetry = Telemetry { kind, dscp, load };
            let len = len + telemetry.len();
            addresses.emit_header(int::DSCP << 2 | ecn, ipv4::PROTOCOL_TCP, len, out)?;
            let headers = (&header, &telemetry);
            match addresses {
                Addresses::V4(own, peer) => {
                    int::emit_virtual_segment(headers, own, peer, payload_bytes, out)
                }
                Addresses::V6(own, peer) => {
                    int::emit_virtual_segment(headers, own, peer, payload_bytes, out)
                }
            }?;
            return Ok(out.len() + payload_bytes);
        }
        addresses.emit_header(self.traffic_class | ecn, ipv4::PROTOCOL_TCP, len, out)?;
        match addresses {
            Addresses::V4(own, peer) => header.emit_virtual(own, peer, payload_bytes, out),
            Addresses::V6(own, peer) => header.emit_virtual(own, peer, payload_bytes, out),
        }?;
        Ok(out.len() + payload_bytes)
    }

    /// Returns the time at which the next timer of this end expires; `None` if none runs.
    pub(crate) fn due_ps(&self) -> Option<Time> {
        Some(self.origin_ps + self.connection.due_ps()?)
    }

    /// Writes the headers of the next segment that may be sent at `now_ps` to `out`, in place of its former contents.
    /// Returns the length of the whole frame in bytes; `None` if there is nothing to send.
    pub(crate) fn next_frame(&mut self, now_ps: Time, out: &mut Vec<u8>) -> Option<usize> {
        let segment = self.connection.next_segment(now_ps - self.origin_ps)?;
        out.clear();
        // The configuration was checked, so that every segment fits; one that did not would be lost.
        self.headers(&segment, out).ok()
    }
}

/// A connection with both its ends.
#[derive(Debug)]
pub(crate) struct TcpFlow {
    client: Endpoint,
    server: Endpoint,
    application: Application,
    draws: Stream,
    stop_ps: Time,
    /// The era in which the transfer starts ([`Time::era`]). Connection and logs count picoseconds in 64 bits from
    /// there.
    origin_ps: Time,
    opened: bool,
    /// True while an on-off application is silent.
    silent: bool,
    goodput_bin_ps: u64,
    goodput: Vec<u64>,
    /// The received bytes that are counted in the bins.
    counted_bytes: u64,
    finished_ps: Option<Time>,
    log_window: bool,
    window: WindowLog,
    config: tcp::Config,
}

/// The most bins of goodput, so that bins of a picosecond cannot use up the memory.
const MOST_BINS: u64 = 100_000_000;

impl TcpTransfer {
    fn check(&self) -> Result<(), NetError> {
        self.config
            .check()
            .map_err(|e| NetError::Refused(e.to_string()))?;
        let ip_bytes = match self.family {
            Family::Ipv4 => ipv4::Header::MIN_LEN,
            Family::Ipv6 => ipv6::Header::LEN,
        };
        // TCP's options take up to 40 bytes. IPv6 packets could be longer; no link's MTU is.
        let most = (ipv4::Header::MAX_TOTAL_LEN - ip_bytes - 60) as u32;
        if self.config.mss > most {
            return Err(out_of_range("mss", format!("at most {most}")));
        }
        if self.dscp > 63 {
            return Err(out_of_range("dscp", "from 0 to 63"));
        }
        if self.stop_ps < self.start_ps {
            return Err(out_of_range("stop_ps", "not before start_ps"));
        }
        match self.application {
            Application::Transfer { bytes: 0 } => Err(out_of_range("bytes", "at least 1")),
            Application::OnOff { burst_bytes: 0, .. } => {
                Err(out_of_range("burst_bytes", "at least 1"))
            }
            Application::OnOff { silence_ps: 0, .. } => {
                Err(out_of_range("silence_ps", "at least 1"))
            }
            _ => Ok(()),
        }
    }
}

impl TcpFlow {
    /// Creates a TCP connection whose client has not connected yet. Its random numbers come from `draws`. Fails if the
    /// transfer's parameters are out of range or contradict each other.
    pub(crate) fn new(
        transfer: &TcpTransfer,
        client: Address,
        server: Address,
        mut draws: Stream,
    ) -> Result<TcpFlow, NetError> {
        transfer.check()?;
        let refused = |e: tcp::ConfigError| NetError::Refused(e.to_string());
        let mut config = transfer.config.clone();
        if let Estimator::Ticks { phase_ps } = &mut config.rto.estimator {
            // Coarse clocks of different ends do not tick together.
            *phase_ps = draws.uniform(0, config.rto.granularity_ps as i64 - 1) as u64;
        }
        // The client's is drawn when it connects; until then it listens, which nobody hears.
        let iss = draws.next_u64() as u32;
        let origin_ps = transfer.start_ps.era();
        let listen = || Connection::listen(&config, iss).map_err(refused);
        Ok(TcpFlow {
            client: Endpoint::new(client, &server, transfer.dscp, listen()?, origin_ps),
            server: Endpoint::new(server, &client, transfer.dscp, listen()?, origin_ps),
            application: transfer.application.clone(),
            draws,
            stop_ps: transfer.stop_ps,
            origin_ps,
            opened: false,
            silent: false,
            goodput_bin_ps: transfer.goodput_bin_ps,
            goodput: Vec::new(),
            counted_bytes: 0,
            finished_ps: None,
            log_window: transfer.log_window,
            window: WindowLog::default(),
            config,
        })
    }

    /// Returns true if the ends of the connection insert and remove INT headers.
    pub(crate) fn uses_telemetry(&self) -> bool {
        self.server.connection.uses_telemetry()
    }

    /// Returns the nodes of the connection's client and server, in this order.
    pub(crate) fn nodes(&self) -> [NodeId; 2] {
        [&self.client, &self.server].map(|end| end.address.node)
    }

    pub(crate) fn endpoint_mut(&mut self, side: Side) -> &mut Endpoint {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    /// Makes the client's application connect, write or stop, whichever is due at `now_ps`. At the first call, returns
    /// the time at which the application must be called again to stop, if it stops; otherwise `None`.
    pub(crate) fn application_turn(&mut self, now_ps: Time) -> Option<Time> {
        if now_ps >= self.stop_ps {
            self.client.connection.stop();
            return None;
        }
        let first = !self.opened;
        if first {
            self.opened = true;
            let iss = self.draws.next_u64() as u32;
            // The configuration that was accepted for the server is accepted for the client.
            let now_ps = now_ps - self.origin_ps;
            self.client.connection = Connection::connect(&self.config, iss, now_ps).ok()?;
        }
        self.silent = false;
        match self.application {
            Application::Bulk => self.client.connection.write_endless(),
            Application::Transfer { bytes } => {
                self.client.connection.write(bytes);
                self.client.connection.close();
            }
            Application::OnOff { burst_bytes, .. } => {
                let bytes = self.draw(burst_bytes);
                self.client.connection.write(bytes);
            }
        }
        (first && self.stop_ps != Time::NEVER).then_some(self.stop_ps)
    }

    fn draw(&mut self, mean: u64) -> u64 {
        match self.application {
            Application::OnOff {
                exponential: true, ..
            } => self.draws.exponential(mean),
            _ => mean,
        }
    }

    /// Returns the time of an on-off application's next burst, once for each burst, as soon as all of the client's data
    /// is acknowledged; otherwise `None`.
    pub(crate) fn next_burst_ps(&mut self, now_ps: Time) -> Option<Time> {
        let Application::OnOff { silence_ps, .. } = self.application else {
            return None;
        };
        if self.silent || !self.opened || !self.client.connection.is_drained() {
            return None;
        }
        self.silent = true;
        Some(now_ps.saturating_add(self.draw(silence_ps)))
    }

    /// Passes a segment that has arrived to one end of the connection, with the contents of its INT headers
    /// (`telemetry`), or `None` if it had none. Then logs the client's window, or counts the server's goodput.
    pub(crate) fn receive(
        &mut self,
        now_ps: Time,
        side: Side,
        segment: &Segment,
        telemetry: Option<&Telemetry>,
    ) {
        let now_ps = now_ps - self.origin_ps;
        let connection = &mut self.endpoint_mut(side).connection;
        match telemetry {
            None => connection.receive(now_ps, segment),
            Some(with) => connection.receive_with(now_ps, segment, with.kind, &with.load),
        }
        match side {
            Side::Client => self.log(now_ps),
            Side::Server => self.count(now_ps),
        }
    }

    /// Makes one end handle its expired timers, and logs the client's window.
    pub(crate) fn on_timer(&mut self, now_ps: Time, side: Side) {
        let now_ps = now_ps - self.origin_ps;
        self.endpoint_mut(side).connection.on_timer(now_ps);
        if side == Side::Client {
            self.log(now_ps);
        }
    }

    fn log(&mut self, now_ps: u64) {
        if !self.log_window {
            return;
        }
        let now = self.client.connection.statistics();
        let log = &mut self.window;
        let same = log.cwnd_bytes.last() == Some(&now.cwnd_bytes)
            && log.ssthresh_bytes.last() == Some(&now.ssthresh_bytes)
            && log.flight_bytes.last() == Some(&now.flight_bytes)
            && log.srtt_ps.last() == Some(&now.srtt_ps);
        if !same {
            log.time_ps.push(now_ps);
            log.cwnd_bytes.push(now.cwnd_bytes);
            log.ssthresh_bytes.push(now.ssthresh_bytes);
            log.flight_bytes.push(now.flight_bytes);
            log.srtt_ps.push(now.srtt_ps);
        }
    }

    fn count(&mut self, now_ps: u64) {
        let received = self.server.connection.received_bytes();
        let new = received - self.counted_bytes;
        self.counted_bytes = received;
        if new > 0 && self.goodput_bin_ps > 0 {
            let bin = now_ps / self.goodput_bin_ps;
            if bin < MOST_BINS {
                if self.goodput.len() <= bin as usize {
                    self.goodput.resize(bin as usize + 1, 0);
                }
                self.goodput[bin as usize] += new;
            }
        }
        if self.finished_ps.is_none() && self.server.connection.is_finished() {
            self.finished_ps = Some(self.origin_ps + now_ps);
            self.server.connection.close();
        }
    }

    /// Returns the statistics, states and failures of both ends, and the time at which the transfer was complete.
    pub(crate) fn statistics(&self) -> TcpFlowStatistics {
        TcpFlowStatistics {
            client: self.client.connection.statistics(),
            server: self.server.connection.statistics(),
            client_state: self.client.connection.state(),
            server_state: self.server.connection.state(),
            client_failure: self.client.connection.failure(),
            server_failure: self.server.connection.failure(),
            finished_ps: self.finished_ps,
        }
    }

    pub(crate) fn goodput(&self) -> &[u64] {
        &self.goodput
    }

    /// Returns the log of the client's window; `None` if the transfer was not configured to keep one.
    pub(crate) fn window(&self) -> Option<&WindowLog> {
        self.log_window.then_some(&self.window)
    }
}

/// Statistics of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpFlowStatistics {
    /// The end that writes.
    pub client: tcp::Statistics,
    /// The end that receives.
    pub server: tcp::Statistics,
    /// State of the end that writes.
    pub client_state: tcp::State,
    /// State of the end that receives.
    pub server_state: tcp::State,
    /// Why the client's end failed, if it did.
    pub client_failure: Option<tcp::Failure>,
    /// Why the server's end failed, if it did.
    pub server_failure: Option<tcp::Failure>,
    /// The time at which the client's last byte and its FIN had arrived at the server.
    pub finished_ps: Option<Time>,
}

/// Parses a TCP segment that reached a host. Returns the destination port, the source port and the segment. Fails if
/// its header is damaged, or its checksum is wrong for these addresses.
#[inline]
pub(crate) fn read_segment<A: wire::Address>(
    source: A,
    destination: A,
    traffic_class: u8,
    bytes: &[u8],
) -> Result<(u16, u16, Segment), wire::Error> {
    let view = wire::tcp::View::new(bytes)?;
    let header = wire::tcp::Header::parse(&view, source, destination)?;
    let ecn = EcnCodepoint::from_bits(traffic_class);
    let payload_bytes = view.payload().len() as u32;
    let segment = Segment::from_header(&header, payload_bytes, ecn);
    Ok((header.destination_port, header.source_port, segment))
}

/// Parses a TCP segment with INT headers like [`read_segment`], and also returns the contents of those headers. Fails
/// for a malformed header.
pub(crate) fn read_telemetry<A: wire::Address>(
    source: A,
    destination: A,
    traffic_class: u8,
    bytes: &[u8],
) -> Result<(u16, u16, Segment, Telemetry), wire::Error> {
    let (header, telemetry, payload_len) = int::parse_segment(bytes, source, destination)?;
    let ecn = EcnCodepoint::from_bits(traffic_class);
    let segment = Segment::from_header(&header, payload_len as u32, ecn);
    Ok((
        header.destination_port,
        header.source_port,
        segment,
        telemetry,
    ))
}

#[cfg(test)]
mod tests;
