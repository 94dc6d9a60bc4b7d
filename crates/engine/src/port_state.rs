//! Which ports of a switch are up, as its agent knows it. It does not know how the agent finds out, nor when.

use std::collections::BTreeSet;

/// The state of every port: all are alike but for some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortStates {
    up: bool,
    exceptions: BTreeSet<u32>,
}

impl PortStates {
    /// All ports are up, or all are down.
    pub fn all(up: bool) -> PortStates {
        PortStates {
            up,
            exceptions: BTreeSet::new(),
        }
    }

    /// Whether a port is up.
    pub fn is_up(&self, port: u32) -> bool {
        self.up != self.exceptions.contains(&port)
    }

    /// Sets the state of a port; whether that changed it.
    pub fn set(&mut self, port: u32, up: bool) -> bool {
        if up == self.up {
            self.exceptions.remove(&port)
        } else {
            self.exceptions.insert(port)
        }
    }

    /// The state of most ports, and the ports whose state is the other one.
    pub fn most_and_exceptions(&self) -> (bool, &BTreeSet<u32>) {
        (self.up, &self.exceptions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_as_it_was_last_set() {
        for all in [false, true] {
            let mut ports = PortStates::all(all);
            assert_eq!(ports.is_up(7), all);
            assert!(!ports.set(7, all), "nothing changed");
            assert!(ports.set(7, !all));
            assert!(!ports.set(7, !all));
            assert_eq!((ports.is_up(7), ports.is_up(8)), (!all, all));
            assert!(ports.set(7, all));
            assert_eq!(ports, PortStates::all(all));
        }
    }
}
