//! Control packets of Bidirectional Forwarding Detection (RFC 5880, section 4.1), as they travel in UDP to port 3784 (RFC 5881). Without
//! authentication. It does not know sessions or time.

use crate::{Error, array, fields, u32_at};

/// UDP destination port of control packets over one hop (RFC 5881, section 4).
pub const UDP_PORT: u16 = 3784;

/// The only version.
const VERSION: u8 = 1;

const POLL: u8 = 0x20;
const FINAL: u8 = 0x10;
const AUTHENTICATION: u8 = 0x04;
const DEMAND: u8 = 0x02;
const MULTIPOINT: u8 = 0x01;

/// State of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Held down by its administrator.
    AdminDown,
    /// Down, or new.
    #[default]
    Down,
    /// The other end is heard, and does not hear this one yet.
    Init,
    /// Both ends hear each other.
    Up,
}

impl State {
    fn from_bits(bits: u8) -> State {
        match bits & 3 {
            0 => State::AdminDown,
            1 => State::Down,
            2 => State::Init,
            _ => State::Up,
        }
    }

    fn bits(self) -> u8 {
        match self {
            State::AdminDown => 0,
            State::Down => 1,
            State::Init => 2,
            State::Up => 3,
        }
    }
}

/// Why a session's state changed last (section 4.1); of the codes those that asynchronous mode gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Diagnostic(pub u8);

impl Diagnostic {
    /// No diagnostic.
    pub const NONE: Diagnostic = Diagnostic(0);
    /// Control detection time expired.
    pub const DETECTION_TIME_EXPIRED: Diagnostic = Diagnostic(1);
    /// Neighbor signaled session down.
    pub const NEIGHBOR_SIGNALED_DOWN: Diagnostic = Diagnostic(3);
    /// The largest code.
    const MAX: u8 = 31;
}

/// Checked bytes of a control packet.
#[derive(Clone, Copy, Debug)]
pub struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// Makes a view of a BFD control packet, without the bytes behind its length field's end. Fails with `Truncated` if
    /// bytes are missing, and with `Malformed` if version, length, multipoint bit, detection multiplier or My
    /// Discriminator break the rules of RFC 5880 (section 6.8.6), or if the packet has authentication, since no keys
    /// are supported.
    pub fn new(bytes: &'a [u8]) -> Result<View<'a>, Error> {
        if bytes.len() < Header::LEN {
            return Err(Error::Truncated);
        }
        let len = usize::from(bytes[3]);
        let view = View(bytes.get(..len).ok_or(Error::Truncated)?);
        let wrong = bytes[0] >> 5 != VERSION
            || len < Header::LEN
            || bytes[1] & (AUTHENTICATION | MULTIPOINT) != 0
            || bytes[2] == 0
            || u32_at(bytes, 4) == 0;
        match wrong {
            true => Err(Error::Malformed),
            false => Ok(view),
        }
    }

    fields! { bytes =>
        /// Diagnostic.
        diagnostic: Diagnostic = Diagnostic(bytes[0] & Diagnostic::MAX);
        /// State of the sender's session.
        state: State = State::from_bits(bytes[1] >> 6);
        /// Poll bit: the sender asks for a packet with the Final bit.
        is_poll: bool = bytes[1] & POLL != 0;
        /// Final bit: the packet answers one that had the Poll bit.
        is_final: bool = bytes[1] & FINAL != 0;
        /// Demand bit: the sender is in demand mode.
        is_demand: bool = bytes[1] & DEMAND != 0;
        /// Detection time multiplier: the session goes down after so many intervals without a packet of the sender.
        detect_mult: u8 = bytes[2];
        /// My Discriminator: the sender's number for the session.
        my_discriminator: u32 = u32_at(bytes, 4);
        /// Your Discriminator: the receiver's number for the session as far as the sender knows it, else zero.
        your_discriminator: u32 = u32_at(bytes, 8);
        /// The shortest interval, in microseconds, at which the sender would like to send.
        desired_min_tx_us: u32 = u32_at(bytes, 12);
        /// The shortest interval, in microseconds, between control packets that the sender can receive; zero if it
        /// wants none.
        required_min_rx_us: u32 = u32_at(bytes, 16);
        /// The shortest interval, in microseconds, between echo packets that the sender can receive; zero if it
        /// supports none.
        required_min_echo_rx_us: u32 = u32::from_be_bytes(array(bytes, 20));
    }
}

/// Values of a control packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The reason of the last change of the state.
    pub diagnostic: Diagnostic,
    /// State of the session.
    pub state: State,
    /// Poll bit: the sender asks for a packet with the Final bit.
    pub poll: bool,
    /// Final bit: the packet answers one that had the Poll bit.
    pub is_final: bool,
    /// Demand bit: the sender is in demand mode.
    pub demand: bool,
    /// Detection time multiplier, not zero.
    pub detect_mult: u8,
    /// My Discriminator: the sender's number for the session, not zero.
    pub my_discriminator: u32,
    /// Your Discriminator: the receiver's number for the session, zero if unknown.
    pub your_discriminator: u32,
    /// Desired Min TX Interval, in microseconds.
    pub desired_min_tx_us: u32,
    /// Required Min RX Interval, in microseconds.
    pub required_min_rx_us: u32,
    /// Required Min Echo RX Interval, in microseconds.
    pub required_min_echo_rx_us: u32,
}

