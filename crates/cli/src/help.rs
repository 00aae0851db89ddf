//! The help of the program: commands in groups, on one screen.

use clap::Command;
use std::fmt::Write;

const GROUPS: [(&str, &[&str]); 4] = [
    (
        "Simulate and study",
        &["init", "check", "run", "compare", "topology", "sweep", "bound", "matrix", "reproduce", "rerun", "verify"],
    ),
    ("Look inside", &["results", "report", "view", "trace", "replay", "list", "explain"]),
    ("Real networks", &["agree", "testbed", "send", "serve", "paths", "collective", "nccl", "stats"]),
    ("This program", &["bench", "soak", "schema", "completions", "man", "help"]),
];

pub(crate) fn with_grouped_commands(command: Command) -> Command {
    let (header, literal) = (*command.get_styles().get_header(), *command.get_styles().get_literal());
    let mut text = String::new();
    for (group, names) in GROUPS {
        let _ = writeln!(text, "{header}{group}:{header:#}");
        for &name in names {
            let about = match name {
                "help" => Some("Print help of the program or of a command".to_string()),
                // Some commands exist on Linux only.
                _ => command.find_subcommand(name).and_then(Command::get_about).map(ToString::to_string),
            };
            let Some(about) = about else { continue };
            let _ = writeln!(text, "  {literal}{name:<11}{literal:#}  {about}");
        }
        text.push('\n');
    }
    command
        .before_help(text.trim_end().to_string())
        .help_template("{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}Options:\n{options}")
}

#[cfg(test)]
mod tests {
    use super::GROUPS;
    use crate::commands::Arguments;
    use clap::CommandFactory;

    #[test]
    fn every_command_is_in_one_group() {
        let command = Arguments::command();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        let mut there: Vec<&str> =
            command.get_subcommands().filter(|below| !below.is_hide_set()).map(clap::Command::get_name).collect();
        there.push("help");
        grouped.sort_unstable();
        there.sort_unstable();
        assert_eq!(grouped, there);
    }

    #[test]
    fn the_help_fits_a_screen() {
        let help = crate::help();
        assert!(help.lines().count() <= 48, "{} lines:\n{help}", help.lines().count());
        let widest = help.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{help}");
    }
}
