//! `holdfast component new`: creates a folder with a component that builds, and its
//! tests. The files are copies of `plugins/examples` and of the built-in rules.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::json;
use toml::{Table, Value};

use super::Failure;
use super::output::CommandOutput;
use holdfast_components::worlds;
use holdfast_domain::component::Slot;

#[derive(Args)]
#[command(after_help = starters())]
pub struct NewComponent {
    /// Slot of the component.
    #[arg(long, alias = "world", value_enum)]
    slot: StarterSlot,
    /// Programming language; the list below has those of each slot.
    #[arg(long, value_enum, default_value_t = StarterLanguage::Rust)]
    lang: StarterLanguage,
    /// A folder that does not exist yet. Its name becomes the component's.
    folder: PathBuf,
}

/// Slot with a starter.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StarterSlot {
    #[value(name = "provider.signing", alias = "signing-provider")]
    Signing,
    #[value(name = "provider.payment", alias = "payment-provider")]
    Payment,
    #[value(name = "provider.kba", alias = "kba-provider")]
    Kba,
    #[value(name = "provider.messaging", alias = "messaging-provider")]
    Messaging,
    #[value(name = "rules.compliance")]
    Compliance,
    #[value(name = "rules.lifecycle")]
    Lifecycle,
    #[value(name = "rules.placement")]
    Placement,
    #[value(name = "rules.control")]
    Control,
    #[value(name = "rules.funding")]
    Funding,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StarterLanguage {
    Rust,
    Js,
    Python,
    Go,
    /// Rules declared in a file.
    Toml,
}

/// Name and text of a file.
type File = (&'static str, &'static str);

/// Name, world and kind of the signing example, which stand in the files that all providers share.
const EXAMPLE: &str = "example-sign";
const EXAMPLE_WORLD: &str = "signing-provider";
const EXAMPLE_KIND: &str = "A signing provider";

macro_rules! example {
    ($folder:literal, $($name:literal),+) => {
        &[$(($name, include_str!(concat!("../../../plugins/examples/", $folder, "/", $name)))),+]
    };
}

macro_rules! rules {
    ($folder:literal, $($name:literal),+) => {
        &[$(($name, include_str!(concat!("../../../guest-rules/", $folder, "/", $name)))),+]
    };
}

/// Dependencies that the rules share.
const WORKSPACE: &str = include_str!("../../../Cargo.toml");

macro_rules! source {
    ($path:literal) => {
        include_str!(concat!("../../../plugins/examples/", $path))
    };
}

/// Starter of a provider: an invented vendor, and the plugin for it in each language.
struct ProviderKit {
    /// What the plugin is, with its article.
    kind: &'static str,
    vendor: &'static str,
    world: &'static str,
    /// Test script.
    far_end: &'static str,
    rust: [File; 2],
    /// Parts of the one source file of the other languages.
    javascript: &'static [&'static str],
    python: &'static [&'static str],
    /// Files of Go; none without a starter in it.
    go: &'static [File],
    /// Settings and secrets of an activation, as members of its JSON.
    settings: &'static str,
    secrets: &'static str,
}

const SIGNING: ProviderKit = ProviderKit {
    kind: EXAMPLE_KIND,
    vendor: "Example Sign",
    world: EXAMPLE_WORLD,
    far_end: source!("far-end.json"),
    rust: [
        ("src/lib.rs", source!("rust/src/lib.rs")),
        ("src/vendor.rs", source!("rust/src/vendor.rs")),
    ],
    javascript: &[source!("javascript/plugin.js")],
    python: &[source!("python/plugin.py")],
    go: example!("go", "main.go", "vendor.go", "abi.go"),
    settings: "",
    secrets: r#""api_key": "$SERVICE_KEY", "webhook_secret": "$SERVICE_SECRET""#,
};

