//! Faults: when they happen, and what they are.
//!
//! Not here: loss and doubling of clients' messages, which happen all the time (`mod.rs`); what a
//! power cut does to a disk (`disk.rs`).

use gesmas::log::repo::Lack;
use gesmas_machine::{Acknowledged, Ballot, LogEntry};

use super::{Cluster, Event, process::Input, router::Connection, stage::Stage};
use crate::{
    clients::Client,
    messages::Ask,
    options::Plant,
    schedule::{MILLISECOND, SECOND},
    verdict::Checked,
};

/// A connection that no client has.
const STRANGER: Connection = (usize::MAX, 0);

/// Ranges that one message may have.
const FLOOD_RANGES: u64 = 1_024;

impl Cluster {
    /// A fault happens, and the next is scheduled.
    pub(super) fn fault(&mut self) -> Checked {
        if !matches!(self.stage, Stage::Faults { .. }) {
            return Ok(());
        }
        let next = self.prng.between(20, self.profile.pace / MILLISECOND) * MILLISECOND;
        self.schedule.after(next, Event::Fault);
        self.plant();
        let host = self.prng.index(self.hosts.len());
        let client = self.prng.index(self.clients.len());
        if self.profile.miscomputes == Some(host) && self.prng.permille(300) {
            self.miscompute(host);
        }
        if self.profile.loses_disk == Some(host) && self.prng.permille(100) {
            self.lose_disk(host);
        }
        match self.prng.below(110) {
            100..103 => self.hush(),
            103..106 => {
                let cancel_pinned = self.prng.permille(500);
                let process = self.hosts[host].process.as_mut();
                if let Some(process) = process.filter(|process| !process.is_closing()) {
                    process.try_replacement(cancel_pinned);
                }
            }
            106..109 => self.flood(host),
            0..10 => self.crash(host),
            10..22 => self.crash_in_turn(host),
            22..25 => self.cut_all_power(),
            25..35 => self.pause(host),
            35..43 => self.jump(host),
            43..53 => self.break_link(),
            53..56 => self.fill_disk(host),
            56..57 => self.fail_sync(host),
            57..58 => {
                self.counts.read_errors += 1;
                self.hosts[host].disk.fail_read();
                self.hosts[host].read_badly = true;
            }
            58..66 => self.clog(),
            66..71 => self.split(),
            71..76 => self.isolate_leader(),
            76..85 => self.split_one_way(),
            85..92 => {
                self.counts.client_deaths += 1;
                let until = self.schedule.now() + self.prng.below(3 * SECOND);
                self.with_client(client, |client, around| client.die(until, around))?;
            }
            92..96 => {
                self.counts.client_silences += 1;
                let until = self.schedule.now() + self.prng.below(7 * SECOND);
                self.clients[client].fall_silent(until);
            }
            96..98 => self.transfer(host),
            _ => self.with_client(client, Client::move_on),
        }
        Ok(())
    }

    /// One replica gets an entry that is in no log, once.
    fn plant(&mut self) {
        if self.options.plant != Some(Plant::ExtraEntry) || self.planted {
            return;
        }
        let planted = self.hosts.iter_mut().find_map(|host| host.process.as_mut());
        if let Some(process) = planted
            && process.replica.machine().step().0 > 20
        {
            let now = process.replica.machine().now().after(1);
            let entry = LogEntry::LeaderStart { ballot: Ballot::default(), now };
            let twice = process.replica.machine().genesis().cloned().map(Box::new);
            let machine = process.replica.machine_mut();
            let entry = twice.map_or(entry, LogEntry::Genesis);
            machine.handle_entry(entry).expect("it is of this group");
            self.planted = true;
        }
    }

    /// The power fails within the next turns: before a write, between write and sync, after it.
    fn crash_in_turn(&mut self, host: usize) {
        if self.hosts[host].process.is_none() {
            return;
        }
        let steps = self.prng.below(6);
        self.hosts[host].disk.fail_after(steps);
        self.hosts[host].doomed = true;
        let life = self.hosts[host].life;
        self.schedule.after(SECOND, Event::Crash { host, life });
    }

    /// There is no room on a disk for a while, or no file descriptor for another file.
    fn fill_disk(&mut self, host: usize) {
        let lack = if self.prng.permille(500) {
            self.counts.full_disks += 1;
            Lack::Room
        } else {
            self.counts.scarce_descriptors += 1;
            Lack::Descriptor
        };
        self.hosts[host].set_lack(Some(lack));
        let length = self.prng.between(100, 5_000) * MILLISECOND;
        self.trace.tell(self.schedule.now(), || format!("replica {} lacks {lack:?}", host + 1));
        self.schedule.after(length, Event::Room(host));
    }

    /// Clients ask for nothing for a while: whatever happens then happens by itself.
    fn hush(&mut self) {
        self.counts.hushes += 1;
        self.hush_until = self.schedule.now() + self.prng.between(500, 5_000) * MILLISECOND;
        self.trace.tell(self.schedule.now(), || "clients ask for nothing".into());
    }

    /// A stranger acknowledges at one replica, for every session that there is, as many ranges of
    /// replies as a message may have, of numbers that nobody has used.
    pub(super) fn flood(&mut self, host: usize) {
        self.counts.floods += 1;
        let ranges = (0..FLOOD_RANGES).map(|at| (u64::MAX / 2 + 2 * at, u64::MAX / 2 + 2 * at));
        let acknowledged = Acknowledged { replies: ranges.collect(), events: 0 };
        let sessions: Vec<_> = self.clients.iter().filter_map(Client::session).collect();
        for session in sessions {
            let acknowledged = acknowledged.clone();
            self.input(host, Input::Client(STRANGER, Ask::Acknowledge { session, acknowledged }));
        }
    }

