//! Builds the default components from source, or takes them from a set of the same sources.

mod sets;

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use holdfast_guest_builder::{
    GuestBuilder, GuestCrate, GuestMemory, Result, compression_level, shared_file, watch,
};
use sets::ComponentSet;
use sha2::{Digest as _, Sha256};

const GUESTS: &[GuestCrate] = &[
    GuestCrate {
        package: "holdfast-compliance",
        slot: "rules.compliance",
        memory: GuestMemory::Rules,
    },
    GuestCrate {
        package: "holdfast-lifecycle",
        slot: "rules.lifecycle",
        memory: GuestMemory::Rules,
    },
    GuestCrate {
        package: "holdfast-placement",
        slot: "rules.placement",
        memory: GuestMemory::Documents,
    },
    GuestCrate {
        package: "holdfast-documents",
        slot: "rules.documents",
        memory: GuestMemory::Documents,
    },
    GuestCrate {
        package: "holdfast-control",
        slot: "rules.control",
        memory: GuestMemory::Rules,
    },
    GuestCrate {
        package: "holdfast-funding",
        slot: "rules.funding",
        memory: GuestMemory::Rules,
    },
    GuestCrate {
        package: "holdfast-signing-docuseal",
        slot: "provider.signing",
        memory: GuestMemory::Plugin,
    },
    GuestCrate {
        package: "holdfast-payment-stripe",
        slot: "provider.payment",
        memory: GuestMemory::Plugin,
    },
    GuestCrate {
        package: "holdfast-kba-method",
        slot: "provider.kba",
        memory: GuestMemory::Plugin,
    },
    GuestCrate {
        package: "holdfast-messaging-twilio",
        slot: "provider.messaging",
        memory: GuestMemory::Plugin,
    },
    GuestCrate {
        package: "holdfast-conversion-gotenberg",
        slot: "provider.conversion",
        memory: GuestMemory::Plugin,
    },
];

/// Further guests, which are used only once activated.
const FURTHER: &[GuestCrate] = &[
    GuestCrate {
        package: "holdfast-compliance-ucc2022",
        slot: "rules.compliance",
        memory: GuestMemory::Rules,
    },
    GuestCrate {
        package: "holdfast-compliance-calendar",
        slot: "rules.compliance",
        memory: GuestMemory::Plugin,
    },
];

/// Guest of the signing instance `embedded`, in addition to the default of its slot.
const ROOM: &[GuestCrate] = &[GuestCrate {
    package: "holdfast-signing-embedded",
    slot: "provider.signing",
    memory: GuestMemory::Plugin,
}];

/// Components with a space for rules that an organization declares.
const TEMPLATES: &[GuestCrate] = &[
    GuestCrate {
        package: "holdfast-declared",
        slot: "rules.compliance",
        memory: GuestMemory::Plugin,
    },
    GuestCrate {
        package: "holdfast-declared-ucc2022",
        slot: "rules.compliance",
        memory: GuestMemory::Plugin,
    },
    GuestCrate {
        package: "holdfast-declared-funding",
        slot: "rules.funding",
        memory: GuestMemory::Plugin,
    },
];

fn main() -> Result<()> {
    watch(Path::new("build.rs"));
    watch(Path::new("sets.rs"));
    let workspace = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?)
        .ancestors()
        .nth(2)
        .ok_or("this crate lies in the host's folder")?
        .to_path_buf();
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let builder = GuestBuilder::new(workspace.clone(), &out)?;
    let set = ComponentSet::of(&workspace, &builder)?;

    let tables = [
        ("components.rs", GUESTS),
        ("further.rs", FURTHER),
        ("room.rs", ROOM),
        ("templates.rs", TEMPLATES),
    ];

    // A build without the feature, such as the offline verifier's, needs the rules that evaluate records and
    // no provider.
    let all = env::var_os("CARGO_FEATURE_ALL").is_some();
    for (name, guests) in tables {
        let evaluates =
            |guest: &GuestCrate| guest.slot == "rules.compliance" && name != "templates.rs";
        let wanted = |guest: &&GuestCrate| all || evaluates(guest);
        let guests: Vec<&GuestCrate> = guests.iter().filter(wanted).collect();
        fs::write(out.join(name), table(&builder, &set, &out, &guests)?)?;
    }

    Ok(())
}

/// Builds guests and returns the source code of their table.
fn table(
    builder: &GuestBuilder,
    set: &ComponentSet,
    out: &Path,
    guests: &[&GuestCrate],
) -> Result<String> {
    let mut table = String::from("&[\n");
    for guest in guests {
        let built = set.component(builder, guest)?;
        let file = out.join(format!("{}.wasm.zst", guest.package));
        fs::write(
            &file,
            zstd::bulk::compress(&built.component, compression_level())?,
        )?;

        // The digest is that of the unpacked component, because ledgers and evidence name components by it.
        writeln!(
            table,
            "    DefaultComponent {{ slot: {:?}, name: {:?}, version: {:?}, sha256: {:?}, size: {},
                packed: {} }},",
            guest.slot,
            guest.package,
            built.version,
            hex::encode(Sha256::digest(&built.component)),
            built.component.len(),
            shared_file(&file, out)?,
        )?;
    }

    table.push(']');
    Ok(table)
}