const PAYMENT: ProviderKit = ProviderKit {
    kind: "A payment provider",
    vendor: "Example Pay",
    world: "payment-provider",
    far_end: source!("payment/far-end.json"),
    rust: [
        ("src/lib.rs", source!("rust/payment/lib.rs")),
        ("src/vendor.rs", source!("rust/shared/vendor.rs")),
    ],
    javascript: &[
        source!("javascript/vendor.js"),
        source!("javascript/payment.js"),
    ],
    python: &[source!("python/vendor.py"), source!("python/payment.py")],
    go: &[],
    settings: r#""settings": {"publishable_key": "$SERVICE_PUBLIC_KEY"}, "#,
    secrets: r#""api_key": "$SERVICE_KEY", "webhook_secret": "$SERVICE_SECRET""#,
};

const KBA: ProviderKit = ProviderKit {
    kind: "An identity provider",
    vendor: "Example Identity",
    world: "probing-kba-provider",
    far_end: source!("kba/far-end.json"),
    rust: [
        ("src/lib.rs", source!("rust/kba/lib.rs")),
        ("src/vendor.rs", source!("rust/shared/vendor.rs")),
    ],
    javascript: &[
        source!("javascript/vendor.js"),
        source!("javascript/kba.js"),
    ],
    python: &[source!("python/vendor.py"), source!("python/kba.py")],
    go: &[],
    settings: "",
    secrets: r#""api_key": "$SERVICE_KEY""#,
};

const MESSAGING: ProviderKit = ProviderKit {
    kind: "A provider of text messages",
    vendor: "Example Text",
    world: "probing-messaging-provider",
    far_end: source!("messaging/far-end.json"),
    rust: [
        ("src/lib.rs", source!("rust/messaging/lib.rs")),
        ("src/vendor.rs", source!("rust/shared/vendor.rs")),
    ],
    javascript: &[
        source!("javascript/vendor.js"),
        source!("javascript/messaging.js"),
    ],
    python: &[source!("python/vendor.py"), source!("python/messaging.py")],
    go: &[],
    settings: r#""settings": {"from": "$SERVICE_NUMBER"}, "#,
    secrets: r#""api_key": "$SERVICE_KEY""#,
};

/// Reader of PDFs, which placement rules need.
const READER: &[File] = rules!(
    "reader",
    "Cargo.toml",
    "src/annotations.rs",
    "src/content.rs",
    "src/cut.rs",
    "src/decode.rs",
    "src/ending.rs",
    "src/document.rs",
    "src/error.rs",
    "src/facts.rs",
    "src/font.rs",
    "src/font/fallback.rs",
    "src/font/metrics.rs",
    "src/geometry.rs",
    "src/interpret.rs",
    "src/interpret/layers.rs",
    "src/interpret/marks.rs",
    "src/interpret/show.rs",
    "src/layer.rs",
    "src/lib.rs",
    "src/limits.rs",
    "src/objects.rs",
    "src/page_text.rs",
    "src/tag.rs",
    "src/text_state.rs",
    "src/unicode.rs",
    "src/xref.rs"
);

impl StarterLanguage {
    /// Returns the files that build and test a provider of any slot.
    fn tools(self) -> &'static [File] {
        match self {
            Self::Rust => example!("rust", "Cargo.toml", "Makefile"),
            Self::Js => example!("javascript", "package.json", "build.js"),
            Self::Python => example!("python", "requirements.txt", "Makefile"),
            Self::Go => example!("go", "go.mod", "Makefile"),
            Self::Toml => &[],
        }
    }

    /// Returns the content of `.gitignore`: build output.
    fn ignored(self) -> &'static str {
        match self {
            Self::Rust => "/target\n*.wasm\n",
            Self::Js => "/node_modules\n*.wasm\n",
            Self::Python => "/.venv\n__pycache__\n*.wasm\n",
            Self::Go | Self::Toml => "*.wasm\n",
        }
    }

    /// Returns the next step for the author.
    fn next(self) -> &'static str {
        match self {
            Self::Rust => "rustup target add wasm32-unknown-unknown && make test",
            Self::Js => "npm install && npm test",
            Self::Python | Self::Go => "make test",
            Self::Toml => "holdfast component build rules.toml rules.wasm",
        }
    }
}

