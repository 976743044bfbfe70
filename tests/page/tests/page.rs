//! The page in a real browser, against real replicas. Pictures of it are left in `target/page`.

mod stage;

use gesmas_cluster_tests::Cluster;
use gesmas_page_tests::{Browser, Scheme, Window};
use serde_json::json;

use crate::stage::Stage;

const WIDE: (u32, u32) = (1280, 900);
const NARROW: (u32, u32) = (390, 844);

const fn window((width, height): (u32, u32), scheme: Scheme) -> Window {
    Window { width, height, scheme }
}

/// One at a time: each has three replicas and a browser, and a machine may have two cores.
static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Checks what must hold of every view in every window.
async fn assert_calm(browser: &Browser, base: &str) {
    assert_eq!(browser.complaints().await, [], "the console complains");
    let elsewhere = browser.requests().await;
    let elsewhere: Vec<_> = elsewhere.iter().filter(|url| !url.starts_with(base)).collect();
    assert_eq!(elsewhere, [""; 0], "the page asks others");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_cluster_does_is_shown() {
    let _turn = TURN.lock().await;
    let cluster = Cluster::start().await;
    let stage = Stage::set(&cluster).await;
    let browser = Browser::start().await;
    let base = stage.base();
    browser.arrange(window(WIDE, Scheme::Light)).await;
    browser.open(&format!("{base}/")).await;
    let leader = format!("leader {}", cluster.leader().await + 1);
    browser.await_text("#state", &leader).await;
    assert_eq!(browser.texts("#banner p").await, [""; 0], "nothing is wrong");
    browser.press("\u{e004}").await;
    assert_eq!(browser.run("return document.activeElement.id").await, "skip", "Tab begins here");
    check_overview(&browser, &stage).await;
    check_objects(&browser, &stage).await;
    check_waits(&browser, &stage).await;
    check_lists(&browser, &stage).await;
    assert_calm(&browser, base).await;
    for (name, place) in stage::VIEWS {
        browser.open(&format!("{base}/{place}")).await;
        for (size, kind) in [(WIDE, "wide"), (NARROW, "narrow")] {
            for (scheme, colours) in [(Scheme::Light, "light"), (Scheme::Dark, "dark")] {
                browser.arrange(window(size, scheme)).await;
                browser.await_texts("the view", "main h2", |texts| !texts.is_empty()).await;
                let overflow = browser.overflow().await;
                assert!(overflow <= 0, "{name} is {overflow} pixels wider than {size:?}");
                browser.picture(&format!("{name}-{kind}-{colours}")).await;
            }
        }
    }
    assert_calm(&browser, base).await;
}

async fn check_overview(browser: &Browser, stage: &Stage) {
    let members = browser.await_texts("the members", ".members li", |texts| texts.len() == 3).await;
    assert!(members[0].starts_with("1 this one"), "{members:?}");
    assert_eq!(members.iter().filter(|text| text.contains("leader")).count(), 1, "{members:?}");
    let calls = "section[aria-label='Blocked longest'] tbody tr";
    let calls = browser.await_texts("blocked calls", calls, |texts| texts.len() == 8).await;
    for (text, method) in calls.iter().zip(["consume", "consume", "consume", "lock", "lock"]) {
        assert!(text.contains(method), "{calls:?}");
    }
    browser.await_text(".tiles", "Blocked\n8 calls").await;
    // The page's own question shows in the times.
    browser
        .await_texts("a round trip", ".tiles li:nth-child(7)", |texts| texts[0].contains(" ms"))
        .await;
    let errors = "section[aria-label='Last errors']";
    browser.await_text(errors, &stage.error).await;
    browser.await_text(errors, "/v1/objects/Hostile/bad/panic_now").await;
}

async fn check_objects(browser: &Browser, stage: &Stage) {
    let base = stage.base();
    browser.open(&format!("{base}/#/objects/Queue/jobs")).await;
    let waiters = "table[aria-label='Semaphores'] tr.waits td:last-child";
    let waiters = browser.await_texts("the takers", waiters, |texts| texts.len() == 1).await;
    assert_eq!(waiters, [stage.takers.join(", ")], "in the order in which they came");
    browser.open(&format!("{base}/#/objects/Queue/full")).await;
    let state = "table[aria-label='State']";
    browser.await_text(state, "<img src=x onerror=alert(1)>").await;
    let semaphores = browser.texts("table[aria-label='Semaphores'] tbody tr").await;
    assert!(semaphores.iter().any(|text| text.starts_with("free\t0")), "{semaphores:?}");
    assert_eq!(browser.texts("main img").await, [""; 0], "texts stay texts");
    browser.open(&format!("{base}/#/objects/Hostile/bad")).await;
    browser.await_text("table[aria-label='Timers and watches']", "alarm").await;
    let faults = "ul[aria-label='Faults'] > li";
    let faults = browser.await_texts("two faults", faults, |texts| texts.len() == 2).await;
    for (text, expected) in faults.iter().zip([r#"{ "expected": "7" }"#, r#"{ "expected": "8" }"#])
    {
        assert!(text.contains(expected) && text.contains("the mark is 1"), "{faults:?}");
    }
    browser.open(&format!("{base}/#/objects")).await;
    let rows = "table[aria-label='Objects'] tbody tr";
    browser.await_texts("all objects", rows, |texts| texts.len() == 8).await;
    browser.type_into("#filter-name", "jo").await;
    let found = browser.await_texts("one object", rows, |texts| texts.len() == 1).await;
    assert!(found[0].starts_with("Queue/jobs"), "{found:?}");
    assert_eq!(browser.run("return location.hash").await, "#/objects?name=jo");
    browser.retype("#filter-name", "o").await;
    browser.choose("#filter-class", "Lock").await;
    let found = browser.await_texts("two locks", rows, |texts| texts.len() == 2).await;
    assert!(found[0].starts_with("Lock/one") && found[1].starts_with("Lock/two"), "{found:?}");
}

async fn check_waits(browser: &Browser, stage: &Stage) {
    browser.open(&format!("{}/#/waits", stage.base())).await;
    let lock = "article[aria-label='Lock/mail mutex']";
    browser.await_text(&format!("{lock} .owners"), &format!("session {}", stage.holder)).await;
    let rivals = browser.texts(&format!("{lock} li")).await;
    assert_eq!(rivals.len(), 2, "{rivals:?}");
    for (text, rival) in rivals.iter().zip(&stage.rivals) {
        assert!(text.contains(&format!("session {rival}")), "{rivals:?} in the order of {rival}");
    }
    let [one, two] = &stage.entangled;
    let cycle = browser.await_texts("a cycle", ".cycles li", |texts| texts.len() == 1).await;
    let nodes: Vec<_> = cycle[0].split(" → ").filter(|node| !node.starts_with("call ")).collect();
    let of = |session: &str| format!("session {session}");
    let wanted = [of(one), "Lock/two mutex".into(), of(two), "Lock/one mutex".into(), of(one)];
    assert_eq!(nodes, wanted);
    let hot = browser.texts("article.cycle h3").await;
    assert_eq!(hot.len(), 2, "{hot:?}");
    assert!(hot.iter().all(|text| text.contains("in a cycle")), "{hot:?}");
}

async fn check_lists(browser: &Browser, stage: &Stage) {
    let base = stage.base();
    browser.open(&format!("{base}/#/sessions/{}", stage.holder)).await;
    let cells = "table[aria-label='Sessions'] tbody td";
    let cells = browser.await_texts("a session", cells, |texts| !texts.is_empty()).await;
    let columns = [(0, &stage.holder[..]), (2, "300s"), (3, "2"), (6, "1")];
    for (column, wanted) in columns {
        assert_eq!(cells[column], wanted, "a lock and a seat, one event: {cells:?}");
    }
    browser.open(&format!("{base}/#/classes")).await;
    browser.await_text("table[aria-label='Classes']", "Hostile").await;
    browser.open(&format!("{base}/#/classes/Lock")).await;
    browser.await_text(".methods", "lock_for(owner: u64, duration: duration) → option<u64>").await;
    browser.await_text(".methods", "The holder of the lock.").await;
    browser.await_text("table[aria-label='Fields']", "mutex").await;
    browser.open(&format!("{base}/#/errors")).await;
    browser.await_text("table[aria-label='Errors']", &stage.error).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn methods_are_called_and_calls_and_sessions_ended_from_the_page() {
    let _turn = TURN.lock().await;
    let cluster = Cluster::start().await;
    let stage = Stage::set(&cluster).await;
    let browser = Browser::start().await;
    let base = stage.base();
    browser.arrange(window(WIDE, Scheme::Light)).await;
    browser.open(&format!("{base}/#/objects/Counter/visits")).await;
    browser.choose("select[name=method]", "add").await;
    browser.type_into("input[name='argument number']", "9007199254740993").await;
    // Keys alone: the focus is in the field, and Enter sends the form.
    browser.press("\u{e007}").await;
    browser.await_text(".runs .done .result", "\"9007199254740993\"").await;
    browser.await_text("table[aria-label='State']", "9007199254740993").await;

    browser.open(&format!("{base}/#/objects/Queue/full")).await;
    browser.choose("select[name=method]", "produce").await;
    browser.type_into("input[name='argument item']", "too much").await;
    browser.click("form.call button.main").await;
    browser.await_text(".runs .running", "Queue/full produce").await;
    stage.blocked("Queue", "full", 1).await;
    browser.await_text("table[aria-label='Semaphores']", "free").await;
    browser.picture("call-blocked").await;
    browser.click(".runs .running button").await;
    browser.await_text(".runs .failed", "cancelled from this page").await;
    stage.blocked("Queue", "full", 0).await;
    check_failure(&browser, &stage).await;
    check_session(&browser, &stage).await;
    check_faults(&browser, &stage).await;
    check_ends(&browser, &stage).await;
    for (source, text) in browser.complaints().await {
        // That a call failed is what the browser has to say of it; and that a session which was shown
        // is over by now.
        let known = ["/v1/objects/", "/v1/sessions/"].iter().any(|path| text.contains(path));
        assert!(source == "network" && known, "{source}: {text}");
    }
}

/// A method that panics: its problem and id are shown, by the form and among the errors.
async fn check_failure(browser: &Browser, stage: &Stage) {
    browser.open(&format!("{}/#/objects/Hostile/bad", stage.base())).await;
    browser.choose("select[name=method]", "panic_now").await;
    browser.click("form.call button.main").await;
    let failed = ".runs li:first-child.failed";
    let failed = browser.await_texts("a failure", failed, |texts| {
        texts.iter().any(|text| text.contains("Hostile/bad panic_now") && text.contains("id "))
    });
    let failed = failed.await;
    let id = failed[0].split("id ").nth(1).and_then(|rest| rest.get(..16)).expect("it has an id");
    assert_ne!(id, stage.error, "each failure has its own");
    browser.open(&format!("{}/#/errors", stage.base())).await;
    browser.await_text("table[aria-label='Errors'] tbody tr:first-child", id).await;
}

/// A session that the page opens holds a lock, and is chosen for the next call.
async fn check_session(browser: &Browser, stage: &Stage) {
    browser.open(&format!("{}/#/objects/Lock/page", stage.base())).await;
    browser.choose("select[name=method]", "lock").await;
    browser.choose("select[name=session]", "a new one").await;
    browser.type_into("input[name='argument owner']", "1").await;
    browser.click("form.call button.main").await;
    browser.await_text(".runs li:first-child.done", "Lock/page lock").await;
    let owner = "table[aria-label='Semaphores'] td:nth-child(3)";
    let owner = browser.await_texts("an owner", owner, |texts| {
        texts.iter().any(|text| text.starts_with("session "))
    });
    let owners = owner.await;
    let session = owners.iter().find_map(|text| text.strip_prefix("session "));
    let session = session.expect("it was awaited").to_owned();
    let chosen = browser.run("return document.querySelector('select[name=session]').value").await;
    assert_eq!(chosen, json!(session));
    browser.open(&format!("{}/#/sessions/{session}", stage.base())).await;
    browser.await_text("table[aria-label='Sessions']", "this page").await;
}

/// A fault that is retried fails into a new one; one that is dropped is gone.
async fn check_faults(browser: &Browser, stage: &Stage) {
    browser.open(&format!("{}/#/objects/Hostile/bad", stage.base())).await;
    let ids = "ul[aria-label='Faults'] > li > .mono:first-of-type";
    let ids = |what, wanted: fn(&[String]) -> bool| browser.await_texts(what, ids, wanted);
    let before = ids("two faults", |ids| ids.len() == 2).await;
    browser.click(&format!("button[aria-label='Drop fault {}']", before[0])).await;
    browser.click("dialog[open] .danger").await;
    assert_eq!(ids("one fault", |ids| ids.len() == 1).await, before[1..]);
    browser.click(&format!("button[aria-label='Retry fault {}']", before[1])).await;
    browser.click("dialog[open] .danger").await;
    browser.await_texts("no dialog", "dialog", <[_]>::is_empty).await;
    let gone = format!("button[aria-label='Retry fault {}']", before[1]);
    browser.await_texts("that the old one is gone", &gone, <[_]>::is_empty).await;
    assert_ne!(ids("a new fault", |ids| ids.len() == 1).await, before[1..]);
}

/// Nothing is ended without a yes.
async fn check_ends(browser: &Browser, stage: &Stage) {
    browser.open(&format!("{}/#/objects/Queue/jobs", stage.base())).await;
    let cancel = format!("button[aria-label='Cancel call {}']", stage.takers[0]);
    browser.click(&cancel).await;
    browser.await_text("dialog[open]", "Cancel call").await;
    browser.picture("question").await;
    browser.press("\u{e00c}").await;
    browser.await_texts("no dialog", "dialog", <[_]>::is_empty).await;
    stage.blocked("Queue", "jobs", 3).await;
    browser.click(&cancel).await;
    browser.click("dialog[open] .danger").await;
    stage.blocked("Queue", "jobs", 2).await;
    let left = browser.await_texts("two takers", ".waits td:last-child", |texts| {
        texts == [stage.takers[1..].join(", ")]
    });
    left.await;
    browser.open(&format!("{}/#/sessions/{}", stage.base(), stage.holder)).await;
    browser.click(&format!("button[aria-label='Close session {}']", stage.holder)).await;
    browser.click("dialog[open] .danger").await;
    browser.open(&format!("{}/#/waits", stage.base())).await;
    let owner = "article[aria-label='Lock/mail mutex'] .owners";
    browser.await_text(owner, &format!("session {}", stage.rivals[0])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_loss_of_the_majority_and_of_the_replica_is_announced() {
    let _turn = TURN.lock().await;
    let mut cluster = Cluster::start().await;
    let browser = Browser::start().await;
    browser.arrange(window(WIDE, Scheme::Dark)).await;
    browser.open(&format!("http://{}/", cluster.http_address(0))).await;
    browser.await_text("#state", "leader").await;
    for other in [1, 2] {
        cluster.kill(other);
    }
    browser.await_text("#banner[role=alert]", "No leader").await;
    browser.await_text("#state", "not serving").await;
    browser.await_texts("two that are gone", ".members .gone", |texts| texts.len() == 2).await;
    let members = browser.texts(".members").await;
    assert!(!members[0].contains("leader"), "a leader without followers is none: {members:?}");
    assert!(
        browser.run("return document.title").await.as_str().unwrap_or_default().starts_with('⚠')
    );
    browser.picture("no-leader").await;
    for other in [1, 2] {
        cluster.restart(other);
    }
    browser.await_texts("no banner", "#banner p", <[_]>::is_empty).await;
    // Which one may change once more while they come back.
    browser.await_text("#state", "leader").await;
    cluster.kill(0);
    browser.await_text("#banner", "has not answered").await;
    browser.picture("no-answer").await;
    cluster.restart(0);
    browser.await_texts("no banner", "#banner p", <[_]>::is_empty).await;
    for (source, text) in browser.complaints().await {
        assert_eq!(source, "network", "{text}");
    }
}
