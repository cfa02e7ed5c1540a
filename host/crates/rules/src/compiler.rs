//! Compiles uploaded components in a child process, on idle processors only and
//! within limits of time and memory. Bytes that crash a parser or the
//! compiler do not affect this process.
//!
//! The parent writes the component to the child's standard input. The child
//! writes one line of JSON, [`CompilerAnswer`], followed by the native code.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::pin::pin;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Command;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::confinement::{self, ConfinementReach, ProcessConfinement};
use super::inspection::{self, AdmissionReason, InspectedComponent};
use super::settings::{self, MIB};
use crate::limits::Millis;
use holdfast_domain::component::Slot;
use holdfast_domain::id::OrgId;

/// Hidden command of the binary that compiles a component.
pub const COMMAND: &str = "compile-component";
/// Maximum output of the child in bytes. Native code is about three times as large as the
/// component.
const NATIVE_LIMIT: u64 = 512 * MIB as u64;
/// Period at which the child's processor time is read.
const WATCH_TICK: Duration = Duration::from_millis(200);
/// Time after which the child is ended in any case, since it has the turn of all components.
const LONGEST: Duration = Duration::from_hours(1);
/// Setting of the time limit, for messages.
const SETTING: &str = "components.compile_limit";

/// Compiler that works on one component at a time. Owners take turns.
pub struct ComponentCompiler {
    program: Option<PathBuf>,
    /// Compiles in this process instead, for components of its own user.
    own: Option<Arc<CompiledFunctions>>,
    limit: Duration,
    turn: Arc<Semaphore>,
    of_owner: Mutex<HashMap<Option<OrgId>, Arc<OwnerQueue>>>,
}

/// Queue of one owner's components.
struct OwnerQueue {
    turn: Arc<Semaphore>,
    uploads: Arc<Semaphore>,
}

/// Maximum number of waiting uploads of one owner.
const UPLOADS: usize = 8;

/// Permit to compile. Callers wait for it before they load a component's bytes.
pub struct CompileTurn {
    _turn: Option<OwnedSemaphorePermit>,
    _of_owner: Option<OwnedSemaphorePermit>,
}

/// Result that the child reports.
#[derive(Serialize, Deserialize)]
enum CompilerAnswer {
    Compiled(InspectedComponent),
    Refused(Vec<AdmissionReason>),
}

/// Error of compiling a component.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The component cannot be admitted.
    #[error("{} reasons", .0.len())]
    Refused(Vec<AdmissionReason>),
    /// The compiler could not be run.
    #[error("the compiler could not be run: {0}")]
    Io(#[from] std::io::Error),
}

impl ComponentCompiler {
    /// Creates a compiler with a limit of the child's processor time. Without `program`, the child runs this program.
    pub fn new(program: Option<PathBuf>, limit: Duration) -> Self {
        Self {
            program,
            own: None,
            limit,
            turn: Arc::new(Semaphore::new(1)),
            of_owner: Mutex::default(),
        }
    }

    /// Creates a compiler for work on a component of this process's user. It runs in this process, on all
    /// processors, without limits, and compiles only functions that have changed since the last build.
    pub fn for_own_work() -> Self {
        Self {
            own: Some(Arc::default()),
            ..Self::new(None, Duration::MAX)
        }
    }

    /// Waits for the permit to compile.
    pub async fn turn(&self, owner: Option<&OrgId>) -> CompileTurn {
        // The owner's semaphore first: only one component of each owner waits for the shared one,
        // so no owner waits behind all components of another.
        let of_owner = self.queue(owner).turn.clone().acquire_owned().await.ok();
        CompileTurn {
            _turn: self.turn.clone().acquire_owned().await.ok(),
            _of_owner: of_owner,
        }
    }

    /// Reserves one of the owner's places for waiting uploads, if one is free.
    pub fn place(&self, owner: Option<&OrgId>) -> Option<OwnedSemaphorePermit> {
        self.queue(owner).uploads.clone().try_acquire_owned().ok()
    }

    fn queue(&self, owner: Option<&OrgId>) -> Arc<OwnerQueue> {
        let mut all = self.of_owner.lock().unwrap_or_else(PoisonError::into_inner);
        let queue = all.entry(owner.cloned()).or_insert_with(|| {
            Arc::new(OwnerQueue {
                turn: Arc::new(Semaphore::new(1)),
                uploads: Arc::new(Semaphore::new(UPLOADS)),
            })
        });
        queue.clone()
    }

