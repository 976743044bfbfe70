//! A headless Chromium with one window.
//!
//! Invariants: a question is asked again until its answer is the one that is waited for, never
//! once after a pause; the browser is ended by the id that it names itself.

use std::{
    fs,
    future::Future,
    io,
    path::PathBuf,
    time::{Duration, Instant},
};

use gesmas_cluster_tests::wait;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::Driver;

/// The member by which WebDriver marks an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// What the user prefers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Dark letters on light ground.
    Light,
    /// Light letters on dark ground.
    Dark,
}

/// The size of a window, and the scheme of its colours.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
    /// Colours.
    pub scheme: Scheme,
}

/// See the file's head.
#[derive(Debug)]
pub struct Browser {
    client: reqwest::Client,
    session: String,
    process: Option<Pid>,
    _driver: Driver,
    profile: TempDir,
}

impl Browser {
    /// Starts one.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn start() -> Self {
        let driver = Driver::start();
        let profile = tempfile::Builder::new().prefix("gesmas-page-").tempdir();
        let profile = profile.expect("there is a temporary folder");
        let client = reqwest::Client::builder().timeout(wait::PATIENCE).build();
        let client = client.expect("a client can be made");
        // Root has no sandbox; it shows nothing but the page of a server of this test.
        let arguments = [
            "--headless=new".to_owned(),
            "--no-sandbox".into(),
            "--disable-gpu".into(),
            "--disable-dev-shm-usage".into(),
            "--disable-background-networking".into(),
            "--hide-scrollbars".into(),
            "--no-first-run".into(),
            format!("--user-data-dir={}", profile.path().display()),
        ];
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": { "args": arguments },
            "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
        } } });
        let base = driver.base();
        let response = client.post(format!("{base}/session")).json(&wanted).send().await;
        let response = response.expect("chromedriver answers");
        let body: Value = response.json().await.expect("it answers by JSON");
        let made = &body["value"];
        let id = made["sessionId"].as_str().unwrap_or_else(|| panic!("no browser: {body}"));
        let process = made["capabilities"]["goog:processID"].as_i64();
        let process = process.and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let session = format!("{base}/session/{id}");
        let browser = Self { client, session, process, _driver: driver, profile };
        // Its first page is one of its own, of which the logs are to say nothing.
        browser.open("about:blank").await;
        browser.complaints().await;
        browser.requests().await;
        browser
    }

    async fn try_command(&self, path: &str, body: &Value) -> Result<Value, Value> {
        let request = self.client.post(format!("{}/{path}", self.session)).json(body);
        let response = request.send().await.expect("chromedriver answers");
        let good = response.status().is_success();
        let body: Value = response.json().await.expect("it answers by JSON");
        let value = body["value"].clone();
        if good { Ok(value) } else { Err(value) }
    }

    async fn command(&self, path: &str, body: Value) -> Value {
        let done = self.try_command(path, &body).await;
        done.unwrap_or_else(|error| panic!("{path} {body}: {error}"))
    }

    /// A command of the browser's own protocol.
    async fn devtools(&self, command: &str, parameters: Value) -> Value {
        self.command("goog/cdp/execute", json!({ "cmd": command, "params": parameters })).await
    }

    /// Gives the window its size and colours.
    pub async fn arrange(&self, window: Window) {
        let Window { width, height, scheme } = window;
        let size = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false,
        });
        self.devtools("Emulation.setDeviceMetricsOverride", size).await;
        let value = if scheme == Scheme::Dark { "dark" } else { "light" };
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": value }] });
        self.devtools("Emulation.setEmulatedMedia", media).await;
    }

    /// Opens an address.
    pub async fn open(&self, address: &str) {
        self.command("url", json!({ "url": address })).await;
    }

    /// The value of a script's `return`.
    pub async fn run(&self, script: &str) -> Value {
        self.command("execute/sync", json!({ "script": script, "args": [] })).await
    }

    /// The texts of all elements that match, as they are shown.
    pub async fn texts(&self, selector: &str) -> Vec<String> {
        let script = format!(
            "return [...document.querySelectorAll({})].map((found) => found.innerText)",
            json!(selector)
        );
        let texts = self.run(&script).await;
        let texts = texts.as_array().expect("it is a list").iter();
        texts.map(|text| text.as_str().unwrap_or_default().replace('\u{202f}', "")).collect()
    }

    /// Waits until the texts of what matches are as wanted.
    pub async fn await_texts(
        &self,
        what: &str,
        selector: &str,
        wanted: impl Fn(&[String]) -> bool,
    ) -> Vec<String> {
        let wanted = &wanted;
        self.awaiting(what, || async move {
            let texts = self.texts(selector).await;
            wanted(&texts).then_some(texts)
        })
        .await
    }

    /// Waits until something that matches has a text.
    pub async fn await_text(&self, selector: &str, part: &str) {
        let what = format!("{part:?} in {selector}");
        self.await_texts(&what, selector, |texts| texts.iter().any(|text| text.contains(part)))
            .await;
    }

    /// Waits for an answer; shows the page when it does not come.
    async fn awaiting<T, F: Future<Output = Option<T>>>(
        &self,
        what: &str,
        look: impl FnMut() -> F,
    ) -> T {
        let found = wait::until_some(what, look);
        tokio::select! {
            found = found => found,
            () = self.complain(what) => unreachable!("it ends after what it complains of"),
        }
    }

    /// Says what the page shows shortly before patience is over.
    async fn complain(&self, what: &str) {
        tokio::time::sleep(wait::PATIENCE - Duration::from_secs(2)).await;
        eprintln!("still no {what}; the page shows:\n{}", self.texts("body").await.join("\n"));
        std::future::pending::<()>().await;
    }

    async fn element(&self, selector: &str) -> Option<String> {
        let by = json!({ "using": "css selector", "value": selector });
        let found = self.try_command("element", &by).await.ok()?;
        found[ELEMENT].as_str().map(Into::into)
    }

    /// Does something with an element once it is there and can be.
    async fn act(&self, selector: &str, action: &str, body: Value) {
        let body = &body;
        self.awaiting(&format!("{action} of {selector}"), || async move {
            let element = self.element(selector).await?;
            self.try_command(&format!("element/{element}/{action}"), body).await.ok()
        })
        .await;
    }

    /// Clicks what matches, as a user can: what is covered or hidden is waited for.
    pub async fn click(&self, selector: &str) {
        self.act(selector, "click", json!({})).await;
    }

    /// Types into what matches, behind what is there.
    pub async fn type_into(&self, selector: &str, text: &str) {
        self.act(selector, "value", json!({ "text": text })).await;
    }

    /// Replaces what is typed.
    pub async fn retype(&self, selector: &str, text: &str) {
        self.act(selector, "clear", json!({})).await;
        self.type_into(selector, text).await;
    }

    /// Chooses an option by the beginning of its text.
    pub async fn choose(&self, selector: &str, option: &str) {
        let script = format!(
            "const list = document.querySelector({});
             const wanted = [...(list?.options ?? [])].find((found) => found.text.startsWith({}));
             if (!wanted) return false;
             list.value = wanted.value;
             list.dispatchEvent(new Event(\"change\", {{ bubbles: true }}));
             return true;",
            json!(selector),
            json!(option)
        );
        let script = &script;
        self.awaiting(&format!("the option {option:?}"), || async move {
            (self.run(script).await == true).then_some(())
        })
        .await;
    }

    /// Presses a key wherever the focus is.
    pub async fn press(&self, key: &str) {
        let steps = json!([{ "type": "keyDown", "value": key }, { "type": "keyUp", "value": key }]);
        let keys = json!({ "actions": [{ "type": "key", "id": "keys", "actions": steps }] });
        self.command("actions", keys).await;
    }

    /// By how many pixels the page is wider than its window.
    pub async fn overflow(&self) -> i64 {
        let script = "return document.documentElement.scrollWidth - window.innerWidth";
        self.run(script).await.as_i64().expect("it is a number")
    }

    /// Keeps a picture of the whole page below `target/page`.
    ///
    /// # Panics
    /// When it cannot be kept.
    pub async fn picture(&self, name: &str) {
        let script = "return Math.max(innerHeight, document.documentElement.scrollHeight)";
        let height = self.run(script).await;
        let width = self.run("return innerWidth").await;
        let shot = json!({
            "format": "png", "captureBeyondViewport": true,
            "clip": { "x": 0, "y": 0, "width": width, "height": height, "scale": 1 },
        });
        let shot = self.devtools("Page.captureScreenshot", shot).await;
        let png = decode(shot["data"].as_str().expect("it is a text"));
        let folder = pictures();
        fs::create_dir_all(&folder).expect("the target folder can be written to");
        fs::write(folder.join(format!("{name}.png")), png).expect("a picture can be written");
    }

    async fn log(&self, kind: &str) -> Vec<Value> {
        let entries = self.command("se/log", json!({ "type": kind })).await;
        entries.as_array().expect("a log is a list").clone()
    }

    /// What the console has complained of since it was asked last: source and text.
    pub async fn complaints(&self) -> Vec<(String, String)> {
        let text =
            |entry: &Value, member: &str| entry[member].as_str().unwrap_or_default().to_owned();
        let entries = self.log("browser").await;
        let severe = entries.iter().filter(|entry| entry["level"] == "SEVERE");
        severe.map(|entry| (text(entry, "source"), text(entry, "message"))).collect()
    }

    /// The addresses of all requests since it was asked last.
    pub async fn requests(&self) -> Vec<String> {
        let entries = self.log("performance").await.into_iter();
        let message = |entry: Value| {
            let text = entry["message"].as_str()?.to_owned();
            let message: Value = serde_json::from_str(&text).ok()?;
            let message = &message["message"];
            let sent = message["method"] == "Network.requestWillBeSent";
            let url = message["params"]["request"]["url"].as_str()?;
            sent.then(|| url.to_owned())
        };
        entries.filter_map(message).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if let Some(process) = self.process {
            // One that has ended by itself cannot be killed, and need not.
            let _ended = kill_process(process, Signal::KILL);
        }
        // Processes of the browser's own end after it, and write until they do.
        let start = Instant::now();
        while start.elapsed() < wait::PATIENCE {
            match fs::remove_dir_all(self.profile.path()) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                _ => break,
            }
        }
    }
}

