//! Alarms that are due: each is a step of its own, before the commands of its batch.

use crate::{
    engine::Engine,
    machine::Machine,
    names::AlarmId,
    planted::PlantedBug,
    state::{Alarm, AlarmAction},
};

impl<E: Engine> Machine<E> {
    pub(crate) fn alarm_step(&mut self, id: AlarmId, alarm: Alarm) {
        match alarm.action {
            AlarmAction::Deadline(invocation) => self.deadline(invocation),
            AlarmAction::WaitTimeout(invocation) => self.wait_timeout(invocation),
            AlarmAction::Handler { .. } => {
                if self.world.planted.has(PlantedBug::TimerTwice) {
                    self.ring(id, alarm.clone());
                }
                self.ring(id, alarm);
            }
        }
    }
}
