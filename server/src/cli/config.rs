//! `gesmas config check`: reads a configuration as `serve` would, and says what it means.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::json;

use super::output::Output;
use crate::failure::Failure;
use crate::shell::{Config, Descriptors, descriptors_reserved};

/// `gesmas config`.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Says whether a replica could be served with this file.
    ///
    /// Nothing is started and nothing is written. docs/gesmas.toml explains every setting.
    #[command(after_help = "Example:\n  gesmas config check /etc/gesmas.toml")]
    Check {
        /// The configuration of a replica.
        file: PathBuf,
    },
}

pub(super) fn run(args: &ConfigArgs, output: Output) -> Result<(), Failure> {
    let ConfigCommand::Check { file } = &args.command;
    let config = Config::load(file)?;
    let (replica, count) = (config.replica, config.members.len());
    let peers = config.own_peers();
    let limit = Descriptors::greatest().limit();
    let wanted = wanted(&config);
    let fits = u128::from(limit) >= wanted;
    output.value(
        &json!({
            "descriptors": { "limit": limit, "wanted": wanted.to_string(), "fits": fits },
            "file": file,
            "replica": replica,
            "replicas": count,
            "clients": config.listen.to_string(),
            "peers": peers.to_string(),
            "data": config.data,
        }),
        || {
            let good = format!(
                "{} is good: replica {replica} of {count}, clients at {}, peers at {peers}, data in {}",
                file.display(),
                config.listen,
                config.data.display()
            );
            if fits {
                return good;
            }
            format!(
                "{good}\nnote: its connections take {wanted} file descriptors with what the replica needs \
                 itself, and a process started from here may have {limit}: fewer connections would be let \
                 in; raise the limit on open files, or lower queues.connections and http.connections"
            )
        },
    );
    Ok(())
}

/// Descriptors for all connections that the configuration lets in, and for the replica itself.
fn wanted(config: &Config) -> u128 {
    let http = config.http.as_ref().map_or(0, |http| http.connections as u128);
    config.queues.connections as u128 + http + u128::from(descriptors_reserved(config))
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, path::Path};

    use super::*;

    fn sample() -> (Config, String) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/gesmas.toml");
        let text = std::fs::read_to_string(&path).expect("the sample is in the repository");
        (Config::load(&path).expect("the sample is good"), text)
    }

    /// Names of all members, as the derived debug text has them.
    fn members(config: &Config) -> BTreeSet<String> {
        let text = format!("{config:#?}");
        let name = |line: &str| {
            let (name, _) = line.trim().split_once(": ")?;
            name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_').then(|| name.into())
        };
        text.lines().filter_map(name).collect()
    }

    fn keys(value: &toml::Value, found: &mut BTreeSet<String>) {
        match value {
            toml::Value::Table(table) => {
                found.extend(table.keys().cloned());
                table.values().for_each(|value| keys(value, found));
            }
            toml::Value::Array(items) => items.iter().for_each(|item| keys(item, found)),
            _ => {}
        }
    }

    #[test]
    fn the_sample_names_every_setting() {
        let (config, text) = sample();
        let mut found = BTreeSet::new();
        keys(&toml::Value::Table(text.parse().expect("it parses")), &mut found);
        let settings = members(&config);
        assert!(settings.len() > 20, "{settings:?}");
        assert_eq!(settings.difference(&found).count(), 0, "{:?}", settings.difference(&found));
    }

    #[test]
    fn the_sample_says_what_settings_are_if_left_out() {
        let (config, text) = sample();
        let least = text.split("\nallow_plaintext").next().expect("a text has a start");
        let least: Config = toml::from_str(least).expect("the first settings are enough");
        let rest = |config: &Config| {
            let Config {
                allow_plaintext,
                overrides,
                timing,
                log,
                kernel,
                compile,
                queues,
                tracing,
                ..
            } = config;
            format!(
                "{allow_plaintext:?} {overrides:?} {timing:?} {log:?} {kernel:?} {compile:?} {queues:?} {tracing:?}"
            )
        };
        assert_eq!(rest(&config), rest(&least));
    }
}