impl Header {
    /// Bytes of a packet without authentication.
    pub const LEN: usize = 24;

    /// Returns the fields of a BFD control packet. Never fails.
    pub fn parse(view: &View<'_>) -> Result<Header, Error> {
        Ok(Header {
            diagnostic: view.diagnostic(),
            state: view.state(),
            poll: view.is_poll(),
            is_final: view.is_final(),
            demand: view.is_demand(),
            detect_mult: view.detect_mult(),
            my_discriminator: view.my_discriminator(),
            your_discriminator: view.your_discriminator(),
            desired_min_tx_us: view.desired_min_tx_us(),
            required_min_rx_us: view.required_min_rx_us(),
            required_min_echo_rx_us: view.required_min_echo_rx_us(),
        })
    }

    /// Appends the BFD control packet, 24 bytes, to `out`. Fails with `OutOfRange` if the diagnostic is above 31, or
    /// the detection multiplier or My Discriminator is zero.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        if self.diagnostic.0 > Diagnostic::MAX
            || self.detect_mult == 0
            || self.my_discriminator == 0
        {
            return Err(Error::OutOfRange);
        }
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        out.extend_from_slice(&[
            VERSION << 5 | self.diagnostic.0,
            self.state.bits() << 6
                | flag(self.poll, POLL)
                | flag(self.is_final, FINAL)
                | flag(self.demand, DEMAND),
            self.detect_mult,
            Header::LEN as u8,
        ]);
        for word in [
            self.my_discriminator,
            self.your_discriminator,
            self.desired_min_tx_us,
            self.required_min_rx_us,
            self.required_min_echo_rx_us,
        ] {
            out.extend_from_slice(&word.to_be_bytes());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_header() -> impl Strategy<Value = Header> {
        let words = (
            1u32..,
            any::<u32>(),
            any::<u32>(),
            any::<u32>(),
            any::<u32>(),
        );
        let flags = (any::<bool>(), any::<bool>(), any::<bool>());
        (0u8..32, 0u8..4, flags, 1u8.., words).prop_map(
            |(diagnostic, state, flags, mult, words)| Header {
                diagnostic: Diagnostic(diagnostic),
                state: State::from_bits(state),
                poll: flags.0,
                is_final: flags.1,
                demand: flags.2,
                detect_mult: mult,
                my_discriminator: words.0,
                your_discriminator: words.1,
                desired_min_tx_us: words.2,
                required_min_rx_us: words.3,
                required_min_echo_rx_us: words.4,
            },
        )
    }

    #[test]
    fn layout() {
        let header = Header {
            diagnostic: Diagnostic::DETECTION_TIME_EXPIRED,
            state: State::Up,
            poll: true,
            is_final: false,
            demand: false,
            detect_mult: 3,
            my_discriminator: 0x0102_0304,
            your_discriminator: 0x0506_0708,
            desired_min_tx_us: 50_000,
            required_min_rx_us: 1_000_000,
            required_min_echo_rx_us: 0,
        };
        let mut bytes = Vec::new();
        header.emit(&mut bytes).unwrap();
        let expected = [
            0x21, 0xe0, 3, 24, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0xc3, 0x50, 0, 0x0f, 0x42, 0x40, 0, 0,
            0, 0,
        ];
        assert_eq!(bytes, expected);
        assert_eq!(Header::parse(&View::new(&bytes).unwrap()), Ok(header));
        for (at, wrong) in [
            (0, 0x41), // version
            (1, 0xe4), // authentication
            (1, 0xe1), // multipoint
            (2, 0),    // multiplier
            (3, 23),   // length
        ] {
            let mut bytes = bytes.clone();
            bytes[at] = wrong;
            assert_eq!(View::new(&bytes).err(), Some(Error::Malformed), "{at}");
        }
        bytes[3] = 25;
        assert_eq!(View::new(&bytes).err(), Some(Error::Truncated));
        bytes[3] = 24;
        bytes[4..8].fill(0);
        assert_eq!(View::new(&bytes).err(), Some(Error::Malformed));
    }

    proptest! {
        #[test]
        fn parse_gives_what_was_emitted(header in any_header(), behind: Vec<u8>) {
            let mut bytes = Vec::new();
            header.emit(&mut bytes).unwrap();
            prop_assert_eq!(bytes.len(), Header::LEN);
            bytes.extend_from_slice(&behind);
            let view = View::new(&bytes).unwrap();
            prop_assert_eq!(Header::parse(&view), Ok(header));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(view) = View::new(&bytes) {
                let header = Header::parse(&view).unwrap();
                prop_assert!(header.detect_mult > 0 && header.my_discriminator > 0);
            }
        }

        #[test]
        fn values_that_do_not_fit_are_refused(header in any_header(), diagnostic in 32u8..) {
            for wrong in [
                Header { diagnostic: Diagnostic(diagnostic), ..header },
                Header { detect_mult: 0, ..header },
                Header { my_discriminator: 0, ..header },
            ] {
                prop_assert_eq!(wrong.emit(&mut Vec::new()), Err(Error::OutOfRange));
            }
        }
    }
}
