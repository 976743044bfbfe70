//! The page: what a browser shows at `/` of a replica, and its parts below `/page/`.
//!
//! It is a client of `/v1` and `/metrics` like any other, and shows one replica's view. Its parts
//! are plain ES modules, a style sheet and an icon, inside the binary: what is reviewed is what is
//! served, and it works without any other host.
//! Invariants: nothing is loaded from elsewhere and no script stands in the document, which the
//! browser is told to enforce; a part that did not change is not sent again, and one that did is
//! never taken from a cache.
//! Not here: what the page shows (`page/`), and what it may ask for (the other modules).

use std::sync::LazyLock;

use axum::{
    extract::{Path, rejection::PathRejection},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};

use super::problem::{self, Problem};

/// A file of the page.
struct Part {
    name: &'static str,
    kind: &'static str,
    body: &'static str,
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! parts {
    ($($name:literal: $kind:expr),* $(,)?) => {
        [$(Part { name: $name, kind: $kind, body: include_str!(concat!("page/", $name)) }),*]
    };
}

/// The document comes first.
const PARTS: [Part; 20] = parts![
    "index.html": "text/html; charset=utf-8",
    "style.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "actions.js": SCRIPT,
    "api.js": SCRIPT,
    "app.js": SCRIPT,
    "chart.js": SCRIPT,
    "dom.js": SCRIPT,
    "format.js": SCRIPT,
    "members.js": SCRIPT,
    "metrics.js": SCRIPT,
    "parts.js": SCRIPT,
    "types.js": SCRIPT,
    "view-call.js": SCRIPT,
    "view-classes.js": SCRIPT,
    "view-cluster.js": SCRIPT,
    "view-errors.js": SCRIPT,
    "view-objects.js": SCRIPT,
    "view-waits.js": SCRIPT,
    "waits.js": SCRIPT,
];

/// What the browser must not do, whatever an object, class or error is called: run or load anything
/// that is not one of the parts, make markup of texts, or show the page inside another.
const POLICY: &str = "default-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'; object-src 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";

/// By content, so that it changes with every change and is the same on all replicas.
static TAGS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let tag = |part: &Part| format!("\"{}\"", &blake3::hash(part.body.as_bytes()).to_hex()[..32]);
    PARTS.iter().map(tag).collect()
});

/// `GET /`: the document.
pub(super) async fn index(headers: HeaderMap) -> Response {
    answer(0, &headers)
}

/// `GET /page/NAME`: a part.
pub(super) async fn part(
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Path(name) = path?;
    match PARTS.iter().position(|part| part.name == name) {
        Some(index) => Ok(answer(index, &headers)),
        None => Err(problem::not_found().await),
    }
}

