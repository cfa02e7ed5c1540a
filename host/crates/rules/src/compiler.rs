//! Compiling what was uploaded: in a process of its own, on idle processors only,
//! within limits on time and memory. Whatever the bytes do to a parser or a
//! compiler, this process serves on.
//!
//! The parent writes the component to the child's standard input. The child
//! writes a line of JSON, [`Said`], and the native code behind it.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::confinement::{Confinement, Reach};
use super::inspection::{self, Inspected, Reason};
use super::settings::{self, MIB};
use holdfast_domain::component::Slot;
use holdfast_domain::id::OrgId;

/// The hidden command of the binary that compiles.
pub const COMMAND: &str = "compile-component";
/// Native code is three times as large as the component.
const NATIVE_LIMIT: u64 = 512 * MIB as u64;

/// Compiles one component at a time; owners take turns.
pub struct Compiler {
    program: Option<PathBuf>,
    limit: Duration,
    turn: Arc<Semaphore>,
    of_owner: Mutex<HashMap<Option<OrgId>, Arc<Queue>>>,
}

/// The components of one owner.
struct Queue {
    turn: Arc<Semaphore>,
    uploads: Arc<Semaphore>,
}

/// Uploads of one owner that wait.
const UPLOADS: usize = 8;

/// The right to compile. Waiting for it holds no bytes.
pub struct Turn {
    _turn: Option<OwnedSemaphorePermit>,
    _of_owner: Option<OwnedSemaphorePermit>,
}

/// What the child found out.
#[derive(Serialize, Deserialize)]
enum Said {
    Compiled(Inspected),
    Refused(Vec<Reason>),
}

/// Why there is no native code.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The component cannot be admitted.
    #[error("{} reasons", .0.len())]
    Refused(Vec<Reason>),
    /// The compiler could not be run.
    #[error("the compiler could not be run: {0}")]
    Io(#[from] std::io::Error),
}

impl Compiler {
    /// `program` none: this program itself.
    pub fn new(program: Option<PathBuf>, limit: Duration) -> Self {
        Self {
            program,
            limit,
            turn: Arc::new(Semaphore::new(1)),
            of_owner: Mutex::default(),
        }
    }

    /// Waits for a turn. Of one owner's components only one waits beside those of the
    /// others, so that no owner waits for all of another's.
    pub async fn turn(&self, owner: Option<&OrgId>) -> Turn {
        let of_owner = self.queue(owner).turn.clone().acquire_owned().await.ok();
        Turn {
            _turn: self.turn.clone().acquire_owned().await.ok(),
            _of_owner: of_owner,
        }
    }

    /// A place among the uploads of an owner that wait, if one is free.
    pub fn place(&self, owner: Option<&OrgId>) -> Option<OwnedSemaphorePermit> {
        self.queue(owner).uploads.clone().try_acquire_owned().ok()
    }

    fn queue(&self, owner: Option<&OrgId>) -> Arc<Queue> {
        let mut all = self.of_owner.lock().unwrap_or_else(PoisonError::into_inner);
        let queue = all.entry(owner.cloned()).or_insert_with(|| {
            Arc::new(Queue {
                turn: Arc::new(Semaphore::new(1)),
                uploads: Arc::new(Semaphore::new(UPLOADS)),
            })
        });
        queue.clone()
    }

    /// What a component is, and its native code. For those who hold a turn, or compile
    /// alone.
    pub async fn compile(&self, bytes: Bytes) -> Result<(Inspected, Vec<u8>), CompileError> {
        let program = match &self.program {
            Some(program) => program.clone(),
            None => std::env::current_exe()?,
        };
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
                // A child that ends early says why on its own.
                let _ = input.write_all(&bytes).await;
                drop(input);
            };
            let heard = async {
                let mut answer = Vec::new();
                (&mut output)
                    .take(NATIVE_LIMIT)
                    .read_to_end(&mut answer)
                    .await?;
                Ok::<_, std::io::Error>(answer)
            };
            let ((), answer) = futures::future::join(told, heard).await;
            let status = child.wait().await?;
            Ok::<_, std::io::Error>((answer?, status))
        };
        let over = |what: String| CompileError::Refused(vec![Reason::new("over_limit", what)]);
        let (mut answer, status) = match tokio::time::timeout(self.limit, work).await {
            Ok(done) => done?,
            Err(_) => {
                return Err(over(format!(
                    "compiling it takes longer than {} s",
                    self.limit.as_secs()
                )));
            }
        };
        let end = answer.iter().position(|byte| *byte == b'\n');
        let said = end.and_then(|end| serde_json::from_slice(&answer[..end]).ok());
        match (said, end) {
            (Some(Said::Refused(reasons)), _) => Err(CompileError::Refused(reasons)),
            (Some(Said::Compiled(inspected)), Some(end)) if status.success() => {
                answer.drain(..=end);
                Ok((inspected, answer))
            }
            _ => Err(over(
                "compiling it takes more memory or processor time than a component may".into(),
            )),
        }
    }
}

/// The child's side.
pub fn run_child() -> std::io::Result<()> {
    let _ = Confinement::enter();
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes)?;
    let (said, native) = match compiled(&bytes) {
        Ok((inspected, native)) => (Said::Compiled(inspected), native),
        Err(reasons) => (Said::Refused(reasons), Vec::new()),
    };
    let mut output = std::io::stdout().lock();
    serde_json::to_writer(&mut output, &said)?;
    output.write_all(b"\n")?;
    output.write_all(&native)?;
    output.flush()
}

/// Writes how a child is confined on this machine, and what it can do all the same.
pub fn show_confinement() -> std::io::Result<()> {
    let confinement = Confinement::enter();
    let shown = serde_json::json!({ "confinement": confinement, "reach": Reach::probe() });
    Ok(serde_json::to_writer(std::io::stdout().lock(), &shown)?)
}

fn compiled(bytes: &[u8]) -> Result<(Inspected, Vec<u8>), Vec<Reason>> {
    let inspected = inspection::inspect(bytes)?;
    let config = match inspected.slot {
        Slot::Compliance | Slot::Lifecycle => settings::rules(),
        Slot::Placement | Slot::Documents => settings::documents(),
        Slot::Signing | Slot::Payment | Slot::Kba => settings::providers_for(1),
    };
    let native = wasmtime::Engine::new(&config)
        .and_then(|engine| engine.precompile_component(bytes))
        .map_err(|error| {
            vec![Reason::new(
                "invalid",
                format!("it cannot be compiled: {error:#}"),
            )]
        })?;
    Ok((inspected, native))
}