impl StarterSlot {
    fn slot(self) -> Slot {
        match self {
            Self::Signing => Slot::Signing,
            Self::Payment => Slot::Payment,
            Self::Kba => Slot::Kba,
            Self::Messaging => Slot::Messaging,
            Self::Compliance => Slot::Compliance,
            Self::Lifecycle => Slot::Lifecycle,
            Self::Placement => Slot::Placement,
            Self::Control => Slot::Control,
            Self::Funding => Slot::Funding,
        }
    }

    /// Returns the starter of a provider; none for rules.
    fn provider(self) -> Option<ProviderKit> {
        match self {
            Self::Signing => Some(SIGNING),
            Self::Payment => Some(PAYMENT),
            Self::Kba => Some(KBA),
            Self::Messaging => Some(MESSAGING),
            Self::Compliance
            | Self::Lifecycle
            | Self::Placement
            | Self::Control
            | Self::Funding => None,
        }
    }

    /// Whether the slot has a starter in a language.
    fn has(self, lang: StarterLanguage) -> bool {
        match lang {
            StarterLanguage::Rust => true,
            StarterLanguage::Js | StarterLanguage::Python => self.provider().is_some(),
            StarterLanguage::Go => self.provider().is_some_and(|kit| !kit.go.is_empty()),
            StarterLanguage::Toml => self.declared().is_some(),
        }
    }

    /// Returns the names of the languages that the slot has a starter in.
    fn languages(self) -> String {
        let all = StarterLanguage::value_variants().iter();
        let names = all.filter(|lang| self.has(**lang)).map(name_of);
        names.collect::<Vec<_>>().join(", ")
    }

    /// Returns the source of the built-in rules.
    fn rules(self) -> &'static [File] {
        match self {
            Self::Signing | Self::Payment | Self::Kba | Self::Messaging => &[],

            Self::Compliance => rules!(
                "compliance",
                "Cargo.toml",
                "src/bindings.rs",
                "src/certificate.rs",
                "src/checks.rs",
                "src/evaluate.rs",
                "src/lib.rs",
                "src/record.rs",
                "src/tests.rs"
            ),

            Self::Lifecycle => rules!(
                "lifecycle",
                "Cargo.toml",
                "src/batch.rs",
                "src/bindings.rs",
                "src/envelope.rs",
                "src/lib.rs",
                "src/refusals.rs",
                "src/tests.rs"
            ),

            Self::Placement => rules!(
                "placement",
                "Cargo.toml",
                "src/anchors.rs",
                "src/area.rs",
                "src/bindings.rs",
                "src/component.rs",
                "src/fact_reading.rs",
                "src/fact_values.rs",
                "src/facts.rs",
                "src/field_rules/condition.rs",
                "src/field_rules/formula.rs",
                "src/field_rules/limit.rs",
                "src/field_rules/mod.rs",
                "src/field_rules/rule_set.rs",
                "src/field_rules/state.rs",
                "src/issues.rs",
                "src/lib.rs",
                "src/misses.rs",
                "src/place.rs",
                "src/search.rs",
                "src/similarity.rs",
                "src/tag_fields.rs",
                "src/tag_grammar.rs",
                "src/validate.rs"
            ),

            Self::Control => rules!(
                "control",
                "Cargo.toml",
                "src/bindings.rs",
                "src/lib.rs",
                "src/rules.rs",
                "src/tests.rs"
            ),

            Self::Funding => rules!(
                "funding",
                "Cargo.toml",
                "src/amount.rs",
                "src/apr.rs",
                "src/bindings.rs",
                "src/date.rs",
                "src/lib.rs",
                "src/names.rs",
                "src/rules.rs",
                "src/schedule.rs",
                "src/tests.rs",
                "src/vin.rs"
            ),
        }
    }

    /// Returns the first rules that a team declares, with their vectors; none for a slot with rules in Rust.
    fn declared(self) -> Option<[&'static str; 2]> {
        match self {
            Self::Compliance => Some([
                include_str!("starter/declared/compliance.toml"),
                include_str!("starter/compliance.yaml"),
            ]),
            Self::Funding => Some([
                include_str!("starter/declared/funding.toml"),
                include_str!("starter/declared/funding.yaml"),
            ]),
            Self::Signing
            | Self::Payment
            | Self::Kba
            | Self::Messaging
            | Self::Lifecycle
            | Self::Placement
            | Self::Control => None,
        }
    }

    /// Returns the first vectors of a team.
    fn vectors(self) -> &'static str {
        match self {
            Self::Signing | Self::Payment | Self::Kba | Self::Messaging => "",
            Self::Compliance => include_str!("starter/compliance.yaml"),
            Self::Lifecycle => include_str!("starter/lifecycle.yaml"),
            Self::Placement => include_str!("starter/placement.yaml"),
            Self::Control => include_str!("starter/control.yaml"),
            Self::Funding => include_str!("starter/funding.yaml"),
        }
    }

    /// Returns the built-in component that the rules begin as.
    fn default_component(self) -> &'static str {
        match self {
            Self::Signing | Self::Payment | Self::Kba | Self::Messaging => "",
            Self::Compliance => "holdfast-compliance",
            Self::Lifecycle => "holdfast-lifecycle",
            Self::Placement => "holdfast-placement",
            Self::Control => "holdfast-control",
            Self::Funding => "holdfast-funding",
        }
    }
}