/// A part, or that the browser has it.
fn answer(index: usize, headers: &HeaderMap) -> Response {
    let (part, tag) = (&PARTS[index], TAGS[index].as_str());
    let mut response = if has(headers, tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(header::CONTENT_TYPE, part.kind)], part.body).into_response()
    };
    let said = [
        (header::ETAG, tag),
        // Kept, but asked for again each time: another binary may serve another page.
        (header::CACHE_CONTROL, "no-cache"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    for (name, value) in said {
        let value = HeaderValue::from_str(value).expect("it is written as a header's value");
        response.headers_mut().insert(name, value);
    }
    response
}

/// Whether a request says that its sender has what has this tag. RFC 9110: tags are compared weakly.
fn has(headers: &HeaderMap, tag: &str) -> bool {
    let lists = headers.get_all(header::IF_NONE_MATCH).iter();
    let mut tags = lists.filter_map(|list| list.to_str().ok()).flat_map(|list| list.split(','));
    tags.any(|known| {
        let known = known.trim();
        known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conditional(tag: &str) -> StatusCode {
        let mut headers = HeaderMap::new();
        headers.insert(header::IF_NONE_MATCH, tag.parse().expect("a value"));
        answer(1, &headers).status()
    }

    #[test]
    fn a_part_is_sent_once_and_asked_for_each_time() {
        let response = answer(1, &HeaderMap::new());
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()[header::CONTENT_TYPE], "text/css; charset=utf-8");
        assert_eq!(response.headers()[header::CACHE_CONTROL], "no-cache");
        let tag = response.headers()[header::ETAG].to_str().expect("it is a text").to_owned();
        for same in [tag.clone(), format!("W/{tag}"), format!("\"x\", {tag}"), "*".into()] {
            assert_eq!(conditional(&same), StatusCode::NOT_MODIFIED, "{same}");
        }
        for other in ["\"x\"", "x", TAGS[0].as_str()] {
            assert_eq!(conditional(other), StatusCode::OK, "{other}");
        }
    }

    #[test]
    fn every_answer_names_the_policy() {
        for index in 0..PARTS.len() {
            let response = answer(index, &HeaderMap::new());
            let policy = response.headers()[header::CONTENT_SECURITY_POLICY].to_str();
            let policy = policy.expect("it is a text");
            assert!(policy.starts_with("default-src 'self';"), "{policy}");
            assert!(!policy.contains("unsafe"), "{policy}");
            assert_eq!(response.headers()[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
        }
    }

    #[tokio::test]
    async fn parts_are_found_by_name_alone() {
        for part in &PARTS {
            let found = super::part(Ok(Path(part.name.into())), HeaderMap::new()).await;
            assert_eq!(found.expect("it is there").headers()[header::CONTENT_TYPE], part.kind);
            let ending = part.name.rsplit('.').next().expect("it has an ending");
            let kinds = [("html", "text/html"), ("css", "text/css"), ("svg", "image/svg+xml")];
            let kind = kinds.iter().find(|(known, _)| *known == ending);
            assert!(part.kind.starts_with(kind.map_or("text/javascript", |(_, kind)| *kind)));
        }
        for name in ["", "nothing.js", "../page.rs", "/etc/passwd", "App.js"] {
            let missing = super::part(Ok(Path(name.into())), HeaderMap::new()).await;
            assert_eq!(missing.expect_err("it is not there").code(), "path-unknown", "{name}");
        }
    }

    #[test]
    fn parts_name_only_each_other() {
        for part in &PARTS {
            let outside = part.body.replace("http://www.w3.org/2000/svg", "");
            assert!(!outside.contains("://") && !outside.contains("\"//"), "{}", part.name);
            let quoted = part.body.lines().filter(|line| line.contains("from \"./"));
            for line in quoted {
                let name = line.split("\"./").nth(1).and_then(|rest| rest.split('"').next());
                let name = name.expect("a module is named in quotes");
                assert!(PARTS.iter().any(|part| part.name == name), "{}: {line}", part.name);
            }
        }
        let document = PARTS[0].body;
        let named = document.split("\"/page/").skip(1).filter_map(|rest| rest.split('"').next());
        let named: Vec<_> = named.collect();
        assert!(named.len() >= 3, "{named:?}");
        for name in named {
            assert!(PARTS.iter().any(|part| part.name == name), "the document names {name}");
        }
    }

    /// Texts of users reach the page only as text.
    #[test]
    fn no_part_makes_markup_of_texts() {
        let ways = [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "srcdoc",
            "createContextualFragment",
            "DOMParser",
            "setHTML",
            "javascript:",
        ];
        for part in PARTS.iter().filter(|part| part.kind == SCRIPT) {
            for way in ways {
                assert!(!part.body.contains(way), "{} has {way}", part.name);
            }
        }
        let document = PARTS[0].body;
        assert_eq!(
            document.matches("<script").count(),
            1,
            "the only script is a module of its own"
        );
        for inline in ["<style", " style=", " onclick", " onload"] {
            assert!(!document.contains(inline), "the document has {inline}");
        }
    }

    #[test]
    fn every_part_says_what_it_is() {
        for part in &PARTS {
            let start = part.body.trim_start_matches("<!doctype html>").trim_start();
            let comment = ["//", "/*", "<!--"].iter().any(|mark| start.starts_with(mark));
            assert!(comment, "{} has no comment at its head", part.name);
            assert!(part.body.lines().count() <= 500, "{} is too long", part.name);
        }
    }
}
