//! This process's share of the machine's names. Nothing of it outlives the process.
//!
//! A process takes the smallest number whose file in [`LOCK_DIRECTORY`] it can lock. All its names begin with `hf` and
//! that number, so two runs never collide, and the remains of a dead process are recognised by a lock that no process holds.
//! A guard process holds the same lock (it is the same open file) while it waits for the pipe from this process to
//! close. It then removes the remains and the lock's file, so that the number is free only when the machine is clean, and nothing
//! is left.

use crate::PortError;
use crate::ip::ip;
use std::collections::BTreeSet;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The directory of the lock files. Like /run/netns it is shared by all processes that see each other's namespaces.
const LOCK_DIRECTORY: &str = "/run/holdfast";

/// The directory in which `ip netns` keeps its names.
pub(crate) const NETNS_DIRECTORY: &str = "/run/netns";

/// More processes than this do not run networks on one machine at the same time.
const MAX_SESSIONS: u32 = 1000;

/// Removes everything of the session whose prefix is `$1`. Interfaces go first: a namespace lives as long as a process in
/// it, its cables need not.
const SWEEP: &str = r#"
for i in $(sed -n "s/^ *\($1v[0-9]*\):.*/\1/p" /proc/net/dev); do
    ip link delete "$i" >/dev/null 2>&1
done
for f in /run/netns/"$1"-*; do
    [ -e "$f" ] || continue
    n=${f##*/}
    for p in $(ip netns pids "$n" 2>/dev/null); do kill -9 "$p" 2>/dev/null; done
    ip netns delete "$n" >/dev/null 2>&1
done
"#;

/// This process's session: its number, the locked file, and the guard process that cleans up afterwards.
pub(crate) struct Session {
    number: u32,
    process: u32,
    links: AtomicU32,
    // Held for as long as the session lives.
    _lock: File,
    // Its standard input is the pipe whose end tells it that this process has died.
    _guard: Child,
}

static CURRENT: Mutex<Option<Arc<Session>>> = Mutex::new(None);

impl Session {
    /// Returns the session of this process, which the first call makes. A process that was forked from it makes its
    /// own. Fails if no number is free, or the guard cannot be started.
    pub(crate) fn current() -> Result<Arc<Session>, PortError> {
        let mut current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = current.as_ref()
            && session.is_ours()
        {
            return Ok(session.clone());
        }
        let session = Arc::new(Session::take()?);
        *current = Some(session.clone());
        Ok(session)
    }

    fn take() -> Result<Session, PortError> {
        make_lock_directory()?;
        for number in 0..MAX_SESSIONS {
            let Some(lock) = try_lock(number)? else {
                continue;
            };
            sweep(number)?;
            // Those of others whose process and guard were killed. A namespace that cannot be removed is in nobody's way.
            let _ = clean();
            let guard = start_guard(number, &lock)?;
            return Ok(Session {
                number,
                process: std::process::id(),
                links: AtomicU32::new(0),
                _lock: lock,
                _guard: guard,
            });
        }
        Err(PortError::Failed(format!(
            "all {MAX_SESSIONS} locks in {LOCK_DIRECTORY} are held by living processes"
        )))
    }

    /// Returns true if the session belongs to this process, rather than to one from which it was forked.
    pub(crate) fn is_ours(&self) -> bool {
        self.process == std::process::id()
    }

    /// Returns the full name of the namespace labelled `label`: `hf<n>-<label>`.
    pub(crate) fn namespace_name(&self, label: &str) -> String {
        format!("{}-{label}", prefix(self.number))
    }

    /// Returns a new name for an interface in the process's own namespace: `hf<n>v<m>`.
    pub(crate) fn next_interface(&self) -> String {
        let link = self.links.fetch_add(1, Ordering::Relaxed);
        format!("{}v{link}", prefix(self.number))
    }
}

fn prefix(number: u32) -> String {
    format!("hf{number}")
}

/// Makes the directory of the lock files, unless it exists. Other users cannot create files in it. Fails if it cannot
/// be made.
fn make_lock_directory() -> Result<(), PortError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(LOCK_DIRECTORY)
        .map_err(|e| PortError::io(format!("creating {LOCK_DIRECTORY}"), &e))
}

fn lock_path(number: u32) -> PathBuf {
    PathBuf::from(LOCK_DIRECTORY).join(format!("{number}.lock"))
}