/// Returns the name of a value on the command line.
fn name_of(value: &impl ValueEnum) -> String {
    let named = value.to_possible_value();
    named.map_or_else(String::new, |named| named.get_name().to_owned())
}

/// Returns the list of all starters, for the help.
fn starters() -> String {
    let mut list = "Starters:\n".to_owned();
    for slot in StarterSlot::value_variants() {
        let (name, languages) = (name_of(slot), slot.languages());
        list += &format!("  {name:<20} {languages}\n");
    }

    list + "\nThe folder has a README.md with the next steps."
}

/// Writes the files.
///
/// # Errors
/// The folder exists, its name is no valid name of a component, or the slot has no starter in the language.
pub fn new(new: &NewComponent, output: &CommandOutput) -> Result<ExitCode, Failure> {
    let folder = &new.folder;
    let name = folder
        .file_name()
        .and_then(|name| name.to_str())
        .filter(|name| is_name(name))
        .ok_or("the folder's name becomes the component's: lower-case letters, digits and hyphens, beginning with a letter")?;

    // All refusals come before the first write, so a failed command leaves no half project.
    if folder.exists() {
        return Err(format!("{} is there already", folder.display()).into());
    }

    let slot = new.slot.slot();
    if !new.slot.has(new.lang) {
        let (lang, languages) = (name_of(&new.lang), new.slot.languages());
        return Err(format!(
            "{slot} has no starter in {lang}, and has one in: {languages}; `holdfast component new --help` lists all"
        )
        .into());
    }

    let mut files = match (new.slot.provider(), new.slot.declared(), new.lang) {
        (Some(kit), _, lang) => provider_project(&kit, slot, lang, name),
        (None, Some(texts), StarterLanguage::Toml) => declared_project(new.slot, texts, name),
        (None, _, _) => rules_project(new.slot, name)?,
    };
    files.push((".gitignore".into(), new.lang.ignored().to_owned()));

    // Declared rules are data. Only a program needs the world that it implements.
    let world = if new.lang == StarterLanguage::Toml {
        Vec::new()
    } else {
        worlds::sources(slot)
    };
    for (file, text) in world {
        // Packages that the world depends on need a separate folder each.
        let place = match file.strip_suffix(".wit") {
            Some("host") => format!("wit/deps/host/{file}"),
            _ => format!("wit/{file}"),
        };
        files.push((place, text.to_owned()));
    }

    for (file, text) in &files {
        write(&folder.join(file), text)?;
    }

    let text = format!(
        "{} has a component for {slot}. Go on with:\n\n  cd {} && {}",
        folder.display(),
        folder.display(),
        new.lang.next()
    );

    let names: Vec<_> = files.iter().map(|(file, _)| folder.join(file)).collect();
    output.one(&json!({ "name": name, "files": names }), &text);
    Ok(ExitCode::SUCCESS)
}

