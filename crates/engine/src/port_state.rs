//! Which ports of a switch are up, as its agent knows it. It does not know how the agent finds out, nor when.

use std::collections::BTreeSet;

/// Which ports exist and are up: those that differ from the rest are listed. Without a list of ports, all that the
/// architecture has exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortStates {
    up: bool,
    exceptions: BTreeSet<u32>,
    /// The ports that exist, if they are known.
    existing: Option<BTreeSet<u32>>,
}

impl PortStates {
    /// Makes the states of ports that are all up (or all down), where every port of the architecture exists.
    pub fn all(up: bool) -> PortStates {
        PortStates {
            up,
            exceptions: BTreeSet::new(),
            existing: None,
        }
    }

    /// Makes the states of ports where no port exists yet: a port exists once its state is set.
    pub fn none() -> PortStates {
        PortStates {
            existing: Some(BTreeSet::new()),
            ..PortStates::all(false)
        }
    }

    /// Returns true if the port exists, or if it is not known which ports exist.
    pub fn exists(&self, port: u32) -> bool {
        let existing = self.existing.as_ref();
        existing.is_none_or(|ports| ports.contains(&port))
    }

    /// Returns true if the port is up.
    pub fn is_up(&self, port: u32) -> bool {
        self.up != self.exceptions.contains(&port)
    }

    /// Sets whether a port is up, and returns true if that changed its state.
    pub fn set(&mut self, port: u32, up: bool) -> bool {
        if let Some(existing) = &mut self.existing {
            existing.insert(port);
        }
        if up == self.up {
            self.exceptions.remove(&port)
        } else {
            self.exceptions.insert(port)
        }
    }

    /// Returns the state that most ports have (true if up), and the set of ports that have the other state.
    pub fn most_and_exceptions(&self) -> (bool, &BTreeSet<u32>) {
        (self.up, &self.exceptions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_exists_once_its_state_is_set() {
        let mut ports = PortStates::none();
        assert!(!ports.exists(7) && PortStates::all(false).exists(7));
        ports.set(7, false);
        assert!(ports.exists(7) && !ports.exists(8) && !ports.is_up(7));
    }

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