/// Locks the file of a session number, and returns it. Returns `None` if a living process holds the lock. Fails if
/// the file cannot be opened or locked.
fn try_lock(number: u32) -> Result<Option<File>, PortError> {
    let path = lock_path(number);
    loop {
        let Some(file) = try_lock_file(&path)? else {
            return Ok(None);
        };
        // Whoever held it before may have removed the file since it was opened here; others would lock another one.
        if let (Ok(locked), Ok(there)) = (file.metadata(), std::fs::metadata(&path))
            && (locked.dev(), locked.ino()) == (there.dev(), there.ino())
        {
            return Ok(Some(file));
        }
    }
}

/// Opens a file, which is made if necessary, locks it, and returns it. Returns `None` if a living process holds the
/// lock. Fails if the file cannot be opened or locked.
fn try_lock_file(path: &Path) -> Result<Option<File>, PortError> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        // Who may read a file may lock it, and so hold a number for ever.
        .mode(0o600)
        .open(path)
        .map_err(|e| PortError::io(format!("opening {}", path.display()), &e))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(e)) => {
            Err(PortError::io(format!("locking {}", path.display()), &e))
        }
    }
}

/// Starts a shell that waits for this process to end, and then removes the namespaces and interfaces of session
/// `number` and its lock file. The open lock file is the shell's standard output only to stay locked. Fails if the
/// shell cannot be started.
fn start_guard(number: u32, lock: &File) -> Result<Child, PortError> {
    let failed = |e: std::io::Error| PortError::io("starting the guard that cleans up", &e);
    let held = lock.try_clone().map_err(failed)?;
    Command::new("sh")
        .arg("-c")
        .arg(format!(
            "trap '' INT TERM HUP\nread -r _\nexec </dev/null\n{SWEEP}\nrm -f \"$2\""
        ))
        .args(["holdfast-guard", &prefix(number)])
        .arg(lock_path(number))
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(held)
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)
}

/// Removes the namespaces and interfaces of a session number, whose lock the caller must hold. Fails if some remain.
fn sweep(number: u32) -> Result<(), PortError> {
    let status = Command::new("sh")
        .args(["-c", SWEEP, "holdfast-sweep", &prefix(number)])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|e| PortError::io("running sh to clean up", &e))?;
    // The status is that of the last command, which may have raced with the kernel; only the remains count.
    let left = leftovers()?.contains(&number);
    if left {
        return Err(PortError::Failed(format!(
            "could not remove what a dead process left as {}* (sh: {status}); look at `ip netns` and `ip link`",
            prefix(number)
        )));
    }
    Ok(())
}

/// Removes the namespaces and interfaces of processes that have ended. Returns the number of sessions for which it
/// removed some. Fails if `ip` cannot be run.
pub fn clean() -> Result<usize, PortError> {
    // Fails early, with a good message, when there is no ip tool.
    ip(&["-V"])?;
    make_lock_directory()?;
    let mut cleaned = 0;
    for number in leftovers()? {
        if let Some(lock) = try_lock(number)? {
            sweep(number)?;
            cleaned += 1;
            // Before it is unlocked: afterwards it could be the next owner's.
            let _ = std::fs::remove_file(lock_path(number));
            drop(lock);
        }
    }
    Ok(cleaned)
}

/// Returns the session numbers in the names of the namespaces and interfaces that exist, whether their processes live
/// or not. Fails if the list of interfaces cannot be read.
fn leftovers() -> Result<BTreeSet<u32>, PortError> {
    let mut numbers = BTreeSet::new();
    if let Ok(entries) = std::fs::read_dir(NETNS_DIRECTORY) {
        for entry in entries.flatten() {
            numbers.extend(session_of(&entry.file_name().to_string_lossy(), '-'));
        }
    }
    let interfaces = std::fs::read_to_string("/proc/net/dev")
        .map_err(|e| PortError::io("reading /proc/net/dev", &e))?;
    for line in interfaces.lines() {
        if let Some((name, _)) = line.trim().split_once(':') {
            numbers.extend(session_of(name, 'v'));
        }
    }
    Ok(numbers)
}

/// Returns the number in a name of the form `hf<number><separator>...`; `None` for any other name.
fn session_of(name: &str, separator: char) -> Option<u32> {
    let (number, _) = name.strip_prefix("hf")?.split_once(separator)?;
    // "007" is not a name that we give.
    let value: u32 = number.parse().ok()?;
    (value.to_string() == number).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_sessions() {
        assert_eq!(session_of("hf3-h1", '-'), Some(3));
        assert_eq!(session_of("hf12v0", 'v'), Some(12));
        for other in [
            "hf-h1", "hfx-h1", "hf+3-h1", "hf03-h1", "eth0", "hf3", "3-h1",
        ] {
            assert_eq!(session_of(other, '-'), None, "{other}");
        }
    }
}
