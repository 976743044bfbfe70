//! Which requests come in at all: Host and Origin are checked.
//!
//! A page of another site can make a browser send requests to this server. It cannot choose the
//! Origin that the browser names, nor, by a name of its own that leads here, the Host. Clients that
//! are no browsers send no Origin, and a Host that they were given by whoever set them up.
//! Invariant: a request is let in only if it addresses this server by a name that it is known by, and
//! comes from no page or from one that may call.

use axum::{
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use std::net::{IpAddr, SocketAddr};

use super::{Shared, problem::Problem};
use crate::{
    failure::{Failure, exit::Exit},
    shell::HttpConfig,
};

/// What a request must show.
pub(super) struct Admittance {
    address: SocketAddr,
    hosts: Vec<String>,
    origins: Vec<String>,
}

impl Admittance {
    pub(super) fn new(config: &HttpConfig, address: SocketAddr) -> Self {
        Self { address, hosts: config.hosts.clone(), origins: config.origins.clone() }
    }

    /// Whether a value of Host means this server. The port is not looked at: whoever forwards it may
    /// have another.
    fn knows_host(&self, host: &str) -> bool {
        let name = match host.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => host.split(':').next().unwrap_or_default(),
        };
        if self.hosts.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            return true;
        }
        match name.parse::<IpAddr>() {
            Ok(address) => address.is_loopback() || address == self.address.ip(),
            Err(_) => name.eq_ignore_ascii_case("localhost"),
        }
    }

    fn knows_origin(&self, origin: &str, host: &str) -> bool {
        self.origins.iter().any(|known| known.eq_ignore_ascii_case(origin))
            || origin.split_once("://").is_some_and(|(scheme, authority)| {
                matches!(scheme, "http" | "https") && authority.eq_ignore_ascii_case(host)
            })
    }

    fn judge(&self, headers: &HeaderMap, uri_host: Option<&str>) -> Result<(), Problem> {
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
        let host = text(header::HOST).or(uri_host).unwrap_or_default();
        if !self.knows_host(host) {
            let message = format!("this server is not known as {host:?}");
            return Err(denied("host-unknown", message, "http.hosts"));
        }
        match text(header::ORIGIN) {
            Some(origin) if !self.knows_origin(origin, host) => {
                let message = format!("pages of {origin:?} may not call");
                Err(denied("origin-unknown", message, "http.origins"))
            }
            _ => Ok(()),
        }
    }
}

fn denied(code: &str, message: String, setting: &str) -> Problem {
    let advice = format!("the setting {setting} of the replica names those that may");
    Problem::new(StatusCode::FORBIDDEN, Failure::new(Exit::Refused, code, message).advise(advice))
}

/// Lets a request pass, or answers it.
pub(super) async fn check(State(gateway): State<Shared>, request: Request, next: Next) -> Response {
    let uri_host = request.uri().authority().map(|authority| authority.as_str().to_owned());
    match gateway.admittance.judge(request.headers(), uri_host.as_deref()) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(host: &str, origin: Option<&str>) -> Result<(), String> {
        let config = HttpConfig {
            hosts: vec!["gesmas.example".into()],
            origins: vec!["https://desk.example".into()],
            ..HttpConfig::at("127.0.0.1:7180".parse().expect("an address"))
        };
        let admittance = Admittance::new(&config, config.listen);
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().expect("a value"));
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().expect("a value"));
        }
        admittance.judge(&headers, None).map_err(|problem| problem.code().into())
    }

    #[test]
    fn hosts_are_loopback_or_named() {
        for host in ["127.0.0.1:7180", "localhost", "[::1]:80", "GESMAS.example:443"] {
            assert_eq!(verdict(host, None), Ok(()), "{host}");
        }
        for host in ["evil.example", "10.0.0.1", "127.0.0.1.evil.example", ""] {
            assert_eq!(verdict(host, None), Err("host-unknown".into()), "{host}");
        }
    }

    #[test]
    fn origins_are_the_servers_own_or_named() {
        for origin in ["http://localhost:7180", "https://desk.example"] {
            assert_eq!(verdict("localhost:7180", Some(origin)), Ok(()), "{origin}");
        }
        for origin in ["http://localhost:9", "null", "http://evil.example", "file://localhost:7180"]
        {
            let verdict = verdict("localhost:7180", Some(origin));
            assert_eq!(verdict, Err("origin-unknown".into()), "{origin}");
        }
    }
}
