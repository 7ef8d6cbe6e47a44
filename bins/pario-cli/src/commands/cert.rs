//! `pario cert`: makes, renews and shows certificates for services between hosts that do not trust each other.
//!
//! Owns the words of the command line; what a certificate says is in `identity`, and how one is made in
//! `certificates`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use certificates::{Authority, CertificateRequest, Validity};
use clap::{Args, Subcommand};
use identity::{Certificate, Holder, TlsFiles, is_user_name};
use serde_json::json;
use serving::{AUDIT_FILE, AuditEntry, AuditLog};
use wire::message::session::Credentials;

use super::{Error, output};

/// Arguments of `pario cert`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  pario cert authority --dir ca
  pario cert server --authority ca node1 10.1.0.1 --out node1
  pario cert user --authority ca ada --out ada
  pario cert renew --authority ca node1/server.pem
  pario cert show node1/server.pem")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Make an authority: a directory with a certificate (ca.pem) and a key that signs others (ca.key)
    Authority {
        /// Its directory; made if it does not exist
        #[arg(long, value_name = "DIR")]
        dir: PathBuf,
        /// Its name, for people
        #[arg(long, default_value = "Pario authority")]
        name: String,
        /// How long it is good
        #[arg(long, value_name = "N", default_value_t = 3650, value_parser = clap::value_parser!(u32).range(1..=36_500))]
        days: u32,
    },
    /// Make the certificate of a server
    Server {
        #[command(flatten)]
        signed: SigningArguments,
        /// Names and addresses by which others reach the server
        #[arg(value_name = "HOST", required = true)]
        hosts: Vec<String>,
        /// Where to leave server.pem, server.key and ca.pem
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
    /// Make the certificate of a user
    User {
        #[command(flatten)]
        signed: SigningArguments,
        /// The user's name
        name: String,
        /// His number [default: that of the name on this host]
        #[arg(long, value_name = "N")]
        uid: Option<u32>,
        /// The number of his first group [default: that of the name on this host]
        #[arg(long, value_name = "N")]
        gid: Option<u32>,
        /// Further groups
        #[arg(long, value_name = "N,N", value_delimiter = ',')]
        groups: Vec<u32>,
        /// Where to leave NAME.pem, NAME.key and ca.pem
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
    /// Sign a certificate again for the same holder and key; servers and clients take it up by themselves
    Renew {
        #[command(flatten)]
        signed: SigningArguments,
        /// The certificate, with its key beside it (FILE.key)
        #[arg(value_name = "FILE.pem", required = true)]
        files: Vec<PathBuf>,
    },
    /// Show what certificates say
    Show {
        /// The certificates
        #[arg(value_name = "FILE.pem", required = true)]
        files: Vec<PathBuf>,
        /// Print JSON instead of text
        #[arg(long)]
        json: bool,
    },
}

#[derive(Args)]
struct SigningArguments {
    /// The directory of the authority that signs
    #[arg(long, value_name = "DIR")]
    authority: PathBuf,
    /// How long the certificate is good
    #[arg(long, value_name = "N", default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: u32,
}

/// Makes, renews or shows certificates.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    match &arguments.what {
        What::Authority { dir, name, days } => {
            let made = Authority::make(dir, name, Validity::days(*days))?;
            note(dir, "make_authority", json!({ "name": name, "days": days }));
            output::print(&format!(
                "{}\n# keep {} to yourself: whoever has it can be anybody\n",
                made.certificate().display(),
                dir.join(certificates::CA_KEY).display()
            ))
        }
        What::Server { signed, hosts, out } => {
            let wanted = CertificateRequest {
                holder: Holder::Server,
                hosts: hosts.clone(),
                validity: Validity::days(signed.days),
            };
            let files = Authority::open(&signed.authority)?.issue(&wanted, out, "server")?;
            let arguments = json!({ "hosts": hosts, "days": signed.days, "out": out });
            note(&signed.authority, "sign_server", arguments);
            say(&files)
        }
        What::User {
            signed,
            name,
            uid,
            gid,
            groups,
            out,
        } => {
            let wanted = CertificateRequest {
                holder: user(name, *uid, *gid, groups)?,
                hosts: Vec::new(),
                validity: Validity::days(signed.days),
            };
            let files = Authority::open(&signed.authority)?.issue(&wanted, out, name)?;
            let arguments = json!({ "name": name, "days": signed.days, "out": out });
            note(&signed.authority, "sign_user", arguments);
            say(&files)
        }
        What::Renew { signed, files } => {
            let authority = Authority::open(&signed.authority)?;
            for file in files {
                let new = authority.renew(file, Validity::days(signed.days))?;
                let arguments = json!({ "file": file, "days": signed.days });
                note(&signed.authority, "renew", arguments);
                let line = format!("{}: good until {}\n", file.display(), new.not_after);
                output::print(&line)?;
            }
            Ok(())
        }
        What::Show { files, json } => {
            for file in files {
                let said = certificates::read(file)?;
                output::print(&match json {
                    true => format!("{:#}\n", to_json(file, &said)),
                    false => shown(file, &said),
                })?;
            }
            Ok(())
        }
    }
}