    /// Inspects and compiles a component in a child process. Callers hold a [`CompileTurn`], unless they
    /// are the only user of the compiler.
    pub async fn compile(
        &self,
        bytes: Bytes,
    ) -> Result<(InspectedComponent, Vec<u8>), CompileError> {
        if let Some(functions) = self.own.clone() {
            let done = tokio::task::spawn_blocking(move || compiled(&bytes, Some(functions)));
            let done = done.await.map_err(std::io::Error::other)?;
            return done.map_err(CompileError::Refused);
        }

        let program = match &self.program {
            Some(program) => program.clone(),
            None => std::env::current_exe()?,
        };
        // The child gets no variables, because those of the server can hold secrets.
        let mut child = Command::new(program)
            .arg(COMMAND)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let (Some(mut input), Some(mut output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(std::io::Error::other("a pipe is missing").into());
        };

        let mut watch = ChildWatch::new(child.id(), self.limit);
        let work = async {
            let told = async {
                // The child can refuse before it has read everything; its report has the reason.
                let _ = input.write_all(&bytes).await;
                drop(input);
            };
            let heard = async {
                // The line on its own: megabytes of native code are not moved on a thread
                // that serves requests.
                let mut output = BufReader::new((&mut output).take(NATIVE_LIMIT));
                let (mut line, mut native) = (Vec::new(), Vec::new());
                output.read_until(b'\n', &mut line).await?;
                output.read_to_end(&mut native).await?;
                Ok::<_, std::io::Error>((line, native))
            };

            let ((), answer) = futures::future::join(told, heard).await;
            let status = child.wait().await?;
            Ok::<_, std::io::Error>((answer?, status))
        };

        let over =
            |what: String| CompileError::Refused(vec![AdmissionReason::new("over_limit", what)]);
        let mut work = pin!(work);
        let ((line, native), status) = loop {
            match tokio::time::timeout(WATCH_TICK, &mut work).await {
                Ok(done) => break done?,
                Err(_) => watch.look().map_err(over)?,
            }
        };

        match serde_json::from_slice(&line) {
            Ok(CompilerAnswer::Refused(reasons)) => Err(CompileError::Refused(reasons)),
            Ok(CompilerAnswer::Compiled(inspected)) if status.success() => Ok((inspected, native)),
            _ => Err(over(format!(
                "the compiler ended without a result after {} of processor time on this machine; compiling a component \
                 may take {} MiB of memory",
                Millis(watch.used),
                confinement::MEMORY / MIB as u64
            ))),
        }
    }
}

/// Processor time of the child. Only its own work counts: it runs on idle processors, so on a busy
/// machine it waits most of the time.
struct ChildWatch {
    process: Option<u32>,
    limit: Duration,
    used: Duration,
    began: Instant,
    /// Time at which it was last seen to have worked.
    worked_at: Instant,
}

impl ChildWatch {
    fn new(process: Option<u32>, limit: Duration) -> Self {
        Self {
            process,
            limit,
            used: Duration::ZERO,
            began: Instant::now(),
            worked_at: Instant::now(),
        }
    }

    /// Reads the child's processor time. Fails with a message above the limit, if the child has not worked for as
    /// long as the limit, and after [`LONGEST`].
    fn look(&mut self) -> Result<(), String> {
        let used = self.process.and_then(processor_time).unwrap_or(self.used);
        if used > self.used {
            self.worked_at = Instant::now();
        }

        self.used = used;
        let limit = format!("the limit `{SETTING}` is {}", Millis(self.limit));
        if used > self.limit {
            let used = Millis(used);
            return Err(format!(
                "compiling it took {used} of processor time on this machine; {limit}"
            ));
        }

        // A child that waits for something would keep its turn forever.
        let idle = self.worked_at.elapsed();
        if idle > self.limit {
            let (idle, used) = (Millis(idle), Millis(used));
            return Err(format!(
                "the compiler has not run for {idle} on this machine, after {used} of processor time; {limit}"
            ));
        }

        if self.began.elapsed() > LONGEST {
            let (longest, used) = (Millis(LONGEST), Millis(used));
            return Err(format!(
                "the compiler has not ended within {longest}, after {used} of processor time on this machine"
            ));
        }

        Ok(())
    }
}

/// Returns the processor time of a process (proc_pid_stat(5)).
fn processor_time(process: u32) -> Option<Duration> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program is in parentheses and can contain spaces.
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    // Linux reports hundredths of a second on every architecture (time(7)).
    Some(Duration::from_millis((user + system) * 10))
}

