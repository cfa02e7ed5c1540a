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
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Command;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::confinement::{ConfinementReach, ProcessConfinement};
use super::inspection::{self, AdmissionReason, InspectedComponent};
use super::settings::{self, MIB};
use holdfast_domain::component::Slot;
use holdfast_domain::id::OrgId;

/// Hidden command of the binary that compiles a component.
pub const COMMAND: &str = "compile-component";
/// Maximum output of the child in bytes. Native code is about three times as large as the
/// component.
const NATIVE_LIMIT: u64 = 512 * MIB as u64;

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
    /// Creates a compiler with a time limit. Without `program`, the child runs this program.
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
        let ((line, native), status) = match tokio::time::timeout(self.limit, work).await {
            Ok(done) => done?,
            Err(_) => {
                return Err(over(format!(
                    "compiling it takes longer than {} s",
                    self.limit.as_secs()
                )));
            }
        };
        match serde_json::from_slice(&line) {
            Ok(CompilerAnswer::Refused(reasons)) => Err(CompileError::Refused(reasons)),
            Ok(CompilerAnswer::Compiled(inspected)) if status.success() => Ok((inspected, native)),
            _ => Err(over(
                "compiling it takes more memory or processor time than a component may".into(),
            )),
        }
    }
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