/// Returns the files of a provider.
fn provider_project(
    kit: &ProviderKit,
    slot: Slot,
    lang: StarterLanguage,
    name: &str,
) -> Vec<(String, String)> {
    let sources: Vec<(&str, String)> = match lang {
        StarterLanguage::Rust => kit.rust.map(|(file, text)| (file, text.to_owned())).into(),
        StarterLanguage::Js => vec![("plugin.js", kit.javascript.join("\n"))],
        StarterLanguage::Python => vec![("plugin.py", kit.python.join("\n\n"))],
        StarterLanguage::Go => kit
            .go
            .iter()
            .map(|(file, text)| (*file, (*text).to_owned()))
            .collect(),
        StarterLanguage::Toml => Vec::new(),
    };

    let listed: Vec<String> = sources
        .iter()
        .map(|(file, _)| format!("`{file}`"))
        .collect();
    let readme = include_str!("starter/provider.md")
        .replace("{sources}", &listed.join(", "))
        .replace("{words}", kit.kind)
        .replace("{vendor}", kit.vendor)
        .replace("{next}", lang.next())
        .replace("{slot}", slot.as_str())
        .replace("{exports}", &exports_of(kit))
        .replace("{settings}", kit.settings)
        .replace("{{secrets}}", &format!("{{{}}}", kit.secrets))
        .replace("{name}", name);

    // Cargo turns the hyphens of a crate's name into underscores, so both spellings occur.
    let named = |text: &str| {
        text.replace(EXAMPLE_WORLD, kit.world)
            .replace(EXAMPLE_KIND, kit.kind)
            .replace(EXAMPLE, name)
            .replace(&EXAMPLE.replace('-', "_"), &name.replace('-', "_"))
    };

    let mut files = vec![
        ("README.md".to_owned(), readme),
        ("far-end.json".to_owned(), kit.far_end.to_owned()),
    ];
    let tools = lang.tools().iter();
    files.extend(tools.map(|(file, text)| ((*file).to_owned(), named(text))));
    files.extend(
        sources
            .into_iter()
            .map(|(file, text)| (file.to_owned(), text)),
    );
    files
}

/// Returns the variables of an activation with example values, as a shell exports them.
fn exports_of(kit: &ProviderKit) -> String {
    let examples = [
        ("SERVICE_URL", "https://api.acme.example"),
        ("SERVICE_KEY", "…"),
        ("SERVICE_SECRET", "…"),
        ("SERVICE_PUBLIC_KEY", "…"),
        ("SERVICE_NUMBER", "+15125550100"),
    ];
    let is_needed = |name: &str| {
        let reference = format!("\"${name}\"");
        name == "SERVICE_URL"
            || kit.settings.contains(&reference)
            || kit.secrets.contains(&reference)
    };

    let needed = examples.iter().filter(|(name, _)| is_needed(name));
    let exports: Vec<String> = needed
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    exports.join(" ")
}

/// Returns declared rules with their vectors.
fn declared_project(
    rules: StarterSlot,
    [declared, vectors]: [&str; 2],
    name: &str,
) -> Vec<(String, String)> {
    let readme = include_str!("starter/declared/README.md")
        .replace("{name}", name)
        .replace("{slot}", rules.slot().as_str())
        .replace("{base}", rules.default_component());

    vec![
        ("rules.toml".into(), declared.to_owned()),
        ("vectors.yaml".into(), vectors.to_owned()),
        ("README.md".into(), readme),
    ]
}