/// Puts on record, beside the authority, what was signed.
fn note(authority: &Path, action: &str, arguments: serde_json::Value) {
    AuditLog::at(authority.join(AUDIT_FILE)).note(&AuditEntry {
        by: "command",
        action,
        user: rustix::process::geteuid().as_raw(),
        client: None,
        arguments,
        refusal: None,
    });
}

/// What to export, fit for the shell.
fn say(files: &TlsFiles) -> Result<(), Error> {
    let absolute = |path: &Path| {
        let found = path.canonicalize();
        found
            .unwrap_or_else(|_| path.to_owned())
            .display()
            .to_string()
    };
    output::print(&format!(
        "export PARIO_TLS_CA={} PARIO_TLS_CERT={} PARIO_TLS_KEY={}\n",
        absolute(&files.ca),
        absolute(&files.cert),
        absolute(&files.key)
    ))
}

fn user(name: &str, uid: Option<u32>, gid: Option<u32>, groups: &[u32]) -> Result<Holder, Error> {
    if !is_user_name(name) {
        return Err(format!(
            "'{name}' is no name of a user: letters, digits, '.', '_' and '-', at most 64"
        )
        .into());
    }
    let known = || super::keys::user_of_host(name);
    let (uid, gid) = match (uid, gid) {
        (Some(uid), Some(gid)) => (uid, gid),
        (uid, gid) => {
            let (his, first) = known()
                .ok_or_else(|| format!("this host knows no user '{name}'; give --uid and --gid"))?;
            (uid.unwrap_or(his), gid.unwrap_or(first))
        }
    };
    Ok(Holder::User {
        name: name.into(),
        credentials: Credentials {
            user: uid,
            group: gid,
            groups: groups.to_vec(),
        },
    })
}

fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |d| d.as_secs() as i64)
}

/// Days until it ends; nothing if it has ended or not begun.
fn days_left(said: &Certificate) -> Option<i64> {
    let is_good = (said.not_before.seconds()..said.not_after.seconds()).contains(&now());
    is_good.then(|| (said.not_after.seconds() - now()) / 86_400)
}

fn holder(said: &Certificate) -> String {
    match &said.holder {
        Some(holder) => holder.to_string(),
        None if said.is_authority => "authority".into(),
        None => "nobody that Pario knows".into(),
    }
}

fn shown(file: &Path, said: &Certificate) -> String {
    let mut text = format!("{}\n", file.display());
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<10}{value}");
    };
    line("holder", holder(said));
    line("subject", said.subject.clone());
    line("signed by", said.issuer.clone());
    if let Some(Holder::User { credentials, .. }) = &said.holder
        && !credentials.groups.is_empty()
    {
        line("groups", format!("{:?}", credentials.groups));
    }
    let addresses = said.addresses.iter().map(ToString::to_string);
    let hosts: Vec<String> = said.names.iter().cloned().chain(addresses).collect();
    if !hosts.is_empty() {
        line("hosts", hosts.join(", "));
    }
    line("serial", said.serial.clone());
    line("from", said.not_before.to_string());
    line(
        "until",
        match days_left(said) {
            Some(days) => format!("{} ({days} days left)", said.not_after),
            None => format!("{} (not good now)", said.not_after),
        },
    );
    text
}

fn to_json(file: &Path, said: &Certificate) -> serde_json::Value {
    let user = match &said.holder {
        Some(Holder::User { name, credentials }) => json!({
            "name": name,
            "uid": credentials.user,
            "gid": credentials.group,
            "groups": credentials.groups,
        }),
        _ => serde_json::Value::Null,
    };
    json!({
        "file": file.display().to_string(),
        "holder": holder(said),
        "user": user,
        "subject": said.subject,
        "signed_by": said.issuer,
        "names": said.names,
        "addresses": said.addresses.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "serial": said.serial,
        "from": said.not_before.seconds(),
        "until": said.not_after.seconds(),
        "is_good": days_left(said).is_some(),
    })
}
