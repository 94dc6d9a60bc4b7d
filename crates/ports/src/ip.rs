//! Runs the `ip` tool. It finds the tool and reads its errors, and does not know what the commands mean.

use crate::PortError;
use std::io::{self, Write};
use std::process::{Command, Output, Stdio};

/// Runs the program `ip` with these arguments, and returns its standard output. Fails if it cannot be started or
/// reports an error.
pub(crate) fn ip(arguments: &[&str]) -> Result<String, PortError> {
    let output = Command::new("ip")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| not_started(&e))?;
    checked(output, &arguments.join(" "))
}

/// Runs `ip` commands (without the leading `ip`) one after the other in one `ip` process. `namespace` is the network
/// namespace, or `None` for that of this process. Stops and fails at the first command that fails.
pub(crate) fn ip_batch(namespace: Option<&str>, commands: &[String]) -> Result<(), PortError> {
    let mut command = Command::new("ip");
    if let Some(name) = namespace {
        command.args(["-netns", name]);
    }
    let mut child = command
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| not_started(&e))?;
    let script = commands.join("\n") + "\n";
    if let Some(mut stdin) = child.stdin.take() {
        // If the tool has died already its own message is the one to show.
        let _ = stdin.write_all(script.as_bytes());
    }
    let output = child
        .wait_with_output()
        .map_err(|e| PortError::io("waiting for ip", &e))?;
    checked(output, &commands.join("; ")).map(|_| ())
}

fn not_started(error: &io::Error) -> PortError {
    if error.kind() == io::ErrorKind::NotFound {
        PortError::Missing(
            "the ip tool was not found; install iproute2 to use namespaces and veth pairs".into(),
        )
    } else {
        PortError::io("running the ip tool", error)
    }
}

fn checked(output: Output, what: &str) -> Result<String, PortError> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let text = format!("ip {what}: {}", stderr.trim());
    if stderr.contains("not permitted") || stderr.contains("Permission denied") {
        Err(PortError::NotPermitted(format!(
            "{text}; run as root, or with CAP_NET_ADMIN and CAP_SYS_ADMIN"
        )))
    } else {
        Err(PortError::Failed(text))
    }
}