/// Returns a crate with the source of the built-in rules, the published vectors and a team's first ones.
fn rules_project(rules: StarterSlot, name: &str) -> Result<Vec<(String, String)>, Failure> {
    let slot = rules.slot();
    let mut files = Vec::new();
    for (file, text) in rules.rules() {
        let text = match *file {
            "Cargo.toml" => manifest(text, Some(name))?,
            _ => alone(text),
        };
        files.push(((*file).to_owned(), text));
    }

    // The reader is no published crate, so placement rules need its source beside them.
    if slot == Slot::Placement {
        for (file, text) in READER {
            let text = match *file {
                "Cargo.toml" => manifest(text, None)?,
                _ => alone(text),
            };
            files.push((format!("reader/{file}"), text));
        }
    }

    // Admission asks these vectors in any case. With a copy the team sees a violation before the upload.
    let published = match slot {
        Slot::Compliance => Some(include_str!("../../../wit/compliance/vectors.json")),
        Slot::Lifecycle => Some(include_str!("../../../wit/lifecycle/vectors.json")),
        Slot::Control => Some(include_str!("../../../wit/control/vectors.json")),
        Slot::Funding => Some(include_str!("../../../wit/funding/vectors.json")),
        _ => None,
    };
    files.extend(published.map(|text| ("wit/vectors.json".to_owned(), text.to_owned())));

    // The same sizes as for the built-in rules (`host/guest-builder`). Placement parses whole documents.
    let (stack, memory) = match slot {
        Slot::Placement => (1_048_576, 8_388_608),
        _ => (16_384, 65_536),
    };
    let module = name.replace('-', "_");
    let base = rules.default_component();
    files.push((
        ".cargo/config.toml".into(),
        format!(
            "[target.wasm32-unknown-unknown]\n# A call resets this memory, which costs time.\n\
             rustflags = [\"-Clink-arg=-zstack-size={stack}\", \"-Clink-arg=--initial-memory={memory}\"]\n"
        ),
    ));

    let filled = |text: &str| {
        text.replace("{name}", name)
            .replace("{module}", &module)
            .replace("{slot}", slot.as_str())
            .replace("{base}", base)
    };
    files.push(("Makefile".into(), filled(include_str!("starter/Makefile"))));

    files.push((
        "README.md".into(),
        filled(include_str!("starter/README.md")),
    ));
    files.push(("vectors.yaml".into(), rules.vectors().to_owned()));

    Ok(files)
}

/// Adapts source of this repository to a crate on its own.
fn alone(text: &str) -> String {
    let text = text.replace(
        "\n#[cfg(target_arch = \"wasm32\")]\nuse holdfast_plugin_sdk as _;\n",
        "",
    );

    // Macros read the contract by paths relative to this repository. In the
    // project it is in its own folder `wit`.
    let mut lines = Vec::new();
    for line in text.lines() {
        let path = line
            .find("\"../../wit/")
            .or_else(|| line.find("\"../../../wit/"));
        let line = match path {
            Some(at) if line.contains("vectors.json") => {
                format!(
                    "{}\"../wit/vectors.json\"{}",
                    &line[..at],
                    after_text(&line[at + 1..])
                )
            }
            Some(at) => format!("{}\"wit\"{}", &line[..at], after_text(&line[at + 1..])),
            None => line.to_owned(),
        };

        lines.push(line);
    }

    lines.join("\n") + "\n"
}

/// Returns the rest of a line after the closing quote.
fn after_text(line: &str) -> &str {
    line.split_once('"').map_or("", |(_, after)| after)
}