/// Runs the child: confines the process, reads a component, writes the report and native code.
pub fn run_child() -> std::io::Result<()> {
    let _ = ProcessConfinement::enter();
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes)?;
    let (said, native) = match compiled(&bytes, None) {
        Ok((inspected, native)) => (CompilerAnswer::Compiled(inspected), native),
        Err(reasons) => (CompilerAnswer::Refused(reasons), Vec::new()),
    };

    let mut output = std::io::stdout().lock();
    serde_json::to_writer(&mut output, &said)?;
    output.write_all(b"\n")?;
    output.write_all(&native)?;

    output.flush()
}

/// Prints the confinement of a child on this machine, and its remaining abilities.
pub fn show_confinement() -> std::io::Result<()> {
    let confinement = ProcessConfinement::enter();
    let shown =
        serde_json::json!({ "confinement": confinement, "reach": ConfinementReach::probe() });
    Ok(serde_json::to_writer(std::io::stdout().lock(), &shown)?)
}

/// Native code of functions, by their content and the compiler's settings.
#[derive(Default)]
struct CompiledFunctions(Mutex<HashMap<Vec<u8>, Vec<u8>>>);

impl std::fmt::Debug for CompiledFunctions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("CompiledFunctions")
    }
}

impl wasmtime::CacheStore for CompiledFunctions {
    fn get(&self, key: &[u8]) -> Option<Cow<'_, [u8]>> {
        let functions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        functions.get(key).map(|code| Cow::Owned(code.clone()))
    }

    fn insert(&self, key: &[u8], code: Vec<u8>) -> bool {
        let mut functions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        functions.insert(key.to_owned(), code);
        true
    }
}

/// Inspects and compiles a component, with the functions of earlier builds if there are some.
fn compiled(
    bytes: &[u8],
    functions: Option<Arc<CompiledFunctions>>,
) -> Result<(InspectedComponent, Vec<u8>), Vec<AdmissionReason>> {
    let inspected = inspection::inspect(bytes)?;
    let mut config = match inspected.slot {
        Slot::Compliance | Slot::Lifecycle | Slot::Control | Slot::Funding => settings::rules(),
        Slot::Placement | Slot::Documents => settings::documents(),
        Slot::Signing | Slot::Payment | Slot::Kba | Slot::Messaging | Slot::Conversion => {
            settings::providers_for(1)
        }
    };

    // One thread, so that request threads have processors with undisturbed caches.
    config.parallel_compilation(functions.is_some());
    let cached = match functions {
        Some(functions) => config.enable_incremental_compilation(functions).map(|_| ()),
        None => Ok(()),
    };
    let native = cached
        .and_then(|()| wasmtime::Engine::new(&config))
        .and_then(|engine| engine.precompile_component(bytes))
        .map_err(|error| {
            vec![AdmissionReason::new(
                "invalid",
                format!("it cannot be compiled: {error:#}"),
            )]
        })?;

    Ok((inspected, native))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// Compiles with a program in place of the compiler, and returns the reason of the refusal.
    async fn refused(script: &str, limit: Duration) -> String {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("compiler");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
        let compiler = ComponentCompiler::new(Some(program), limit);
        match compiler.compile(Bytes::from_static(b"component")).await {
            Err(CompileError::Refused(reasons)) => {
                assert_eq!(reasons[0].code, "over_limit");
                reasons[0].message.clone()
            }
            Err(CompileError::Io(error)) => panic!("{error}"),
            Ok(_) => panic!("it compiled"),
        }
    }

    #[tokio::test]
    async fn the_processor_time_of_the_compiler_is_limited() {
        let message = refused("while :; do :; done", Duration::from_millis(600)).await;
        let (used, limit) = message.split_once("; ").unwrap();
        assert!(used.starts_with("compiling it took "), "{message}");
        assert!(
            used.ends_with(" ms of processor time on this machine"),
            "{message}"
        );
        assert_eq!(limit, "the limit `components.compile_limit` is 600 ms");
    }

    /// The program waits longer than its limit in all, and works in between.
    #[tokio::test]
    async fn a_compiler_that_waits_for_a_processor_keeps_its_turn() {
        let works = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
        let script = format!("sleep 0.8; {works}; sleep 0.8; {works}; sleep 0.8");
        let message = refused(&script, Duration::from_secs(2)).await;
        assert!(
            message.starts_with("the compiler ended without a result after "),
            "{message}"
        );
        assert!(message.contains("may take 4096 MiB of memory"), "{message}");
    }

    #[tokio::test]
    async fn a_compiler_that_does_not_run_is_ended() {
        let message = refused("exec sleep 60", Duration::from_millis(500)).await;
        assert!(
            message.starts_with("the compiler has not run for "),
            "{message}"
        );
        assert!(
            message.ends_with("the limit `components.compile_limit` is 500 ms"),
            "{message}"
        );
    }
}
