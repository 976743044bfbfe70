//! Alarms: making, cancelling, and finding the next that is due.
//!
//! Invariant: `alarms`, `due`, the objects' and the sessions' sets of alarms agree.

use std::sync::Arc;

use crate::{
    limits::within,
    names::{AlarmId, MethodName, ObjectName, SessionId, Time},
    outcome::Trap,
    state::{Alarm, AlarmAction},
    sum::Sum,
    world::{World, undo::Undo},
};

impl World {
    /// The time at which something that is to happen in `nanoseconds` is due: later than now by the
    /// least delay, so that it goes off in a batch with a later stamp, and not in each.
    pub(crate) fn due_after(&self, nanoseconds: u64) -> Time {
        let least = self.state.limits().least_delay;
        assert!(least > 0, "an alarm is due later than now");
        self.state.now.after(nanoseconds.max(least))
    }

    /// Makes the end of a timed wait; what it belongs to has been counted already.
    pub(crate) fn make_alarm(
        &mut self,
        object: &ObjectName,
        due: Time,
        action: AlarmAction,
    ) -> AlarmId {
        let id = self.state.next.take_alarm();
        self.insert_alarm(id, Alarm { due: Some(due), object: object.clone(), action });
        self.record(Undo::AlarmMade(id));
        id
    }

    /// Makes a timer or watch.
    pub(crate) fn make_handler_alarm(
        &mut self,
        object: &ObjectName,
        due: Option<Time>,
        watched: Option<SessionId>,
        handler: MethodName,
        arguments: Vec<u8>,
    ) -> Result<AlarmId, Trap> {
        let limits = self.state.limits();
        let owner = &self.state.objects[object];
        let alarms = owner.alarms.len() as u64 + 1;
        within("alarms_per_object", limits.alarms_per_object, alarms)?;
        within("argument_bytes", limits.argument_bytes, arguments.len() as u64)?;
        let incarnation = owner.incarnation;
        let action = AlarmAction::Handler { incarnation, handler, arguments, watched };
        let id = self.state.next.take_alarm();
        self.insert_alarm(id, Alarm { due, object: object.clone(), action });
        self.record(Undo::AlarmMade(id));
        Ok(id)
    }

    /// Cancels an alarm. False when there is none.
    pub(crate) fn cancel_alarm(&mut self, id: AlarmId) -> bool {
        let Some(alarm) = self.drop_alarm(id) else {
            return false;
        };
        self.record(Undo::AlarmGone(id, alarm));
        true
    }

    /// Takes the next alarm that is due, if there is one.
    pub(crate) fn take_due(&mut self) -> Option<(AlarmId, Alarm)> {
        let &(due, id) = self.state.due.get_min()?;
        if due > self.state.now {
            return None;
        }
        let alarm = self.drop_alarm(id).expect("what is due is an alarm");
        Some((id, alarm))
    }

    /// Adds an alarm under a number that was drawn for it. Whoever may have to take it back records
    /// that.
    pub(crate) fn insert_alarm(&mut self, id: AlarmId, alarm: Alarm) {
        self.state.adjust_object(&alarm.object, Sum::default(), alarm.record(id));
        if let Some(due) = alarm.due {
            self.state.due.insert((due, id));
        }
        if let AlarmAction::Handler { watched, .. } = &alarm.action {
            let object = self.state.object_mut(&alarm.object).expect("it was just found");
            object.alarms.insert(id);
            if let (None, Some(session)) = (alarm.due, watched) {
                // Undoing the clean-up of a session that is over brings back a watch that its end
                // sets off right after.
                if let Some(session) = self.state.session_mut(session) {
                    session.watches.insert(id);
                }
            }
        }
        self.state.alarms.insert(id, Arc::new(alarm));
    }

    pub(crate) fn drop_alarm(&mut self, id: AlarmId) -> Option<Alarm> {
        let alarm = self.state.alarms.remove(&id)?;
        self.state.adjust_object(&alarm.object, alarm.record(id), Sum::default());
        if let Some(due) = alarm.due {
            self.state.due.remove(&(due, id));
        }
        if let AlarmAction::Handler { watched, .. } = &alarm.action {
            let object = self.state.object_mut(&alarm.object).expect("it was just found");
            object.alarms.remove(&id);
            if let Some(session) = watched.and_then(|id| self.state.session_mut(&id)) {
                session.watches.remove(&id);
            }
        }
        Some(Arc::unwrap_or_clone(alarm))
    }
}
