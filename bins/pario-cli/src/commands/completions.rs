//! `pario completions`: what a shell needs to complete commands and options, on standard output.
//! Generated from the command line itself, so it cannot fall behind.

use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::aot::{Shell, generate};

use super::{Error, output};

/// Arguments of `pario completions`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  pario completions bash > ~/.local/share/bash-completion/completions/pario
  pario completions zsh  > ~/.zfunc/_pario
  pario completions fish > ~/.config/fish/completions/pario.fish")]
pub(crate) struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: ShellName,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ShellName {
    Bash,
    Zsh,
    Fish,
}

/// Prints the completions of a shell.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let shell = match arguments.shell {
        ShellName::Bash => Shell::Bash,
        ShellName::Zsh => Shell::Zsh,
        ShellName::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    generate(
        shell,
        &mut crate::Arguments::command(),
        "pario",
        &mut script,
    );
    output::print(&String::from_utf8(script)?)
}
