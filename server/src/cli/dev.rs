//! `gesmas dev`: a cluster of three replicas in this process, for trying things out.
//!
//! The replicas are real ones: real sockets on loopback, a durable log each, WebAssembly. They share
//! a process and a disk, so they survive a restart, not the loss of either.

use std::{
    fs, io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use gesmas_client::{CallFailure, protocol::CallError};
use serde_json::json;

use super::{
    connect,
    exit::Exit,
    failure::Failure,
    logging::{self, LogFormat},
    output::Output,
    serve::Stop,
};
use crate::{
    folder as folders, gateway,
    shell::{self, Config, Descriptors, HttpConfig, LogConfig, Member, Secret, Server},
};

/// Replicas of the cluster.
const REPLICAS: u16 = 3;
/// How long the first election, and loading a class, may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Log files of a cluster that is only tried out are small, MiB.
const FILE_MIB: u64 = 8;

/// `gesmas dev`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesmas dev
  gesmas dev --data /tmp/try --listen 127.0.0.1:0 --http 127.0.0.1:0

Replica 1 listens for clients on the given port, replicas 2 and 3 on the next two, and so for HTTP;
port 0 takes free ones. The folder keeps the state; remove it to start over.")]
pub(crate) struct DevArgs {
    /// Folder that keeps the state.
    #[arg(long, value_name = "DIR", default_value = "gesmas-dev")]
    data: PathBuf,
    /// Where clients of replica 1 connect.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7100")]
    listen: SocketAddr,
    /// Where replica 1 serves HTTP.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7180")]
    http: SocketAddr,
    /// Form of the log, which goes to stderr.
    #[arg(long, value_enum, default_value = "text")]
    log_format: LogFormat,
}

pub(super) async fn run(args: &DevArgs, output: Output) -> Result<(), Failure> {
    logging::start(args.log_format, "warn");
    let stop = Stop::listen()?;
    let configs = configs(args)?;
    let descriptors = Descriptors::raise().shared_by(REPLICAS.into());
    let mut servers = Vec::new();
    let mut gateways = Vec::new();
    for config in &configs {
        let started = shell::start_among(config, &[], descriptors).await;
        let server = started.map_err(|error| {
            Failure::from(error).advise("another port with --listen, another folder with --data")
        })?;
        let http = config.http.as_ref().expect("every replica here serves HTTP");
        let gateway = gateway::start(http, &server).await;
        gateways.push(gateway.map_err(|error| {
            Failure::from(error).advise("another port with --http, another folder with --data")
        })?);
        servers.push(server);
    }
    let addresses = Addresses {
        endpoints: servers.iter().map(|server| server.clients().to_string()).collect(),
        http: gateways.iter().map(|gateway| format!("http://{}", gateway.address())).collect(),
    };
    let ended = any_ended(&servers);
    let result = tokio::select! {
        () = ended => Err(Failure::new(Exit::Stopped, "replica-stopped", "a replica stopped")),
        result = serve(args, &addresses, output) => result,
        _ = stop.received() => Ok(()),
    };
    drop(gateways);
    for server in servers {
        // Why a replica has stopped by itself says more than that it has.
        server.stop().await?;
    }
    result
}

/// Where the replicas are reached.
struct Addresses {
    endpoints: Vec<String>,
    http: Vec<String>,
}

/// Makes the cluster ready, says so, and goes on for ever.
async fn serve(args: &DevArgs, addresses: &Addresses, output: Output) -> Result<(), Failure> {
    let Addresses { endpoints, http } = addresses;
    load_classes(endpoints).await?;
    let value = json!({ "endpoints": endpoints, "http": http, "data": args.data });
    output.value(&value, || {
        format!(
            "A cluster of three replicas is ready; its state is in {}. Ctrl-C stops it.

    export GESMAS_ENDPOINTS={}

Try, in another terminal:

    gesmas object create Queue/jobs 16
    gesmas call Queue/jobs produce 'resize cat.png'
    gesmas call Queue/jobs consume
    gesmas object show Queue/jobs
    gesmas class show Queue
    gesmas cluster status
    curl -X POST {}/v1/objects/Counter/visits/increment",
            args.data.display(),
            endpoints.join(","),
            http[0]
        )
    });
    std::future::pending().await
}

async fn any_ended(servers: &[Server]) {
    match servers {
        [first, second, third] => tokio::select! {
            () = first.ended() => {}
            () = second.ended() => {}
            () = third.ended() => {}
        },
        _ => panic!("the cluster has {REPLICAS} replicas"),
    }
}

/// Waits for a leader and loads the standard classes; those of an earlier run stay.
async fn load_classes(endpoints: &[String]) -> Result<(), Failure> {
    let client = connect::connect(endpoints.to_vec(), PATIENCE).await?;
    let session = client.session().patience(PATIENCE).open().await?;
    for standard in gesmas_classes::ALL {
        let put = session.put_class(standard.name, standard.module).deadline(PATIENCE);
        match put.await {
            Ok(_) => {}
            Err(CallFailure::Failed(CallError::ClassExists { .. }, _)) => tracing::warn!(
                class = standard.name,
                "the folder keeps another version of the class; a new folder gets this one"
            ),
            Err(failure) => return Err(failure.into()),
        }
    }
    session.close().await;
    client.shutdown().await;
    Ok(())
}

fn configs(args: &DevArgs) -> Result<Vec<Config>, Failure> {
    let cluster = cluster(&args.data).map_err(|error| Failure::file(&args.data, &error))?;
    let secret = args.data.join("peer-secret");
    Secret::make(&secret).map_err(|error| Failure::file(&secret, &error))?;
    let members = members().map_err(|error| {
        Failure::new(Exit::Stopped, "address", format!("no port is free for the peers: {error}"))
    })?;
    let config = |replica: u16| {
        let config = Config {
            cluster: cluster.clone(),
            replica: replica.into(),
            data: args.data.join(format!("replica-{replica}")),
            listen: nth(args.listen, replica, "--listen")?,
            http: Some(HttpConfig::at(nth(args.http, replica, "--http")?)),
            members: members.clone(),
            peer_secret_file: secret.clone(),
            allow_plaintext: false,
            timing: shell::Timing::default(),
            log: LogConfig { file_mib: FILE_MIB, ..LogConfig::default() },
            snapshots: Default::default(),
            kernel: shell::KernelConfig::default(),
            compile: shell::CompileConfig::default(),
            queues: shell::QueueConfig::default(),
            overrides: Vec::new(),
            tracing: shell::TracingConfig::default(),
        };
        config.check()?;
        Ok(config)
    };
    (1..=REPLICAS).map(config).collect()
}

/// The address of a replica, given that of the first.
fn nth(first: SocketAddr, replica: u16, option: &str) -> Result<SocketAddr, Failure> {
    let port = match first.port() {
        0 => Some(0),
        port => port.checked_add(replica - 1),
    };
    let port = port
        .ok_or_else(|| Failure::usage(format!("{option} leaves no port for the other replicas")))?;
    Ok(SocketAddr::new(first.ip(), port))
}

/// Free ports for the replicas among themselves. All are held until all are known, so that no two
/// are the same; another program may take one before its replica does, and then the start fails.
fn members() -> io::Result<Vec<Member>> {
    let held: Vec<_> = (1..=REPLICAS)
        .map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
        .collect::<Result<_, _>>()?;
    let member = |(listener, replica): (&TcpListener, u16)| {
        Ok(Member { replica: replica.into(), peers: listener.local_addr()? })
    };
    held.iter().zip(1..=REPLICAS).map(member).collect()
}

/// The number of the cluster in this folder, made up when the folder is new.
fn cluster(data: &Path) -> io::Result<String> {
    let path = data.join("cluster");
    match fs::read_to_string(&path) {
        Ok(text) => return Ok(text.trim().into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    folders::make(data)?;
    let mut number = [0; 16];
    getrandom::fill(&mut number).map_err(|error| io::Error::other(error.to_string()))?;
    let text = format!("{:032x}\n", u128::from_le_bytes(number));
    // Written aside and renamed: a crash leaves no half of a number.
    let aside = data.join("cluster.new");
    fs::write(&aside, &text)?;
    fs::File::open(&aside)?.sync_all()?;
    fs::rename(&aside, &path)?;
    folders::sync(data)?;
    Ok(text.trim().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(data: &Path, listen: &str) -> DevArgs {
        DevArgs {
            data: data.into(),
            listen: listen.parse().expect("it is an address"),
            http: "127.0.0.1:0".parse().expect("it is an address"),
            log_format: LogFormat::Text,
        }
    }

    #[test]
    fn a_folder_stays_the_same_cluster() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let first = configs(&args(folder.path(), "127.0.0.1:7100")).expect("it is a good place");
        let again = configs(&args(folder.path(), "127.0.0.1:0")).expect("it is a good place");
        assert_eq!(first[0].cluster, again[2].cluster);
        assert_eq!(first[2].listen.port(), 7102);
        assert_eq!(again[2].listen.port(), 0);
        let problem = configs(&args(folder.path(), "127.0.0.1:65535"));
        assert_eq!(problem.expect_err("there is one port only").exit, Exit::Usage);
        let problem = configs(&args(folder.path(), "10.0.0.1:7100"));
        assert!(problem.expect_err("it is not loopback").message.contains("loopback"));
    }
}