/// Test executables lie in `TARGET/PROFILE/deps`.
fn pictures() -> PathBuf {
    let test = std::env::current_exe().expect("a process knows its executable");
    let target = test.ancestors().nth(3).expect("it lies three folders deep in the target folder");
    target.join("page")
}

/// Base64 with padding, as the browser's protocol writes it.
fn decode(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => u32::from(byte - b'A'),
        b'a'..=b'z' => u32::from(byte - b'a') + 26,
        b'0'..=b'9' => u32::from(byte - b'0') + 52,
        b'+' => 62,
        b'/' => 63,
        _ => panic!("{byte} is no digit of base64"),
    };
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let digits: Vec<_> = text.bytes().filter(|byte| *byte != b'=').map(digit).collect();
    for group in digits.chunks(4) {
        let bits = group.iter().fold(0, |bits, digit| bits << 6 | digit) << (6 * (4 - group.len()));
        bytes.extend(&bits.to_be_bytes()[1..group.len()]);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read() {
        for (text, bytes) in [
            ("", &b""[..]),
            ("Zg==", b"f"),
            ("Zm8=", b"fo"),
            ("Zm9v", b"foo"),
            ("+/8=", &[0xfb, 0xff]),
        ] {
            assert_eq!(decode(text), bytes, "{text}");
        }
    }
}