/// Makes a manifest that needs no workspace. Without a `name`, the package keeps its own.
fn manifest(text: &str, name: Option<&str>) -> Result<String, Failure> {
    let workspace: Table = WORKSPACE.parse()?;
    let shared = &workspace["workspace"]["dependencies"];
    let mut manifest: Table = text.parse()?;
    let own = manifest
        .get("package")
        .and_then(|package| package.get("name"));
    let own = own.and_then(Value::as_str).unwrap_or_default().to_owned();

    // The package of this repository inherits version and edition from its
    // workspace, which the project lacks.
    let mut package = Table::new();
    package.insert("name".into(), name.unwrap_or(&own).into());
    package.insert("version".into(), "0.1.0".into());
    package.insert("edition".into(), "2024".into());
    package.insert("publish".into(), false.into());
    manifest.insert("package".into(), package.into());
    manifest.remove("lints");

    // Tests of this repository in a separate folder are not copied.
    let tests = manifest.remove("dev-dependencies");
    let mut dependencies = Table::new();
    let listed = manifest.get("dependencies").and_then(Value::as_table);
    let listed = listed.into_iter().flatten();
    let tested = tests.as_ref().and_then(Value::as_table);

    let tested = tested
        .into_iter()
        .flatten()
        .filter(|(name, _)| *name == "serde_json");
    // The versions are those that the built-in rules are tested with.
    for (dependency, wanted) in listed.chain(tested) {
        let of_workspace = wanted.get("workspace").is_some();
        let value = match dependency.as_str() {
            "holdfast-plugin-sdk" => continue,
            "holdfast-reader" => {
                Table::from_iter([("path".to_owned(), Value::from("reader"))]).into()
            }
            _ if of_workspace => shared
                .get(dependency)
                .cloned()
                .unwrap_or_else(|| wanted.clone()),
            _ => wanted.clone(),
        };

        dependencies.insert(dependency.clone(), value);
    }

    manifest.insert("dependencies".into(), dependencies.into());
    // Only the component becomes a module. The reader is linked into it as a plain library.
    if name.is_some() {
        let kinds = vec![Value::from("cdylib")];
        manifest.insert(
            "lib".into(),
            Table::from_iter([("crate-type".to_owned(), Value::from(kinds))]).into(),
        );
        let release = [
            ("opt-level", Value::from("s")),
            ("lto", true.into()),
            ("codegen-units", 1.into()),
            ("panic", "abort".into()),
            ("strip", true.into()),
        ];
        let release = release.map(|(member, value)| (member.to_owned(), value));
        let profile =
            Table::from_iter([("release".to_owned(), Value::from(Table::from_iter(release)))]);
        manifest.insert("profile".into(), profile.into());

        // Without its own workspace, cargo would look for one in the folders above the project.
        manifest.insert("workspace".into(), Table::new().into());
    }

    Ok(toml::to_string(&manifest)?)
}

/// Whether cargo, npm and the component registry all accept a name.
fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && name
            .chars()
            .all(|one| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '-')
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    Ok(fs::write(file, text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_lists_every_starter() {
        let listed = starters();
        for line in [
            "  provider.signing     rust, js, python, go",
            "  provider.payment     rust, js, python",
            "  provider.kba         rust, js, python",
            "  provider.messaging   rust, js, python",
            "  rules.compliance     rust, toml",
            "  rules.placement      rust",
        ] {
            assert!(
                listed.lines().any(|listed| listed == line),
                "{line}: {listed}"
            );
        }
    }

    /// Every project names its own component and world, and no placeholder is left.
    #[test]
    fn a_provider_project_is_about_its_slot() {
        for slot in StarterSlot::value_variants() {
            let Some(kit) = slot.provider() else {
                continue;
            };

            let languages = [
                StarterLanguage::Rust,
                StarterLanguage::Js,
                StarterLanguage::Python,
            ];
            for lang in languages {
                let files = provider_project(&kit, slot.slot(), lang, "acme-own");
                let text = |wanted: &str| {
                    let found = files.iter().find(|(file, _)| file == wanted);
                    found.unwrap_or_else(|| panic!("no {wanted}")).1.as_str()
                };
                let readme = text("README.md");
                assert!(readme.contains(slot.slot().as_str()), "{readme}");
                assert!(readme.contains(kit.vendor), "{readme}");
                for left in ["{name}", "{slot}", "{next}", "{settings}", "{secrets}"] {
                    assert!(!readme.contains(left), "{left}: {readme}");
                }

                let builds = match lang {
                    StarterLanguage::Rust => text("src/lib.rs"),
                    StarterLanguage::Js => text("build.js"),
                    StarterLanguage::Python | StarterLanguage::Go | StarterLanguage::Toml => {
                        text("Makefile")
                    }
                };
                assert!(builds.contains(kit.world), "{builds}");
                for (file, text) in &files {
                    assert!(!text.contains(EXAMPLE), "{file} keeps the example's name");
                }
            }
        }
    }

    #[test]
    fn a_plugin_name_is_valid_for_every_build_tool() {
        for good in ["acme-sign", "a", "sign2"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "2sign", "Acme", "acme_sign", "acme sign", "-a", ".."] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