    /// The next sync of a log fails. What was written stays in the system's memory until the power goes.
    fn fail_sync(&mut self, host: usize) {
        if self.hosts[host].process.is_some() {
            self.hosts[host].fail_sync(true);
            self.trace.tell(self.schedule.now(), || format!("a sync of {} will fail", host + 1));
        }
    }

    fn cut_all_power(&mut self) {
        self.counts.power_cuts += 1;
        (0..self.hosts.len()).for_each(|host| self.crash(host));
    }

    /// A replica is asked to lead, as an operator asks, whoever leads. Often its power fails at that:
    /// then it may have promised itself a ballot that nobody has heard of.
    fn transfer(&mut self, host: usize) {
        let process = self.hosts[host].process.as_mut().filter(|process| !process.is_closing());
        let asked = process.map(|process| process.replica.handle_take_lead());
        self.trace.tell(self.schedule.now(), || format!("{} is to lead: {asked:?}", host + 1));
        if asked == Some(Ok(())) && self.prng.permille(500) {
            self.crash_in_turn(host);
        }
    }

    fn pause(&mut self, host: usize) {
        self.counts.pauses += 1;
        let length = self.prng.between(50, 4_000) * MILLISECOND;
        let until = self.schedule.now() + length;
        // A pause within another one does not end it.
        let paused_until = &mut self.hosts[host].paused_until;
        *paused_until = until.max(*paused_until);
        self.trace.tell(self.schedule.now(), || format!("replica {} pauses", host + 1));
    }

    fn jump(&mut self, host: usize) {
        self.counts.clock_jumps += 1;
        let by = self.prng.below(7_200 * SECOND);
        let wall = &mut self.hosts[host].wall;
        *wall = if self.prng.permille(500) { *wall + by } else { wall.saturating_sub(by) };
    }

    fn other(&mut self, host: usize) -> usize {
        let other = self.prng.index(self.hosts.len() - 1);
        if other < host { other } else { other + 1 }
    }

    fn pair(&mut self) -> (usize, usize) {
        let from = self.prng.index(self.hosts.len());
        (from, self.other(from))
    }

    fn break_link(&mut self) {
        self.counts.link_breaks += 1;
        let (from, to) = self.pair();
        self.links[from][to].break_off(&mut self.prng);
        self.trace.tell(self.schedule.now(), || format!("link {} to {} breaks", from + 1, to + 1));
    }

    fn clog(&mut self) {
        self.counts.clogs += 1;
        let (from, to) = self.pair();
        let length = self.prng.between(10, 3_000) * MILLISECOND;
        self.hold(from, to, length, false);
    }

    /// One side of the cluster does not reach the other.
    fn split(&mut self) {
        self.counts.splits += 1;
        let length = self.prng.between(100, 4_000) * MILLISECOND;
        let sides: Vec<_> = self.hosts.iter().map(|_| self.prng.permille(500)).collect();
        let breaks = self.prng.permille(500);
        for from in 0..sides.len() {
            for to in 0..sides.len() {
                if sides[from] != sides[to] {
                    self.hold(from, to, length, breaks);
                }
            }
        }
    }

    /// Nobody reaches the leader for a while, clients apart: it is deposed and does not hear of it.
    fn isolate_leader(&mut self) {
        let leads = |host: &super::Host| {
            host.process.as_ref().is_some_and(|process| process.replica.is_leading())
        };
        let Some(leader) = self.hosts.iter().position(leads) else { return };
        self.counts.isolated_leaders += 1;
        let length = self.prng.between(500, 4_000) * MILLISECOND;
        for other in (0..self.hosts.len()).filter(|other| *other != leader) {
            self.hold(leader, other, length, false);
            self.hold(other, leader, length, false);
        }
    }

    fn split_one_way(&mut self) {
        self.counts.one_way_splits += 1;
        let length = self.prng.between(100, 4_000) * MILLISECOND;
        let breaks = self.prng.permille(500);
        let host = self.prng.index(self.hosts.len());
        let inward = self.prng.permille(500);
        for other in (0..self.hosts.len()).filter(|other| *other != host) {
            let (from, to) = if inward { (other, host) } else { (host, other) };
            self.hold(from, to, length, breaks);
        }
    }

    /// A link stands still, or breaks and cannot be made anew, for a while.
    pub(super) fn hold(&mut self, from: usize, to: usize, length: u64, breaks: bool) {
        let link = &mut self.links[from][to];
        if breaks {
            link.forbidden = true;
            link.break_off(&mut self.prng);
        } else {
            link.held = true;
        }
        self.trace.tell(self.schedule.now(), || {
            format!("link {} to {} fails ({breaks}) for {length}", from + 1, to + 1)
        });
        self.schedule.after(length, Event::Release { from, to, forbidden: breaks });
    }

    /// A link is in order again. Another fault that overlapped ends with this one.
    pub(super) fn release(&mut self, from: usize, to: usize, forbidden: bool) {
        if self.stage.keeps_apart(from, to) {
            return;
        }
        let link = &mut self.links[from][to];
        if forbidden {
            link.forbidden = false;
        } else {
            link.held = false;
        }
        self.pump(from, to);
    }
}
